//! Jobs beside the writer, and counters of what they did.

use std::sync::Arc;

use varve_io::{PAGE_LEN, Storage};
use varve_runs::{Buffers, Compaction, Lane, Merges, RunInfo, RunNumber, Slot, Stop};

use super::checkpoint::Saved;
use crate::codec::{CoinCodec, Run};
use crate::error::Error;
use crate::layers::MergeUnderWay;
use crate::pane::PaneId;
use crate::run_error::RunError;

/// Bytes written since the set was opened, by part. Manifests, some hundred bytes each, are not
/// counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Runs flushed from panes.
    pub flushed: u64,
    /// Runs merged from runs.
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

/// The run that a job wrote; `None` when there was nothing to write.
pub(super) type RunResult = Result<Option<Run>, RunError>;

/// A flush under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flushing {
    pub(super) pane: PaneId,
    pub(super) number: RunNumber,
    /// Bytes of its buffers.
    pub(super) buffers: usize,
}

/// The jobs of a database, at most one in each lane.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) stop: Stop,
    pub(super) flush: Slot<Flushing, RunResult>,
    pub(super) merges: Merges<CoinCodec>,
    pub(super) checkpoint: Slot<(), Result<Saved, Error>>,
    pub(super) flush_lane: Lane,
    pub(super) checkpoint_lane: Lane,
    pub(super) written: Written,
    pub(super) waits: Waits,
}

impl Work {
    pub(super) fn new(storage: &Arc<dyn Storage>, compaction: Compaction) -> std::io::Result<Self> {
        let (stop, names) = (Stop::default(), ["utxo-merge", "utxo-merge-2"]);
        Ok(Self {
            merges: Merges::new(storage, &stop, compaction, names)?,
            stop,
            flush: Slot::default(),
            checkpoint: Slot::default(),
            flush_lane: Lane::new(compaction, "utxo-flush")?,
            checkpoint_lane: Lane::new(compaction, "utxo-checkpoint")?,
            written: Written::default(),
            waits: Waits::default(),
        })
    }

    /// The run files that are being written.
    pub(super) fn numbers(&self) -> impl Iterator<Item = RunNumber> {
        let flushing = self.flush.about().map(|flushing| flushing.number);
        flushing.into_iter().chain(self.merges.outputs())
    }

    /// The merges that are under way.
    pub(super) fn merging(&self) -> impl Iterator<Item = MergeUnderWay> {
        self.merges.jobs().map(|(inputs, output)| MergeUnderWay {
            inputs: inputs.iter().map(|number| number.0).collect(),
            output: output.0,
        })
    }

    /// Bytes of buffers of all jobs.
    pub(super) fn buffers(&self) -> usize {
        let flush = self.flush.about().map_or(0, |flushing| flushing.buffers);
        let window = if self.checkpoint.is_free() { 0 } else { Buffers::WRITER_LEN };
        flush + self.merges.buffers() + window
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.stop.set();
        // The lanes end their threads when they are dropped.
    }
}

/// The bytes of a run's file; 0 without a run.
pub(super) fn file_len(run: Option<RunInfo>) -> u64 {
    run.map_or(0, |run| run.pages * PAGE_LEN as u64)
}
