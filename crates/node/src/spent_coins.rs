//! The coins that blocks spent, from archive and block store, for rewinds below the undo records.

use varve_archive::{View, coins_on_branch};
use varve_blocks::BlockReader;
use varve_consensus::{BlockAt, OwnedCoin};
use varve_types::{BlockHash, Height, Outpoint};
use varve_utxo::{SourceFailure, SpentCoins};

use crate::error::Error;
use crate::snapshot::ArchiveView;
use crate::stores::Stores;

/// The coins of the archive.
pub(crate) struct ArchivedCoins {
    view: ArchiveView,
    blocks: BlockReader,
}

impl ArchivedCoins {
    pub(crate) fn new(stores: &Stores) -> Self {
        let blocks = stores.blocks.reader();
        Self { view: View::new(stores.archive.snapshot(), blocks.clone()), blocks }
    }
}

impl SpentCoins for ArchivedCoins {
    fn block(&self, height: Height, hash: BlockHash) -> Result<Vec<u8>, SourceFailure> {
        let number = self.blocks.number_of(&hash)?.ok_or(Error::NoBytes { hash, height })?;
        Ok(self.blocks.raw(number).map_err(Error::of_block(height))?.to_vec())
    }

    fn coin_below(
        &self,
        block: &BlockAt<'_>,
        outpoint: &Outpoint,
    ) -> Result<Option<OwnedCoin>, SourceFailure> {
        let parent = self.view.to_header(block.block().header().previous())?;
        let Some(parent) = parent else { return Ok(None) };
        Ok(coins_on_branch(&self.view, parent, &[*outpoint])?.pop().flatten())
    }
}
