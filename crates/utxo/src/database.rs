//! The set as a whole: one writer, any number of readers, one directory.
//!
//! ```text
//!  append(block) ─┐                       ┌─► window ──pane──► run ─┐
//!                 ├─► maintain ─► step ───┤                         ├─► Version ─► readers
//!  rewind()     ──┘   (can fail)          └─► undo log              │
//!  flush()      ────► checkpoint: runs, window file, undo, manifest ┘
//! ```
//!
//! **A step** is one block connected or disconnected. Everything that can fail comes first:
//!
//! 1. *Maintenance* that is due (`maintain`): a deep pane is written as a run, runs are merged, a
//!    checkpoint is made, in threads beside the writer. It changes where coins are stored, not
//!    which coins exist.
//! 2. The changes are resolved against the latest version, or what was found at an earlier one is
//!    brought up to date (`prepare`): every prevout is there, or the block is refused. A coin that
//!    the block overwrites (BIP30) counts as spent.
//! 3. The undo record is encoded, or that of the block to be disconnected is read.
//! 4. The window takes the step. If a run is waiting to replace its pane, it does so in the same
//!    step, so that runs and window always match.
//! 5. The undo record is handed to the lane that writes it. A step that was refused leaves none.
//! 6. The new version is published by one atomic store, at once or, when the block is appended on
//!    trust (by a [`Joiner`](crate::Joiner)), after its check has passed.
//!
//! So an error means that nothing has changed, and readers see whole steps only. A step does not
//! wait for the disk, unless the writer has run too far ahead of its threads (`Waits` counts it).
//!
//! **Durability.** The chain is the journal: a step is durable with the next checkpoint, and after
//! a crash the owner reads the tip and appends the blocks above it again. Blocks that the undo log
//! still has need no lookups (`replay`).

mod checkpoint;
mod connect;
mod import;
mod maintain;
mod publish;
mod replay;
mod rewind;
mod work;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arc_swap::ArcSwap;
use varve_consensus::BlockAt;
use varve_io::{LockGuard, Storage, is_envelope, is_segment};
use varve_runs::{Kept, MANIFEST_FILE, Merged, Sequence, StoreKey};
use varve_types::{BlockHash, Height, Network, Outpoint};

use crate::budget::{self, Budget};
use crate::codec::Runs;
use crate::coins::Coins;
use crate::error::Error;
use crate::hasher::OutpointHasher;
use crate::layers::Noted;
use crate::manifest::{Checkpoint, Manifest};
use crate::options::Options;
use crate::undo::{UNDO_PREFIX, UndoConfig, UndoLog};
use crate::version::Version;
use crate::view::DatabaseView;
use crate::window::{Layout, Spend, Step, StepError, Window, WindowConfig};
use maintain::Waiting;
use work::Work;

pub use connect::Appended;
pub(crate) use connect::Pause;
pub(crate) use publish::Publisher;
pub use publish::Reader;
#[cfg(feature = "test-suite")]
pub use work::{Waits, Written};

/// The unspent set in a directory, and its one writer.
///
/// ```
/// use std::sync::Arc;
/// use varve_consensus::BlockAt;
/// use varve_io::{Disk, StoreId};
/// use varve_types::{Block, Height, Network};
/// use varve_utxo::{Database, Options, Secret, StoreKey};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// // Draw both at random: the secret keeps others from making lookups slow.
/// let key = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
/// let options = Options::new(Network::Regtest, key);
/// let mut set = Database::open(Arc::new(Disk::open(dir.path())?), options)?;
///
/// let bytes = Network::Regtest.genesis_block();
/// let block = Block::parse(&bytes, Network::Regtest.format())?;
/// set.append(&BlockAt::new(Height::GENESIS, &block))?;
/// assert_eq!(set.tip(), Some((Height::GENESIS, block.hash())));
///
/// let snapshot = set.snapshot(); // stays as it is, whatever happens to the set
/// set.rewind()?;
/// assert_eq!((set.tip(), snapshot.tip().is_some()), (None, true));
/// set.flush()?; // durable
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Database {
    storage: Arc<dyn Storage>,
    options: Options,
    /// The last checkpoint.
    manifest: Manifest,
    window: Window,
    runs: Runs,
    undo: UndoLog,
    tip: Option<(Height, BlockHash)>,
    sequence: Sequence,
    /// A pane whose run is written; the next step replaces the pane by it.
    waiting: Option<Waiting>,
    /// A run has replaced a pane since the last checkpoint.
    checkpoint_due: bool,
    /// The owner has asked for a checkpoint that has not started.
    checkpoint_asked: bool,
    /// Merges since the last whole checkpoint was planned, in order.
    merged: Vec<Merged>,
    work: Work,
    /// The limit and the use of a joiner's memory in bytes, while one is at work.
    joining: Option<(usize, Arc<AtomicUsize>)>,
    /// The set after the last step.
    latest: Arc<Version>,
    /// What readers see: the latest version, or an earlier one.
    published: Arc<ArcSwap<Version>>,
    _lock: LockGuard,
}

/// What the last checkpoint of a set says, read without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtRest {
    /// The step and the block that the set is at.
    pub checkpoint: Checkpoint,
    /// How many runs hold its coins.
    pub runs: usize,
}

impl Database {
    /// The file that lists all others. A directory without it holds no set.
    pub const MANIFEST_FILE: &'static str = MANIFEST_FILE;
    /// How many bytes of the store's id the id in the pages of runs and window files begins with.
    pub const IN_FILE_ID: usize = StoreKey::IN_FILE_ID;

    /// Whether a set writes files of this name.
    #[must_use]
    pub fn is_store_file(name: &str) -> bool {
        is_envelope(MANIFEST_FILE, name)
            || Manifest::is_swept(name)
            || is_segment(UNDO_PREFIX, name)
    }

    /// Reads the last checkpoint of the set in a directory; `None` when there is no set. Takes no
    /// lock, so the answer is valid only while nobody writes.
    pub fn at_rest(storage: &dyn Storage, network: Network) -> Result<Option<AtRest>, Error> {
        let manifest = Manifest::load(storage, network)?;
        let at_rest = |manifest: Manifest| AtRest {
            checkpoint: manifest.checkpoint,
            runs: manifest.runs.len(),
        };
        Ok(manifest.map(at_rest))
    }

    /// Opens the set of a directory at its last checkpoint, or creates an empty one. Holds the
    /// directory's lock until the database is dropped.
    pub fn open(storage: Arc<dyn Storage>, options: Options) -> Result<Self, Error> {
        let lock = storage.lock()?;
        let work = Work::new(&storage, options.compaction).map_err(Error::Thread)?;
        storage.sync_dir()?;
        let manifest = load_or_create(&*storage, &options)?;
        manifest.sweep(&*storage, &Kept::NOTHING)?;
        let key = manifest.key();
        let runs = Runs::open(&*storage, key, &manifest.runs)?;
        budget::check(options.memory, runs.memory())?;
        let Checkpoint { sequence, tip } = manifest.checkpoint;
        let (config, hasher) = window_of(&manifest, &options);
        let window = match &manifest.window {
            Some(saved) => {
                let file = saved.file(&key);
                Window::load(&*storage, &file, config, hasher, options.workers)?
            }
            None => Window::new(config, hasher, sequence),
        };
        let inconsistent = |what| Error::Inconsistent { path: storage.path().to_path_buf(), what };
        if window.version().sequence() != sequence {
            return Err(inconsistent("the window file is of another step than the manifest"));
        }
        let cache = Budget::cache(options.memory, options.undo.cache);
        let config = UndoConfig { cache, ..options.undo };
        let (files, compaction) = (Arc::clone(&storage), options.compaction);
        let undo = UndoLog::open(files, key.id, config, compaction, &manifest.undo)?;
        let noted = Noted { panes: window.panes().collect(), merges: Vec::new() };
        let shared = crate::sync::Arc::clone(window.version());
        let version = Version::new(sequence, tip, shared, runs.clone(), noted);
        let latest = Arc::new(version);
        Ok(Self {
            storage,
            options,
            manifest,
            window,
            runs,
            undo,
            tip,
            sequence,
            waiting: None,
            checkpoint_due: false,
            checkpoint_asked: false,
            merged: Vec::new(),
            work,
            joining: None,
            published: Arc::new(ArcSwap::new(Arc::clone(&latest))),
            latest,
            _lock: lock,
        })
    }

    /// The last block appended; `None` for the empty set.
    #[must_use]
    pub const fn tip(&self) -> Option<(Height, BlockHash)> {
        self.tip
    }

    /// The last durable checkpoint: the state of the set after a crash.
    #[must_use]
    pub const fn checkpoint(&self) -> Checkpoint {
        self.manifest.checkpoint
    }

    /// The set as it is now. The snapshot never changes, whatever happens to the set.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Version> {
        self.published.load_full()
    }

    /// A handle that takes snapshots in other threads.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { published: Arc::clone(&self.published) }
    }

    /// Looks up the coins of these outpoints.
    pub fn query(&self, keys: &[Outpoint]) -> Result<Coins, Error> {
        self.snapshot().get(keys)
    }

    /// The set with all appended blocks, published or not.
    #[must_use]
    pub const fn latest(&self) -> &Arc<Version> {
        &self.latest
    }

    /// A handle that publishes in other threads.
    #[must_use]
    pub(crate) fn publisher(&self) -> Publisher {
        Publisher { published: Arc::clone(&self.published) }
    }

    /// The view for the rules of a block that extends the tip.
    pub fn view(&self, block: &BlockAt<'_>) -> Result<DatabaseView, Error> {
        let view = DatabaseView::new(&self.latest, self.options.network, block)?;
        Ok(view.with_reason(|reason| self.spender_search().name(reason)))
    }

    /// The network whose coins the set holds.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.options.network
    }

    /// Makes the set durable as it is now, and waits for it.
    pub fn flush(&mut self) -> Result<Checkpoint, Error> {
        self.maintain_and_save()?;
        Ok(self.checkpoint())
    }

    /// Reads and verifies every undo record, and returns how many there are. A walk over the coins
    /// of a snapshot verifies the rest.
    pub fn verify_undo(&self) -> Result<u64, Error> {
        Ok(self.undo.verify()?)
    }

    /// Starts to make the set durable in the background. If a checkpoint is already in progress,
    /// this one starts after it, before a later step. A failure is reported by a later step.
    pub fn begin_flush(&mut self) -> Result<(), Error> {
        self.checkpoint_asked = true;
        self.checkpoint_if_due()
    }

    /// Reserves memory for a joiner: its limit in bytes, and the counter of what it uses. Retries
    /// writes that failed for an earlier joiner, so that this one does not fail because the disk
    /// was full then.
    pub(crate) fn begin_joining(&mut self) -> (usize, Arc<AtomicUsize>) {
        self.undo.retry();
        let joining = (Budget::joining(self.options.memory), Arc::new(AtomicUsize::new(0)));
        self.joining = Some(joining.clone());
        joining
    }

    /// Releases the joiner's memory.
    pub(crate) fn end_joining(&mut self) {
        self.joining = None;
    }

    fn next_sequence(&self) -> Result<Sequence, StepError> {
        let (sequence, at) = (Sequence::MAX, self.sequence);
        at.next().ok_or(StepError::Order { sequence, at })
    }

    /// Applies the step to the window, on up to `workers` threads. In the same step, the waiting
    /// run replaces its pane.
    fn step(&mut self, next: NextStep<'_>, workers: NonZeroUsize) -> Result<(), StepError> {
        let NextStep { sequence, height, adds, spends, tip } = next;
        assert_eq!(self.sequence.next(), Some(sequence), "steps are numbered without gaps");
        let replaces = self.waiting.as_ref().map(|waiting| waiting.pane);
        let step = Step { sequence, height, spends, replaces };
        self.window.apply(&step, adds, workers)?;
        (self.sequence, self.tip) = (sequence, tip);
        if let Some(waiting) = self.waiting.take() {
            self.runs = self.runs.with_replaced(0..0, waiting.run);
            self.checkpoint_due = true;
        }
        self.renew();
        Ok(())
    }

    /// Rebuilds the latest version. If its step is already published, readers get it at once: only
    /// the locations of coins have changed.
    fn renew(&mut self) {
        let window = crate::sync::Arc::clone(self.window.version());
        assert_eq!(window.sequence(), self.sequence, "window and tip are of the same step");
        debug_assert!(self.is_divided(), "no step is both in a run and in the window");
        let noted =
            Noted { panes: self.window.panes().collect(), merges: self.work.merging().collect() };
        let version = Version::new(self.sequence, self.tip, window, self.runs.clone(), noted);
        self.latest = Arc::new(version);
        if self.snapshot().sequence() == self.sequence {
            self.publish();
        }
    }

    /// Whether every run holds older steps than every pane.
    fn is_divided(&self) -> bool {
        let youngest = self.runs.as_slice().first().map(|run| run.info().span.last);
        self.window.panes().all(|pane| Some(pane.first) > youngest)
    }

    /// Publishes the latest version to readers.
    fn publish(&self) {
        debug_assert!(self.snapshot().sequence() <= self.sequence, "readers never go back");
        self.published.store(Arc::clone(&self.latest));
    }
}

/// A step that is ready to be made.
#[derive(Debug)]
struct NextStep<'a> {
    sequence: Sequence,
    /// The height of the block that is connected or disconnected.
    height: Height,
    adds: Layout,
    spends: &'a [Spend],
    /// The tip after the step.
    tip: Option<(Height, BlockHash)>,
}

/// The configuration of the window.
fn window_of(manifest: &Manifest, options: &Options) -> (WindowConfig, OutpointHasher) {
    let pane_steps = manifest.parameters.flush_interval as usize;
    let config = WindowConfig { shards: options.shards, pane_steps };
    (config, OutpointHasher::new(&manifest.secret.to_bytes()))
}

/// The manifest of a directory. A directory without one must hold no files of a set.
fn load_or_create(storage: &dyn Storage, options: &Options) -> Result<Manifest, Error> {
    if let Some(manifest) = Manifest::load(storage, options.network)? {
        return Ok(manifest);
    }
    let ours = |name: &String| Manifest::is_swept(name) || is_segment(UNDO_PREFIX, name);
    if storage.list()?.iter().any(ours) {
        return Err(Error::NoManifest { path: storage.path().to_path_buf() });
    }
    let manifest = Manifest::new(options.key, options.network, options.parameters);
    manifest.store(storage)?;
    Ok(manifest)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
