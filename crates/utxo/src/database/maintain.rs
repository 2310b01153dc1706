//! Maintenance: keeps the window small and the runs few.
//!
//! Before every step the writer takes in what threads have finished, decides what is due, and
//! starts it (in lanes of `varve-runs`). None of it changes which coins exist.
//!
//! 1. **Flush.** The oldest pane is *due* when it is sealed and the tip is `window` blocks above
//!    its highest, or when the window needs its memory (`budget`). Its living entries are written
//!    as a run beside the steps that follow: the window records what dies in the pane meanwhile.
//!    With the next step after that, the run replaces the pane.
//! 2. **Merge**, when the policy finds something. A merged run replaces its inputs as soon as it is
//!    taken in, in a version of the same step. During a long merge, short ones among the younger
//!    runs proceed in a second lane (`varve_runs::Merges`).
//! 3. **Checkpoint**: see `checkpoint`.
//!
//! Undo records are written by a lane too (`undo/writer.rs`).
//!
//! **Back-pressure.** The writer waits for a flush when a step would not fit into the window, for a
//! merge when there are `fan_in` more runs than a lookup should probe, and for the undo log when
//! more of it is in memory than its share (`budget`). `Waits` counts all three. The joiner waits
//! without holding the set ([`Database::maintain_or_wait`]), so its caller is not blocked.
//!
//! **When a job fails**, the next step reports its error and changes nothing: the pane is still in
//! the window, the runs are as they were, the last checkpoint is in force. Before the step after
//! that, the same job is chosen again and retried.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use varve_io::Storage;
use varve_runs::{Buffers, Choice, JobEnd, RunNumber, Span, Stop, StoreKey};

use super::work::{Flushing, RunResult, file_len};
use crate::budget::{self, Budget, MemoryUse, buffers_of, has_two_merges};
use crate::codec::Run;
use crate::compact::merge_into;
use crate::database::Database;
use crate::error::Error;
use crate::options::Options;
use crate::pane::{Flush, PaneId, PaneInfo};
use crate::run_error::RunError;
use crate::run_writer::{NewRun, RunWriter};

/// Bytes per entry of the sort order of a pane that is being flushed.
const ORDER_LEN: usize = 16;

/// A run that replaces its pane with the next step.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) pane: PaneId,
    /// `None` when nothing in the pane was alive.
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
    /// How the set's memory is used now.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        let joining = self.joining.as_ref().map_or(0, |(_, taken)| taken.load(Ordering::Relaxed));
        MemoryUse {
            budget: self.options.memory,
            window: self.window_len(),
            window_max: self.budget().window,
            index: self.runs.memory() + self.work.merges.index(),
            undo: self.undo.memory(),
            buffers: self.work.buffers(),
            joining,
        }
    }

    /// Changes the memory budget, from the next step on: a window that is too large is flushed
    /// then. Too small a budget is refused and changes nothing.
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

    /// Takes in finished jobs and starts those that are due, before a step that adds `coming` bytes
    /// to the window. Waits if the writer is too far ahead of its threads.
    pub(super) fn maintain(&mut self, coming: usize) -> Result<(), Error> {
        while let Some(end) = self.maintain_or_wait(coming)? {
            end.wait();
        }
        Ok(())
    }

    /// The same without waiting: returns the job to wait for before the next try, if any.
    pub(super) fn maintain_or_wait(&mut self, coming: usize) -> Result<Option<JobEnd>, Error> {
        self.undo.settle()?;
        self.flush_pane(coming)?;
        self.merge()?;
        self.checkpoint_if_due()?;
        Ok(self.hold_back(coming))
    }

    /// Starts what is due, and makes the set durable as it is now.
    pub(super) fn maintain_and_save(&mut self) -> Result<(), Error> {
        self.flush_pane(0)?;
        self.merge()?;
        self.make_checkpoint()
    }

    /// The job to wait for, if the writer has run too far ahead of its threads.
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
        let held = self.work.merges.end().filter(|_| self.runs.as_slice().len() > most);
        self.work.waits.for_runs += u64::from(held.is_some());
        held
    }

    pub(super) fn budget(&self) -> Budget {
        let joining = self.joining.as_ref().map_or(0, |(limit, _)| *limit);
        let Options { memory, undo, .. } = self.options;
        let index = self.runs.memory();
        Budget::new(memory, undo.cache, self.work.buffers(), &[index, index, joining])
    }

    /// Starts to write the oldest pane as a run, if it is due and no other flush is under way.
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
        let buffers = buffers_of(self.options.memory);
        let job = FlushJob {
            storage: Arc::clone(&self.storage),
            key: self.manifest.key(),
            number: self.next_number(),
            span: Span { first: oldest.first, last: oldest.last },
            buffers,
            stop: self.work.stop.clone(),
        };
        let about = Flushing {
            pane: flush.pane(),
            number: job.number,
            buffers: buffers.writer(oldest.living) + ORDER_LEN * oldest.living,
        };
        let job = self.work.flush_lane.start(move || job.run(&flush));
        self.work.flush.fill(about, job);
        self.take_flush()
    }

    /// Takes in a flushed run; the next step replaces its pane.
    fn take_flush(&mut self) -> Result<(), Error> {
        let Some((Flushing { pane, .. }, written)) = self.work.flush.take(false) else {
            return Ok(());
        };
        match written {
            Ok(run) => {
                self.work.written.flushed += file_len(run.as_ref().map(Run::info));
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

    /// Takes in the merges that are done, and starts those that are due, while there is a lane.
    fn merge(&mut self) -> Result<(), Error> {
        loop {
            self.take_merges()?;
            let (infos, tiers) = (self.runs.infos(), self.manifest.parameters.tiers());
            let has_two = has_two_merges(self.options.memory);
            let plan = self.work.merges.next(
                &infos,
                |runs| tiers.choose_with_rewrites(runs),
                |runs, busy| {
                    if has_two { tiers.choose_beside(runs, busy) } else { Choice::Nothing }
                },
            );
            let Some(plan) = plan else { return Ok(()) };
            let inputs = infos.get(plan.range.clone()).unwrap_or_default();
            let whole = plan.range.end == infos.len();
            let buffers = buffers_of(self.options.memory);
            let into = merge_into(self.next_number(), inputs, whole, buffers);
            self.work.merges.start(&self.runs, plan, into);
        }
    }

    /// Takes in the merges that are done: each run takes the place of its inputs.
    fn take_merges(&mut self) -> Result<(), Error> {
        while let Some(merged) = self.work.merges.take(&mut self.runs, false)? {
            self.work.written.merged += file_len(merged.output);
            self.merged.push(merged);
            self.renew();
        }
        Ok(())
    }

    /// The number of a new file. It is never reused, even if no file results.
    pub(super) fn next_number(&mut self) -> RunNumber {
        let number = self.manifest.next_run;
        self.manifest.next_run.0 += 1;
        number
    }
}

/// The writing of one pane as a run, in a lane.
struct FlushJob {
    storage: Arc<dyn Storage>,
    key: StoreKey,
    number: RunNumber,
    span: Span,
    buffers: Buffers,
    stop: Stop,
}

impl FlushJob {
    /// Writes the run; `None` when nothing in the pane lives.
    fn run(&self, flush: &Flush) -> RunResult {
        let entries = flush.entries();
        let new = NewRun {
            number: self.number,
            span: self.span,
            expected: entries.len_max() as u64,
            buffers: self.buffers,
        };
        let mut writer = RunWriter::create(&self.storage, self.key, &new)?;
        for entry in entries {
            if self.stop.is_set() {
                return Err(RunError::Stopped);
            }
            writer.push(&entry)?;
        }
        // A writer that is dropped removes its file.
        if writer.entries() == 0 {
            return Ok(None);
        }
        let run = writer.finish()?;
        // Its coins were in memory, and the youngest coins are looked up most.
        run.warm()?;
        Ok(Some(run))
    }
}
