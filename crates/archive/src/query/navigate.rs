//! From keys to rows and from rows to rows.
//!
//! A transaction row counts when the block row of its block covers it: a block that failed halfway
//! leaves rows that nothing covers. And it counts for a snapshot when it is below its bounds.

use std::ops::Range;

use varve_types::{BlockHash, Height, Txid};

use crate::backend::{BackendError, Chain, Tables};
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::row::{BlockRow, HeaderRow, TxRow};
use crate::snapshot::Snapshot;

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
    /// The row of the block, and where in it the transaction begins.
    pub(crate) stored: BlockRow,
    pub(crate) offset: u32,
}

impl TxPlace {
    /// Whether it is the coinbase of its block.
    #[must_use]
    pub const fn is_coinbase(&self) -> bool {
        self.position == 0
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

    /// The header below, `None` for genesis.
    pub fn parent(&self, link: HeaderLink) -> Result<Option<HeaderLink>> {
        Ok(self.header(link)?.parent)
    }

    /// The header at this height of the candidate chain.
    #[must_use]
    pub fn to_candidate(&self, height: Height) -> Option<HeaderLink> {
        self.at(Chain::Candidate, height)
    }

    /// The header at this height of the confirmed chain.
    #[must_use]
    pub fn to_confirmed(&self, height: Height) -> Option<HeaderLink> {
        self.at(Chain::Confirmed, height)
    }

    /// The block row of a header, or `None` when the block has not come.
    pub fn block(&self, link: HeaderLink) -> Result<Option<BlockRow>> {
        let mut rows = Vec::with_capacity(1);
        self.tables.blocks(&[link], &mut rows)?;
        let within = |row: &BlockRow| row.first_tx.to_u64() < self.bounds.txs;
        Ok(rows.pop().flatten().filter(within))
    }

    /// The block row of a header, or `None` when the block has not come. That it never will, since
    /// it is below the base, is an error.
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

    /// The transaction rows of a block in order, or `None` when the block has not come.
    pub fn block_txs(&self, link: HeaderLink) -> Result<Option<Range<TxLink>>> {
        Ok(self.stored(link)?.map(|row| row.first_tx..row.first_tx.plus(row.tx_count)))
    }

    /// The coinbase of a block: the first of its rows.
    pub fn coinbase(&self, link: HeaderLink) -> Result<Option<TxLink>> {
        Ok(self.block_txs(link)?.map(|rows| rows.start))
    }

    /// The rows of a block that spend: all but the coinbase.
    pub fn spending_txs(&self, link: HeaderLink) -> Result<Option<Range<TxLink>>> {
        Ok(self.block_txs(link)?.map(|rows| rows.start.plus(1)..rows.end))
    }

    /// The txids of a block in order, or `None` when the block has not come.
    pub fn txids(&self, link: HeaderLink) -> Result<Option<Vec<Txid>>> {
        let Some(rows) = self.block_txs(link)? else { return Ok(None) };
        let links: Vec<_> = (rows.start.to_u64()..rows.end.to_u64()).map(TxLink::new).collect();
        let mut rows = Vec::with_capacity(links.len());
        self.tables.txs(&links, &mut rows)?;
        Ok(Some(rows.into_iter().map(|row| row.txid).collect()))
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

    /// Where a transaction row stands, or `None` when it does not count.
    pub fn place(&self, link: TxLink) -> Result<Option<TxPlace>> {
        if !self.bounds.has_tx(link) {
            return Ok(None);
        }
        let TxRow { txid, block, offset } = self.tx(link)?;
        let Some(stored) = self.block(block)? else { return Ok(None) };
        let Some(position) = stored.position(link) else { return Ok(None) };
        let height = self.header(block)?.height;
        let confirmed = self.to_confirmed(height) == Some(block);
        Ok(Some(TxPlace { link, txid, block, height, position, confirmed, stored, offset }))
    }

    /// Every row of a transaction, newest first: one for each block that holds it.
    pub fn txs(&self, txid: Txid) -> Result<Vec<TxPlace>> {
        let mut found = Vec::new();
        self.tables.find_txs(&[txid], &mut found)?;
        let places = found.into_iter().map(|(_, link)| self.place(link));
        let places: Vec<_> = places.filter_map(Result::transpose).collect::<Result<_>>()?;
        match self.base {
            Some(height) if places.is_empty() => Err(ArchiveError::BelowBase { height }),
            _ => Ok(places),
        }
    }

    /// The row of a transaction: the confirmed one where there is one (the highest of several),
    /// else the newest.
    pub fn to_tx(&self, txid: Txid) -> Result<Option<TxPlace>> {
        let places = self.txs(txid)?;
        let confirmed = places.iter().filter(|place| place.confirmed);
        Ok(confirmed.max_by_key(|place| place.height).or(places.first()).copied())
    }

    /// The blocks that hold a transaction, and whether each is confirmed: `varve tx` shows them.
    pub fn blocks_of(&self, txid: Txid) -> Result<Vec<(HeaderLink, bool)>> {
        Ok(self.txs(txid)?.into_iter().map(|place| (place.block, place.confirmed)).collect())
    }

    /// The bytes of a transaction within its block: up to the next one, or to the end.
    pub(crate) fn tx_range(&self, place: &TxPlace) -> Result<Range<u32>> {
        let next = place.position + 1;
        let end = if next < place.stored.tx_count {
            self.tx(place.link.plus(1))?.offset
        } else {
            place.stored.size
        };
        Ok(place.offset..end)
    }
}
