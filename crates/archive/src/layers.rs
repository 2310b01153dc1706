//! The runs of a table, and the jobs that write them beside the table's writer.
//!
//! Search tables and the script history keep young rows in memory each in its way, and share
//! everything below: one flush at a time, two merges ([`Merges`]), the numbers of files, and which
//! files the manifest names.
//!
//! ```text
//!  writer   ─ maintain: take in what is done, start what is due ─ … ─ maintain ─
//!                           │                                        ▲
//!  flush lane               ├── young rows ─► run ───────────────────┤
//!  merge lanes              └── runs ─► run ─────────────────────────┘
//! ```
//!
//! A job that fails leaves everything as it was, the call that takes it in fails, and the next
//! decides the same again.

use std::sync::Arc;

use varve_io::{PAGE_LEN, Storage};
use varve_runs::{
    Choice, Codec, Compaction, Cursor, Kept, Lane, Manifest, MergeInto, Merges, RunInfo, RunNumber,
    Runs, Slot, Source, Stop, Width,
};

use crate::search::budget::Budget;
use crate::search::policy::Policy;

/// A codec whose runs are kept in [`Layers`].
pub(crate) trait Layered: Codec {
    /// What a merge makes of its inputs.
    type Merged: Source<Self>;

    /// Merges the rows of these cursors, youngest run first.
    fn merged(cursors: Vec<Cursor<Self>>) -> Result<Self::Merged, Self::Error>;

    /// How many of the runs, youngest first, are layers of one another. Runs behind those are few
    /// and small, and are merged among themselves.
    fn layer_count(runs: &[RunInfo]) -> usize {
        runs.len()
    }
}

/// How the runs of a table are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerOptions {
    /// The table's bytes of memory.
    pub(crate) memory: usize,
    /// How many alike runs are merged into one.
    pub(crate) fan_in: usize,
    pub(crate) compaction: Compaction,
    /// Names of the threads: of the flush, the main merge, and the one beside it.
    pub(crate) threads: [&'static str; 3],
}

/// The runs of a table and the jobs under way. `A` describes a flush, `F` is what it wrote.
#[derive(Debug)]
pub(crate) struct Layers<C: Layered, A, F> {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) runs: Runs<C>,
    /// The flush under way.
    pub(crate) flush: Slot<A, Result<F, C::Error>>,
    budget: Budget,
    policy: Policy,
    /// The number for the next file.
    next: RunNumber,
    stop: Stop,
    flush_lane: Lane,
    merges: Merges<C>,
    /// Bytes of runs written since the table was opened.
    written: u64,
    /// Merge everything when nothing else is due.
    tidy: bool,
}

impl<C: Layered, A, F> Layers<C, A, F> {
    /// The runs that a manifest names, and no job yet.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        runs: Runs<C>,
        next: RunNumber,
        options: LayerOptions,
    ) -> std::io::Result<Self> {
        let LayerOptions { memory, fan_in, compaction, threads: [flush, main, beside] } = options;
        let budget = Budget::new(memory, fan_in);
        let stop = Stop::default();
        Ok(Self {
            flush: Slot::default(),
            policy: Policy { fan_in, filtered: budget.filtered() },
            flush_lane: Lane::new(compaction, flush)?,
            merges: Merges::new(&storage, &stop, compaction, [main, beside])?,
            written: 0,
            tidy: false,
            storage,
            runs,
            budget,
            next,
            stop,
        })
    }

    pub(crate) const fn budget(&self) -> Budget {
        self.budget
    }

    /// The most bytes of rows that may be in memory alone.
    pub(crate) fn young_max(&self) -> usize {
        self.budget.young(self.runs.memory())
    }

    pub(crate) const fn policy(&self) -> Policy {
        self.policy
    }

    /// What jobs look at to end early.
    pub(crate) const fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Bytes of runs written since the table was opened.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// Counts a run that a flush wrote.
    pub(crate) const fn count(&mut self, run: RunInfo) {
        self.written += run.pages * PAGE_LEN as u64;
    }

    /// Bytes of all runs.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.infos().iter().map(|info| info.pages).sum::<u64>() * PAGE_LEN as u64
    }

    /// The number of a new file. It is never given again, even if the file comes to nothing.
    pub(crate) const fn next_number(&mut self) -> RunNumber {
        let number = self.next;
        self.next.0 += 1;
        number
    }

    /// The runs that are layers of one another, youngest first.
    pub(crate) fn infos(&self) -> Vec<RunInfo> {
        let mut infos = self.runs.infos();
        infos.truncate(C::layer_count(&infos));
        infos
    }

    /// Starts a flush; none may be under way.
    pub(crate) fn start_flush(
        &mut self,
        about: A,
        job: impl FnOnce() -> Result<F, C::Error> + Send + 'static,
    ) where
        F: Send + 'static,
    {
        self.flush.fill(about, self.flush_lane.start(job));
    }

    /// Merges everything into one run when nothing else is due, from now on until that is done.
    pub(crate) const fn request_tidy(&mut self) {
        self.tidy = true;
    }

    /// Whether merges are under way or requested.
    pub(crate) const fn is_merging(&self) -> bool {
        self.tidy || !self.merges.is_idle()
    }

    /// Bytes of the runs being merged: about how many are done, and all of them.
    pub(crate) fn progress(&self) -> (u64, u64) {
        self.merges.progress()
    }

    /// Whether no job is under way.
    pub(crate) const fn is_idle(&self) -> bool {
        self.flush.is_free() && self.merges.is_idle()
    }

    /// Starts the merges that are due in the lanes that are free.
    pub(crate) fn start_merges(&mut self) {
        loop {
            let infos = self.runs.infos();
            let count = C::layer_count(&infos);
            let (policy, tidy) = (self.policy, self.tidy);
            let plan = self.merges.next(
                &infos,
                |runs| {
                    let (layers, others) = runs.split_at(count);
                    if others.len() >= policy.fan_in.max(2) {
                        Choice::Merge(count..runs.len())
                    } else if tidy {
                        policy.tidy(layers)
                    } else {
                        policy.tiers().choose(layers)
                    }
                },
                |runs, busy| {
                    policy.tiers().choose_beside(runs.get(..count).unwrap_or_default(), busy)
                },
            );
            let Some(plan) = plan else { return };
            let whole = plan.range.end == infos.len();
            let mut others = infos;
            let chosen: Vec<RunInfo> = others.drain(plan.range.clone()).collect();
            let filter = if plan.range.start < count {
                let rows = chosen.iter().map(|info| info.adds).sum();
                policy.merge_filter(rows, others.get(..count - chosen.len()).unwrap_or_default())
            } else {
                Some(Width::One)
            };
            let (number, buffers) = (self.next_number(), self.budget.buffers());
            let into = MergeInto { number, whole, filter, buffers };
            self.merges.start_with(&self.runs, plan, into, C::merged);
        }
    }

    /// Takes in merges that are done, or waits for them: the merged run takes the place of its
    /// inputs, and the next manifest will say so. Returns whether the runs have changed.
    pub(crate) fn take_merges(&mut self, wait: bool) -> Result<bool, C::Error> {
        let mut changed = false;
        while let Some(merged) = self.merges.take(&mut self.runs, wait)? {
            merged.output.into_iter().for_each(|run| self.count(run));
            changed = true;
        }
        if self.tidy && self.merges.is_idle() {
            self.tidy = self.policy.tidy(&self.infos()) != Choice::Nothing;
        }
        Ok(changed)
    }

    /// The manifest of these runs, with the owner's bytes.
    pub(crate) fn manifest(&self, runs: Vec<RunInfo>, owner: Vec<u8>) -> Manifest {
        Manifest { key: *self.runs.key(), next: self.next, runs, owner }
    }

    /// Removes files that `manifest`, the last one stored, does not name, unless they are being
    /// written: by merges, or by the flush with these numbers.
    pub(crate) fn sweep(
        &self,
        manifest: &Manifest,
        flushing: impl IntoIterator<Item = RunNumber>,
    ) -> Result<(), C::Error> {
        let numbers = flushing.into_iter().chain(self.merges.outputs()).collect();
        let kept = Kept { numbers, from: self.next };
        manifest.sweep(&*self.storage, &kept, &[])?;
        Ok(())
    }

    /// Verifies the checksums of all runs.
    pub(crate) fn verify(&self) -> Result<(), C::Error> {
        self.runs.as_slice().iter().try_for_each(|run| run.verify())
    }
}

/// Jobs are asked to stop before their threads are joined, as the fields are dropped.
impl<C: Layered, A, F> Drop for Layers<C, A, F> {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// A table as far as its jobs go.
pub(crate) trait Upkeep {
    type Codec: Layered;
    type Flushing;
    type Flushed;

    fn layers(&mut self) -> &mut Layers<Self::Codec, Self::Flushing, Self::Flushed>;

    /// Starts a flush when one is due and none is under way.
    fn start_flush(&mut self);

    /// Takes in a flush that is done, or waits for it.
    fn take_flush(&mut self, wait: bool) -> Result<(), TableError<Self>>;

    /// Shows readers the runs as they are.
    fn publish(&self);

    fn take_merges(&mut self, wait: bool) -> Result<(), TableError<Self>> {
        if self.layers().take_merges(wait)? {
            self.publish();
        }
        Ok(())
    }

    /// Takes in finished jobs, and starts those that are due.
    fn maintain(&mut self) -> Result<(), TableError<Self>> {
        self.take_flush(false)?;
        self.take_merges(false)?;
        self.start_flush();
        self.layers().start_merges();
        // Without threads they are done.
        self.take_flush(false)?;
        self.take_merges(false)
    }

    /// Waits for all jobs under way and for those that they make due.
    fn finish_jobs(&mut self) -> Result<(), TableError<Self>> {
        loop {
            self.take_flush(true)?;
            self.take_merges(true)?;
            self.start_flush();
            self.layers().start_merges();
            if self.layers().is_idle() {
                return Ok(());
            }
        }
    }

    /// Stops the jobs under way and takes in what is done.
    fn stop_jobs(&mut self) -> Result<(), TableError<Self>> {
        self.layers().stop.set();
        let results = [self.take_flush(true), self.take_merges(true), self.take_merges(true)];
        let layers = self.layers();
        layers.stop = Stop::default();
        layers.merges.obey(&layers.stop);
        let failed = results.into_iter().filter_map(Result::err);
        failed.into_iter().find(|error| !Self::is_stopped(error)).map_or(Ok(()), Err)
    }

    /// Whether a job failed because it was asked to stop.
    fn is_stopped(error: &TableError<Self>) -> bool;
}

/// The error of a table.
pub(crate) type TableError<T> = <<T as Upkeep>::Codec as Codec>::Error;
