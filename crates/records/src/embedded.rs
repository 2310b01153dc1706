//! The durable engine: a log of its own, and an index in memory and in sorted runs.
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
//! | `commit` | group commit: how callers execute, write and wait |
//! | `overlay`, `working` | the working set of a group of operations |
//! | `flush` | how it is written |
//! | `log`, `group`, `entry` | the log, its frames, its entries |
//! | `state`, `chunk`, `body`, `intent`, `number` | what entries hold |
//! | `index`, `key`, `lookup` | where the newest versions lie |
//! | `options` | sizes, and the split of a memory budget |
//! | `checkpoint`, `open` | how the index comes back |
//! | `fetch`, `facts` | what operations need is brought into memory before the lock is taken |
//! | `keeper`, `maintain` | how memory stays bounded and recovery quick |
//! | `clean` | how the log stays short |
//! | `read`, `scan`, `slots` | readers |
//!
//! Every byte is drawn in `docs/format/records.md`, and the reasons are in
//! `docs/adr/0011-records-engine.md`.

mod base;
pub(crate) mod body;
mod checkpoint;
pub(crate) mod chunk;
mod clean;
mod commit;
mod entry;
mod facts;
mod fetch;
mod flush;
mod group;
mod index;
pub(crate) mod intent;
mod keeper;
mod key;
mod log;
mod lookup;
mod maintain;
mod number;
mod open;
mod options;
mod overlay;
mod read;
mod scan;
pub(crate) mod slots;
pub(crate) mod state;
mod working;

use std::sync::Arc;

use varve_io::{LockGuard, Storage};
use varve_types::{Outpoint, Txid};

use crate::engine::{
    Context, Cursor, Engine, EngineError, EngineStatus, Limits, Scan, ScanPage, SlotView,
};
use crate::fields::Fields;
use crate::intent::{Intent, IntentId};
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
pub use options::{EmbeddedOptions, StoreKey};

/// The highest `body_limit`: an entry's length has 32 bits.
const LONGEST_BODY: u64 = 1 << 30;

/// Records in a directory.
#[derive(Debug)]
pub struct EmbeddedEngine {
    commit: Commit,
    limits: Limits,
    /// Bytes of the index beyond which no records are created.
    index_limit: u64,
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
        let limits = Limits { body: options.body_limit.min(LONGEST_BODY), ..Limits::NONE };
        Ok(Self { commit, limits, index_limit: options.index_limit(), _lock: lock })
    }

    /// Fails when the index leaves no room for more records. The operations of other callers that
    /// are under way are not counted: the limit may be passed by one group.
    fn check_room(&self) -> Result<(), EngineError> {
        let (memory, limit) = (self.commit.index()?.memory(), self.index_limit);
        if memory > limit { Err(EngineError::Full { memory, limit }) } else { Ok(()) }
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
        if operations.iter().any(Operation::creates) {
            self.check_room()?;
        }
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

    fn intents(&self, after: Option<IntentId>, limit: usize) -> Result<Vec<Intent>, EngineError> {
        self.commit.intents(after, limit)
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
            memory_limit: Some(self.index_limit),
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
