//! A block in figures, and its transactions page by page, without reading the whole block.
//!
//! Counts and sizes come from the archive's row of the block; of the bytes only those of the
//! transactions that are asked for are read. Fee rates need every output that the block spends.

use varve_node::ArchiveView;
use varve_types::{Amount, BlockHash, Height, Tx, Txid};

use super::{Snapshot, find, header_at};
use crate::answer::{BlockHeader, BlockId};
use crate::error::Error;

/// What a byte outside of the witness weighs more than one inside (BIP141).
const WITNESS_SCALE: u64 = 4;

/// A stored block in figures.
#[derive(Clone, Debug)]
pub struct BlockSummary {
    /// Its header.
    pub header: BlockHeader,
    /// The block above it in the confirmed chain; `None` for the tip and on other branches.
    pub next: Option<BlockHash>,
    /// Bytes.
    pub size: u64,
    /// Weight (BIP141).
    pub weight: u64,
    /// Transactions.
    pub transactions: u32,
    /// Inputs of all transactions, that of the coinbase included.
    pub inputs: u32,
    /// Outputs of all transactions.
    pub outputs: u32,
    /// The bytes of the coinbase; `None` where they were pruned.
    pub coinbase: Option<Vec<u8>>,
}

/// A transaction of a block in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTx {
    /// Its id.
    pub txid: Txid,
    /// Its place in the block; the coinbase is at 0.
    pub position: u32,
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// What its outputs are worth.
    pub value: Amount,
    /// Virtual bytes.
    pub virtual_size: u64,
    /// Its fee; `None` for the coinbase, and where an output that it spends was pruned.
    pub fee: Option<Amount>,
}

/// What a transaction paid for its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaidRate {
    /// The fee.
    pub fee: Amount,
    /// Virtual bytes.
    pub virtual_size: u64,
}

impl Snapshot {
    /// A stored block in figures, on any branch; `None` when its header is not known. A block whose
    /// header alone is known is [`Error::NotStored`] or [`Error::Refused`].
    pub fn block_summary(&self, block: impl Into<BlockId>) -> Result<Option<BlockSummary>, Error> {
        let block = block.into();
        let found = self.ask(|view| {
            let Some(link) = find(view, block)? else { return Ok(None) };
            let header = header_at(view, link)?;
            let Some(row) = view.block(link)? else { return Ok(Some(Err(header.hash))) };
            let coinbase = match view.raw_tx(row.first_tx) {
                Err(varve_archive::ArchiveError::Pruned { .. }) => None,
                found => found?.map(|bytes| bytes.as_ref().to_vec()),
            };
            let (size, base) = (u64::from(row.size), u64::from(row.base_size));
            Ok(Some(Ok(BlockSummary {
                next: next_of(view, &header)?,
                header,
                size,
                weight: base * (WITNESS_SCALE - 1) + size,
                transactions: row.tx_count,
                inputs: row.inputs,
                outputs: row.outputs,
                coinbase,
            })))
        })?;
        match found {
            None => Ok(None),
            Some(Ok(summary)) => Ok(Some(summary)),
            Some(Err(hash)) => Err(self.not_stored(hash)?),
        }
    }

    /// At most `limit` transactions of a stored block from a place on; `None` when the block is not
    /// stored. Reads their bytes and those of the transactions that they spend from.
    pub fn block_txs(
        &self,
        block: impl Into<BlockId>,
        from: u32,
        limit: usize,
    ) -> Result<Option<Vec<BlockTx>>, Error> {
        let block = block.into();
        self.ask(|view| {
            let Some(link) = find(view, block)? else { return Ok(None) };
            let Some(row) = view.block(link)? else { return Ok(None) };
            let places = (from..row.tx_count).take(limit);
            let txs = places.map(|position| self.block_tx(view, row.first_tx.plus(position)));
            txs.collect::<Result<Option<Vec<_>>, Error>>()
        })
    }

    fn block_tx(
        &self,
        view: &ArchiveView,
        link: varve_archive::TxLink,
    ) -> Result<Option<BlockTx>, Error> {
        let Some(place) = view.place(link)? else { return Ok(None) };
        let Some(bytes) = view.raw_tx(link)? else { return Ok(None) };
        let hash = view.header(place.block)?.hash;
        let undecodable = |source| varve_node::Error::Undecodable { hash, source };
        let tx = Tx::parse(bytes.as_ref(), self.network().format()).map_err(undecodable)?;
        let value = total(tx.outputs().map(|output| output.value));
        let spent = match (place.position, view.tx_prevouts(link)) {
            (0, _) | (_, Err(varve_archive::ArchiveError::Pruned { .. })) => None,
            (_, found) => found?.into_iter().collect::<Option<Vec<_>>>(),
        };
        let spent = spent.map(|outputs| total(outputs.iter().map(|output| output.value)));
        Ok(Some(BlockTx {
            txid: place.txid,
            position: place.position,
            inputs: tx.inputs().len(),
            outputs: tx.outputs().len(),
            value,
            virtual_size: virtual_size(&tx),
            fee: spent.and_then(|spent| spent.checked_sub(value)),
        }))
    }

    /// What every transaction of a stored block but the coinbase paid, in block order; `None` when
    /// the block is not stored, or an output that it spends is not. Reads the whole block and every
    /// transaction that it spends from.
    pub fn block_fee_rates(
        &self,
        block: impl Into<BlockId>,
    ) -> Result<Option<Vec<PaidRate>>, Error> {
        let (block, format) = (block.into(), self.network().format());
        self.ask(|view| {
            let Some(link) = find(view, block)? else { return Ok(None) };
            let Some(prevouts) = view.block_prevouts(link)? else { return Ok(None) };
            let Some(bytes) = view.raw_block(link)? else { return Ok(None) };
            let hash = view.header(link)?.hash;
            let undecodable = |source| varve_node::Error::Undecodable { hash, source };
            let block = varve_types::Block::parse(bytes.as_ref(), format).map_err(undecodable)?;
            let mut prevouts = prevouts.into_iter();
            let rate = |tx: &Tx<'_>| {
                let spent: Option<Vec<_>> = prevouts.by_ref().take(tx.inputs().len()).collect();
                let spent = total(spent?.iter().map(|output| output.value));
                let made = total(tx.outputs().map(|output| output.value));
                let (fee, virtual_size) = (spent.checked_sub(made)?, virtual_size(tx));
                Some(PaidRate { fee, virtual_size })
            };
            Ok(block.txs().iter().skip(1).map(rate).collect())
        })
    }
}

fn next_of(view: &ArchiveView, header: &BlockHeader) -> Result<Option<BlockHash>, Error> {
    let above = header.height.checked_add(1).filter(|_| header.confirmed);
    let link = above.and_then(|height: Height| view.to_confirmed(height));
    Ok(link.map(|link| view.header(link)).transpose()?.map(|row| row.hash))
}

/// A quarter of the weight, rounded up.
fn virtual_size(tx: &Tx<'_>) -> u64 {
    let (base, size) = (tx.base_len() as u64, tx.bytes().len() as u64);
    (base * (WITNESS_SCALE - 1) + size).div_ceil(WITNESS_SCALE)
}

/// The sum of amounts of one transaction, which the rules keep below that of all money.
fn total(amounts: impl Iterator<Item = Amount>) -> Amount {
    Amount::from_sat(amounts.fold(0, |sum, amount| amount.to_sat().saturating_add(sum)))
}
