//! What the store knows about its blocks, as readers hold it.
//!
//! ```text
//!  number   0                         indexed                count
//!           ├── rows on disk ─────────┼── rows in memory ────┤
//!           index, offsets: maps      pending
//! ```
//!
//! The writer changes a view only by adding to it: a slot of the pending rows, a slot of the hash
//! table, then the count. Whatever else changes (a checkpoint moves rows to disk, a table is
//! full, blocks are cut) makes a new view; readers of the old one keep it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use varve_io::{FileOffset, FormatError, GlobalOffset, LogSnapshot};
use varve_types::BlockHash;

use crate::error::{Error, Result};
use crate::hash_table::{HashTable, Tag};
use crate::number::BlockNumber;
use crate::pending::Pending;
use crate::row::{self, BlockRow};
use crate::tx_offsets::{self, TxOffsets};
use crate::verified::Verified;

#[derive(Debug)]
pub(crate) struct View {
    /// How often the store was truncated before this view was made.
    pub(crate) cuts: usize,
    /// How many rows are on disk.
    pub(crate) indexed: u32,
    /// Those rows.
    pub(crate) index: LogSnapshot,
    /// Their tables of transaction offsets.
    pub(crate) offsets: LogSnapshot,
    /// The other rows.
    pub(crate) pending: Pending,
    /// From hash to number. In a store at rest it is filled by the first lookup.
    pub(crate) table: OnceLock<Arc<HashTable>>,
    /// The key of that table.
    pub(crate) secret: [u8; 16],
    pub(crate) verified: Verified,
    /// How many blocks there are.
    pub(crate) count: AtomicU32,
}

impl View {
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// The row of a block below the count.
    pub(crate) fn row(&self, number: BlockNumber) -> Result<BlockRow> {
        if let Some(index) = self.pending_index(number) {
            let block = self.pending.get(index).ok_or_else(|| self.unknown(number))?;
            return Ok(block.row.clone());
        }
        let row = BlockRow::decode(self.row_bytes(number)?);
        row.map_err(|error| error.in_file("index".as_ref(), FileOffset::ZERO).into())
    }

    /// The hash of a block below the count.
    pub(crate) fn hash(&self, number: BlockNumber) -> Result<BlockHash> {
        if let Some(index) = self.pending_index(number) {
            let block = self.pending.get(index).ok_or_else(|| self.unknown(number))?;
            return Ok(block.row.hash);
        }
        self.row_bytes(number).map(row::hash)
    }

    /// The number under this hash: the last one, when the block was added again after its bytes
    /// had been pruned.
    pub(crate) fn find(&self, tag: Tag, hash: &BlockHash) -> Result<Option<BlockNumber>> {
        let (count, mut found) = (self.count(), None);
        for number in self.filled_table()?.candidates(tag).filter(|number| number.get() < count) {
            if self.hash(number)? == *hash {
                found = found.max(Some(number));
            }
        }
        Ok(found)
    }

    /// The table of the writer, filled when the store is opened.
    pub(crate) fn table(&self) -> &Arc<HashTable> {
        self.table.get().expect("filled when the store was opened for writing")
    }

    /// The table, filled from the rows of the index if that was not done yet.
    pub(crate) fn filled_table(&self) -> Result<&Arc<HashTable>> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let table = HashTable::with_room(self.indexed);
        for number in (0..self.indexed).map(BlockNumber::new) {
            table.insert(Tag::new(&self.secret, &self.hash(number)?), number);
        }
        Ok(self.table.get_or_init(|| Arc::new(table)))
    }

    /// The table of transaction offsets of the block with this row.
    pub(crate) fn tx_offsets(&self, number: BlockNumber, row: &BlockRow) -> Result<TxOffsets<'_>> {
        let bytes = if let Some(index) = self.pending_index(number) {
            let block = self.pending.get(index).ok_or_else(|| self.unknown(number))?;
            &block.offsets
        } else {
            let len = tx_offsets::table_len(row.txs, row.length).ok_or_else(damaged_table)?;
            // An empty table may lie at the very end of the log, where nothing can be read.
            if len == 0 { &[] } else { self.offsets.get(row.offsets_at, len)? }
        };
        TxOffsets::new(bytes, row.txs, row.length).ok_or_else(damaged_table)
    }

    /// The number of the first block at or after `position` of the log of blocks.
    pub(crate) fn first_at(&self, position: GlobalOffset) -> Result<BlockNumber> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            let before = self.row(BlockNumber::new(middle))?.position < position;
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(BlockNumber::new(low))
    }

    pub(crate) fn unknown(&self, number: BlockNumber) -> Error {
        Error::Unknown { number, count: self.count() }
    }

    /// Where among the pending rows a block is; `None` when it is in the index.
    fn pending_index(&self, number: BlockNumber) -> Option<usize> {
        number.get().checked_sub(self.indexed).map(|index| index as usize)
    }

    fn row_bytes(&self, number: BlockNumber) -> Result<&[u8; BlockRow::LEN]> {
        let at = GlobalOffset::new(number.index() * BlockRow::LEN as u64);
        let bytes = self.index.get(at, BlockRow::LEN)?;
        Ok(bytes.first_chunk().expect("as long as requested"))
    }
}

pub(crate) fn damaged_table() -> Error {
    let what = "a table of transaction offsets does not fit its block";
    let damage = FormatError::Damaged { at: 0, what };
    damage.in_file("offsets".as_ref(), FileOffset::ZERO).into()
}
