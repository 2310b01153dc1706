//! The writer's side of the disk, and when upkeep of the index is due.
//!
//! A checkpoint is due when the log has grown by `checkpoint_every` since the last one, and by
//! three times what is copied at every checkpoint because it stays in memory; or when what would
//! leave memory takes a quarter of the memory that the index was given. A merge is due when the
//! runs say so (`keeper`). Each has a lane: the writer only starts it, between two groups, and
//! collects the result later. When a checkpoint is overdue by as much again, or merges are behind
//! by as many runs again, the writer waits, so memory and recovery time stay bounded.

use std::sync::Arc;

use varve_io::{GlobalOffset, Result};
use varve_runs::{Compaction, Lane, Slot};

use super::commit::storage;
use super::index::Moment;
use super::keeper::{Keeper, RUNS_MAX};
use super::log::LogWriter;
use crate::engine::EngineError;

type Job = Slot<(), Result<(), EngineError>>;

/// What the writer owns.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) writer: LogWriter,
    keeper: Arc<Keeper>,
    limits: UpkeepLimits,
    checkpoints: (Lane, Job),
    merges: (Lane, Job),
    /// Why the last checkpoint failed, and the last merge.
    troubles: [Option<EngineError>; 2],
}

/// When upkeep is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpkeepLimits {
    /// Bytes of the log between two checkpoints, at least.
    pub(super) checkpoint_every: u64,
    /// Bytes of memory for the index.
    pub(super) memory: u64,
}

/// Which jobs to wait for.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    checkpoint: bool,
    merge: bool,
}

impl Disk {
    pub(super) fn new(
        writer: LogWriter,
        keeper: Arc<Keeper>,
        limits: UpkeepLimits,
        compaction: Compaction,
    ) -> std::io::Result<Self> {
        let lane = |name| Lane::new(compaction, name).map(|lane| (lane, Job::default()));
        let (checkpoints, merges) = (lane("records-checkpoint")?, lane("records-merge")?);
        Ok(Self { writer, keeper, limits, checkpoints, merges, troubles: [None, None] })
    }

    /// What the index includes when all that is written is published.
    pub(super) const fn moment(&self) -> Moment {
        Moment { end: self.writer.end(), group: self.writer.group() }
    }

    /// Recovery needs the log from here on.
    pub(super) fn replay_from(&self) -> GlobalOffset {
        self.keeper.replay_from()
    }

    /// Whether a checkpoint is due `times` over.
    fn wants_checkpoint(&self, times: u64) -> Result<bool, EngineError> {
        let since = self.writer.end().since(self.keeper.durable()).unwrap_or(0);
        let index = self.keeper.index()?;
        let usual = self.limits.checkpoint_every.max(3 * index.staying());
        let room = self.limits.memory / 4;
        Ok(since > usual.saturating_mul(times) || index.leaving() > room.saturating_mul(times))
    }

    /// Starts upkeep that is due and drops log files that are no longer needed; all before
    /// `cleaned` was moved. Reports the last failure until upkeep succeeds again.
    pub(super) fn maintain(&mut self, cleaned: GlobalOffset) -> Result<(), EngineError> {
        self.look(Wait::default());
        if self.checkpoints.1.is_free() && self.wants_checkpoint(1)? {
            let keeper = Arc::clone(&self.keeper);
            let job = self.checkpoints.0.start(move || keeper.checkpoint());
            self.checkpoints.1.fill((), job);
        }
        if self.merges.1.is_free() && self.keeper.wants_merge()? {
            let keeper = Arc::clone(&self.keeper);
            let job = self.merges.0.start(move || keeper.merge());
            self.merges.1.fill((), job);
        }
        let runs = self.keeper.index()?.cold().runs().as_slice().len();
        self.look(Wait { checkpoint: self.wants_checkpoint(2)?, merge: runs > 2 * RUNS_MAX });
        self.prune(cleaned)?;
        self.troubles.iter().flatten().next().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Takes the results of a checkpoint and a merge that have ended, or are waited for.
    fn look(&mut self, wait: Wait) {
        let [of_checkpoint, of_merge] = &mut self.troubles;
        if let Some(((), result)) = self.checkpoints.1.take(wait.checkpoint) {
            *of_checkpoint = result.err();
        }
        if let Some(((), result)) = self.merges.1.take(wait.merge) {
            *of_merge = result.err();
        }
    }

    /// Makes a checkpoint now.
    pub(super) fn checkpoint(&mut self) -> Result<(), EngineError> {
        self.look(Wait { checkpoint: true, merge: false });
        self.keeper.checkpoint()
    }

    /// Makes a checkpoint now, if one is due.
    pub(super) fn catch_up(&mut self) -> Result<(), EngineError> {
        if self.wants_checkpoint(1)? { self.checkpoint() } else { Ok(()) }
    }

    /// Drops log files that are no longer needed; all before `cleaned` was moved.
    pub(super) fn prune(&mut self, cleaned: GlobalOffset) -> Result<(), EngineError> {
        self.writer.prune(cleaned.min(self.replay_from())).map_err(storage)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.keeper.stop.set();
    }
}
