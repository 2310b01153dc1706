//! What is under way beside the writer, and what it has come to so far.

use varve_io::PAGE_LEN;
use varve_runs::{Buffers, Compaction, Lane, RunNumber, Slot, Stop};

use super::checkpoint::Saved;
use crate::codec::Run;
use crate::error::Error;
use crate::pane::PaneId;
use crate::run_error::RunError;

/// Bytes written for the set since it was opened, by part. Manifests are left out: some hundred
/// bytes each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Runs made of panes.
    pub flushed: u64,
    /// Runs made of runs.
    pub merged: u64,
    /// Window files.
    pub windows: u64,
    /// Undo records.
    pub undo: u64,
}

/// How often the writer had to wait for a thread since the set was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The window was full, and the flush of a pane under way.
    pub for_memory: u64,
    /// There were too many runs, and a merge under way.
    pub for_runs: u64,
    /// Too many undo records were not written yet.
    pub for_undo: u64,
}

/// What comes of writing a run: none when there is nothing to write.
pub(super) type RunResult = Result<Option<Run>, RunError>;

/// The run of a pane that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flushing {
    pub(super) pane: PaneId,
    pub(super) number: RunNumber,
    /// Bytes of buffers that it takes.
    pub(super) buffers: usize,
}

/// Neighbouring runs that are being merged, youngest first, into the run `number`.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) number: RunNumber,
    pub(super) inputs: Vec<RunNumber>,
    /// Bytes of their directories and filters.
    pub(super) memory: usize,
    /// Pages that they have.
    pub(super) pages: u64,
    /// Bytes of buffers that the merge takes.
    pub(super) buffers: usize,
}

/// Which of the two merges that can be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeLane {
    /// The one that is chosen among all runs.
    Main,
    /// A short one among younger runs, while the main one takes long.
    Beside,
}

/// The jobs of a database, at most one in each lane.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) stop: Stop,
    pub(super) flush: Slot<Flushing, RunResult>,
    pub(super) merge: Slot<Merging, RunResult>,
    pub(super) beside: Slot<Merging, RunResult>,
    pub(super) checkpoint: Slot<(), Result<Saved, Error>>,
    pub(super) flush_lane: Lane,
    pub(super) merge_lane: Lane,
    pub(super) beside_lane: Lane,
    pub(super) checkpoint_lane: Lane,
    pub(super) written: Written,
    pub(super) waits: Waits,
}

impl Work {
    pub(super) fn new(compaction: Compaction) -> std::io::Result<Self> {
        Ok(Self {
            stop: Stop::default(),
            flush: Slot::default(),
            merge: Slot::default(),
            beside: Slot::default(),
            checkpoint: Slot::default(),
            flush_lane: Lane::new(compaction, "utxo-flush")?,
            merge_lane: Lane::new(compaction, "utxo-merge")?,
            beside_lane: Lane::new(compaction, "utxo-merge-2")?,
            checkpoint_lane: Lane::new(compaction, "utxo-checkpoint")?,
            written: Written::default(),
            waits: Waits::default(),
        })
    }

    /// The runs that are being written.
    pub(super) fn numbers(&self) -> impl Iterator<Item = RunNumber> {
        let flushing = self.flush.about().map(|flushing| flushing.number);
        flushing.into_iter().chain(self.merges().map(|merging| merging.number))
    }

    /// The merges under way.
    pub(super) fn merges(&self) -> impl Iterator<Item = &Merging> {
        self.merge.about().into_iter().chain(self.beside.about())
    }

    pub(super) const fn merge_slot(&mut self, lane: MergeLane) -> &mut Slot<Merging, RunResult> {
        match lane {
            MergeLane::Main => &mut self.merge,
            MergeLane::Beside => &mut self.beside,
        }
    }

    /// Bytes of buffers of the files that are being written and read.
    pub(super) fn buffers(&self) -> usize {
        let flush = self.flush.about().map_or(0, |flushing| flushing.buffers);
        let merges: usize = self.merges().map(|merging| merging.buffers).sum();
        let window = if self.checkpoint.is_free() { 0 } else { Buffers::WRITER_LEN };
        flush + merges + window
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.stop.set();
        // The lanes end their threads when they are dropped.
    }
}

/// The length of a run's file.
pub(super) fn file_len(run: Option<&Run>) -> u64 {
    run.map_or(0, |run| run.info().pages * PAGE_LEN as u64)
}
