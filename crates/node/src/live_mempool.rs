//! The mempool of a node that follows its source.
//!
//! ```text
//!  Off ── a sync that follows begins ──► Waiting ── it has caught up ──► Open
//!   ▲                                       ▲                            │ │
//!   │                                       └── it fails: try again later┘ │
//!   └───────────── the sync ends ──────────────────────────────────────────┘
//! ```
//!
//! - While it is open, a commit publishes the new tip and the mempool at that tip by one swap of
//!   the [`NodeSnapshot`]; an arrival swaps one that differs in the mempool alone.
//! - It never fails the chain. A step that its records refuse is dropped; when that happens
//!   [`MAX_FAILURES`] times in a row, or a block cannot be followed, the tip is published without a
//!   mempool, and it is opened again from its records after [`PAUSE`].
//! - A move of the tip by more than [`MAX_MOVE`] blocks closes it too: what is left of it is judged
//!   again against the new tip when it opens. Blocks of a lost branch that long do not come back.
//! - Otherwise it costs nothing: its records are not opened before.

mod records;
pub(crate) mod stored;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use varve_consensus::{Ancestor, Ancestors, CoreVerifier, OwnedCoin, Params};
use varve_types::pushdata::PushdataRule;
use varve_types::{Height, Outpoint, Txid};
use varve_utxo::{AsBlock as _, Compaction};

use crate::data_directory::DataDirectory;
use crate::desk::{BEHIND, Desk};
use crate::error::Error;
use crate::mempool::{
    Acceptance, Chain, ChainBlock, ChainChange, ChainError, Event, Judge, LooseVerifier, Mempool,
    MempoolError, MempoolParts, Moment, Policy, Reject, Reloaded, Sink, Tip, Verdict, Version,
};
use crate::organizer::Options;
use crate::owned_block::OwnedBlock;
use crate::snapshot::NodeSnapshot;
use crate::source::transactions::Gateway;

/// Steps in a row that fail before it is closed.
const MAX_FAILURES: u32 = 3;
/// How long it stays closed after a failure.
const PAUSE: Duration = Duration::from_secs(30);
/// Blocks on either side of a move that is followed block by block.
pub(crate) const MAX_MOVE: usize = 100;
/// Transactions that wait for their parents, when a node lists them in any order.
const NODE_ORPHANS: usize = 10_000;

/// The time of day, in seconds since 1970.
type Now = Arc<dyn Fn() -> u32 + Send + Sync>;

/// What a node has of a mempool.
pub(crate) struct LiveMempool {
    directory: Arc<DataDirectory>,
    params: Params,
    compaction: Compaction,
    published: Arc<ArcSwap<NodeSnapshot>>,
    desk: Desk,
    state: State,
    /// What happened since it was last asked.
    news: News,
}

enum State {
    Off,
    Waiting { now: Now, from: Duration },
    Open { now: Now, pool: Box<Mempool>, failures: u32 },
}

/// What happened in the mempool.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// In their order.
    pub(crate) events: Vec<Event>,
    /// Whether readers see another version.
    pub(crate) is_published: bool,
    /// Why it was closed.
    pub(crate) closed: Option<String>,
}

/// How it is opened.
pub(crate) struct Opening {
    /// Bytes of memory.
    pub(crate) memory: usize,
    /// The way to the node whose policy decides, where there is one.
    pub(crate) gateway: Option<Arc<dyn Gateway>>,
    /// By which rule pushed items have rows: that of the confirmed index.
    pub(crate) push_rule: Option<PushdataRule>,
}

impl LiveMempool {
    /// The mempool of a node that is being opened: none until a sync wants one.
    pub(crate) fn of(
        directory: &Arc<DataDirectory>,
        options: &Options,
        published: &Arc<ArcSwap<NodeSnapshot>>,
    ) -> Self {
        Self {
            directory: Arc::clone(directory),
            params: options.params.clone(),
            compaction: options.compaction,
            published: Arc::clone(published),
            desk: Desk::default(),
            state: State::Off,
            news: News::default(),
        }
    }

    /// Where transactions are handed in.
    pub(crate) const fn desk(&self) -> &Desk {
        &self.desk
    }

    /// A sync begins that wants one as soon as it has caught up.
    pub(crate) fn want(&mut self, now: Now) {
        self.state = State::Waiting { now, from: Duration::ZERO };
        self.desk.close(BEHIND);
    }

    /// The sync has ended. Whether readers saw a mempool until now.
    pub(crate) fn end(&mut self) -> bool {
        let was_open = self.is_open();
        self.desk.close_for_good();
        self.state = State::Off;
        self.news = News::default();
        self.hide();
        was_open
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Whether there is one, or will be.
    pub(crate) const fn is_wanted(&self) -> bool {
        !matches!(self.state, State::Off)
    }

    /// Whether it should be opened, now that the sync has caught up.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        matches!(self.state, State::Waiting { from, .. } if from <= now)
    }

    /// The version that belongs to this tip.
    pub(crate) fn version_at(&self, tip: varve_types::BlockHash) -> Option<Arc<Version>> {
        let State::Open { pool, .. } = &self.state else { return None };
        Some(Arc::clone(pool.version())).filter(|version| version.tip().hash == tip)
    }

    /// What is open, for questions of its one writer.
    pub(crate) fn pool(&self) -> Option<&Mempool> {
        match &self.state {
            State::Open { pool, .. } => Some(pool),
            _ => None,
        }
    }

    /// What happened since the last call.
    pub(crate) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Opens it at the published tip. On an error it stays closed for a while.
    pub(crate) fn open(&mut self, opening: Opening, clock: Duration) -> Result<Reloaded, Error> {
        let State::Waiting { now, .. } = &self.state else { return Ok(Reloaded::default()) };
        let now = Arc::clone(now);
        match self.try_open(&opening, &now) {
            Ok((pool, reloaded)) => {
                self.publisher(None).publish(pool.version());
                self.news.is_published = true;
                self.state = State::Open { now, pool: Box::new(pool), failures: 0 };
                self.desk.open(opening.gateway);
                Ok(reloaded)
            }
            Err(error) => {
                self.postpone(clock);
                Err(error)
            }
        }
    }

    /// It is not opened now, but perhaps later.
    pub(crate) fn postpone(&mut self, clock: Duration) {
        if let State::Waiting { from, .. } = &mut self.state {
            *from = clock + PAUSE;
        }
    }

    fn try_open(&self, opening: &Opening, now: &Now) -> Result<(Mempool, Reloaded), Error> {
        let policy = policy(opening, self.params.network.is_bsv());
        let memory = opening.memory as u64 / 4;
        let store = records::open(&self.directory, &self.params, memory, self.compaction, now)?;
        let verifier = Box::new(CoreVerifier) as Box<dyn LooseVerifier>;
        let verifier = Some(verifier).filter(|_| !self.params.network.is_bsv());
        let params = self.params.clone();
        let parts = MempoolParts { store: Arc::new(store), params, policy, verifier };
        let snapshot = self.published.load_full();
        let moment = Moment { chain: &*snapshot, now: u64::from(now()) };
        Ok(Mempool::open(parts, moment)?)
    }

    /// Takes transactions in.
    pub(crate) fn accept(
        &mut self,
        txs: &[Bytes],
        judge: Judge,
        clock: Duration,
    ) -> Option<Result<Vec<Verdict>, MempoolError>> {
        self.step(clock, |pool, at, sink| pool.accept(at, txs, judge, sink))
    }

    /// Takes a child and its parents in.
    pub(crate) fn accept_package(
        &mut self,
        txs: &[Bytes],
        clock: Duration,
    ) -> Option<Result<Vec<Verdict>, MempoolError>> {
        self.step(clock, |pool, at, sink| pool.accept_package(at, txs, sink))
    }

    /// Says what would become of transactions.
    pub(crate) fn test(
        &mut self,
        txs: &[Bytes],
        clock: Duration,
    ) -> Option<Result<Vec<Result<Acceptance, Reject>>, MempoolError>> {
        self.step(clock, |pool, at, _| pool.test(at, txs))
    }

    /// Drops transactions that the deciding node no longer has.
    pub(crate) fn drop_txs(&mut self, txids: &[Txid], clock: Duration) {
        self.step(clock, |pool, at, sink| pool.drop_txs(txids, at.now, sink));
    }

    /// Drops what has waited too long.
    pub(crate) fn expire(&mut self, clock: Duration) {
        self.step(clock, |pool, at, sink| pool.expire(at.now, sink));
    }

    /// Does something with the pool at the published tip; `None` when there is none. A failure is
    /// returned, and closes the mempool when it is not the first.
    fn step<T>(
        &mut self,
        clock: Duration,
        step: impl FnOnce(&mut Mempool, Moment<'_>, &mut dyn Sink) -> Result<T, MempoolError>,
    ) -> Option<Result<T, MempoolError>> {
        let mut sink = self.publisher(None);
        let State::Open { now, pool, failures } = &mut self.state else { return None };
        let snapshot = self.published.load_full();
        let moment = Moment { chain: &*snapshot, now: u64::from(now()) };
        let result = step(pool, moment, &mut sink);
        *failures = if result.is_ok() { 0 } else { *failures + 1 };
        let is_over = *failures >= MAX_FAILURES;
        self.took(sink);
        if let Err(error) = &result
            && is_over
        {
            self.close(&error.to_string(), clock);
        }
        Some(result)
    }

    /// Follows a commit: `next` is its snapshot without a mempool, which is published with the
    /// mempool at its tip, or, if that fails, as it is. `left` are the blocks that left, the old
    /// tip first, and `joined` those that joined, the lowest first.
    pub(crate) fn follow(
        &mut self,
        next: NodeSnapshot,
        (left, joined): (&[OwnedBlock], &[OwnedBlock]),
        clock: Duration,
    ) {
        let mut sink = self.publisher(Some(next.clone()));
        let State::Open { now, pool, .. } = &mut self.state else {
            return self.published.store(Arc::new(next));
        };
        let (disconnected, connected) = (&placed(left)[..], &placed(joined)[..]);
        let change = ChainChange { disconnected, connected };
        let moment = Moment { chain: &next, now: u64::from(now()) };
        let result = pool.follow(moment, change, &mut sink);
        if sink.next.is_some() {
            self.published.store(Arc::new(next));
        }
        self.took(sink);
        if let Err(error) = result {
            self.close(&error.to_string(), clock);
        }
    }

    /// Closes it for a while: its records stay, and it is opened from them.
    pub(crate) fn close(&mut self, reason: &str, clock: Duration) {
        let State::Open { now, .. } = &self.state else { return };
        let now = Arc::clone(now);
        self.state = State::Waiting { now, from: clock + PAUSE };
        self.desk.close(&format!("there is no mempool at the moment: {reason}"));
        self.news.closed = Some(reason.to_owned());
        self.news.is_published = true;
        self.hide();
    }

    /// The chain moves too far to be followed block by block: it is opened again at the new tip.
    pub(crate) fn leave_behind(&mut self) {
        let State::Open { now, .. } = &self.state else { return };
        self.state = State::Waiting { now: Arc::clone(now), from: Duration::ZERO };
        self.desk.close(BEHIND);
        self.news.is_published = true;
        self.hide();
    }

    /// Publishes the same moment without a mempool.
    fn hide(&self) {
        let now = self.published.load_full();
        if now.mempool.is_some() {
            self.published
                .store(Arc::new(NodeSnapshot { mempool: None, ..NodeSnapshot::clone(&now) }));
        }
    }

    fn publisher(&self, next: Option<NodeSnapshot>) -> Publisher {
        let published = Arc::clone(&self.published);
        Publisher { published, next, events: Vec::new(), is_published: false }
    }

    fn took(&mut self, sink: Publisher) {
        self.news.events.extend(sink.events);
        self.news.is_published |= sink.is_published;
    }
}

impl fmt::Debug for LiveMempool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveMempool").field("pool", &self.pool()).finish_non_exhaustive()
    }
}

/// Our rules within a share of the memory: half of it for transactions; a quarter is for their
/// records, and a quarter for what readers hold of older versions.
fn policy(opening: &Opening, is_bsv: bool) -> Policy {
    let mut usual = Policy::default();
    if is_bsv {
        // Nodes of BSV relay up to 10 MB by default, and count no signature operations.
        (usual.max_weight, usual.max_sigop_cost) = (40_000_000, u64::MAX);
    }
    let max_orphans = if opening.gateway.is_some() { NODE_ORPHANS } else { usual.max_orphans };
    Policy {
        memory: opening.memory as u64 / 2,
        max_orphans,
        max_orphan_bytes: usual.max_orphan_bytes.min(opening.memory / 16),
        push_rule: opening.push_rule,
        ..usual
    }
}

fn placed(blocks: &[OwnedBlock]) -> Vec<ChainBlock<'_>> {
    blocks.iter().map(place).collect()
}

fn place(block: &OwnedBlock) -> ChainBlock<'_> {
    let block = block.as_block();
    ChainBlock { height: block.height(), block: block.block() }
}

/// Swaps the snapshot: that of a commit, or the last one with another mempool.
struct Publisher {
    published: Arc<ArcSwap<NodeSnapshot>>,
    next: Option<NodeSnapshot>,
    events: Vec<Event>,
    is_published: bool,
}

impl Sink for Publisher {
    fn publish(&mut self, version: &Arc<Version>) {
        let next = self.next.take();
        let next = next.unwrap_or_else(|| NodeSnapshot::clone(&self.published.load_full()));
        let mempool = Some(Arc::clone(version));
        self.published.store(Arc::new(NodeSnapshot { mempool, ..next }));
        self.is_published = true;
    }

    fn event(&mut self, event: &Event) {
        self.events.push(event.clone());
    }
}

/// The confirmed chain of a snapshot, as the mempool asks it.
impl Ancestors for NodeSnapshot {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.chain.branch().ancestor(height)
    }
}

impl Chain for NodeSnapshot {
    fn tip(&self) -> Tip {
        let (height, hash) = self.tip;
        Tip { height, hash, sequence: self.sequence }
    }

    fn coins(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<OwnedCoin>>, ChainError> {
        let found = self.utxo.get(outpoints).map_err(|error| ChainError(error.to_string()))?;
        Ok(found.iter().map(|coin| coin.map(OwnedCoin::from)).collect())
    }
}
