//! A chain, records and a mempool that tests move as they like.

use std::sync::Arc;

use varve_consensus::contract::draft::{BlockDraft, InputDraft, OutputDraft, TxDraft};
use varve_consensus::{
    Ancestor, Ancestors, BlockAt, CoreVerifier, MemorySet, OwnedCoin, Params, Undo,
};
use varve_records::blob::{Blobs, Fanout, ObjectBucket};
use varve_records::{Engine, MemoryDisk, MemoryEngine, Settings, Store};
use varve_types::{Block, BlockHash, Height, Network, Outpoint, Txid};

use crate::commit_log::CommitSequence;
use crate::mempool::{
    Chain, ChainBlock, ChainChange, ChainError, Event, Judge, Mempool, MempoolError, MempoolParts,
    Moment, Policy, Reject, Reloaded, Sink, Tip, Verdict, Version,
};

/// Coinbases of the tests are spendable after two blocks.
pub(super) const MATURITY: u32 = 2;
/// What a coinbase pays.
pub(super) const SUBSIDY: u64 = 5_000_000_000;

/// The confirmed chain.
pub(super) struct TestChain {
    pub(super) set: MemorySet,
    pub(super) links: Vec<Link>,
    headers: Vec<Ancestor>,
    sequence: u64,
    salt: u32,
}

/// A connected block.
pub(super) struct Link {
    pub(super) draft: BlockDraft,
    undo: Undo,
}

impl TestChain {
    fn new() -> Self {
        let genesis = Ancestor { hash: BlockHash::ZERO, time: 1_000_000_000, bits: 0 };
        Self {
            set: MemorySet::new(Network::Regtest),
            links: Vec::new(),
            headers: vec![genesis],
            sequence: 1,
            salt: 0,
        }
    }

    pub(super) fn height(&self) -> Height {
        Height::new(u32::try_from(self.links.len()).unwrap())
    }

    /// Connects a block of these transactions.
    pub(super) fn connect(&mut self, txs: Vec<TxDraft>) -> BlockDraft {
        self.salt += 1;
        let height = self.height().checked_add(1).unwrap();
        let mut coinbase = TxDraft::coinbase(height, SUBSIDY);
        coinbase.inputs[0].script.extend(self.salt.to_le_bytes());
        coinbase.outputs[0].script = script(u8::try_from(self.salt % 8).unwrap());
        let mut all = vec![coinbase];
        all.extend(txs);
        let previous = self.headers.last().unwrap();
        let time = previous.time + 600;
        let draft =
            BlockDraft { previous: previous.hash, time, nonce: self.salt, ..BlockDraft::new(all) };
        let bytes = draft.bytes();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        let undo =
            self.set.connect(&BlockAt::new(height, &block)).expect("tests mine valid blocks");
        self.headers.push(block.header().into());
        self.links.push(Link { draft: draft.clone(), undo });
        self.sequence += 1;
        draft
    }

    /// Disconnects the tip.
    pub(super) fn disconnect(&mut self) -> (Height, BlockDraft) {
        let height = self.height();
        let Link { draft, undo } = self.links.pop().unwrap();
        let bytes = draft.bytes();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        self.set.disconnect(&BlockAt::new(height, &block), undo);
        self.headers.pop();
        self.sequence += 1;
        (height, draft)
    }
}

impl Ancestors for TestChain {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.headers.ancestor(height)
    }
}

impl Chain for TestChain {
    fn tip(&self) -> Tip {
        let hash = self.headers.last().unwrap().hash;
        Tip { height: self.height(), hash, sequence: CommitSequence(self.sequence) }
    }

    fn coins(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<OwnedCoin>>, ChainError> {
        Ok(outpoints.iter().map(|outpoint| self.set.get(outpoint).map(OwnedCoin::from)).collect())
    }
}

/// Keeps what is published.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) version: Option<Arc<Version>>,
    pub(super) events: Vec<Event>,
}

impl Sink for Watch {
    fn publish(&mut self, version: &Arc<Version>) {
        self.version = Some(Arc::clone(version));
    }

    fn event(&mut self, event: &Event) {
        self.events.push(event.clone());
    }
}

pub(super) struct World {
    pub(super) chain: TestChain,
    pub(super) pool: Mempool,
    pub(super) watch: Watch,
    pub(super) disk: MemoryDisk,
    pub(super) policy: Policy,
    pub(super) now: u64,
}

pub(super) fn params() -> Params {
    Params { coinbase_maturity: MATURITY, ..Params::new(Network::Regtest) }
}

pub(super) fn store(engine: Arc<dyn Engine>) -> Arc<Store> {
    let settings =
        Settings { coinbase_maturity: MATURITY, retention: 8, ..Settings::new(Network::Regtest) };
    let blobs = Blobs::new(ObjectBucket::memory(), Fanout::None);
    Arc::new(Store::new(engine, blobs, settings, Box::new(|| 0)))
}

pub(super) fn open(
    engine: Arc<dyn Engine>,
    policy: Policy,
    chain: &TestChain,
    now: u64,
) -> Result<(Mempool, Reloaded), MempoolError> {
    let verifier = Some(Box::new(CoreVerifier) as Box<_>);
    let parts = MempoolParts { store: store(engine), params: params(), policy, verifier };
    Mempool::open(parts, Moment { chain, now })
}

impl World {
    /// A chain of this many blocks, and an empty mempool.
    pub(super) fn new(blocks: u32, policy: Policy) -> Self {
        let mut chain = TestChain::new();
        (0..blocks).for_each(|_| drop(chain.connect(Vec::new())));
        let disk = MemoryDisk::default();
        let engine = Arc::new(MemoryEngine::open(disk.clone()));
        let (pool, _) = open(engine, policy, &chain, 1_000).unwrap();
        Self { chain, pool, watch: Watch::default(), disk, policy, now: 1_000 }
    }

    pub(super) fn usual() -> Self {
        Self::new(10, Policy::default())
    }

    pub(super) fn version(&self) -> &Version {
        self.pool.version()
    }

    pub(super) fn has(&self, tx: &TxDraft) -> bool {
        self.version().contains(&tx.txid())
    }

    /// The output of the coinbase at this height.
    pub(super) fn coin(&self, height: usize) -> (Outpoint, u64) {
        let coinbase = &self.chain.links[height - 1].draft.txs[0];
        (Outpoint::new(coinbase.txid(), 0), coinbase.outputs[0].value)
    }

    pub(super) fn accept_many(&mut self, txs: &[&TxDraft], judge: Judge) -> Vec<Verdict> {
        let bytes: Vec<_> = txs.iter().map(|tx| tx.bytes().into()).collect();
        let at = Moment { chain: &self.chain, now: self.now };
        self.pool.accept(at, &bytes, judge, &mut self.watch).unwrap()
    }

    pub(super) fn accept(&mut self, tx: &TxDraft) -> Verdict {
        self.accept_many(&[tx], Judge::Ours).pop().unwrap()
    }

    pub(super) fn take(&mut self, tx: &TxDraft) {
        self.accept(tx).unwrap();
    }

    pub(super) fn refuse(&mut self, tx: &TxDraft) -> Reject {
        self.accept(tx).unwrap_err()
    }

    pub(super) fn package(&mut self, txs: &[&TxDraft]) -> Vec<Verdict> {
        let bytes: Vec<_> = txs.iter().map(|tx| tx.bytes().into()).collect();
        let at = Moment { chain: &self.chain, now: self.now };
        self.pool.accept_package(at, &bytes, &mut self.watch).unwrap()
    }

    /// Mines a block of these transactions on the tip.
    pub(super) fn mine(&mut self, txs: &[&TxDraft]) {
        self.reorganise(0, vec![txs.iter().map(|tx| (*tx).clone()).collect()]);
    }

    /// Disconnects blocks and connects others, in one step.
    pub(super) fn reorganise(&mut self, depth: usize, blocks: Vec<Vec<TxDraft>>) {
        let (left, joined) = self.move_tip(depth, blocks);
        self.follow(&left, &joined).unwrap();
    }

    pub(super) fn move_tip(&mut self, depth: usize, blocks: Vec<Vec<TxDraft>>) -> (Moved, Moved) {
        let left = (0..depth).map(|_| self.chain.disconnect()).collect();
        let mut joined = Moved::new();
        for txs in blocks {
            let draft = self.chain.connect(txs);
            joined.push((self.chain.height(), draft));
        }
        (left, joined)
    }

    pub(super) fn follow(&mut self, left: &Moved, joined: &Moved) -> Result<(), MempoolError> {
        let bytes = |moved: &Moved| moved.iter().map(|(_, draft)| draft.bytes()).collect();
        let (left_bytes, joined_bytes): (Vec<_>, Vec<_>) = (bytes(left), bytes(joined));
        let (left_blocks, joined_blocks) = (parse(&left_bytes), parse(&joined_bytes));
        let disconnected = &place(left, &left_blocks)[..];
        let connected = &place(joined, &joined_blocks)[..];
        let change = ChainChange { disconnected, connected };
        let at = Moment { chain: &self.chain, now: self.now };
        self.pool.follow(at, change, &mut self.watch)
    }

    pub(super) fn restart(&mut self) -> Reloaded {
        let engine = Arc::new(MemoryEngine::open(self.disk.clone()));
        let (pool, reloaded) = open(engine, self.policy, &self.chain, self.now).unwrap();
        self.pool = pool;
        reloaded
    }

    /// The reasons why transactions left, in order.
    pub(super) fn removals(&self) -> Vec<(Txid, crate::mempool::Removal)> {
        let removed = |event: &Event| match event {
            Event::Removed { txid, reason } => Some((*txid, *reason)),
            _ => None,
        };
        self.watch.events.iter().filter_map(removed).collect()
    }
}

/// Blocks with their heights, in the order of a change.
pub(super) type Moved = Vec<(Height, BlockDraft)>;

fn parse(bytes: &[Vec<u8>]) -> Vec<Block<'_>> {
    bytes.iter().map(|bytes| Block::parse(bytes, Network::Regtest.format()).unwrap()).collect()
}

fn place<'a>(moved: &Moved, blocks: &'a [Block<'a>]) -> Vec<ChainBlock<'a>> {
    let place = |((height, _), block): (&(Height, BlockDraft), &'a Block<'a>)| ChainBlock {
        height: *height,
        block,
    };
    moved.iter().zip(blocks).map(place).collect()
}

/// A script that anyone can spend: 20 pushed bytes, dropped.
pub(super) fn script(number: u8) -> Vec<u8> {
    let mut script = vec![20];
    script.extend([number; 20]);
    script.extend([0x75, 0x51]);
    script
}

/// A transaction that spends outputs worth `value` together, pays to `outputs` scripts and leaves a
/// fee.
pub(super) fn spend(inputs: &[Outpoint], value: u64, outputs: &[u8], fee: u64) -> TxDraft {
    let share = (value - fee) / outputs.len() as u64;
    let mut outputs: Vec<OutputDraft> = outputs
        .iter()
        .map(|number| OutputDraft { value: share, script: script(*number) })
        .collect();
    let rest = value - fee - share * outputs.len() as u64;
    outputs[0].value += rest;
    let input = |outpoint: &Outpoint| InputDraft {
        outpoint: *outpoint,
        script: Vec::new(),
        sequence: 0xffff_fffd,
        witness: Vec::new(),
    };
    TxDraft { version: 2, inputs: inputs.iter().map(input).collect(), outputs, lock_time: 0 }
}

/// A transaction that spends one output of another.
pub(super) fn child(parent: &TxDraft, vout: u32, outputs: &[u8], fee: u64) -> TxDraft {
    let value = parent.outputs[vout as usize].value;
    spend(&[Outpoint::new(parent.txid(), vout)], value, outputs, fee)
}
