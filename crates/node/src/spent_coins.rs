//! What blocks took from the set, when its undo records are gone: out of archive and block store.
//!
//! A coin was at a point below a block when the branch of the block's parent has a transaction that
//! made it, and no input of that branch, from there on, that spends it.

use varve_archive::{ArchiveError, View};
use varve_blocks::BlockReader;
use varve_consensus::{BlockAt, OwnedCoin};
use varve_types::{BlockHash, Height, Outpoint, unspendable};
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

/// The coin at `outpoint` on the branch that ends with `parent`.
pub(crate) fn coin_on_branch(
    view: &ArchiveView,
    parent: BlockHash,
    outpoint: &Outpoint,
) -> Result<Option<OwnedCoin>, ArchiveError> {
    let Some(parent) = view.to_header(parent)? else { return Ok(None) };
    let branch = view.branch(parent)?;
    let Some(place) = view.tx_on(&branch, outpoint.txid)? else { return Ok(None) };
    let Some(output) = view.output_of(&place, outpoint.vout)? else { return Ok(None) };
    let height = place.height;
    let never = height == Height::GENESIS || unspendable(view.network(), height, &output.script);
    if never || view.spender_on(&branch, height, *outpoint)?.is_some() {
        return Ok(None);
    }
    let (value, script) = (output.value, output.script);
    Ok(Some(OwnedCoin { height, coinbase: place.is_coinbase(), value, script }))
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
        Ok(coin_on_branch(&self.view, block.block().header().previous(), outpoint)?)
    }
}
