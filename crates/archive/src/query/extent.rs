//! How much there is.
//!
//! Sizes in bytes are those of the back end: [`Archive::sizes`](crate::Archive::sizes).

use crate::backend::{Chain, Tables};
use crate::error::Result;
use crate::link::{HeaderLink, TxLink};
use crate::query::View;
use crate::snapshot::Snapshot;
use crate::source::BlockSource;

impl<T: Tables> Snapshot<T> {
    /// How many headers a chain has.
    #[must_use]
    pub fn chain_len(&self, chain: Chain) -> usize {
        self.heights(chain).len()
    }

    /// How many transactions a block has; `None` when it has not come.
    pub fn tx_count(&self, link: HeaderLink) -> Result<Option<u32>> {
        Ok(self.stored(link)?.map(|row| row.tx_count))
    }

    /// How many transactions there are in all blocks up to this one; blocks that have not come
    /// count as empty. Reads a row a block.
    pub fn branch_tx_count(&self, tip: HeaderLink) -> Result<u64> {
        let links = self.ancestry(tip, u32::MAX)?;
        let mut rows = Vec::with_capacity(links.len());
        self.tables.blocks(&links, &mut rows)?;
        Ok(rows.into_iter().flatten().map(|row| u64::from(row.tx_count)).sum())
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// How many inputs and outputs a transaction has; `None` when the row does not count.
    pub fn put_counts(&self, tx: TxLink) -> Result<Option<(usize, usize)>> {
        self.with_row(tx, |_, tx| Some((tx.inputs().len(), tx.outputs().len())))
    }

    /// How many inputs and outputs these transactions have together.
    pub fn put_counts_of(&self, txs: &[TxLink]) -> Result<(usize, usize)> {
        let mut sum = (0, 0);
        for tx in txs {
            let (inputs, outputs) = self.put_counts(*tx)?.unwrap_or_default();
            sum = (sum.0 + inputs, sum.1 + outputs);
        }
        Ok(sum)
    }
}
