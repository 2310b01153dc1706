//! The organizer: one thread that owns all writers and moves the tip.
//!
//! ```text
//!  source ─► intake ──► checkers ──► block store, archive      any order, any branch
//!               │
//!               └► target ─► feeder ─► joiner ─► reached ─► commit ─► readers
//!                            in order   workers   in order   one record
//! ```
//!
//! * **Target**: the chain with the most work whose blocks are all stored and none known to be
//!   invalid ([`HeaderTree::best_chain`](crate::header_tree::HeaderTree::best_chain)). In a long
//!   sync from own files or an own node, not a branch of which their headers say that it is going
//!   to lose.
//! * When the target is above the set, its blocks go to the joiner. When it is on another branch,
//!   the set is first *turned*: rewound to the fork. Readers do not see that: they hold the
//!   snapshot of the last commit, and get the next one when the new branch has won.
//! * A block that fails is marked with the reason, until an operator reconsiders it (`verdict`);
//!   the target is then another, perhaps the old tip, and the set is turned to it.
//! * A sync that verifies scripts also checks those of confirmed blocks that were taken without
//!   (`recheck`), when it has nothing else to do.
//! * A sync that follows and has caught up also takes unconfirmed transactions, between blocks
//!   (`tend`).
//! * A *checkpoint* makes everything durable at intervals, so that a crash costs the replay of at
//!   most [`Limits::lag`] bytes of blocks.

mod checker;
mod durable;
mod feeder;
mod fetch;
mod indexes;
mod intake;
mod judge;
mod kept;
mod left_out;
mod maintain;
mod recheck;
mod report;
mod script_board;
mod tend;
mod verdict;
mod vetting;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use varve_archive::history::HistoryOptions;
use varve_consensus::{BlockAt, Params};
use varve_types::{BlockHash, Height, Network};
use varve_utxo::{
    Compaction, Database, DatabaseView, Error as UtxoError, Joiner, JoinerOptions, MemorySplit,
    Parameters, UndoConfig,
};

use crate::budget::Budget;
use crate::checked::ScriptsChecked;
use crate::data_directory::{DataDirectory, Seed};
use crate::error::Error;
use crate::header_tree::{ChainTip, Invalid};
use crate::settings::{Index, Prune, Settings, SettingsChange};
use crate::snapshot::{NodeReader, NodeSnapshot};
use crate::source::{Clock, Source};
use crate::stores::Stores;
use checker::Checkers;
use feeder::{Feeder, Joining, Pause, Purpose};
use intake::Intake;
use judge::{Good, Judge, Refusal};
use kept::Kept;
use recheck::Recheck;
use script_board::ScriptBoard;

pub(crate) use checker::Preparer;
pub(crate) use judge::connect;
pub(crate) use left_out::LeftOut;
pub use maintain::Compacted;
pub use report::Report;

/// Bytes that the scripts of a block take while they are checked, for each of its bytes: about 500
/// an input (`docs/adr/0013-script-verification.md`), which has 150 bytes and an output as a rule.
const SCRIPT_MEMORY: usize = 4;

/// The first commit of a sync waits for this part of the latency.
const FIRST_COMMIT: u32 = 16;

/// How a node is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The rules, and with them the network.
    pub params: Params,
    /// Randomness for a new folder.
    pub seed: Seed,
    /// Bytes of memory for the whole process, page cache aside (`budget`).
    pub memory: usize,
    /// Threads.
    pub workers: NonZeroUsize,
    /// How the unspent set of a new folder is cut.
    pub parameters: Parameters,
    /// How undo records are kept.
    pub undo: UndoConfig,
    /// Where the unspent set is flushed and merged.
    pub compaction: Compaction,
    /// The length of a file of blocks.
    pub block_segment: u64,
    /// When commits and checkpoints are made.
    pub limits: Limits,
    /// How the script history is kept, its memory aside.
    pub history: HistoryOptions,
    /// Changes to what the folder keeps.
    pub settings: SettingsChange,
}

impl Options {
    /// The defaults for a network.
    #[must_use]
    pub fn new(network: Network, seed: Seed) -> Self {
        Self {
            params: Params::new(network),
            seed,
            memory: 3 << 29,
            workers: NonZeroUsize::MIN,
            parameters: Parameters::default(),
            undo: UndoConfig::default(),
            compaction: Compaction::default(),
            block_segment: varve_blocks::Options::SEGMENT_SIZE,
            limits: Limits::default(),
            history: HistoryOptions::default(),
            settings: SettingsChange::default(),
        }
    }
}

/// When commits and checkpoints are made.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of blocks in a commit of a long sync, about.
    pub group: u64,
    /// The longest that a commit waits.
    pub latency: Duration,
    /// Bytes of blocks stored since the last checkpoint at which the next is due.
    pub lag: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { group: 64 << 20, latency: Duration::from_secs(1), lag: 256 << 20 }
    }
}

/// How much is checked of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Everything but scripts.
    Spends,
    /// Everything.
    Scripts,
}

/// How to sync.
#[derive(Clone)]
pub struct SyncOptions {
    /// How much is checked.
    pub verify: Verify,
    /// The scripts of this block and of those below it are not checked, if it is on the best
    /// chain and buried (see `judge`).
    pub assume_valid: Option<BlockHash>,
    /// The chain does not go above this height.
    pub stop_height: Option<Height>,
    /// Keep running when everything is there, and take new blocks as they come.
    pub follow: bool,
    /// Also fetch blocks of branches that have less work than the best.
    pub all_branches: bool,
    /// Also take unconfirmed transactions, once everything is there. Only a sync that follows does.
    pub mempool: bool,
    /// Set from another thread: commit what was reached, and end in order.
    pub stop: Arc<AtomicBool>,
    /// For the time between commits.
    pub clock: Clock,
    /// The time of day, in seconds since 1970.
    pub now: Arc<dyn Fn() -> u32 + Send + Sync>,
}

impl SyncOptions {
    /// Whether the caller wants the sync to end.
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The node, as its one writer sees it.
pub struct Organizer {
    pub(crate) utxo: Database,
    pub(crate) stores: Stores,
    pub(crate) options: Options,
    pub(crate) settings: Settings,
    pub(crate) directory: Arc<DataDirectory>,
    /// What the last sync left out.
    pub(crate) left_out: LeftOut,
}

impl Organizer {
    /// A handle that takes snapshots in other threads.
    #[must_use]
    pub fn reader(&self) -> NodeReader {
        NodeReader {
            published: Arc::clone(&self.stores.published),
            directory: Arc::clone(&self.directory),
            settings: self.settings,
            stats: self.stores.stats.log().clone(),
            desk: self.stores.mempool.desk().clone(),
            pins: self.stores.pins.clone(),
        }
    }

    /// The node as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<NodeSnapshot> {
        self.stores.published.load_full()
    }

    /// Every branch that is known, and the confirmed tip.
    #[must_use]
    pub fn chain_tips(&self) -> Vec<ChainTip> {
        self.stores.chain.read().tree.chain_tips(self.stores.tip)
    }

    /// The height of the best header.
    #[must_use]
    pub fn header_height(&self) -> Height {
        let tree = &self.stores.chain.read().tree;
        tree.height(tree.best_header())
    }

    /// Whether and why a block cannot be in the chain.
    #[must_use]
    pub fn invalid(&self, hash: &BlockHash) -> Option<Invalid> {
        let tree = &self.stores.chain.read().tree;
        let known = tree.find(hash).and_then(|id| tree.invalid(id));
        let mark = self.stores.marks.get(hash);
        known.or_else(|| mark.map(|reason| Invalid { block: *hash, reason: reason.clone() }))
    }

    /// The blocks that are invalid themselves, and why, in the order of their hashes.
    pub fn invalid_blocks(&self) -> impl Iterator<Item = Invalid> {
        let marks = self.stores.marks.iter();
        marks.map(|(block, reason)| Invalid { block: *block, reason: reason.clone() })
    }

    /// How the scripts of the confirmed chain were settled.
    #[must_use]
    pub fn scripts(&self) -> ScriptsChecked {
        self.stores.checked.summary(self.stores.tip_at().0)
    }

    /// How the folder is kept.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// How the memory is split now, and how the unspent set splits its part.
    #[must_use]
    pub fn memory(&self) -> (Budget, MemorySplit) {
        let budget = self.stores.budget(self.options.memory, 0);
        let index = self.utxo.memory().index;
        (budget, MemorySplit::new(budget.set, index, self.options.undo.cache))
    }

    /// The height up to which an index goes; `None` when it has not begun.
    pub fn indexed(&self, index: Index) -> Result<Option<Height>, Error> {
        self.reader().indexed(index)
    }

    /// The sizes of the archive's tables, as of the last checkpoint.
    pub fn table_sizes(&self) -> Result<Vec<varve_archive::TableSize>, Error> {
        Ok(self.stores.archive.sizes()?)
    }

    /// Takes from the source until it has no more, or the stop height is reached; when it follows,
    /// until [`SyncOptions::stop`] is set. What was committed stays, even when an error ends it.
    pub fn sync(
        &mut self,
        source: &mut dyn Source,
        options: &SyncOptions,
        report: &mut dyn FnMut(Report<'_>),
    ) -> Result<(), Error> {
        if options.mempool && options.follow {
            self.stores.mempool.want(Arc::clone(&options.now));
        }
        let synced = self.sync_blocks(source, options, report);
        if self.stores.mempool.end() {
            report(Report::MempoolChanged { events: &[] });
        }
        synced
    }

    fn sync_blocks(
        &mut self,
        source: &mut dyn Source,
        options: &SyncOptions,
        report: &mut dyn FnMut(Report<'_>),
    ) -> Result<(), Error> {
        let network = self.options.params.network;
        if options.verify == Verify::Scripts && network.is_bsv() {
            return Err(Error::NoScripts { network });
        }
        self.catch_up_indexes(report)?;
        let budget = self.split(source)?;
        let (checkers, kept) = self.waiting(&budget)?;
        let mut intake = Intake::new(source, options, report, checkers, kept);
        intake.begin(&self.stores)?;
        let mut recheck = (options.verify == Verify::Scripts).then(Recheck::new);
        loop {
            self.turn(&intake)?;
            let purpose = if recheck.is_some() { Purpose::Recheck } else { Purpose::Sync };
            let pause = self.join(&mut intake, purpose)?;
            if pause == Pause::Turn {
                continue;
            }
            if let Some(left) = recheck.as_mut().filter(|_| pause == Pause::Recheck) {
                let judge = self.judge(options);
                self.recheck(left, &judge, &mut intake)?;
                recheck = recheck.filter(|left| !left.is_done());
                continue;
            }
            let budget = self.stores.budget(self.options.memory, intake.source_memory());
            let is_done = pause == Pause::Done || options.is_stopped();
            if is_done {
                self.follow_left_scripts()?;
                let report = &mut *intake.report;
                let progress = &mut |done, all| report(Report::Merging { done, all });
                self.tidy(&|| options.is_stopped(), progress)?;
                self.checkpoint()?;
            } else {
                self.make_durable()?;
                self.prune()?;
            }
            set_memory(budget, |memory| self.utxo.set_memory(memory))?;
            if is_done {
                self.left_out = intake.left_out;
                return Ok(());
            }
        }
    }

    /// Where blocks are between the source and the joiner.
    fn waiting(&self, budget: &Budget) -> Result<(Checkers, Kept), Error> {
        let Options { params, workers, .. } = &self.options;
        let preparer = self.stores.archive.preparer();
        let checkers = Checkers::new(params, preparer, *workers, budget.checked())?;
        Ok((checkers, Kept::new(budget.kept())))
    }

    /// Gives the source and the set their parts of the memory.
    fn split(&mut self, source: &mut dyn Source) -> Result<Budget, Error> {
        let memory = self.options.memory;
        source.bound(self.stores.budget(memory, 0).queued(), Budget::unordered(memory));
        let budget = self.stores.budget(memory, source.memory());
        set_memory(budget, |memory| self.utxo.set_memory(memory))
    }

    /// Rewinds the set until it is on the branch of the target.
    fn turn(&mut self, intake: &Intake<'_>) -> Result<(), Error> {
        // A disk that was full may have kept the last joiner from taking its steps back.
        self.utxo.rewind_unpublished()?;
        let target = intake.target(&self.stores);
        self.check_reach(target)?;
        self.rewind_to_branch(target)
    }

    fn judge(&self, options: &SyncOptions) -> Judge {
        Judge {
            chain: self.stores.chain.clone(),
            verify: options.verify,
            assume_valid: options.assume_valid,
            wanted: self.wanted(),
            board: ScriptBoard::new(options.verify.script_threads(self.options.workers)),
        }
    }

    /// Joins blocks until the feeder pauses.
    fn join(&mut self, intake: &mut Intake<'_>, purpose: Purpose) -> Result<Pause, Error> {
        let options = intake.options;
        let judge = self.judge(options);
        let at = self.utxo_tip()?;
        let (set, limits, workers) =
            (self.utxo.reader(), self.options.limits, self.options.workers);
        let memory = self.options.memory;
        let budget = self.stores.budget(memory, intake.source_memory());
        let sync_every = (self.options.undo.blocks / 2).max(1);
        // Pruning goes by the set's checkpoint.
        let pauses = self.settings.prune != Prune::Off;
        let checkpoint_every = self.checkpoint_every();
        let stores = &mut self.stores;
        let (committed_at, patience) = ((options.clock)(), limits.latency / FIRST_COMMIT);
        let check = if options.verify == Verify::Scripts { SCRIPT_MEMORY } else { 0 };
        let check = check + judge.wanted.memory();
        let joiner_options = JoinerOptions { check, ..JoinerOptions::new(self.options.workers) };
        let check = |block: &BlockAt<'_>, view: &DatabaseView| judge.check(block, view);
        let feed = |joiner: &Joiner<'_, '_, Joining, Good, Refusal>| {
            let (head, reached) = (at, at);
            let (in_flight, uncommitted, unsynced) = (0, 0, 0);
            let feeder = Feeder {
                stores,
                intake,
                joiner,
                set,
                limits,
                budget,
                workers,
                pauses,
                checkpoint_every,
                purpose,
                head,
                reached,
                in_flight,
                uncommitted,
                committed_at,
                patience,
                sync_every,
                unsynced,
                refused: None,
            };
            feeder.run()
        };
        let utxo = &mut self.utxo;
        judge.board.with_helpers(|| Joiner::scope(utxo, &joiner_options, check, feed))?
    }
}

/// Gives the set its part.
fn set_memory(
    budget: Budget,
    set: impl FnOnce(usize) -> Result<(), UtxoError>,
) -> Result<Budget, Error> {
    set(budget.enough()?.set).map_err(|error| budget.set_error(error))?;
    Ok(budget)
}
