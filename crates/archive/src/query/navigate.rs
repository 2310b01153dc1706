//! From keys to rows and from rows to rows.
//!
//! A snapshot sees the rows below its bounds.

use std::ops::Range;

use varve_types::{BlockHash, Height, Txid};

use super::Branch;
use crate::backend::{BackendError, Chain, Tables};
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::row::{BlockRow, HeaderRow, TxRow, TxSlice};
use crate::snapshot::Snapshot;
use crate::source::BlockSource;
use crate::view::View;

/// A transaction in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxPlace {
    /// Its row.
    pub link: TxLink,
    /// Its hash.
    pub txid: Txid,
    /// The block.
    pub block: HeaderLink,
    /// The height of the block.
    pub height: Height,
    /// The place in the block; the coinbase is at 0.
    pub position: u32,
    /// Whether the block is the confirmed one at its height.
    pub confirmed: bool,
    /// Where its bytes are.
    pub(crate) slice: TxSlice,
}

impl TxPlace {
    /// Whether it is the coinbase of its block.
    #[must_use]
    pub const fn is_coinbase(&self) -> bool {
        self.position == 0
    }
}

/// Where a transaction row is: a [`TxPlace`] whose bytes have not been hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// The row.
    pub link: TxLink,
    /// The block.
    pub block: HeaderLink,
    /// The height of the block.
    pub height: Height,
    /// The position in the block; the coinbase is at 0.
    pub position: u32,
    /// Whether the block is the confirmed one at its height.
    pub confirmed: bool,
    pub(crate) slice: TxSlice,
}

impl RowPlace {
    /// The place of the transaction whose bytes have this hash.
    pub(crate) const fn with(&self, txid: Txid) -> TxPlace {
        let Self { link, block, height, position, confirmed, slice } = *self;
        TxPlace { link, txid, block, height, position, confirmed, slice }
    }

    /// Whether the block is one of the branch.
    pub(crate) fn is_on<T: Tables>(&self, branch: &Branch<'_, T>) -> bool {
        branch.at(self.height) == Some(self.block)
    }

    /// The error for an answer that needs the pruned bytes of this row.
    pub(crate) const fn pruned(&self) -> ArchiveError {
        ArchiveError::Pruned { height: self.height }
    }
}

impl<T: Tables> Snapshot<T> {
    /// The row of the header with this hash.
    pub fn to_header(&self, hash: BlockHash) -> Result<Option<HeaderLink>> {
        let mut found = Vec::with_capacity(1);
        self.tables.find_headers(&[hash], &mut found)?;
        Ok(found.pop().flatten().filter(|link| self.bounds.has_header(*link)))
    }

    /// The header of a row.
    pub fn header(&self, link: HeaderLink) -> Result<HeaderRow> {
        if !self.bounds.has_header(link) {
            return Err(BackendError::dangling(link).into());
        }
        let mut rows = Vec::with_capacity(1);
        self.tables.headers(&[link], &mut rows)?;
        Ok(rows.pop().ok_or_else(|| BackendError::dangling(link))?)
    }

    /// The header at this height of the confirmed chain.
    #[must_use]
    pub fn to_confirmed(&self, height: Height) -> Option<HeaderLink> {
        self.at(Chain::Confirmed, height)
    }

    /// The block row of a header, or `None` when the block has not been archived.
    pub fn block(&self, link: HeaderLink) -> Result<Option<BlockRow>> {
        let mut rows = Vec::with_capacity(1);
        self.tables.blocks(&[link], &mut rows)?;
        let within = |row: &BlockRow| row.first_tx.to_u64() < self.bounds.txs;
        Ok(rows.pop().flatten().filter(within))
    }

    /// The block row of a header, or `None` when the block has not been archived. A block
    /// below the base is an error: it never will be.
    pub(crate) fn stored(&self, link: HeaderLink) -> Result<Option<BlockRow>> {
        let row = self.block(link)?;
        if let (None, Some(base)) = (row, self.base) {
            let height = self.header(link)?.height;
            if height <= base {
                return Err(ArchiveError::BelowBase { height });
            }
        }
        Ok(row)
    }

    /// The transaction rows of a block in order, or `None` when the block has not been archived.
    pub fn block_txs(&self, link: HeaderLink) -> Result<Option<Range<TxLink>>> {
        Ok(self.stored(link)?.map(|row| row.first_tx..row.first_tx.plus(row.tx_count)))
    }

    /// A transaction row.
    pub fn tx(&self, link: TxLink) -> Result<TxRow> {
        if !self.bounds.has_tx(link) {
            return Err(BackendError::dangling(link).into());
        }
        let mut rows = Vec::with_capacity(1);
        self.tables.txs(&[link], &mut rows)?;
        Ok(rows.pop().ok_or_else(|| BackendError::dangling(link))?)
    }

    /// Where a transaction row stands, or `None` when the snapshot does not see it.
    pub(crate) fn row_place(&self, link: TxLink) -> Result<Option<RowPlace>> {
        if !self.bounds.has_tx(link) {
            return Ok(None);
        }
        let TxRow { block, position, slice } = self.tx(link)?;
        let height = self.header(block)?.height;
        let confirmed = self.to_confirmed(height) == Some(block);
        Ok(Some(RowPlace { link, block, height, position, confirmed, slice }))
    }

    /// Where transaction rows stand, all of which the moment has.
    pub(crate) fn row_places(&self, links: &[TxLink]) -> Result<Vec<RowPlace>> {
        let mut rows = Vec::with_capacity(links.len());
        self.tables.txs(links, &mut rows)?;
        let blocks: Vec<_> = rows.iter().map(|row| row.block).collect();
        let mut headers = Vec::with_capacity(blocks.len());
        self.tables.headers(&blocks, &mut headers)?;
        let rows = links.iter().zip(rows).zip(headers);
        let place = |((link, row), header): ((&TxLink, TxRow), HeaderRow)| {
            let TxRow { block, position, slice } = row;
            let height = header.height;
            let confirmed = self.to_confirmed(height) == Some(block);
            RowPlace { link: *link, block, height, position, confirmed, slice }
        };
        Ok(rows.map(place).collect())
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// The transaction of a row, or `None` when the moment does not have the row. Its txid is
    /// computed from its bytes.
    pub fn place(&self, link: TxLink) -> Result<Option<TxPlace>> {
        let Some(row) = self.row_place(link)? else { return Ok(None) };
        self.with_tx(row.block, &row.slice, |tx| Some(row.with(tx.txid())))
    }

    /// The txid of a row, computed from its bytes.
    pub fn txid(&self, row: &RowPlace) -> Result<Txid> {
        self.with_tx(row.block, &row.slice, |tx| tx.txid())
    }

    /// The txids of a block in order, or `None` when the block has not been archived.
    pub fn txids(&self, link: HeaderLink) -> Result<Option<Vec<Txid>>> {
        self.with_block(link, |block| block.txids())
    }
}
