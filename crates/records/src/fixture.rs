//! What the tests of the store and of its processes share.
//!
//! [`everywhere`] runs a test on every engine. Transactions are made by [`root`] and [`child`];
//! they are not valid in any other way than that their amounts add up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use varve_consensus::contract::draft::{InputDraft, OutputDraft, TxDraft};
use varve_io::StoreId;
use varve_io::faulty::FaultyStorage;
use varve_types::{Amount, Format, Height, Outpoint, TxOut, Txid};

use crate::blob::{Blobs, Fanout, ObjectBucket};
use crate::block_state::BlockState;
use crate::contract::Disk as _;
use crate::contract::postgres::Server;
use crate::embedded::{EmbeddedEngine, EmbeddedOptions, StoreKey};
use crate::engine::{
    Context, Cursor, Engine, EngineError, EngineStatus, Limits, Scan, ScanPage, SlotView,
};
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::intent::{Intent, IntentId};
use crate::memory::{MemoryDisk, MemoryEngine};
use crate::operation::{MinedBlockInfo, Operation, SlotRef, SpendRules};
use crate::outcome::Outcome;
use crate::prepare::CreateOptions;
use crate::record::{BlockId, BlockRef, Record};
use crate::settings::Settings;
use crate::store::Store;
use crate::utxo_hash::UtxoHash;
use varve_runs::Compaction;

/// The height of the tip when a test begins.
pub(crate) const TIP: Height = Height::new(100);
/// The height of the next block.
pub(crate) const NEXT: Height = Height::new(101);

/// Makes an empty engine.
type NewEngine = fn() -> Arc<dyn Engine>;

/// Every engine, by name.
const ENGINES: &[(&str, NewEngine)] =
    &[("memory", || Arc::new(MemoryEngine::open(MemoryDisk::default()))), ("embedded", embedded)];

/// A durable engine on a disk in memory.
fn embedded() -> Arc<dyn Engine> {
    let key = StoreKey { id: StoreId([1; 16]), secret: [7; 16] };
    let options = EmbeddedOptions {
        segment_size: 4 << 20,
        cache: 16 << 20,
        checkpoint_every: 8 << 20,
        upkeep: Compaction::Inline,
        ..EmbeddedOptions::new(key)
    };
    Arc::new(EmbeddedEngine::open(Arc::new(FaultyStorage::new(1)), options).unwrap())
}

/// Runs a test on an empty store of every engine.
pub(crate) fn everywhere(test: impl Fn(&Store)) {
    for (_, new) in ENGINES {
        test(&store(new()));
    }
}

/// The same with an engine to build stores on, and on PostgreSQL where it is installed.
pub(crate) fn with_engines(test: impl Fn(NewEngine)) {
    for (_, new) in ENGINES {
        test(*new);
    }
    if Server::shared().is_some() {
        test(postgres);
    }
}

/// Records in a schema that nobody has used.
fn postgres() -> Arc<dyn Engine> {
    Arc::new(Server::shared().expect("it runs").disk().open())
}

/// A store with blobs in memory.
pub(crate) fn store(engine: Arc<dyn Engine>) -> Store {
    store_with(engine, Blobs::new(ObjectBucket::memory(), Fanout::None), Settings::default())
}

/// A store at [`TIP`].
pub(crate) fn store_with(engine: Arc<dyn Engine>, blobs: Blobs, settings: Settings) -> Store {
    let store = Store::new(engine, blobs, settings, Box::new(|| 0));
    store.set_block_state(BlockState { height: TIP, median_time: 1_600_000_000 }).unwrap();
    store
}

/// A transaction whose parent is not here.
pub(crate) fn root(salt: u32, outputs: usize) -> Transaction {
    let mut parent = [0xee; 32];
    parent[..4].copy_from_slice(&salt.to_le_bytes());
    let outpoint = Outpoint::new(Txid::from_bytes(parent), 0);
    let spent = OutputDraft { value: 100_000_000, script: vec![0x51] };
    transaction(&[(outpoint, spent)], outputs, salt)
}

/// A transaction that spends outputs of others. The salt distinguishes those that spend the same.
pub(crate) fn child(parents: &[(&Transaction, u32)], outputs: usize, salt: u32) -> Transaction {
    let spent = |(tx, vout): &(&Transaction, u32)| {
        let output = tx.view().outputs().nth(*vout as usize);
        let output = output.unwrap_or(TxOut { value: Amount::from_sat(1), script: &[0x51] });
        let script = output.script.to_vec();
        let output = OutputDraft { value: output.value.to_sat(), script };
        (Outpoint::new(tx.txid(), *vout), output)
    };
    transaction(&parents.iter().map(spent).collect::<Vec<_>>(), outputs, salt)
}

fn transaction(inputs: &[(Outpoint, OutputDraft)], outputs: usize, salt: u32) -> Transaction {
    let total: u64 = inputs.iter().map(|(_, spent)| spent.value).sum();
    let value = total / outputs as u64;
    let input = |(outpoint, _): &(Outpoint, OutputDraft)| InputDraft {
        outpoint: *outpoint,
        script: salt.to_le_bytes().to_vec(),
        sequence: u32::MAX,
        witness: Vec::new(),
    };
    let draft = TxDraft {
        version: 1,
        inputs: inputs.iter().map(input).collect(),
        outputs: vec![OutputDraft { value, script: vec![0x51] }; outputs],
        lock_time: 0,
    };
    let tx = Transaction::parse(draft.bytes().into(), Format::Legacy).unwrap();
    let spent = inputs
        .iter()
        .map(|(_, output)| TxOut { value: Amount::from_sat(output.value), script: &output.script });
    tx.extend(&spent.collect::<Vec<_>>()).unwrap()
}

/// An output of a transaction.
pub(crate) fn slot(tx: &Transaction, vout: u32) -> SlotRef {
    let outpoint = Outpoint::new(tx.txid(), vout);
    let output = tx.view().outputs().nth(vout as usize).unwrap();
    SlotRef { outpoint, hash: UtxoHash::of(&outpoint, &output) }
}

/// A block of the longest chain.
pub(crate) fn mined(id: u32, height: u32) -> MinedBlockInfo {
    let block = BlockRef { id: BlockId(id), height: Height::new(height), subtree: 0 };
    MinedBlockInfo { block, on_longest_chain: true, unset: false }
}

/// What new records get: created at the next height, each later than the one before.
pub(crate) fn options() -> CreateOptions {
    static TIME: AtomicU64 = AtomicU64::new(1);
    let created_at = TIME.fetch_add(1, Ordering::Relaxed);
    CreateOptions { height: NEXT, created_at, ..CreateOptions::default() }
}

impl Store {
    /// Creates a record that is mined in block 1.
    pub(crate) fn add_mined(&self, tx: &Transaction) {
        let blocks = vec![mined(1, 90).block];
        self.create(tx, &CreateOptions { blocks, ..options() }).unwrap();
    }

    /// Spends and creates, unmined.
    pub(crate) fn add(&self, tx: &Transaction) {
        self.spend_and_create(tx, SpendRules::at(NEXT), &options()).unwrap();
    }

    /// Creates a record that lost a double spend.
    pub(crate) fn add_conflicting(&self, tx: &Transaction) {
        self.create(tx, &CreateOptions { conflicting: true, ..options() }).unwrap();
    }

    /// Everything that is kept of a transaction.
    pub(crate) fn record(&self, tx: &Transaction) -> Record {
        self.get(tx.txid(), Fields::ALL).unwrap()
    }

    /// Who spends an output.
    pub(crate) fn spender(&self, tx: &Transaction, vout: u32) -> Option<Txid> {
        let slots = self.engine().slots(&[Outpoint::new(tx.txid(), vout)]).unwrap();
        let slot = slots[0].as_ref().unwrap().slot.unwrap();
        slot.spender().map(|data| data.txid)
    }

    /// Every record there is.
    pub(crate) fn everything(&self) -> Vec<Record> {
        let mut all = Vec::new();
        self.scan(Scan::All, |txids| {
            all.extend(self.engine().read(txids, Fields::ALL)?.into_iter().flatten());
            Ok(())
        })
        .unwrap();
        all.sort_by_key(|record| record.txid);
        all
    }
}

/// An engine in which somebody else does operations as soon as a spend was taken back.
pub(crate) struct MeddlingEngine {
    inner: Arc<dyn Engine>,
    others: Mutex<Vec<Operation>>,
}

impl MeddlingEngine {
    pub(crate) const fn new(inner: Arc<dyn Engine>, others: Vec<Operation>) -> Self {
        Self { inner, others: Mutex::new(others) }
    }
}

impl Engine for MeddlingEngine {
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError> {
        let outcomes = self.inner.apply(context, operations)?;
        if operations.iter().any(|operation| matches!(operation, Operation::Unspend { .. })) {
            let others = std::mem::take(&mut *self.others.lock().unwrap());
            let done = self.inner.apply(context, &others)?;
            assert!(done.iter().all(|outcome| outcome.result.is_ok()), "{done:?}");
        }
        Ok(outcomes)
    }

    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError> {
        self.inner.read(txids, fields)
    }

    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError> {
        self.inner.slots(outpoints)
    }

    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        self.inner.scan(scan, after, limit)
    }

    fn intents(&self, after: Option<IntentId>, limit: usize) -> Result<Vec<Intent>, EngineError> {
        self.inner.intents(after, limit)
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        self.inner.status()
    }
}

/// An engine that fails for ever after a given number of operations, also within a batch.
pub(crate) struct FailingEngine {
    inner: Arc<dyn Engine>,
    pub(crate) left: AtomicU64,
    /// How often it was called.
    pub(crate) calls: AtomicU64,
    /// How long it waits before it does operations.
    pub(crate) pause_ms: AtomicU64,
}

impl FailingEngine {
    pub(crate) fn new(inner: Arc<dyn Engine>, left: u64) -> Self {
        let (left, calls, pause_ms) = (AtomicU64::new(left), AtomicU64::new(0), AtomicU64::new(0));
        Self { inner, left, calls, pause_ms }
    }

    fn failure() -> EngineError {
        EngineError::storage(std::io::Error::other("the test pulled the plug"))
    }

    fn check(&self) -> Result<(), EngineError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.left.load(Ordering::SeqCst) == 0 { Err(Self::failure()) } else { Ok(()) }
    }
}

impl Engine for FailingEngine {
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let pause = self.pause_ms.load(Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(pause));
        let left = self.left.load(Ordering::SeqCst);
        let done = usize::try_from(left).unwrap().min(operations.len());
        self.left.store(left - done as u64, Ordering::SeqCst);
        let outcomes = self.inner.apply(context, &operations[..done])?;
        if done < operations.len() { Err(Self::failure()) } else { Ok(outcomes) }
    }

    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError> {
        self.check().and_then(|()| self.inner.read(txids, fields))
    }

    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError> {
        self.check().and_then(|()| self.inner.slots(outpoints))
    }

    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        self.check().and_then(|()| self.inner.scan(scan, after, limit))
    }

    fn intents(&self, after: Option<IntentId>, limit: usize) -> Result<Vec<Intent>, EngineError> {
        self.check().and_then(|()| self.inner.intents(after, limit))
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        self.check().and_then(|()| self.inner.status())
    }
}
