//! Blocks leave the memory: their rows, added up, become a run.

use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{
    NewRun, Run, RunError, RunNumber, RunWriter, Sequence, Source, Span, Stop, StoreKey,
};

use super::HistoryTable;
use crate::history::codec::History;
use crate::history::combine::combine;
use crate::history::error::{HistoryError, Result};
use crate::history::pane::{Pane, PaneSource};
use crate::history::version::Version;
use crate::layers::{Layers, Upkeep};

/// Bytes of a pane for each row, to guess how many rows a run will have.
const ROW_LEN: usize = 8;

/// A flush under way.
#[derive(Debug)]
pub(crate) struct Flushing {
    /// The file that is being written.
    pub(super) number: RunNumber,
}

impl Upkeep for HistoryTable {
    type Codec = History;
    type Flushing = Flushing;
    type Flushed = Option<Run<History>>;

    fn layers(&mut self) -> &mut Layers<History, Flushing, Option<Run<History>>> {
        &mut self.layers
    }

    fn start_flush(&mut self) {
        if !self.layers.flush.is_free() {
            return;
        }
        let count = self.due_panes();
        if count > 0 {
            let (number, job) = self.flush_job(count);
            self.frozen = count;
            self.layers.start_flush(Flushing { number }, job);
        }
    }

    /// The manifest names the run of the flush, and the panes go.
    fn take_flush(&mut self, wait: bool) -> Result<()> {
        let Some((_, flushed)) = self.layers.flush.take(wait) else { return Ok(()) };
        let count = std::mem::take(&mut self.frozen);
        self.name_flushed(count, flushed?)
    }

    fn publish(&self) {
        let (panes, runs) = (self.panes.clone().into(), self.layers.runs.clone());
        let version = Version { panes, runs, watermark: self.watermark };
        self.shared.version.store(Arc::new(version));
    }

    fn is_stopped(error: &HistoryError) -> bool {
        error.is_stopped()
    }
}

impl HistoryTable {
    /// How many of the oldest panes are to be flushed now.
    fn due_panes(&self) -> usize {
        let tip = self.tip().map_or(0, |tip| tip.height.to_u32());
        let settled = tip.saturating_sub(self.options.window);
        let is_deep =
            |pane: &&Arc<Pane>| pane.mark.is_none_or(|mark| mark.height.to_u32() <= settled);
        let count = self.panes.iter().take_while(is_deep).count();
        let deep = self.panes.get(..count).unwrap_or_default();
        let bytes: usize = deep.iter().map(|pane| pane.memory()).sum();
        let budget = self.layers.young_max();
        let due = self.options.flush_bytes.min(budget / 2).max(1);
        if bytes >= due || count >= self.options.flush_blocks.max(1) {
            return count;
        }
        if self.young_memory() < budget / 4 * 3 { 0 } else { self.panes.len() }
    }

    /// What writes the run of the `count` oldest panes, and its number.
    fn flush_job(
        &mut self,
        count: usize,
    ) -> (RunNumber, impl FnOnce() -> Result<Option<Run<History>>> + Send + use<>) {
        let number = self.layers.next_number();
        let panes = self.panes.get(..count).unwrap_or_default().to_vec();
        let bytes: usize = panes.iter().map(|pane| pane.memory()).sum();
        let expected = (bytes / ROW_LEN) as u64;
        let step = Sequence::new(self.step);
        let chunk_keys = self.layers.budget().buffers().chunk_keys;
        let filter = self.layers.policy().flush_filter(expected, &self.layers.infos());
        let span = Span { first: step, last: step };
        let new = NewRun { number, span, expected, filter, chunk_keys };
        let (stop, storage) = (self.layers.stop().clone(), Arc::clone(&self.layers.storage));
        let key = *self.layers.runs.key();
        let sources = move || panes.into_iter().map(PaneSource::new).collect();
        (number, move || write_run(&stop, (&storage, key), &new, sources()))
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
        let before = self.layers.runs.clone();
        if let Some(run) = run {
            self.layers.count(run.info());
            self.layers.runs = self.layers.runs.with_youngest(Arc::new(run));
        }
        let last = count.checked_sub(1).and_then(|last| self.panes.get(last));
        let watermark = last.map_or(self.watermark, |pane| pane.mark);
        if let Err(error) = self.save(watermark) {
            self.layers.runs = before;
            return Err(error);
        }
        self.step += 1;
        self.panes.drain(..count);
        self.publish();
        self.sweep()
    }
}

/// Writes what `sources` add up to as a run; `None` when nothing is left.
fn write_run<S: Source<History>>(
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
