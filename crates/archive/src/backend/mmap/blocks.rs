//! Blocks and the places of their transactions.
//!
//! | table | is a | key | value |
//! |---|---|---|---|
//! | `block` | slab map | header row 4 | the block row, and where each group of `tx_len` is |
//! | `block_tx` | array, two cells a block as archived | – | end of its tx rows, header row |
//! | `tx_len` | blob | – | the lengths of transactions, in groups (`lengths`) |
//!
//! The transactions of a block have rows that follow one another, and blocks follow one another as
//! they were archived. So a transaction row is not stored at all: the block is found by its number
//! in `block_tx`, by halving, and the place in the block by decoding one group:
//!
//! ```text
//! tx row ──halving──► end, header row ──► block row ──position──► group ──sum──► offset, length
//!        `block_tx`                       `block`                `tx_len`
//! ```
//!
//! When something fails, the cells are taken back. Groups and a block row that were written before
//! stay behind, and nothing names them.

use std::sync::Arc;

use varve_io::Storage;

use super::MmapConfig;
use super::lengths::{self, GROUP};
use super::row::{self, BLOCK, BlockMeasure};
use crate::backend::{BackendError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::primitive::{
    Array, ArrayReader, Blob, BlobReader, Keyed, Manifest, SlabLink, SlabMap, SlabReader, Table,
    TableMemory,
};
use crate::row::{BlockRow, NewBlock, TxRow, TxSlice};

const ROWS: &str = "block";
const ORDER: &str = "block_tx";
const LENGTHS: &str = "tx_len";

/// Cells of a block in `block_tx`.
const CELLS: u64 = 2;

/// The blocks, as their writer sees them.
#[derive(Debug)]
pub(super) struct Blocks {
    rows: SlabMap<BlockMeasure, 4>,
    order: Array,
    lengths: Blob,
    reader: BlocksReader,
}

/// The blocks, as a reader sees them.
#[derive(Clone, Debug)]
pub(super) struct BlocksReader {
    rows: SlabReader<BlockMeasure, 4>,
    order: ArrayReader,
    lengths: BlobReader,
}

impl Blocks {
    pub(super) fn open(
        storage: &Arc<dyn Storage>,
        config: &MmapConfig,
        manifest: &Manifest,
    ) -> Result<Self> {
        let table = |name, rows| (config.table(name, rows), manifest.mark(name));
        let (rows, order) = (table(ROWS, config.first_rows.div_ceil(64)), table(ORDER, 1));
        let (lengths, hasher) = (table(LENGTHS, 1), Keyed::new(manifest.secret));
        let rows = SlabMap::open(Arc::clone(storage), &rows.0, hasher, rows.1)?;
        let order = Array::open(Arc::clone(storage), &order.0, order.1)?;
        let lengths = Blob::open(Arc::clone(storage), &lengths.0, lengths.1)?;
        let reader = BlocksReader {
            rows: SlabMap::reader(&rows).clone(),
            order: order.reader().clone(),
            lengths: lengths.reader(),
        };
        Ok(Self { rows, order, lengths, reader })
    }

    pub(super) const fn reader(&self) -> &BlocksReader {
        &self.reader
    }

    pub(super) fn tables(&self) -> [&dyn Table; 3] {
        [&self.rows, &self.order, &self.lengths]
    }

    pub(super) fn tables_mut(&mut self) -> [&mut dyn Table; 3] {
        [&mut self.rows, &mut self.order, &mut self.lengths]
    }

    /// Appends a block whose header has no block row. It counts when `index`, which gets its row,
    /// has done what else there is to do.
    pub(super) fn append(
        &mut self,
        block: &NewBlock<'_>,
        index: impl FnOnce(&BlockRow) -> Result<()>,
    ) -> Result<BlockRow> {
        let stored = block.row(TxLink::new(self.reader.txs()?));
        let mut value = row::encode_block(&stored).to_vec();
        let slices: Vec<TxSlice> = block.tx_rows().map(|row| row.slice).collect();
        for group in slices.chunks(GROUP as usize) {
            let Some(first) = group.first() else { continue };
            let lengths: Vec<_> = group.iter().map(|slice| slice.len).collect();
            let at = self.lengths.push(&lengths::encode(first.start, &lengths))?;
            value.extend_from_slice(&at.0.to_le_bytes());
        }
        let association = self.rows.set(&key(block.header), &value)?;
        let cells = [stored.first_tx.plus(stored.tx_count).to_u64(), block.header.to_u32().into()];
        let len = self.order.reader().len();
        let pushed = cells.into_iter().try_for_each(|cell| self.order.push(cell).map(drop));
        if let Err(error) = pushed.map_err(BackendError::from).and_then(|()| index(&stored)) {
            self.order.truncate(len);
            return Err(error);
        }
        association.commit();
        Ok(stored)
    }
}

impl BlocksReader {
    /// Opens the tables of a store that nobody writes to.
    pub(super) fn at_rest(
        storage: &Arc<dyn Storage>,
        config: &MmapConfig,
        manifest: &Manifest,
    ) -> Result<Self> {
        let table = |name| (config.table(name, 1), manifest.mark(name));
        let (rows, order, lengths) = (table(ROWS), table(ORDER), table(LENGTHS));
        let hasher = Keyed::new(manifest.secret);
        Ok(Self {
            rows: SlabReader::at_rest(Arc::clone(storage), &rows.0, hasher, rows.1)?,
            order: ArrayReader::at_rest(Arc::clone(storage), &order.0, order.1)?,
            lengths: BlobReader::at_rest(Arc::clone(storage), &lengths.0, lengths.1),
        })
    }

    /// How many blocks there are.
    pub(super) fn count(&self) -> u64 {
        self.order.len() / CELLS
    }

    /// How many transaction rows there are.
    pub(super) fn txs(&self) -> Result<u64> {
        match self.count().checked_sub(1) {
            Some(last) => self.end(last),
            None => Ok(0),
        }
    }

    /// The bytes of memory.
    pub(super) fn memory(&self) -> TableMemory {
        self.rows.memory() + self.order.memory()
    }

    /// The row of a block; `None` when it has not been archived.
    pub(super) fn block(&self, header: HeaderLink) -> Result<Option<BlockRow>> {
        let found = self.rows.find(&key(header), row::decode_block)?;
        found.map(|(_, row)| row.ok_or_else(|| damaged(header))).transpose()
    }

    /// A transaction row.
    pub(super) fn tx(&self, link: TxLink) -> Result<TxRow> {
        let header = self.block_of(link)?.ok_or_else(|| BackendError::dangling(link))?;
        let found = self.rows.find(&key(header), |value| {
            let stored = row::decode_block(value)?;
            let position = link.to_u64().checked_sub(stored.first_tx.to_u64())?;
            let position = u32::try_from(position).ok().filter(|at| *at < stored.tx_count)?;
            let group = (position / GROUP) as usize;
            let (groups, _) = value.get(BLOCK..)?.as_chunks();
            Some((stored, position, u64::from_le_bytes(*groups.get(group)?)))
        })?;
        let (stored, position, at) =
            found.and_then(|(_, row)| row).ok_or_else(|| damaged(header))?;
        let front = |bytes: &[u8]| bytes.first_chunk().map(lengths::len);
        let len = self.lengths.get(SlabLink(at), lengths::FRONT, front)?;
        let len = len.ok_or_else(|| damaged(header))?;
        let find = |group: &[u8]| lengths::find(group, position % GROUP);
        let (start, len) =
            self.lengths.get(SlabLink(at), len, find)?.ok_or_else(|| damaged(header))?;
        let slice = TxSlice { number: stored.number, start, len };
        Ok(TxRow { block: header, position, slice })
    }

    /// The blocks from the one that holds a transaction row on, in the order of archiving: each
    /// with the number behind its last row. None behind the last.
    pub(super) fn from(
        &self,
        link: TxLink,
    ) -> Result<impl ExactSizeIterator<Item = Result<(HeaderLink, u64)>>> {
        let first = self.index_of(link)?;
        let left = usize::try_from(self.count() - first).unwrap_or(usize::MAX);
        let block = move |number: usize| {
            let index = first + number as u64;
            Ok((row::header_link(self.order.get(index * CELLS + 1)?)?, self.end(index)?))
        };
        Ok((0..left).map(block))
    }

    /// The block that holds a transaction row; `None` behind the last.
    fn block_of(&self, link: TxLink) -> Result<Option<HeaderLink>> {
        let index = self.index_of(link)?;
        if index == self.count() {
            return Ok(None);
        }
        row::header_link(self.order.get(index * CELLS + 1)?).map(Some)
    }

    /// As which block the one that holds a transaction row was archived.
    fn index_of(&self, link: TxLink) -> Result<u64> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.end(middle)? <= link.to_u64() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The number behind the last transaction row of the block that was archived as this one.
    fn end(&self, block: u64) -> Result<u64> {
        Ok(self.order.get(block * CELLS)?)
    }
}

/// The key of a block.
fn key(header: HeaderLink) -> [u8; 4] {
    header.to_u32().to_le_bytes()
}

fn damaged(header: HeaderLink) -> BackendError {
    BackendError::Fault(format!("the block of {header} does not decode; run `varve repair`").into())
}
