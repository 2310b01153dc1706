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
//!    that what is chosen among all runs is not put off for ever.
//! 2. [`Merges::start`] hands the chosen runs to a lane and notes what that costs meanwhile.
//! 3. [`Merges::take`] puts a finished run in the place of its inputs. Runs that were flushed
//!    meanwhile are younger than all of them, so the inputs are still neighbours.
//!
//! A merge that fails leaves the runs as they are; the same is decided again.

use std::ops::Range;
use std::sync::Arc;

use varve_io::Storage;

use crate::codec::Codec;
use crate::compact::{Busy, Choice, MergeInto, merge_runs};
use crate::footer::{RunInfo, RunNumber};
use crate::lane::{Compaction, JobEnd, Lane, Slot, Stop};
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

/// A merge under way, and what it costs.
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
}

/// Which runs to merge, and in which lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// The places of the runs.
    pub range: Range<usize>,
    is_main: bool,
}

/// A merge that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The runs that are gone, youngest first.
    pub inputs: Vec<RunNumber>,
    /// The run in their place; `None` when nothing was left of their rows.
    pub output: Option<RunInfo>,
}

impl<C: Codec> Merges<C> {
    /// No merges yet. The threads, if there are any, have these names: that of the main merge, and
    /// that of the one beside it. Set `stop` before the merges are dropped, or they are finished.
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

    /// Bytes of the directories and filters of all inputs: about what those of the new runs take.
    #[must_use]
    pub fn index(&self) -> usize {
        self.under_way().map(|merging| merging.index).sum()
    }

    /// Bytes of buffers.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.under_way().map(|merging| merging.buffers).sum()
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
        let MergePlan { range, is_main } = plan;
        let inputs = runs.as_slice().get(range).expect("the plan is of these runs").to_vec();
        assert!(!inputs.is_empty(), "a merge has inputs");
        let infos: Vec<RunInfo> = inputs.iter().map(|run| run.info()).collect();
        let merging = Merging {
            output: into.number,
            inputs: infos.iter().map(|info| info.number).collect(),
            pages: infos.iter().map(|info| info.pages).sum(),
            index: inputs.iter().map(|run| run.memory()).sum(),
            buffers: into.buffers.merge(&infos),
        };
        let (stop, storage, key) = (self.stop.clone(), Arc::clone(&self.storage), *runs.key());
        let MergeLane { lane, slot } = if is_main { &mut self.main } else { &mut self.beside };
        slot.fill(merging, lane.start(move || merge_runs(&stop, &storage, key, &inputs, &into)));
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

/// What suites look at.
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
