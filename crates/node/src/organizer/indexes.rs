//! What a sync does for the optional indexes beside taking in blocks.

use super::{Organizer, Report};
use crate::connected::Wanted;
use crate::error::Error;
use crate::settings::{Index, Prune};

impl Organizer {
    /// Brings indexes that were just chosen, or that a crash has set back, to the confirmed tip.
    pub(crate) fn catch_up_indexes(
        &mut self,
        report: &mut dyn FnMut(Report<'_>),
    ) -> Result<(), Error> {
        let (indexes, workers) = (self.settings.indexes, self.options.workers);
        if indexes.has(Index::Filter) {
            let index = Index::Filter;
            let progress = &mut |done, all| report(Report::Indexed { index, done, all });
            self.stores.catch_up_filters(workers, progress)?;
        }
        if indexes.has(Index::Stats) {
            let (tip, index) = (self.snapshot().tip.0, Index::Stats);
            self.stats_at(tip, &mut |done, all| report(Report::Indexed { index, done, all }))?;
        }
        Ok(())
    }

    /// Blocks between two checkpoints, at most. Where blocks are pruned, indexes that a crash has
    /// set back to their checkpoint are computed again out of undo records, so there must be
    /// records down to it.
    pub(super) fn checkpoint_every(&self) -> u32 {
        let is_needed =
            self.settings.prune != Prune::Off && !Wanted::of(self.settings).is_nothing();
        if is_needed { (self.options.undo.blocks / 2).max(1) } else { u32::MAX }
    }
}
