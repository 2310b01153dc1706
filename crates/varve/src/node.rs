//! The node: one folder, one writer, any number of readers.
//!
//! ```text
//!  Node ──clone──► Node ──clone──► …         all handles are the same node
//!   │
//!   ├─ front   RwLock   AtRest until somebody writes, then Live: what snapshots are taken from
//!   ├─ writer  Mutex    the writers; taken for as long as a sync runs, never waited for
//!   ├─ tips    board    the newest tip, for subscribers
//!   └─ changes board    the newest tip or mempool, for subscribers
//! ```
//!
//! Opening a folder at rest opens no writer. The first call that writes opens them and turns the
//! front to them (`at_rest`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use varve_node::{Budget, Compacted, Index, Invalid, NodeReader, Organizer, Report, Verified};
use varve_types::{Amount, BlockHash, Height, Network};
use varve_utxo::{MemorySplit, SetHash, Statistics};

use crate::answer::Tip;
use crate::at_rest::AtRest;
use crate::board::Announcer;
use crate::builder::Builder;
use crate::error::Error;
use crate::events::{EventCursor, Events, RowCache};
use crate::lease::{Leases, LiveSnapshots};
use crate::snapshot::Snapshot;
use crate::source::Source;
use crate::status::{Status, StoreBytes, store_bytes};
use crate::sync::SyncJob;
use crate::tips::{Change, Changes, Tips};

/// A chain in a folder.
///
/// A handle: clones are the same node, and may be used from any thread. One thread at a time writes
/// ([`sync`](Self::sync), [`invalidate`](Self::invalidate), …; a second one gets [`Error::Busy`]),
/// while any number of threads take [snapshots](Self::snapshot), which do not wait for a sync. The
/// folder is locked against other processes until the last handle and the last snapshot are
/// dropped.
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    network: Network,
    front: RwLock<Front>,
    writer: Mutex<Option<Organizer>>,
    /// How the memory was split when the writers were last taken.
    memory: Mutex<Option<(Budget, MemorySplit)>>,
    tips: Announcer<Tip>,
    changes: Announcer<Change>,
    /// How many changes there were.
    changed: AtomicU64,
    leases: Leases,
    rows: RowCache,
}

/// Where a node is, and how long its snapshots may be held.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) network: Network,
    pub(crate) lease: Duration,
}

/// What snapshots are taken from.
#[derive(Clone)]
pub(crate) enum Front {
    AtRest(Arc<AtRest>),
    Live(NodeReader),
}

/// What an operator's verdict on a block has led to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether and why the block cannot be in the chain now.
    pub invalid: Option<Invalid>,
    /// The blocks that were checked on the way and refused, with the rule that each breaks.
    pub refused: Vec<(BlockHash, String)>,
    /// The tip now.
    pub tip: Tip,
}

impl Node {
    /// Opens the chain in an existing folder, with the default settings.
    ///
    /// Takes milliseconds when the folder was left in order, whatever the length of the chain;
    /// after a crash, what was lost is replayed first. [`Node::builder`] has the settings, and
    /// makes new folders.
    ///
    /// ```no_run
    /// let node = varve::Node::open("chain")?;
    /// println!("{}", node.snapshot().tip());
    /// # Ok::<(), varve::Error>(())
    /// ```
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::builder().datadir(path).open()
    }

    /// Settings to open or make a node with.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn at_rest(place: Place, at_rest: AtRest) -> Self {
        Self::new(place, (Front::AtRest(Arc::new(at_rest)), None))
    }

    pub(crate) fn live(place: Place, writers: Organizer) -> Self {
        Self::new(place, (Front::Live(writers.reader()), Some(writers)))
    }

    fn new(place: Place, (front, writer): (Front, Option<Organizer>)) -> Self {
        let Place { path, network, lease } = place;
        let (front, writer) = (RwLock::new(front), Mutex::new(writer));
        let (memory, (tips, changes, changed)) = Default::default();
        let (leases, rows) = (Leases::new(lease), RowCache::default());
        let shared =
            Shared { path, network, front, writer, memory, tips, changes, changed, leases, rows };
        Self { shared: Arc::new(shared) }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The network of the chain.
    #[must_use]
    pub fn network(&self) -> Network {
        self.shared.network
    }

    /// The node as it is now: one moment of history, unspent outputs and blocks, which stays as it
    /// is for as long as it is held, within its lease. Does not wait for a sync; on a folder at
    /// rest, a question waits while the first write opens the writers.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.front(), self.network(), &self.shared.leases)
    }

    /// How many snapshots of the running node are held, and how old the oldest is.
    #[must_use]
    pub fn live_snapshots(&self) -> LiveSnapshots {
        self.shared.leases.live()
    }

    pub(crate) fn front(&self) -> Front {
        self.shared.front.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A subscription to the tips from now on, for another thread.
    #[must_use]
    pub fn tips(&self) -> Tips {
        Tips(self.shared.tips.subscribe())
    }

    /// A subscription to all that readers can see change from now on, tip or mempool, for another
    /// thread.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes(self.shared.changes.subscribe())
    }

    /// What happens from a cursor on, without loss or duplicate: blocks that join and leave the
    /// chain, and what they and the mempool do to watched things. Without a cursor, from now on.
    ///
    /// ```
    /// use varve::{EventCursor, Height, Network, Node, Source, Watch};
    /// use varve_sim::{Chain, Config, Profile};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let node = Node::builder().network(Network::Regtest).datadir(folder.path()).create()?;
    /// # let chain = Chain::new(&Config::new(Profile::Dense, 20, 7))?;
    /// # node.sync(Source::blocks(chain.map(|block| block.bytes))).run()?;
    /// let genesis = EventCursor::behind(Height::GENESIS, Network::Regtest.genesis_hash());
    /// let mut events = node.events(Some(genesis)).watching(Watch::default());
    /// let first = events.try_next()?.ok_or("there are blocks above genesis")?;
    /// let stored = first.cursor.to_string(); // kept beside what was made of the batch
    /// drop(events);
    ///
    /// let mut events = node.events(Some(stored.parse()?));
    /// let second = events.try_next()?.ok_or("and another one")?;
    /// assert_eq!(second.cursor.block().height, Height::new(2));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn events(&self, cursor: Option<EventCursor>) -> Events {
        Events::new(self.clone(), cursor)
    }

    pub(crate) fn row_cache(&self) -> &RowCache {
        &self.shared.rows
    }

    /// What the folder holds and how it is kept: the answer of `varve status`.
    pub fn status(&self) -> Result<Status, Error> {
        let memory = match self.shared.writer.try_lock() {
            Ok(writer) => writer.as_ref().map(Organizer::memory),
            Err(_) => *self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner),
        };
        Status::of(&self.front(), &self.snapshot(), memory)
    }

    /// The bytes of each store, the largest first. Looks at every file.
    pub fn store_bytes(&self) -> Result<Vec<StoreBytes>, Error> {
        store_bytes(self.path())
    }

    /// Takes blocks from a source until it has no more. Nothing happens before
    /// [`run`](SyncJob::run) or [`start`](SyncJob::start) is called on the job.
    ///
    /// ```no_run
    /// # use varve::{Node, Source};
    /// let node = Node::builder().datadir("chain").open_or_create()?;
    /// let done = node.sync(Source::folder("bitcoin")).run()?;
    /// println!("{} blocks, now at {}", done.connected, done.tip);
    /// # Ok::<(), varve::Error>(())
    /// ```
    pub fn sync(&self, source: Source) -> SyncJob<'static> {
        SyncJob::new(self.clone(), source)
    }

    /// The same, but goes on as new blocks come, until it is stopped.
    pub fn follow(&self, source: Source) -> SyncJob<'static> {
        self.sync(source.following())
    }

    /// Marks a block as invalid, durably: the chain moves to the best branch without it, and no
    /// sync follows it until it is reconsidered.
    pub fn invalidate(&self, block: BlockHash) -> Result<Verdict, Error> {
        self.judge(block, Organizer::invalidate)
    }

    /// Removes the marks of a block, of its ancestors and of its descendants, durably. The chain
    /// moves to the best branch; blocks that are refused again are marked again.
    pub fn reconsider(&self, block: BlockHash) -> Result<Verdict, Error> {
        self.judge(block, Organizer::reconsider)
    }

    fn judge(
        &self,
        block: BlockHash,
        judge: impl FnOnce(
            &mut Organizer,
            BlockHash,
            &mut dyn FnMut(Report<'_>),
        ) -> Result<(), varve_node::Error>,
    ) -> Result<Verdict, Error> {
        self.with_writer(|node| {
            let mut refused = Vec::new();
            judge(node, block, &mut |report| match report {
                Report::Refused { hash, reason } => refused.push((hash, reason.to_owned())),
                Report::Committed { height, hash } => self.announce(Tip { height, hash }),
                _ => {}
            })?;
            let tip = node.snapshot().tip.into();
            Ok(Verdict { invalid: node.invalid(&block), refused, tip })
        })
    }

    /// Reads every store, checks every checksum and compares the stores with one another. An error
    /// names the first thing that is wrong. `progress` gets the number of blocks, then of coins,
    /// that are done and that there are.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verified, Error> {
        self.with_writer(|node| Ok(node.verify(progress)?))
    }

    /// The figures of the unspent set as it was at a height of the confirmed chain, with its MuHash
    /// or without a hash. Heights that were not counted before are counted on the way; `progress`
    /// gets the height that is done and the one asked for.
    pub fn stats_at(
        &self,
        height: Height,
        hash: SetHash,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Statistics, Error> {
        if hash == SetHash::HashSerialized3 {
            return Err(Error::HashOfTheTipAlone { height });
        }
        let found = self.with_writer(|node| Ok(node.stats_at(height, progress)?))?;
        Ok(Statistics {
            tip: Some((found.height, found.block)),
            txouts: found.txouts,
            transactions: 0,
            bogosize: found.bogosize,
            total_amount: Some(Amount::from_sat(found.total_amount)),
            hash: (hash == SetHash::Muhash).then(|| found.muhash()),
        })
    }

    /// Compresses old blocks and merges search tables: the folder takes less space, and a lookup
    /// reads fewer pages. A compressed transaction takes some 20 µs more to read. May be
    /// interrupted at any time, and repeated. `progress` gets the bytes of blocks that are done and
    /// that there are.
    pub fn compact(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Compacted, Error> {
        self.with_writer(|node| Ok(node.compact(progress)?))
    }

    /// Brings the indexes that [`Builder::indexes`] chose to the tip, as the next sync would.
    /// `progress` gets the index, the blocks that it has and those that it is to have.
    pub fn build_indexes(&self, progress: &mut dyn FnMut(Index, u64, u64)) -> Result<(), Error> {
        self.with_writer(|node| {
            Ok(node.build_indexes(&mut |report| {
                if let Report::Indexed { index, done, all } = report {
                    progress(index, done, all);
                }
            })?)
        })
    }

    pub(crate) fn announce(&self, tip: Tip) {
        self.shared.tips.announce(tip);
        self.announce_change(tip);
    }

    /// Readers can see another version of the mempool.
    pub(crate) fn mempool_changed(&self) {
        if let Front::Live(reader) = self.front() {
            self.announce_change(reader.snapshot().tip.into());
        }
    }

    /// Readers can see something new at this tip.
    pub(crate) fn announce_change(&self, tip: Tip) {
        let number = self.shared.changed.fetch_add(1, Ordering::Relaxed) + 1;
        self.shared.changes.announce(Change { tip, number });
        self.shared.leases.sweep();
    }

    /// Does something with the writers, which are opened when this is the first time.
    pub(crate) fn with_writer<T>(
        &self,
        act: impl FnOnce(&mut Organizer) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut writer = match self.shared.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::WouldBlock) => return Err(Error::Busy),
            Err(TryLockError::Poisoned(_)) => return Err(Error::Poisoned),
        };
        let writers = match &mut *writer {
            Some(writers) => writers,
            closed @ None => closed.insert(self.open_writers()?),
        };
        let memory = writers.memory();
        *self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
        act(writers)
    }

    fn open_writers(&self) -> Result<Organizer, Error> {
        let Front::AtRest(at_rest) = self.front() else { return Err(Error::Poisoned) };
        let writers = at_rest.wake()?;
        let mut front = self.shared.front.write().unwrap_or_else(PoisonError::into_inner);
        *front = Front::Live(writers.reader());
        Ok(writers)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { path, network, .. } = &*self.shared;
        let mut debug = f.debug_struct("Node");
        debug.field("path", path).field("network", network).finish_non_exhaustive()
    }
}
