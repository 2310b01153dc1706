//! Runs are merged, so that they stay few.
//!
//! One lane does what the policy says. While it is at work on large runs, the second merges alike
//! runs among those that are younger.

use std::ops::Range;
use std::sync::Arc;

use varve_io::PAGE_LEN;
use varve_runs::{Busy, Choice, NewRun, Run, RunInfo, RunNumber, Slot, Span};

use super::HistoryTable;
use super::flush::write_run;
use crate::history::codec::History;
use crate::history::error::Result;

/// A merge under way.
#[derive(Debug)]
pub(super) struct Merging {
    /// The new run.
    pub(super) number: RunNumber,
    /// The runs that it is made of, youngest first.
    parts: Vec<RunNumber>,
    /// Their length in pages.
    pages: u64,
}

impl HistoryTable {
    /// Starts the merges that are due in the lanes that are free.
    pub(super) fn start_merges(&mut self) {
        if self.work.merges[0].is_free()
            && let Some(range) = self.due()
        {
            self.start_merge(0, range);
        }
        if !self.work.merges[0].is_free()
            && self.work.merges[1].is_free()
            && let Some(range) = self.due_beside()
        {
            self.start_merge(1, range);
        }
    }

    /// The runs to be merged in the first lane. Those of the second are not among them: it is
    /// waited for.
    fn due(&self) -> Option<Range<usize>> {
        let (infos, policy) = (self.runs.infos(), self.policy());
        let tidy = self.work.tidy;
        let choice = if tidy { policy.tidy(&infos) } else { policy.tiers().choose(&infos) };
        let Choice::Merge(range) = choice else { return None };
        let other = self.work.merges[1].about();
        let chosen = infos.get(range.clone()).unwrap_or_default();
        let is_busy = |number| other.is_some_and(|other| other.parts.contains(number));
        (range.len() > 1 && !chosen.iter().any(|info| is_busy(&info.number))).then_some(range)
    }

    /// Younger runs than those of the first lane that can be merged beside it.
    fn due_beside(&self) -> Option<Range<usize>> {
        let merging = self.work.merges[0].about()?;
        let infos = self.runs.infos();
        let busy = infos.iter().position(|info| merging.parts.contains(&info.number));
        let busy = Busy { first: busy.unwrap_or(infos.len()), pages: merging.pages };
        match self.policy().tiers().choose_beside(&infos, busy) {
            Choice::Merge(range) => Some(range),
            Choice::Nothing => None,
        }
    }

    fn start_merge(&mut self, lane: usize, range: Range<usize>) {
        let runs: Vec<Arc<Run<History>>> =
            self.runs.as_slice().get(range.clone()).unwrap_or_default().to_vec();
        let mut others = self.runs.infos();
        let chosen: Vec<RunInfo> = others.drain(range).collect();
        let (number, buffers) = (self.next_number(), self.budget().buffers());
        let expected = chosen.iter().map(|info| info.adds).sum();
        let filter = self.policy().merge_filter(expected, &others);
        let (span, chunk_keys) = (Span::of(&chosen), buffers.chunk_keys);
        let new = NewRun { number, span, expected, filter, chunk_keys };
        let parts = chosen.iter().map(|info| info.number).collect();
        let pages = chosen.iter().map(|info| info.pages).sum();
        let (stop, storage, key) =
            (self.work.stop.0.clone(), Arc::clone(&self.storage), self.store());
        let work = move || {
            let cursors = runs.iter().map(Run::cursor).collect::<Result<Vec<_>>>()?;
            let run = write_run(&stop, (&storage, key), &new, cursors)?;
            run.iter().try_for_each(|run| run.warm_after(&runs))?;
            Ok(run)
        };
        if let Some((slot, lane)) =
            self.work.merges.get_mut(lane).zip(self.work.merge_lanes.get(lane))
        {
            slot.fill(Merging { number, parts, pages }, lane.start(work));
        }
    }

    /// Takes in merges that are done, or waits for them: the merged run takes the place of its
    /// parts. The next manifest will say so.
    pub(super) fn take_merges(&mut self, wait: bool) -> Result<()> {
        for lane in 0..self.work.merges.len() {
            let done = self.work.merges.get_mut(lane).and_then(|slot| slot.take(wait));
            let Some((merging, merged)) = done else { continue };
            let merged = merged?;
            let infos = self.runs.infos();
            let first = infos.iter().position(|info| merging.parts.first() == Some(&info.number));
            let first = first.expect("only a merge takes runs away, and each is in one");
            self.work.written +=
                merged.iter().map(|run| run.info().pages).sum::<u64>() * PAGE_LEN as u64;
            let range = first..first + merging.parts.len();
            self.runs = self.runs.with_replaced(range, merged.map(Arc::new));
            self.publish();
        }
        if self.work.tidy && self.work.merges.iter().all(Slot::is_free) {
            let infos = self.runs.infos();
            self.work.tidy = self.policy().tidy(&infos) != Choice::Nothing;
        }
        Ok(())
    }
}
