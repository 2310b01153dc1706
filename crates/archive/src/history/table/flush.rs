//! Blocks leave the memory: their rows, added up, become a run.

use std::sync::Arc;

use varve_io::{PAGE_LEN, Storage};
use varve_runs::{
    NewRun, Run, RunError, RunNumber, RunWriter, Sequence, Source, Span, Stop, StoreKey,
};

use super::HistoryTable;
use crate::history::codec::History;
use crate::history::combine::combine;
use crate::history::error::Result;
use crate::history::pane::{Pane, PaneSource};

/// Bytes of a pane for each row, to guess how many rows a run will have.
const ROW_LEN: usize = 8;

/// A flush under way.
#[derive(Debug)]
pub(super) struct Flushing {
    /// The file that is being written.
    pub(super) number: RunNumber,
}

impl HistoryTable {
    /// Starts a flush when one is due and none is under way.
    pub(super) fn start_flush(&mut self) {
        if !self.work.flush.is_free() {
            return;
        }
        let count = self.due_panes();
        if count > 0 {
            let (number, job) = self.flush_job(count);
            self.frozen = count;
            let job = self.work.flush_lane.start(job);
            self.work.flush.fill(Flushing { number }, job);
        }
    }

    /// How many of the oldest panes are to be flushed now.
    fn due_panes(&self) -> usize {
        let tip = self.tip().map_or(0, |tip| tip.height.to_u32());
        let settled = tip.saturating_sub(self.options.window);
        let is_durable = |pane: &&Arc<Pane>| pane.mark.is_none_or(|mark| mark.end <= self.durable);
        let is_deep = |pane: &&Arc<Pane>| {
            pane.mark.is_none_or(|mark| mark.height.to_u32() <= settled) && is_durable(pane)
        };
        let count = self.panes.iter().take_while(is_deep).count();
        let deep = self.panes.get(..count).unwrap_or_default();
        let bytes: usize = deep.iter().map(|pane| pane.memory()).sum();
        let budget = self.budget().young(self.runs.memory());
        let due = self.options.flush_bytes.min(budget / 2).max(1);
        if bytes >= due || count >= self.options.flush_blocks.max(1) {
            return count;
        }
        if self.young_memory() < budget / 4 * 3 {
            return 0;
        }
        self.panes.iter().take_while(is_durable).count()
    }

    /// What writes the run of the `count` oldest panes, and its number.
    fn flush_job(
        &mut self,
        count: usize,
    ) -> (RunNumber, impl FnOnce() -> Result<Option<Run<History>>> + Send + use<>) {
        let number = self.next_number();
        let panes = self.panes.get(..count).unwrap_or_default().to_vec();
        let bytes: usize = panes.iter().map(|pane| pane.memory()).sum();
        let expected = (bytes / ROW_LEN) as u64;
        let step = Sequence::new(self.step);
        let buffers = self.budget().buffers();
        let filter = self.policy().flush_filter(expected, &self.runs.infos());
        let (span, chunk_keys) = (Span { first: step, last: step }, buffers.chunk_keys);
        let new = NewRun { number, span, expected, filter, chunk_keys };
        let (stop, storage, key) =
            (self.work.stop.0.clone(), Arc::clone(&self.storage), self.store());
        let sources = move || panes.into_iter().map(PaneSource::new).collect();
        (number, move || write_run(&stop, (&storage, key), &new, sources()))
    }

    /// Takes in a flush that is done, or waits for it: the manifest names its run, and the panes
    /// go.
    pub(super) fn take_flush(&mut self, wait: bool) -> Result<()> {
        let Some((_, flushed)) = self.work.flush.take(wait) else { return Ok(()) };
        let count = std::mem::take(&mut self.frozen);
        self.name_flushed(count, flushed?)
    }

    /// Flushes all panes, and saves merges that no manifest names yet.
    pub(super) fn flush_all(&mut self) -> Result<()> {
        let count = self.panes.len();
        if count == 0 {
            self.save(self.watermark)?;
            return self.sweep();
        }
        let (_, job) = self.flush_job(count);
        self.name_flushed(count, job()?)
    }

    /// Names the run of the `count` oldest panes. When that fails they stay, and the file is swept
    /// away some day.
    fn name_flushed(&mut self, count: usize, run: Option<Run<History>>) -> Result<()> {
        let before = self.runs.clone();
        if let Some(run) = run {
            self.work.written += run.info().pages * PAGE_LEN as u64;
            self.runs = self.runs.with_youngest(Arc::new(run));
        }
        let last = count.checked_sub(1).and_then(|last| self.panes.get(last));
        let watermark = last.map_or(self.watermark, |pane| pane.mark);
        if let Err(error) = self.save(watermark) {
            self.runs = before;
            return Err(error);
        }
        self.step += 1;
        self.panes.drain(..count);
        self.publish();
        self.sweep()
    }
}

/// Writes what `sources` add up to as a run; `None` when nothing is left.
pub(super) fn write_run<S: Source<History>>(
    stop: &Stop,
    (storage, key): (&Arc<dyn Storage>, StoreKey),
    new: &NewRun,
    sources: Vec<S>,
) -> Result<Option<Run<History>>> {
    let mut rows = combine(sources)?;
    if rows.head().is_none() {
        return Ok(None);
    }
    let mut writer = RunWriter::<History>::create(storage, key, new)?;
    while let Some(row) = rows.head() {
        if stop.is_set() {
            return Err(RunError::Stopped.into());
        }
        writer.push(&row)?;
        rows.advance()?;
    }
    writer.finish().map(Some)
}
