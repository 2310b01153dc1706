//! Values and fees.
//!
//! A fee is the value of the inputs less that of the outputs, so it needs the bytes of the spent
//! transactions too. `utxo` knows the same sums while a block is validated; the archive computes
//! them for any block later.

use varve_types::Amount;

use super::{Output, TxSize};
use crate::backend::Tables;
use crate::error::Result;
use crate::link::{HeaderLink, TxLink};
use crate::source::BlockSource;
use crate::view::View;

/// What a transaction pays for its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeRate {
    /// Inputs less outputs.
    pub fee: Amount,
    /// In virtual bytes.
    pub virtual_size: u64,
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// What the outputs of a transaction are worth; `None` when the snapshot does not see the row.
    fn tx_value(&self, tx: TxLink) -> Result<Option<Amount>> {
        self.with_row(tx, |_, tx| sum(tx.outputs().map(|output| output.value)))
    }

    /// What the inputs of a transaction spend; `None` when an output that it spends is not on its
    /// branch, and for a coinbase.
    fn tx_spend(&self, tx: TxLink) -> Result<Option<Amount>> {
        let prevouts: Option<Vec<Output>> = self.tx_prevouts(tx)?.into_iter().collect();
        Ok(prevouts.and_then(|prevouts| sum(prevouts.iter().map(|output| output.value))))
    }

    /// The fee of a transaction; `None` for a coinbase and where its inputs are not known.
    pub fn tx_fee(&self, tx: TxLink) -> Result<Option<Amount>> {
        let (spend, value) = (self.tx_spend(tx)?, self.tx_value(tx)?);
        Ok(spend.zip(value).and_then(|(spend, value)| spend.checked_sub(value)))
    }

    /// The fee rate of every transaction of a block but the coinbase, in block order; `None` when
    /// the block has not come or does not spend what is on its branch.
    pub fn block_fee_rates(&self, link: HeaderLink) -> Result<Option<Vec<FeeRate>>> {
        let Some(prevouts) = self.block_prevouts(link)? else { return Ok(None) };
        let mut prevouts = prevouts.into_iter();
        let rates = self.with_block(link, |block| {
            let mut rates = Vec::with_capacity(block.txs().len());
            for tx in block.txs().iter().skip(1) {
                let spent: Option<Vec<_>> = prevouts.by_ref().take(tx.inputs().len()).collect();
                let spent = sum(spent?.iter().map(|output| output.value))?;
                let made = sum(tx.outputs().map(|output| output.value))?;
                let base = varve_consensus::base_size(tx);
                let size = TxSize { base, total: tx.bytes().len() as u64 };
                let (fee, virtual_size) = (spent.checked_sub(made)?, size.virtual_size());
                rates.push(FeeRate { fee, virtual_size });
            }
            Some(rates)
        });
        Ok(rates?.flatten())
    }

    /// The fees of a block; `None` as for [`View::block_fee_rates`].
    pub fn block_fees(&self, link: HeaderLink) -> Result<Option<Amount>> {
        let rates = self.block_fee_rates(link)?;
        Ok(rates.and_then(|rates| sum(rates.iter().map(|rate| rate.fee))))
    }
}

/// The sum, unless it overflows.
fn sum(values: impl IntoIterator<Item = Amount>) -> Option<Amount> {
    values.into_iter().try_fold(Amount::ZERO, Amount::checked_add)
}
