//! What keeps the window small and the runs few.
//!
//! Before every step the writer takes in what threads have finished, decides what is due, and
//! starts it (in lanes of `varve-runs`). None of it changes which coins there are.
//!
//! 1. **Flush.** The oldest pane is *due* when it is sealed and the tip is `window` blocks above
//!    its highest, or when the window needs its memory (`budget`). Its living entries are written
//!    as a run, while steps go on: the window notes what dies in the pane meanwhile. The run then
//!    waits for the next step to take the pane's place.
//! 2. **Merge**, when `choose` finds something. A merged run takes the place of its parts as soon
//!    as it is taken in, in a version of the same step. Runs that were flushed meanwhile are
//!    younger than all of them, so the parts are still neighbours. While a merge takes long, short
//!    ones among the younger runs go on in a second lane (`Tiers::choose_beside`).
//! 3. **Checkpoint**: see `checkpoint`.
//!
//! Undo records are written by a lane too (`undo/writer.rs`).
//!
//! The writer goes on meanwhile, but not without limit. It waits for a flush when a step would not
//! fit into the window, for a merge when there are `fan_in` runs more than a lookup should probe,
//! and for the undo log when more of it is in memory than its share (`budget`).
//! [`Database::waits`] counts all three. The joiner waits without holding the set
//! ([`Database::maintain_or_wait`]), so that its caller is not held up.
//!
//! **When a job fails**, the step before which that is noticed fails with its error, and nothing
//! has changed: the pane is still in the window, the runs are as they were, the last checkpoint
//! counts. The same is decided again before the next step, so it is tried again when there is space
//! again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use varve_io::Storage;
use varve_runs::{Buffers, Choice, JobEnd, RunNumber, Span, Stop, StoreKey};

use super::checkpoint::Merged;
use super::work::{Flushing, MergeLane, Merging, RunResult, file_len};
use crate::budget::{self, Budget, MemoryUse, buffers_of, has_two_merges};
use crate::codec::Run;
use crate::compact::{choose, merge_unless};
use crate::database::Database;
use crate::error::Error;
use crate::options::Options;
use crate::pane::{Flush, PaneId, PaneInfo};
use crate::run_error::RunError;
use crate::run_writer::RunWriter;

/// Bytes of an entry in the order of a pane that is being flushed.
const ORDER_LEN: usize = 16;

/// A run that waits for the next step to take the place of its pane.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) pane: PaneId,
    /// `None` when nothing in the pane lived.
    pub(super) run: Option<Arc<Run>>,
}

/// Figures for suites and benches.
#[cfg(feature = "test-suite")]
impl Database {
    /// Bytes written since the set was opened.
    #[must_use]
    pub const fn written(&self) -> super::Written {
        super::Written { undo: self.undo.written(), ..self.work.written }
    }

    /// How often the writer had to wait for a thread since the set was opened.
    #[must_use]
    pub const fn waits(&self) -> super::Waits {
        self.work.waits
    }

    /// The bytes that the merges that are due or under way will write.
    #[must_use]
    pub fn merge_debt(&self) -> u64 {
        crate::compact::merge_debt(&self.runs.infos(), &self.manifest.parameters.tiers())
    }

    /// Bytes of memory that the window takes, and the most it may take.
    #[must_use]
    pub fn window_memory(&self) -> (usize, usize) {
        let MemoryUse { window, window_max, .. } = self.memory();
        (window, window_max)
    }
}

impl Database {
    /// How the memory of the set is split at this moment.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        let merging: usize = self.work.merges().map(|merging| merging.memory).sum();
        let joining = self.joining.as_ref().map_or(0, |(_, taken)| taken.load(Ordering::Relaxed));
        MemoryUse {
            budget: self.options.memory,
            window: self.window_len(),
            window_max: self.budget().window,
            index: self.runs.memory() + merging,
            undo: self.undo.memory(),
            buffers: self.work.buffers(),
            joining,
        }
    }

    /// Gives the set another amount of memory, from the next step on: a window that is too large
    /// is flushed then. Too little is refused, and changes nothing.
    pub fn set_memory(&mut self, memory: usize) -> Result<(), Error> {
        budget::check(memory, self.runs.memory())?;
        let options = self.options.with_memory(memory)?;
        self.undo.set_cache(Budget::cache(memory, options.undo.cache));
        self.options = options;
        Ok(())
    }

    /// Bytes of memory that the window takes.
    fn window_len(&self) -> usize {
        self.window.panes().map(|pane| pane.memory).sum()
    }

    /// Takes in what is done and starts what is due, before a step that brings `coming` bytes into
    /// the window, and waits where the writer is too far ahead.
    pub(super) fn maintain(&mut self, coming: usize) -> Result<(), Error> {
        while let Some(end) = self.maintain_or_wait(coming)? {
            end.wait();
        }
        Ok(())
    }

    /// Does the same without waiting: it gives the job to wait for before the next try, if there
    /// is one.
    pub(super) fn maintain_or_wait(&mut self, coming: usize) -> Result<Option<JobEnd>, Error> {
        self.undo.settle()?;
        self.flush_pane(coming)?;
        self.merge()?;
        self.checkpoint_if_due()?;
        Ok(self.hold_back(coming))
    }

    /// Makes the set durable as it is now, and starts what is due besides.
    pub(super) fn maintain_and_save(&mut self) -> Result<(), Error> {
        self.flush_pane(0)?;
        self.merge()?;
        self.make_checkpoint()
    }

    /// The job that the writer has to wait for, where it has run too far ahead of the threads.
    fn hold_back(&mut self, coming: usize) -> Option<JobEnd> {
        let memory = self.window_len();
        if let Some(flush) = self.work.flush.end()
            && self.budget().is_full(memory, coming)
        {
            self.work.waits.for_memory += 1;
            return Some(flush);
        }
        if self.undo.unwritten() > self.budget().unwritten
            && let Some(write) = self.undo.next_end()
        {
            self.work.waits.for_undo += 1;
            return Some(write);
        }
        let parameters = self.manifest.parameters;
        let most = parameters.max_probed.saturating_add(parameters.fan_in) as usize;
        // The short one first: it may be enough.
        let merge = self.work.beside.end().or_else(|| self.work.merge.end());
        let held = merge.filter(|_| self.runs.as_slice().len() > most);
        self.work.waits.for_runs += u64::from(held.is_some());
        held
    }

    pub(super) fn budget(&self) -> Budget {
        let joining = self.joining.as_ref().map_or(0, |(limit, _)| *limit);
        let Options { memory, undo, .. } = self.options;
        let index = self.runs.memory();
        Budget::new(memory, undo.cache, self.work.buffers(), &[index, index, joining])
    }

    /// Starts to write the run of the oldest pane, if it is due and no other is on its way.
    fn flush_pane(&mut self, coming: usize) -> Result<(), Error> {
        self.take_flush()?;
        let (memory, budget) = (self.window_len(), self.budget());
        if self.window.panes().last().is_some_and(|youngest| budget.is_pane_full(youngest.memory)) {
            self.window.seal();
        }
        if self.waiting.is_some() || !self.work.flush.is_free() {
            return Ok(());
        }
        let Some(oldest) = self.window.panes().next() else { return Ok(()) };
        let due = budget.is_flush_due(memory, coming) || self.is_deep(&oldest);
        if !oldest.sealed || !due {
            return Ok(());
        }
        let Some(flush) = self.window.begin_flush() else { return Ok(()) };
        let (storage, key) = (Arc::clone(&self.storage), self.manifest.key());
        let (number, stop) = (self.next_number(), self.work.stop.clone());
        let named = (number, Span { first: oldest.first, last: oldest.last });
        let sizes = buffers_of(self.options.memory);
        let buffers = sizes.writer(oldest.living) + ORDER_LEN * oldest.living;
        let about = Flushing { pane: flush.pane(), number, buffers };
        let task = move || write_run(&stop, &storage, (key, sizes), (named, &flush));
        let job = self.work.flush_lane.start(task);
        self.work.flush.fill(about, job);
        self.take_flush()
    }

    /// Takes the run of a pane in: it waits for the next step.
    fn take_flush(&mut self) -> Result<(), Error> {
        let Some((Flushing { pane, .. }, written)) = self.work.flush.take(false) else {
            return Ok(());
        };
        match written {
            Ok(run) => {
                self.work.written.flushed += file_len(run.as_ref());
                self.waiting = Some(Waiting { pane, run: run.map(Arc::new) });
                Ok(())
            }
            Err(error) => {
                self.window.cancel_flush();
                Err(error.into())
            }
        }
    }

    fn is_deep(&self, pane: &PaneInfo) -> bool {
        let above = self.tip.and_then(|(tip, _)| tip.since(pane.height));
        above.is_some_and(|above| above >= self.manifest.parameters.window)
    }

    /// Merges as long as there is something to merge and a lane for it.
    fn merge(&mut self) -> Result<(), Error> {
        loop {
            self.take_merge(MergeLane::Main)?;
            self.take_merge(MergeLane::Beside)?;
            let Some((lane, range)) = self.next_merge() else { return Ok(()) };
            let chosen = self.runs.as_slice().get(range.clone()).unwrap_or_default().to_vec();
            let whole = range.end == self.runs.as_slice().len();
            let infos: Vec<_> = chosen.iter().map(|run| run.info()).collect();
            let sizes = buffers_of(self.options.memory);
            let entries: u64 = infos.iter().map(|info| info.adds + info.deletes).sum();
            let streams: usize = infos.iter().map(|info| sizes.stream(info.pages)).sum();
            let merging = Merging {
                number: self.next_number(),
                inputs: infos.iter().map(|info| info.number).collect(),
                memory: chosen.iter().map(|run| run.memory()).sum(),
                pages: infos.iter().map(|info| info.pages).sum(),
                buffers: sizes.writer(usize::try_from(entries).unwrap_or(usize::MAX)) + streams,
            };
            let (storage, key) = (Arc::clone(&self.storage), self.manifest.key());
            let (stop, number) = (self.work.stop.clone(), merging.number);
            let task =
                move || merge_unless(&stop, &storage, (key, sizes), (number, (&chosen, whole)));
            let job = match lane {
                MergeLane::Main => self.work.merge_lane.start(task),
                MergeLane::Beside => self.work.beside_lane.start(task),
            };
            self.work.merge_slot(lane).fill(merging, job);
        }
    }

    /// What to merge next, if there is a lane for it: among all runs when no merge is under way,
    /// and among those younger than its parts while the main one is. After that one the other is
    /// waited for, so that what is chosen among all is not put off for ever.
    fn next_merge(&self) -> Option<(MergeLane, Range<usize>)> {
        let (infos, tiers) = (self.runs.infos(), self.manifest.parameters.tiers());
        let (lane, choice) = match (self.work.merge.about(), self.work.beside.about()) {
            (None, None) => (MergeLane::Main, choose(&infos, &tiers)),
            (Some(main), None) if has_two_merges(self.options.memory) => {
                let busy = (self.place_of(main)?, main.pages);
                (MergeLane::Beside, tiers.choose_beside(&infos, busy))
            }
            (_, _) => return None,
        };
        match choice {
            Choice::Nothing => None,
            Choice::Merge(range) => Some((lane, range)),
        }
    }

    /// The place of the youngest run that is being merged.
    fn place_of(&self, merging: &Merging) -> Option<usize> {
        let first = merging.inputs.first();
        self.runs.as_slice().iter().position(|run| Some(&run.info().number) == first)
    }

    /// Takes a merged run in: it takes the place of its parts.
    fn take_merge(&mut self, lane: MergeLane) -> Result<(), Error> {
        let Some((merging, merged)) = self.work.merge_slot(lane).take(false) else {
            return Ok(());
        };
        let merged = merged?;
        self.work.written.merged += file_len(merged.as_ref());
        let start = self.place_of(&merging);
        let start = start.expect("a run is part of one merge only, and stays until that is done");
        let inputs = merging.inputs;
        let info = merged.as_ref().map(Run::info);
        self.runs = self.runs.with_replaced(start..start + inputs.len(), merged.map(Arc::new));
        self.merged.push(Merged { inputs, run: info });
        self.renew();
        Ok(())
    }

    /// The number of a new file. Also one that comes to nothing is not used again.
    pub(super) fn next_number(&mut self) -> RunNumber {
        let number = self.manifest.next_run;
        self.manifest.next_run.0 += 1;
        number
    }
}

/// Writes the run of a pane; none when nothing in it lives.
fn write_run(
    stop: &Stop,
    storage: &Arc<dyn Storage>,
    (key, sizes): (StoreKey, Buffers),
    (named, flush): ((RunNumber, Span), &Flush),
) -> RunResult {
    let entries = flush.entries();
    let expected = entries.len_max() as u64;
    let mut writer = RunWriter::with_buffers(storage, (key, sizes), named, expected)?;
    for entry in entries {
        if stop.is_set() {
            return Err(RunError::Stopped);
        }
        writer.push(&entry)?;
    }
    // A writer that is dropped takes its file away.
    if writer.entries() == 0 {
        return Ok(None);
    }
    let run = writer.finish()?;
    // Its coins were in memory, and the youngest are asked for most.
    run.warm()?;
    Ok(Some(run))
}
