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
//!    checkpoint is made, in threads beside the writer. It changes where coins lie, not which there
//!    are.
//! 2. The changes are resolved against the latest version: every prevout is there, or the block is
//!    refused. A coin that the block overwrites (BIP30) counts as spent.
//! 3. The undo record is pushed, or popped. Should the window refuse the step, the log returns to
//!    where it stood.
//! 4. The window takes the step. If a run is waiting to take the place of its pane, it does so in
//!    the same step, so that runs and window always fit one another.
//! 5. The new version is published by one atomic store.
//!
//! So an error means that nothing has changed, and a reader sees whole steps only.
//!
//! **Durability.** The chain is the journal: a step is durable with the next checkpoint, and after
//! a crash the owner asks for the tip and appends the blocks above it again.

mod checkpoint;
mod import;
mod maintain;
mod work;

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_consensus::BlockAt;
use varve_io::{LockGuard, Storage};
use varve_types::{BlockHash, Height, Network, Outpoint};

use crate::changes::Changes;
use crate::coins::Coins;
use crate::entry::Entry;
use crate::error::Error;
use crate::hasher::OutpointHasher;
use crate::manifest::{Checkpoint, Kept, Manifest};
use crate::options::Options;
use crate::prepare::{Prepared, Repeats};
use crate::runs::Runs;
use crate::sequence::Sequence;
use crate::undo::{UndoError, UndoLog, UndoParts};
use crate::version::Version;
use crate::view::DatabaseView;
use crate::window::{Spend, Step, StepError, Window, WindowConfig, spends_of_disconnect};
use checkpoint::Merged;
use maintain::Waiting;
use work::Work;

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
/// // Draw both at random: the secret keeps others from choosing what lookups cost.
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
    /// A pane whose run is written and takes its place with the next step.
    waiting: Option<Waiting>,
    /// A run has taken a pane's place since the last checkpoint.
    checkpoint_due: bool,
    /// What was merged since the last whole checkpoint was decided, in that order.
    merged: Vec<Merged>,
    work: Work,
    /// The set after the last step.
    latest: Arc<Version>,
    /// What readers see: the latest version, or an earlier one.
    published: Arc<ArcSwap<Version>>,
    _lock: LockGuard,
}

impl Database {
    /// Opens the set of a directory as it was at its last checkpoint, or makes an empty one. The
    /// directory is the opener's alone until the database is dropped.
    pub fn open(storage: Arc<dyn Storage>, options: Options) -> Result<Self, Error> {
        let lock = storage.lock()?;
        let work = Work::new(options.compaction).map_err(Error::Thread)?;
        storage.sync_dir()?;
        let manifest = load_or_create(&*storage, &options)?;
        manifest.sweep(&*storage, &Kept::NOTHING)?;
        let key = manifest.key();
        let runs = Runs::open(&*storage, key, &manifest.runs)?;
        let Checkpoint { sequence, tip } = manifest.checkpoint;
        let (config, hasher) = window_of(&manifest, &options);
        let window = match &manifest.window {
            Some(saved) => {
                let file = saved.file(&key);
                Window::load(&*storage, &file, (config, hasher), options.workers)?
            }
            None => Window::new(config, hasher, sequence),
        };
        let inconsistent = |what| Error::Inconsistent { path: storage.path().to_path_buf(), what };
        if window.version().sequence() != sequence {
            return Err(inconsistent("the window file is of another step than the manifest"));
        }
        let undo = UndoLog::open(Arc::clone(&storage), key.id, options.undo, &manifest.undo)?;
        let version =
            Version::new((sequence, tip), crate::sync::Arc::clone(window.version()), runs.clone());
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
            merged: Vec::new(),
            work,
            published: Arc::new(ArcSwap::new(Arc::clone(&latest))),
            latest,
            _lock: lock,
        })
    }

    /// The block that the set stands at; `None` before the first.
    #[must_use]
    pub const fn tip(&self) -> Option<(Height, BlockHash)> {
        self.tip
    }

    /// The moment to which a crash now would take the set back.
    #[must_use]
    pub const fn checkpoint(&self) -> Checkpoint {
        self.manifest.checkpoint
    }

    /// The set as it is now, for as long as one likes.
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

    /// The set with all blocks that were appended, also those that are not published yet.
    #[must_use]
    pub const fn latest(&self) -> &Arc<Version> {
        &self.latest
    }

    /// A handle that publishes in other threads.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher { published: Arc::clone(&self.published) }
    }

    /// What the rules may ask about a block on the tip.
    pub fn view(&self, block: &BlockAt<'_>) -> Result<DatabaseView, Error> {
        DatabaseView::new(&self.latest, self.options.network, block)
    }

    /// The chain whose coins these are.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.options.network
    }

    /// Connects a block on the tip. The first block of all is one that stands on none.
    pub fn append(&mut self, block: &BlockAt<'_>) -> Result<(), Error> {
        self.check_next(block)?;
        let network = self.options.network;
        let prepared = Prepared::new(&self.latest, network, block, Repeats::Possible)?;
        self.maintain(prepared.window_bytes())?;
        self.connect(block, prepared)?;
        self.publish();
        Ok(())
    }

    /// Connects a block on the tip that was prepared at any version, and does not show it to
    /// readers yet: [`Publisher::publish`] does, or it is [rewound](Database::rewind_unpublished)
    /// and nobody has seen it. A checkpoint may hold it before.
    pub fn append_prepared(
        &mut self,
        block: &BlockAt<'_>,
        prepared: Prepared,
    ) -> Result<Appended, Error> {
        self.check_next(block)?;
        let (made_for, asked) = (prepared.block, block.hash());
        if made_for != asked {
            return Err(Error::OtherBlock { made_for, asked });
        }
        self.maintain(prepared.window_bytes())?;
        let prepared = self.connect(block, prepared)?;
        let view = DatabaseView::of(prepared, block);
        Ok(Appended { version: Arc::clone(&self.latest), view })
    }

    /// Makes the step of a block that stands on the tip. Gives back what was found for it, which is
    /// right for the set below it.
    fn connect(&mut self, block: &BlockAt<'_>, mut prepared: Prepared) -> Result<Prepared, Error> {
        let sequence = self.next_sequence()?;
        prepared.bring_up_to(&self.latest)?;
        let Prepared { changes, coins, .. } = &prepared;
        changes.verdict(block, |place| coins.birth(place).is_some())?;
        let (gone, spends) = gone(changes, coins);
        let created = changes.created(block);
        let adds: Vec<Entry<'_>> =
            created.map(|(outpoint, coin)| Entry::add(outpoint, sequence, coin)).collect();
        let outpoints: Vec<Outpoint> = adds.iter().map(|entry| entry.outpoint).collect();
        let record = UndoParts {
            sequence,
            height: block.height(),
            block: block.hash(),
            previous: block.block().header().previous(),
            spent: &gone,
            created: &outpoints,
        };
        let position = self.undo.position();
        self.undo.push_parts(&record)?;
        let tip = Some((block.height(), block.hash()));
        if let Err(refused) = self.step((sequence, block.height()), (&adds, &spends), tip) {
            self.undo.return_to(position);
            return Err(refused.into());
        }
        Ok(prepared)
    }

    /// Disconnects the tip: the set is again as it was below it.
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.disconnect()?;
        self.publish();
        Ok(())
    }

    /// Disconnects the blocks that were appended and not published. Readers see no difference.
    pub fn rewind_unpublished(&mut self) -> Result<(), Error> {
        let published = self.snapshot().tip();
        while self.tip != published {
            self.disconnect()?;
        }
        self.publish();
        Ok(())
    }

    fn disconnect(&mut self) -> Result<(), Error> {
        let (height, hash) = self.tip.ok_or(Error::Empty)?;
        self.maintain(0)?;
        let sequence = self.next_sequence()?;
        let record = match self.undo.tip() {
            Ok(Some(record)) => record,
            Ok(None) | Err(UndoError::TooDeep) => return Err(Error::RewindTooDeep { height }),
            Err(error) => return Err(error.into()),
        };
        if (record.height, record.block) != (height, hash) {
            let path = self.storage.path().to_path_buf();
            let what = "the undo log stands at another block than the set";
            return Err(Error::Inconsistent { path, what });
        }
        let spends = spends_of_disconnect(self.window.version(), &record);
        let adds: Vec<Entry<'_>> = record.spent.iter().collect();
        let position = self.undo.position();
        self.undo.pop()?;
        let below = height.checked_sub(1).filter(|_| record.previous != BlockHash::ZERO);
        let tip = below.map(|below| (below, record.previous));
        if let Err(refused) = self.step((sequence, height), (&adds, &spends), tip) {
            self.undo.return_to(position);
            return Err(refused.into());
        }
        Ok(())
    }

    /// Disconnects all blocks above `height`, one step each. After an error the blocks that were
    /// disconnected stay so, and [`Database::tip`] says how far it came.
    pub fn rewind_to(&mut self, height: Height) -> Result<(), Error> {
        while self.tip.is_some_and(|(tip, _)| tip > height) {
            self.rewind()?;
        }
        Ok(())
    }

    /// Makes the set durable as it is now.
    pub fn flush(&mut self) -> Result<Checkpoint, Error> {
        self.maintain_and_save()?;
        Ok(self.checkpoint())
    }

    fn check_next(&self, block: &BlockAt<'_>) -> Result<(), Error> {
        let (height, previous) = (block.height(), block.block().header().previous());
        let follows = match self.tip {
            None => previous == BlockHash::ZERO,
            Some((tip, hash)) => previous == hash && tip.checked_add(1) == Some(height),
        };
        let (block, tip) = (block.hash(), self.tip);
        if follows { Ok(()) } else { Err(Error::NotNext { block, height, previous, tip }) }
    }

    fn next_sequence(&self) -> Result<Sequence, StepError> {
        let (sequence, at) = (Sequence::MAX, self.sequence);
        at.next().ok_or(StepError::Order { sequence, at })
    }

    /// Makes the step in the window, and with it lets the waiting run take the place of its pane.
    fn step(
        &mut self,
        (sequence, height): (Sequence, Height),
        (adds, spends): (&[Entry<'_>], &[Spend]),
        tip: Option<(Height, BlockHash)>,
    ) -> Result<(), StepError> {
        let replaces = self.waiting.as_ref().map(|waiting| waiting.pane);
        let step = Step { sequence, height, adds, spends, replaces };
        self.window.apply(&step, self.options.workers)?;
        (self.sequence, self.tip) = (sequence, tip);
        if let Some(waiting) = self.waiting.take() {
            self.runs = self.runs.with_replaced(0..0, waiting.run);
            self.checkpoint_due = true;
        }
        self.renew();
        Ok(())
    }

    /// Makes the latest version anew. When the step is published, readers get it at once: only
    /// where coins lie has changed since.
    fn renew(&mut self) {
        let window = crate::sync::Arc::clone(self.window.version());
        let version = Version::new((self.sequence, self.tip), window, self.runs.clone());
        self.latest = Arc::new(version);
        if self.snapshot().sequence() == self.sequence {
            self.publish();
        }
    }

    /// Shows the latest version to readers.
    fn publish(&self) {
        self.published.store(Arc::clone(&self.latest));
    }
}

/// A block that was connected and not published.
#[derive(Debug)]
pub struct Appended {
    /// The set with the block in it.
    pub version: Arc<Version>,
    /// What the rules may ask about the block.
    pub view: DatabaseView,
}

/// Shows appended blocks to readers, from any thread. Publish them in their order.
#[derive(Clone, Debug)]
pub struct Publisher {
    published: Arc<ArcSwap<Version>>,
}

impl Publisher {
    /// Lets readers see the set up to this block.
    pub fn publish(&self, version: Arc<Version>) {
        self.published.store(version);
    }
}

/// Takes snapshots of a database, in any thread, also when the database is gone.
#[derive(Clone, Debug)]
pub struct Reader {
    published: Arc<ArcSwap<Version>>,
}

impl Reader {
    /// The set as it is now, for as long as one likes. Waits for nobody.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Version> {
        self.published.load_full()
    }
}

/// The coins that go with a block: those that it spends, and those that it overwrites.
fn gone<'c>(changes: &Changes, coins: &'c Coins) -> (Vec<Entry<'c>>, Vec<Spend>) {
    let spends = changes.spends();
    let mut entries = Vec::with_capacity(spends);
    let mut gone = Vec::with_capacity(spends);
    let mut prevouts: Option<HashSet<&Outpoint>> = None;
    for (place, outpoint) in changes.keys.iter().enumerate() {
        let Some((coin, birth)) = coins.get(place).zip(coins.birth(place)) else { continue };
        if place >= spends {
            // What the block both spends and makes again goes once.
            let prevouts = prevouts.get_or_insert_with(|| changes.prevouts().iter().collect());
            if prevouts.contains(outpoint) {
                continue;
            }
        }
        let (outpoint, location) = (*outpoint, coins.location(place));
        entries.push(Entry::add(outpoint, birth, coin));
        gone.push(Spend { outpoint, birth, location });
    }
    (entries, gone)
}

/// How the window of a set is made.
fn window_of(manifest: &Manifest, options: &Options) -> (WindowConfig, OutpointHasher) {
    let pane_steps = manifest.parameters.flush_interval as usize;
    let config = WindowConfig { shards: options.shards, pane_steps };
    (config, manifest.secret.hasher())
}

/// The manifest of a directory. Where there is none, there must be nothing.
fn load_or_create(storage: &dyn Storage, options: &Options) -> Result<Manifest, Error> {
    if let Some(manifest) = Manifest::load(storage, options.network)? {
        return Ok(manifest);
    }
    let ours = |name: &String| Manifest::is_swept(name) || name.starts_with("undo");
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
