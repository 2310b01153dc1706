//! The contract of [`Engine`], as tests for every implementation.
//!
//! An engine wraps the place where it keeps its data in [`Disk`] and writes one line in a test
//! file:
//!
//! ```text
//! varve_records::engine_contract!(MyDisk::new());
//! ```
//!
//! That makes one test of each case, named after the behaviour that it checks, each on a new disk.
//!
//! | module | what it checks |
//! |---|---|
//! | [`create`], [`spend`], [`unspend`] | units, and taking them back |
//! | [`order`] | of two faults the earlier one is reported: all pairs |
//! | [`alert`] | freezing, windows, reassignment |
//! | [`life`], [`conflict`] | blocks, locks, conflicts |
//! | [`longest_chain`], [`double_spend`] | stories of several blocks, through a whole store |
//! | [`resolution`], [`pending`] | who may win a double spend, and intents that were left behind |
//! | [`expiry`] | the schedule of removal, preservation, pruning |
//! | [`paging`], [`reading`] | records of many parts; fields, slots, scans |
//! | [`crowd`] | many at once |
//! | [`trouble`] | what is known to have gone wrong elsewhere |
//! | [`random`] | walks at random beside the oracle, with crashes |
//! | `postgres` | a real server to run all of it on |
//!
//! The transactions are small and made by hand ([`draft`]); they are not valid in other ways.

#![expect(clippy::indexing_slicing, reason = "a test of a contract may panic")]

pub mod alert;
pub mod conflict;
pub mod create;
pub mod crowd;
pub mod double_spend;
pub mod draft;
pub mod expiry;
pub mod life;
mod list;
pub mod longest_chain;
mod node;
pub mod order;
pub mod paging;
pub mod pending;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod random;
pub mod reading;
pub mod resolution;
pub mod spend;
pub mod trouble;
pub mod unspend;

use varve_types::{Height, Outpoint, Txid};

use crate::engine::{Context, Engine, Scan};
use crate::error::{RecordError, SlotError};
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::intent::Intent;
use crate::key::BatchSize;
use crate::memory::{MemoryDisk, MemoryEngine};
use crate::operation::{MinedBlockInfo, Operation, SpendRules, Unit};
use crate::outcome::{Failure, Outcome, Pruned, Reply};
use crate::prepare::CreateOptions;
use crate::record::{BlockId, BlockRef, Record};
use crate::settings::Settings;
use crate::slot::Slot;
use crate::store::Store;
use draft::{Coin, TxDraft};

/// Bytes that the cache of a store keeps of external transactions.
pub const EXTERNAL_CACHE: u64 = crate::blob::CACHE_CAPACITY;
pub use crate::embedded::index_suite as index;
/// The highest output number of an outputs-only import.
pub const MAX_IMPORTED_INDEX: u32 = crate::prepare::MAX_IMPORTED_INDEX;

/// The transactions that have files among the blobs of a store.
pub fn blobs_of(store: &Store) -> Vec<Txid> {
    store.blobs().page(None, usize::MAX).expect("the blobs can be listed").txids
}

/// Where an engine keeps what survives it.
pub trait Disk: Sync {
    /// The engine.
    type Engine: Engine;

    /// Opens it with everything that was acknowledged. The one opened before is gone.
    fn open(&self) -> Self::Engine;

    /// The power fails: what was not synced is lost. The engine is gone by then.
    fn crash(&self) {}
}

impl Disk for MemoryDisk {
    type Engine = MemoryEngine;

    fn open(&self) -> MemoryEngine {
        MemoryEngine::open(self.clone())
    }
}

/// The height at which every case begins.
const START: Height = Height::new(100);
/// Blocks until a record is removed.
const RETENTION: u32 = 10;

/// An engine in a world with a height.
struct World<E> {
    engine: E,
    context: Context,
    settings: Settings,
}

impl<E: Engine> World<E> {
    fn new(engine: E) -> Self {
        let context = Context { height: START, retention: RETENTION };
        let batch = BatchSize::new(4).expect("not zero");
        Self { engine, context, settings: Settings { batch, ..Settings::default() } }
    }

    fn outcome(&self, operation: impl Into<Operation>) -> Outcome {
        let outcomes = self.engine.apply(&self.context, &[operation.into()]);
        let [outcome] = outcomes.expect("the storage works").try_into().expect("one for one");
        outcome
    }

    /// Does what must succeed.
    fn ok(&self, operation: impl Into<Operation>) -> Reply {
        self.outcome(operation).result.expect("it must succeed")
    }

    /// Does what a rule may forbid.
    fn attempt(&self, operation: impl Into<Operation>) -> Result<Reply, RecordError> {
        self.outcome(operation).result.map_err(|failure| match failure {
            Failure::Refused(error) => error,
            other => panic!("the storage works: {other}"),
        })
    }

    /// Does what must be refused.
    fn refusal(&self, operation: impl Into<Operation>) -> RecordError {
        self.attempt(operation).expect_err("it must be refused")
    }

    /// The whole record.
    fn record(&self, txid: Txid) -> Record {
        self.find(txid).expect("there is a record")
    }

    fn find(&self, txid: Txid) -> Option<Record> {
        let records = self.engine.read(&[txid], Fields::ALL).expect("the storage works");
        let [record] = records.try_into().expect("one for one");
        record
    }

    fn slot(&self, outpoint: Outpoint) -> Slot {
        let views = self.engine.slots(&[outpoint]).expect("the storage works");
        views[0].as_ref().and_then(|view| view.slot).expect("there is a slot")
    }

    /// Every record that matches, sorted.
    fn scan(&self, scan: Scan) -> Vec<Txid> {
        scan_all(&self.engine, scan, 3)
    }

    /// All intents.
    fn intents(&self) -> Vec<Intent> {
        all_intents(&self.engine)
    }

    fn options(&self) -> CreateOptions {
        CreateOptions { height: self.context.height, created_at: 7, ..CreateOptions::default() }
    }

    /// Options for what is in block 1 already.
    fn mined(&self) -> CreateOptions {
        CreateOptions { blocks: vec![block(1, 90)], ..self.options() }
    }

    fn rules(&self) -> SpendRules {
        SpendRules::at(self.context.height.checked_add(1).expect("a small height"))
    }

    fn create(&self, tx: &Transaction, options: &CreateOptions) -> Unit {
        Unit::create(tx, options, &self.settings).expect("a test knows what can be created")
    }

    fn spend(&self, tx: &Transaction) -> Unit {
        Unit::spend(tx, self.rules()).expect("a test spends what is extended")
    }

    fn spend_and_create(&self, tx: &Transaction) -> Unit {
        Unit { create: self.create(tx, &self.options()).create, ..self.spend(tx) }
    }

    /// A record that is in a block, with `outputs` outputs.
    fn root(&self, tag: u32, outputs: u32) -> Transaction {
        let tx = TxDraft::root(tag, outputs).build();
        self.ok(self.create(&tx, &self.mined()));
        tx
    }

    /// A record that spends these coins and has `outputs` outputs.
    fn child(&self, coins: &[Coin], outputs: u32) -> Transaction {
        let tx = TxDraft::spending(coins, outputs).build();
        self.ok(self.spend_and_create(&tx));
        tx
    }

    fn set_mined(&self, txid: Txid, id: u32, height: u32) -> Reply {
        self.ok(Operation::SetMined { txid, info: mined_in(id, height) })
    }

    fn prune(&self, txid: Txid, height: u32) -> Pruned {
        let height = Height::new(height);
        match self.ok(Operation::Prune { txid, height }) {
            Reply::Pruned(pruned) => pruned,
            other => panic!("pruning answers otherwise: {other:?}"),
        }
    }
}

/// Every record that matches, sorted, asked for in pages.
fn scan_all(engine: &(impl Engine + ?Sized), scan: Scan, page: usize) -> Vec<Txid> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let found = engine.scan(scan, cursor, page).expect("the storage works");
        assert!(found.txids.len() <= page, "no more than were asked for");
        all.extend(found.txids);
        cursor = found.next;
        if cursor.is_none() {
            break;
        }
    }
    all.sort();
    all
}

/// All intents, asked for in pages.
fn all_intents(engine: &(impl Engine + ?Sized)) -> Vec<Intent> {
    let mut all: Vec<Intent> = Vec::new();
    loop {
        let found = engine.intents(all.last().map(Intent::id), 2).expect("the storage works");
        assert!(found.len() <= 2, "no more than were asked for");
        if found.is_empty() {
            return all;
        }
        all.extend(found);
    }
}

/// A block.
const fn block(id: u32, height: u32) -> BlockRef {
    BlockRef { id: BlockId(id), height: Height::new(height), subtree: id % 3 }
}

/// A block on the longest chain.
const fn mined_in(id: u32, height: u32) -> MinedBlockInfo {
    MinedBlockInfo { block: block(id, height), on_longest_chain: true, unset: false }
}

/// What is wrong with the inputs of a refused spend.
fn errors(error: &RecordError) -> Vec<Option<SlotError>> {
    error.items().iter().map(|item| item.error).collect()
}
