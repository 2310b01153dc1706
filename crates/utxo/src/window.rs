//! The window: the young blocks in memory, as panes of shards.
//!
//! ```text
//!            oldest                            youngest
//!            ┌────────────┐  ┌────────────┐  ┌───────╌╌╌╌╌┐
//!  panes     │ sealed,    │  │ sealed     │  │ filling    │◄── apply(step)
//!            │ being      │  │            │  │            │
//!            │ flushed    │  │            │  │            │
//!            └─────┬──────┘  └────────────┘  └────────────┘
//!                  └──► a run, which takes its place with a later step
//! ```
//!
//! [`Window`] belongs to one writer. Each [`Window::apply`] takes a whole step and returns a new
//! [`WindowVersion`]; the owner publishes it to readers, at once or after more steps. A step is all
//! or nothing, and nothing of it is visible to any version before it: every shard does the part
//! that can fail in a revertible way (`shard/writer.rs`), and only when all have succeeded do their
//! batches become visible.
//!
//! Shards share nothing, so the work of a step is split over threads by shard. The result does not
//! depend on the number of threads.
//!
//! **What a lookup may rely on**, at every version: at most one add of an outpoint is visible in
//! the window, and if one is, the coin is unspent. Only adds die; a delete stays until its pane is
//! flushed. Within one birth adds and deletes take turns in the order of panes and runs, so counts
//! of neighbouring containers are −1, 0 or +1. Between births no order is guaranteed: a delete made
//! for a late death may be younger than the next coin of the same outpoint, which is why
//! [`Lookup::Deleted`] names births and does not end the search in runs.

mod file;
mod layout;
mod shard_range;
mod step;
mod version;

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use varve_consensus::BlockAt;
use varve_runs::Sequence;
use varve_types::Height;

use crate::changes::Changes;
use crate::entry::Entry;
use crate::hasher::OutpointHasher;
use crate::pane::{Flush, Pane, PaneId, PaneInfo, PaneView};
use crate::shard::{BATCHES_MAX, HEAD_LEN, Refused, ShardWriter};
use crate::sync::Arc;

pub use file::WindowFile;
pub(crate) use file::WindowImage;
pub(crate) use layout::{LaidOut, Layout, Placing};
use shard_range::ShardRange;
pub(crate) use step::{Location, spends_of_disconnect};
pub use step::{Spend, Step, StepError};
pub use version::{Lookup, WindowVersion};

/// Cells of a shard beyond those for steps: for entries loaded from a file, a gibibyte each.
const LOADED_BATCHES: usize = 64;

/// Steps with fewer changes than this are not worth a second thread.
const PARALLEL_MIN: usize = 1024;

/// How a window is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Shards of a pane; rounded up to a power of two, at most 2^15. More shards than threads, so
    /// that the work divides evenly.
    pub shards: usize,
    /// Steps after which a pane is sealed, if it was not before; at most 4,031.
    pub pane_steps: usize,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self { shards: 16, pane_steps: 256 }
    }
}

/// The window and its one writer.
///
/// ```
/// use std::num::NonZeroUsize;
/// use varve_types::{Amount, Coin, Height, Outpoint, Txid};
/// use varve_utxo::parts::{
///     Entry, Lookup, OutpointHasher, Sequence, Spend, Step, StepError, Window, WindowConfig,
/// };
///
/// # fn main() -> Result<(), StepError> {
/// let mut window =
///     Window::new(WindowConfig::default(), OutpointHasher::new(&[7; 16]), Sequence::ZERO);
/// let outpoint = Outpoint::new(Txid::from_bytes([1; 32]), 0);
/// let coin =
///     Coin { height: Height::new(0), coinbase: true, value: Amount::COIN, script: &[0x51] };
///
/// // A block that makes a coin.
/// let (sequence, height) = (Sequence::new(1), Height::new(0));
/// let adds = [Entry::add(outpoint, sequence, coin)];
/// let step = Step { sequence, height, spends: &[], replaces: None };
/// let before = window.apply_entries(&step, &adds, NonZeroUsize::MIN)?;
///
/// // A block that spends it.
/// let mut found = Vec::new();
/// before.lookup(&[outpoint], &mut found);
/// let Lookup::Found(found) = &found[0] else { panic!("it was made above") };
/// assert_eq!(found.coin, coin);
/// let spends = [Spend { outpoint, birth: found.birth, location: Some(found.location) }];
/// let (sequence, height) = (Sequence::new(2), Height::new(1));
/// let step = Step { sequence, height, spends: &spends, replaces: None };
/// let after = window.apply_entries(&step, &[], NonZeroUsize::MIN)?;
///
/// // The first version still has the coin.
/// assert_eq!((before.entries().count(), after.entries().count()), (1, 0));
/// # Ok(())
/// # }
/// ```
pub struct Window {
    config: WindowConfig,
    hasher: OutpointHasher,
    sequence: Sequence,
    /// Never empty; the last is the one that fills.
    panes: VecDeque<PaneState>,
    shards: Vec<ShardWriter>,
    version: Arc<WindowVersion>,
}

#[derive(Clone)]
struct PaneState {
    pane: Arc<Pane>,
    first: Sequence,
    last: Sequence,
    height: Height,
    steps: usize,
    flushing: Option<Sequence>,
}

impl Window {
    /// An empty window after step `at`.
    #[must_use]
    pub fn new(config: WindowConfig, hasher: OutpointHasher, at: Sequence) -> Self {
        let config = WindowConfig {
            shards: config.shards.clamp(1, 1 << 15).next_power_of_two(),
            pane_steps: config.pane_steps.clamp(1, BATCHES_MAX - LOADED_BATCHES),
        };
        let shards = (0..config.shards).map(|number| ShardWriter::new(number, hasher.clone()));
        let mut window = Self {
            config,
            sequence: at,
            panes: VecDeque::new(),
            shards: shards.collect(),
            version: Arc::new(WindowVersion::new(at, hasher.clone(), Vec::new())),
            hasher,
        };
        window.begin_pane();
        window.publish();
        window
    }

    /// Upper bound on the bytes of memory of `entries` entries with `scripts` bytes of scripts:
    /// their heads, and three slots each in a table that is being enlarged.
    pub(crate) const fn memory_of(entries: usize, scripts: usize) -> usize {
        entries * (HEAD_LEN + 3 * size_of::<u64>()) + scripts
    }

    /// The latest version.
    #[must_use]
    pub const fn version(&self) -> &Arc<WindowVersion> {
        &self.version
    }

    /// The panes, oldest first.
    pub fn panes(&self) -> impl Iterator<Item = PaneInfo> {
        self.panes.iter().enumerate().map(|(position, state)| {
            let sizes = self.shards.iter().map(|shard| shard.size(position));
            let (living, memory) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
            PaneInfo {
                id: state.pane.id(),
                first: state.first,
                last: state.last,
                height: state.height,
                steps: state.steps,
                sealed: position + 1 < self.panes.len(),
                flushing: state.flushing,
                living,
                memory,
            }
        })
    }

    /// Lays out these entries and applies the step.
    #[cfg(feature = "test-suite")]
    pub fn apply_entries(
        &mut self,
        step: &Step<'_>,
        adds: &[Entry<'_>],
        workers: NonZeroUsize,
    ) -> Result<Arc<WindowVersion>, StepError> {
        let layout = self.lay_out(step.sequence, adds.iter().copied());
        self.apply(step, layout, workers)
    }

    /// Lays out what a step adds.
    pub(crate) fn lay_out<'e>(
        &self,
        sequence: Sequence,
        adds: impl Iterator<Item = Entry<'e>> + Clone,
    ) -> Layout {
        let outpoints = adds.clone().map(|add| add.outpoint);
        let mut layout = Layout::with_room(self.placing(), sequence, outpoints, std::iter::empty());
        adds.for_each(|add| layout.push(&add));
        layout
    }

    /// Lays out what connecting a block, as step `sequence`, adds.
    pub(crate) fn lay_out_block(
        &self,
        sequence: Sequence,
        block: &BlockAt<'_>,
        changes: &Changes,
    ) -> Layout {
        Layout::of_block(self.placing(), sequence, block, changes, std::iter::empty())
    }

    const fn placing(&self) -> Placing<'_> {
        Placing { hasher: &self.hasher, shards: self.shards.len() }
    }

    /// Makes one step, on up to `workers` threads, and returns the version after it.
    ///
    /// Earlier versions stay as they are. A refused step leaves no trace: every version and every
    /// later step is what it would have been without it.
    pub(crate) fn apply(
        &mut self,
        step: &Step<'_>,
        adds: Layout,
        workers: NonZeroUsize,
    ) -> Result<Arc<WindowVersion>, StepError> {
        if step.sequence <= self.sequence || step.sequence == Sequence::MAX {
            return Err(StepError::Order { sequence: step.sequence, at: self.sequence });
        }
        if step.replaces.is_some() && step.replaces != self.flushed_pane() {
            return Err(StepError::NoFlush);
        }
        if self.panes.back().is_none_or(|youngest| youngest.steps >= self.config.pane_steps) {
            self.seal();
        }
        if let Some(refused) = self.stage(step, adds, workers) {
            self.shards.iter_mut().for_each(ShardWriter::roll_back);
            return Err(refused.error);
        }
        self.shards.iter_mut().for_each(|shard| shard.commit(step.replaces.is_some()));
        if let Some(youngest) = self.panes.back_mut() {
            youngest.first = youngest.first.min(step.sequence);
            youngest.last = step.sequence;
            youngest.height = youngest.height.max(step.height);
            youngest.steps += 1;
        }
        if step.replaces.is_some() {
            self.panes.pop_front();
        }
        self.sequence = step.sequence;
        Ok(self.publish())
    }

    /// Ends the youngest pane and begins a new one. A pane without steps stays.
    pub fn seal(&mut self) {
        if self.panes.back().is_some_and(|youngest| youngest.steps > 0) {
            self.begin_pane();
            self.publish();
        }
    }

    /// Begins to flush the oldest pane, if it is sealed and no flush is in progress.
    ///
    /// The run is written from `Flush::entries`, possibly in another thread. When it is durable,
    /// the next step names the pane in [`Step::replaces`], and the owner publishes its version
    /// together with the run. Until then the pane stays in the window.
    pub fn begin_flush(&mut self) -> Option<Flush> {
        let at = self.sequence;
        let oldest = self.panes.front_mut().filter(|oldest| oldest.flushing.is_none());
        let sealed = self.shards.first().is_some_and(|shard| shard.table(1).is_some());
        let oldest = oldest.filter(|_| sealed)?;
        oldest.flushing = Some(at);
        let flush = Flush::new(Arc::clone(&oldest.pane), at);
        self.shards.iter_mut().for_each(|shard| shard.set_flushing(true));
        Some(flush)
    }

    /// Gives a flush up: its run could not be written.
    pub(crate) fn cancel_flush(&mut self) {
        if let Some(oldest) = self.panes.front_mut() {
            oldest.flushing = None;
        }
        self.shards.iter_mut().for_each(|shard| shard.set_flushing(false));
    }

    fn flushed_pane(&self) -> Option<PaneId> {
        let oldest = self.panes.front()?;
        oldest.flushing.map(|_| oldest.pane.id())
    }

    fn begin_pane(&mut self) {
        let youngest = self.panes.back().map(|youngest| youngest.pane.id());
        let id = youngest.map_or(PaneId::FIRST, PaneId::next);
        let cells = self.config.pane_steps + LOADED_BATCHES;
        let pane = Arc::new(Pane::new(id, self.config.shards, cells));
        for shard in &mut self.shards {
            shard.push_pane(Arc::clone(&pane));
        }
        self.panes.push_back(PaneState {
            pane,
            first: Sequence::MAX,
            last: Sequence::ZERO,
            height: Height::GENESIS,
            steps: 0,
            flushing: None,
        });
    }

    /// Stages the step in every shard. `None` when all succeeded, else the refusal that comes first
    /// in the step, however the threads ran.
    fn stage(
        &mut self,
        step: &Step<'_>,
        mut adds: Layout,
        workers: NonZeroUsize,
    ) -> Option<Refused> {
        let shards = self.shards.len();
        let small = adds.len() + step.spends.len() < PARALLEL_MIN;
        let workers = if small { 1 } else { workers.get().min(shards) };
        let width = shards.div_ceil(workers);
        let placing = Placing { hasher: &self.hasher, shards };
        let not_laid_out = adds.refused.take().map(|Refused { rank, error }| {
            let rank = step.spends.len() + rank;
            Refused { rank, error }
        });
        let mut adds = adds.shards.into_iter();
        let ranges = self.shards.chunks_mut(width).enumerate();
        let mut ranges = ranges.map(|(number, range)| {
            let adds: Vec<LaidOut> = adds.by_ref().take(width).collect();
            ShardRange { first: number * width, shards: range, adds }
        });
        let stage = move |range: ShardRange<'_>| range.stage(placing, step);
        std::thread::scope(|scope| {
            let mine = ranges.next();
            let others: Vec<_> = ranges.map(|range| scope.spawn(move || stage(range))).collect();
            let mine = mine.and_then(stage);
            let others = others.into_iter().filter_map(|other| match other.join() {
                Ok(refused) => refused,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let refused = not_laid_out.into_iter().chain(mine).chain(others);
            refused.min_by_key(|refused| refused.rank)
        })
    }

    fn publish(&mut self) -> Arc<WindowVersion> {
        let views = self.panes.iter().enumerate().map(|(position, state)| PaneView {
            pane: Arc::clone(&state.pane),
            tables: self.shards.iter().filter_map(|shard| shard.table(position)).cloned().collect(),
        });
        let version = WindowVersion::new(self.sequence, self.hasher.clone(), views.collect());
        self.version = Arc::new(version);
        Arc::clone(&self.version)
    }
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let panes: Vec<PaneInfo> = self.panes().collect();
        f.debug_struct("Window").field("sequence", &self.sequence).field("panes", &panes).finish()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
