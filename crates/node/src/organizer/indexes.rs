//! What a sync does for the optional indexes beside taking in blocks.

use std::sync::Arc;

use varve_blocks::BlockNumber;
use varve_types::BlockHash;
use varve_utxo::AsBlock as _;

use super::judge::with_spends;
use super::{Organizer, Report};
use crate::connected::{Wanted, script_changes};
use crate::error::Error;
use crate::script_index::{self, ScriptIndex};
use crate::settings::{Index, Prune};
use crate::stores::missing;

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
        if indexes.has(Index::Script) {
            let (index, tip) = (Index::Script, self.stores.tip_at().0);
            let progress = &mut |done, all| report(Report::Indexed { index, done, all });
            self.stores.follow_scripts(tip, progress)?;
            self.stores.publish(self.stores.tip_at(), Arc::clone(&self.snapshot().utxo));
        }
        if indexes.has(Index::Stats) {
            let (tip, index) = (self.snapshot().tip.0, Index::Stats);
            self.stats_at(tip, &mut |done, all| report(Report::Indexed { index, done, all }))?;
        }
        Ok(())
    }

    /// What the chosen indexes want to know of a block.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted::of(self.settings, script_index::keys(&self.directory))
    }

    /// Brings the script history back to the tip when the set was turned away from it and returned,
    /// because the other branch was bad.
    pub(super) fn follow_left_scripts(&mut self) -> Result<(), Error> {
        let (tip, hash) = self.stores.tip_at();
        let at = self.stores.scripts.as_ref().and_then(ScriptIndex::tip);
        if self.stores.scripts.is_none() || at.is_some_and(|at| at.hash == hash) {
            return Ok(());
        }
        self.stores.keep_up_scripts(tip)?;
        self.stores.publish((tip, hash), Arc::clone(&self.snapshot().utxo));
        Ok(())
    }

    /// Takes the block that the set was just rewound below out of the script history.
    pub(crate) fn disconnect_scripts(&mut self, hash: BlockHash) -> Result<(), Error> {
        let Some(index) = &mut self.stores.scripts else { return Ok(()) };
        if index.tip().is_none_or(|tip| tip.hash != hash) || index.disconnect() {
            return Ok(());
        }
        let view = self.stores.view();
        let link = view.to_header(hash)?.ok_or_else(|| missing(hash))?;
        let id = self.stores.chain.read().tree.find(&hash).ok_or_else(|| missing(hash))?;
        let block = self.stores.read(id)?;
        let spends = self.utxo.view(block.as_block())?;
        let changes = with_spends(&self.options.params, block.as_block(), &spends, script_changes)?;
        let Some(index) = &mut self.stores.scripts else { return Ok(()) };
        index.negate(&view, link, &changes)?;
        if self.stores.blocks.reader().first_held()? > BlockNumber::ZERO {
            // After a crash nobody could make the negation again.
            index.rest()?;
        }
        Ok(())
    }

    /// Blocks between two checkpoints, at most. Where blocks are pruned, indexes that a crash has
    /// set back to their checkpoint are computed again out of undo records, so there must be
    /// records down to it.
    pub(super) fn checkpoint_every(&self) -> u32 {
        let is_needed = self.settings.prune != Prune::Off && !self.wanted().is_nothing();
        if is_needed { (self.options.undo.blocks / 2).max(1) } else { u32::MAX }
    }
}
