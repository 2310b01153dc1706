//! The merges of one store: at most a main one, and a short one beside it.
//!
//! ```text
//!  place     0   1   2   3   4   5   6   7      youngest first
//!            └── beside ──┘   └──── main ────┘
//! ```
//!
//! 1. [`Merges::next`] decides. While nothing is under way, the owner's rule chooses among all
//!    runs. While the main merge is at work, which may take minutes, a second rule chooses among
//!    the runs younger than its inputs. Once the main merge ends, the short one is waited for, so
//!    that a merge chosen among all runs is not postponed for ever.
//! 2. [`Merges::start`] hands the chosen runs to a lane and records the memory it takes meanwhile.
//! 3. [`Merges::take`] puts a finished run in the place of its inputs. Runs that were flushed
//!    meanwhile are younger than all of them, so the inputs are still neighbours.
//!
//! A merge that fails leaves the runs as they are; the same merge is then chosen again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use varve_io::{PAGE_LEN, Storage};

use crate::codec::Codec;
use crate::compact::{Busy, Choice, MergeInto, MergeWatch, merge_runs_with};
use crate::cursor::{Cursor, Source};
use crate::footer::{RunInfo, RunNumber};
use crate::lane::{Compaction, JobEnd, Lane, Slot, Stop};
use crate::merge::Merge;
use crate::run::Run;
use crate::runs::Runs;

/// The merges of a store that are under way.
#[derive(Debug)]
pub struct Merges<C: Codec> {
    storage: Arc<dyn Storage>,
    stop: Stop,
    main: MergeLane<C>,
    beside: MergeLane<C>,
}

/// One thread for merges, and the merge it is doing.
#[derive(Debug)]
struct MergeLane<C: Codec> {
    lane: Lane,
    slot: Slot<Merging, Result<Option<Run<C>>, C::Error>>,
}

/// A merge in progress, and what it costs.
#[derive(Debug)]
struct Merging {
    output: RunNumber,
    /// Neighbours, youngest first.
    inputs: Vec<RunNumber>,
    /// Pages of all inputs.
    pages: u64,
    /// Bytes of the inputs' directories and filters.
    index: usize,
    /// Bytes of buffers.
    buffers: usize,
    /// Rows of all inputs, and those that are written.
    rows: u64,
    watch: MergeWatch,
}

/// Which runs to merge, and in which lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// The places of the runs.
    pub range: Range<usize>,
    is_main: bool,
}

/// A finished merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The runs that were merged, youngest first.
    pub inputs: Vec<RunNumber>,
    /// The run in their place; `None` when nothing was left of their rows.
    pub output: Option<RunInfo>,
}

impl<C: Codec> Merges<C> {
    /// No merges yet. The threads, if there are any, have these names: that of the main merge, and
    /// that of the one beside it. Unless `stop` is set first, dropping this waits for the merges to
    /// finish.
    pub fn new(
        storage: &Arc<dyn Storage>,
        stop: &Stop,
        compaction: Compaction,
        [main, beside]: [&str; 2],
    ) -> std::io::Result<Self> {
        let lane = |name| {
            Ok::<_, std::io::Error>(MergeLane {
                lane: Lane::new(compaction, name)?,
                slot: Slot::default(),
            })
        };
        let (storage, stop) = (Arc::clone(storage), stop.clone());
        Ok(Self { storage, stop, main: lane(main)?, beside: lane(beside)? })
    }

    fn under_way(&self) -> impl Iterator<Item = &Merging> {
        self.main.slot.about().into_iter().chain(self.beside.slot.about())
    }

    /// The files that are being written.
    pub fn outputs(&self) -> impl Iterator<Item = RunNumber> {
        self.under_way().map(|merging| merging.output)
    }

    /// The runs that are being merged, youngest first, and the number of the run they become.
    pub fn jobs(&self) -> impl Iterator<Item = (&[RunNumber], RunNumber)> {
        self.under_way().map(|merging| (merging.inputs.as_slice(), merging.output))
    }

    /// Bytes of the directories and filters of all inputs: about the size of those of the new runs.
    #[must_use]
    pub fn index(&self) -> usize {
        self.under_way().map(|merging| merging.index).sum()
    }

    /// Bytes of buffers.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.under_way().map(|merging| merging.buffers).sum()
    }

    /// Bytes of the inputs of all merges under way: about how many are done, and all of them.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.under_way().fold((0, 0), |(done, all), merging| {
            let bytes = merging.pages * PAGE_LEN as u64;
            let rows = merging.watch.rows.load(Ordering::Relaxed).min(merging.rows);
            let share = u128::from(bytes) * u128::from(rows) / u128::from(merging.rows.max(1));
            (done + u64::try_from(share).unwrap_or(bytes), all + bytes)
        })
    }

    /// Whether no merge is under way.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.main.slot.is_free() && self.beside.slot.is_free()
    }

    /// Merges that are started from now on obey this flag, those under way the one before.
    pub fn obey(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }

    /// A handle to wait for the merge that ends first; `None` when there is none.
    #[must_use]
    pub fn end(&self) -> Option<JobEnd> {
        self.beside.slot.end().or_else(|| self.main.slot.end())
    }

    /// What to merge next among `runs`, youngest first, if there is a lane for it: by `main` when
    /// no merge is under way, by `beside` while only the main one is.
    pub fn next(
        &self,
        runs: &[RunInfo],
        main: impl FnOnce(&[RunInfo]) -> Choice,
        beside: impl FnOnce(&[RunInfo], Busy) -> Choice,
    ) -> Option<MergePlan> {
        let (is_main, choice) = match (self.main.slot.about(), self.beside.slot.is_free()) {
            (None, true) => (true, main(runs)),
            (Some(merging), true) => {
                let first = place_of(runs.iter().map(|info| info.number), &merging.inputs)?;
                (false, beside(runs, Busy { first, pages: merging.pages }))
            }
            (_, false) => return None,
        };
        match choice {
            Choice::Nothing => None,
            Choice::Merge(range) => Some(MergePlan { range, is_main }),
        }
    }

    /// Starts a merge of `runs` that [`Merges::next`] planned.
    ///
    /// # Panics
    ///
    /// When the plan names runs that are not there.
    pub fn start(&mut self, runs: &Runs<C>, plan: MergePlan, into: MergeInto) {
        let whole = into.whole;
        self.start_with(runs, plan, into, move |cursors| Merge::new(cursors, whole));
    }

    /// The same for a store that has its own way to make one row of equal ones: `merged` is given
    /// a cursor at the beginning of every run, youngest first.
    ///
    /// # Panics
    ///
    /// When the plan names runs that are not there.
    pub fn start_with<S: Source<C>>(
        &mut self,
        runs: &Runs<C>,
        plan: MergePlan,
        into: MergeInto,
        merged: impl FnOnce(Vec<Cursor<C>>) -> Result<S, C::Error> + Send + 'static,
    ) {
        let MergePlan { range, is_main } = plan;
        let oldest = range.end == runs.as_slice().len();
        assert!(oldest || !into.whole, "a merge is whole only with the oldest run");
        let inputs = runs.as_slice().get(range).expect("the plan is of these runs").to_vec();
        assert!(!inputs.is_empty(), "a merge has inputs");
        let infos: Vec<RunInfo> = inputs.iter().map(|run| run.info()).collect();
        let merging = Merging {
            output: into.number,
            inputs: infos.iter().map(|info| info.number).collect(),
            pages: infos.iter().map(|info| info.pages).sum(),
            index: inputs.iter().map(|run| run.memory()).sum(),
            buffers: into.buffers.merge(&infos),
            rows: infos.iter().map(|info| info.adds + info.deletes).sum(),
            watch: MergeWatch { stop: self.stop.clone(), ..MergeWatch::default() },
        };
        let watch = merging.watch.clone();
        let (storage, key) = (Arc::clone(&self.storage), *runs.key());
        let MergeLane { lane, slot } = if is_main { &mut self.main } else { &mut self.beside };
        let job = move || merge_runs_with(&watch, (&storage, key), &inputs, &into, merged);
        slot.fill(merging, lane.start(job));
    }

    /// Takes in one merge that is done, or waits for it: in `runs` the new run takes the place of
    /// its inputs. `None` when there is none.
    pub fn take(&mut self, runs: &mut Runs<C>, wait: bool) -> Result<Option<Merged>, C::Error> {
        let done = self.main.slot.take(wait).or_else(|| self.beside.slot.take(wait));
        let Some((Merging { inputs, .. }, output)) = done else { return Ok(None) };
        let output = output?;
        let first = place_of(runs.as_slice().iter().map(|run| run.info().number), &inputs);
        let first = first.expect("a run is an input of one merge only, and stays until it is done");
        let info = output.as_ref().map(Run::info);
        *runs = runs.with_replaced(first..first + inputs.len(), output.map(Arc::new));
        Ok(Some(Merged { inputs, output: info }))
    }
}

/// Accessors for test suites.
#[cfg(feature = "test-suite")]
impl<C: Codec> Merges<C> {
    /// The thread of the main merge.
    #[must_use]
    pub const fn main_lane(&self) -> &Lane {
        &self.main.lane
    }

    /// The inputs of the main merge; `None` when it is not under way.
    #[must_use]
    pub fn main_inputs(&self) -> Option<&[RunNumber]> {
        self.main.slot.about().map(|merging| merging.inputs.as_slice())
    }

    /// Whether no merge is under way beside the main one.
    #[must_use]
    pub const fn is_beside_free(&self) -> bool {
        self.beside.slot.is_free()
    }
}

/// The place of the first input. The others follow it.
fn place_of(
    mut runs: impl Iterator<Item = RunNumber> + Clone,
    inputs: &[RunNumber],
) -> Option<usize> {
    let behind = runs.clone();
    let first = runs.position(|number| inputs.first() == Some(&number))?;
    assert!(
        behind.skip(first).take(inputs.len()).eq(inputs.iter().copied()),
        "the inputs of a merge are still neighbours"
    );
    Some(first)
}

#[cfg(test)]
mod tests;
