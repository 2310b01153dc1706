//! Filters and figures that a crash has set back, where blocks are pruned.

use varve_blocks::BlockNumber;
use varve_types::Height;

use crate::error::Error;
use crate::filters::filtered;
use crate::organizer::Organizer;
use crate::spent_coins::ArchivedCoins;

impl Organizer {
    /// Where blocks are pruned, an index that a crash has set back cannot search for what the
    /// blocks above it spend. The set knows: it is rewound to the index by its undo records, and
    /// appends the same blocks again. Whether that was necessary. (Where all blocks are held, the
    /// next sync searches, on all threads, and the set stays.)
    pub(super) fn restore_indexes(&mut self) -> Result<bool, Error> {
        let wanted = self.wanted();
        let (tip, _) = self.stores.tip_at();
        let is_pruned = self.stores.blocks.reader().first_held()? > BlockNumber::ZERO;
        if wanted.is_nothing() || !is_pruned {
            return Ok(false);
        }
        if wanted.change {
            self.stores.stats.open_pruned(&self.directory)?;
        }
        let view = self.stores.view();
        let filters = if wanted.filter { filtered(self.stores.archive.now())? } else { Some(tip) };
        let stats =
            if wanted.change { self.stores.stats.indexed_to(&view, tip)? } else { Some(tip) };
        let scripts = self.stores.scripts.as_ref();
        let scripts = scripts.map_or(Some(tip), |index| index.tip().map(|tip| tip.height));
        let Some(lowest) = filters.min(stats).min(scripts).filter(|lowest| *lowest < tip) else {
            return Ok(false);
        };
        // Without records the index stays behind; the next sync says that it cannot catch up.
        let first = lowest.checked_add(1);
        if self.utxo.undo_from().is_none_or(|from| Some(from) > first) {
            return Ok(false);
        }
        let coins = ArchivedCoins::new(&self.stores);
        while self.utxo.tip().is_some_and(|(height, _)| height > lowest) {
            self.utxo.rewind_with(&coins)?;
        }
        self.append_to(self.stores.tip, wanted)?;
        let fork = stats.unwrap_or(lowest);
        self.stores.confirm_stats(fork, self.stores.tip)?;
        self.stores.keep_up_scripts(Height::GENESIS)?;
        Ok(true)
    }
}
