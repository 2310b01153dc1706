//! The durable engine: an own log, and an index in memory and in sorted runs.
//!
//! ```text
//!  apply ─► execute on the overlay ─► one append, one sync ─► publish in the index
//!            rules over `working`       `flush`, `log`         `commit`
//!  read  ─► index ─► log
//! ```
//!
//! A record lies in the log as a *state* (all that changes, with the first eight slots), a *body*
//! (the transaction and its inputs, written once) and, for more than eight outputs, *chunks* of
//! eight further slots each. A change appends a new version of the state, and of the chunk that it
//! touches; nothing is ever overwritten. The index says where the newest version of each lies: in
//! 24 bytes of memory for what changed lately or is in a list that scans go through, in 16 bytes of
//! a run on disk and some 1.2 bytes of memory for everything else.
//!
//! | file | is |
//! |---|---|
//! | `commit` | who executes, who writes, who waits: the order of everything |
//! | `overlay`, `working` | what a group of operations has at hand |
//! | `flush` | how it is written |
//! | `log`, `group`, `entry` | the log, its frames, its entries |
//! | `state`, `chunk`, `body`, `intent`, `number` | what entries hold |
//! | `index`, `key`, `lookup` | where the newest versions lie |
//! | `checkpoint`, `open` | how the index comes back |
//! | `fetch`, `facts` | what operations need is brought into memory before the lock is taken |
//! | `keeper`, `maintain` | how memory stays bounded and recovery quick |
//! | `clean` | how the log stays short |
//! | `read`, `scan` | readers |
//!
//! Every byte is drawn in `docs/format/records.md`, and the reasons are in
//! `docs/adr/0011-records-engine.md`.

mod base;
mod body;
mod checkpoint;
mod chunk;
mod clean;
mod commit;
mod entry;
mod facts;
mod fetch;
mod flush;
mod group;
mod index;
mod intent;
mod keeper;
mod key;
mod log;
mod lookup;
mod maintain;
mod number;
mod open;
mod overlay;
mod read;
mod scan;
mod state;
mod working;

use std::fmt;
use std::sync::Arc;

use varve_io::{LockGuard, Storage, StoreId};
use varve_types::{Outpoint, Txid};

use crate::engine::{
    Context, Cursor, Engine, EngineError, EngineStatus, Limits, Scan, ScanPage, SlotView,
};
use crate::fields::Fields;
use crate::intent::Intent;
use crate::operation::Operation;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::rules;
use commit::{Commit, storage};
use index::Totals;
#[cfg(feature = "test-suite")]
pub use index::suite as index_suite;
#[cfg(test)]
use maintain::Disk;
use varve_runs::Compaction;

/// The longest body that a store can be told to take: an entry's length has 32 bits.
const LONGEST_BODY: u64 = 1 << 30;

/// What a store is known by. Both are drawn at random by whoever makes the store; a store that
/// exists keeps its own.
#[derive(Clone, Copy)]
pub struct StoreKey {
    /// In every file and frame: bytes of another store do not verify.
    pub id: StoreId,
    /// Decides where the index puts keys, so that nobody outside can.
    pub secret: [u8; 16],
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// How a store is kept.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedOptions {
    /// What a new store is known by.
    pub key: StoreKey,
    /// Bytes of a file of the log.
    pub segment_size: u64,
    /// Bytes of the log's youngest files that are kept in memory, beside the last one.
    pub cache: u64,
    /// Bytes of the log between two checkpoints of the index, at least.
    pub checkpoint_every: u64,
    /// Bytes of memory for the index: a quarter for what changed since the last checkpoint, half
    /// for the filter of the largest run, which is less precise, or is not kept at all, when that
    /// is too little. Records that are in a list come on top: see [`EngineStatus::memory`].
    pub memory: u64,
    /// Where checkpoints and merges of the index are done.
    pub upkeep: Compaction,
    /// The longest transaction in a record.
    pub body_limit: u64,
}

impl EmbeddedOptions {
    /// The usual sizes.
    #[must_use]
    pub const fn new(key: StoreKey) -> Self {
        Self {
            key,
            segment_size: 128 << 20,
            cache: 256 << 20,
            checkpoint_every: 256 << 20,
            memory: 512 << 20,
            upkeep: Compaction::Threads,
            body_limit: 32 << 20,
        }
    }

    /// The same for a process that may take so many bytes. Less than the usual 2 GiB makes smaller
    /// files and keeps less of them in memory; the index gets a quarter. What records in lists take
    /// is not bounded by it: see [`EngineStatus::memory`].
    #[must_use]
    pub fn within(self, memory: u64) -> Self {
        let cache = self.cache.min(memory / 8);
        let segment_size = self.segment_size.min(memory / 16).max(4 << 20);
        Self { cache, segment_size, memory: memory / 4, ..self }
    }
}

/// Records in a directory.
#[derive(Debug)]
pub struct EmbeddedEngine {
    commit: Commit,
    limits: Limits,
    _lock: LockGuard,
}

impl EmbeddedEngine {
    /// Opens the store in a directory, or makes one.
    pub fn open(
        directory: Arc<dyn Storage>,
        options: EmbeddedOptions,
    ) -> Result<Self, EngineError> {
        let lock = directory.lock().map_err(storage)?;
        let commit = open::open_store(&directory, &options).map_err(storage)?;
        commit.tend()?;
        let limits = Limits { body: options.body_limit.min(LONGEST_BODY) };
        Ok(Self { commit, limits, _lock: lock })
    }

    /// Makes a checkpoint of the whole index now.
    #[cfg(test)]
    pub(crate) fn checkpoint(&self) -> Result<(), EngineError> {
        self.commit.with_disk(Disk::checkpoint)
    }
}

impl Engine for EmbeddedEngine {
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError> {
        let fetch = || self.commit.fetch_for(operations);
        self.commit.run(fetch, |work| {
            // A transaction that spends one output touches two records.
            work.open.reserve(2 * operations.len());
            let apply = |operation| rules::apply(work, context, self.limits, operation);
            operations.iter().map(apply).collect()
        })
    }

    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError> {
        self.commit.read(txids, fields)
    }

    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError> {
        self.commit.slots(outpoints)
    }

    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        self.commit.scan(scan, after, limit)
    }

    fn intents(&self) -> Result<Vec<Intent>, EngineError> {
        self.commit.intents()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        let index = self.commit.index()?;
        let log = &self.commit.base.log;
        let Totals { keys, live } = index.totals();
        let status = EngineStatus {
            keys,
            intents: index.intents().count() as u64,
            memory: index.memory(),
            live,
            stored: log.end().since(log.start()).unwrap_or(0),
            trouble: None,
        };
        // The lock of the groups is taken before that of the index, never behind it.
        drop(index);
        let trouble = self.commit.trouble()?.map(|error| error.to_string());
        Ok(EngineStatus { trouble, ..status })
    }
}

#[cfg(test)]
mod tests;
