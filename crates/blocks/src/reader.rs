//! Reading the store at one moment, in any thread.
//!
//! A [`BlockReader`] sees the blocks that were there when it was made, and no others; clone it
//! freely, and use [`BlockReader::latest`] for a newer one. It takes no lock and never waits for
//! the writer. What can still happen to its blocks:
//!
//! - **Packing** moves bytes to another file. The reader looks there.
//! - **Pruning** removes bytes. The reader returns [`Error::Pruned`]; rows stay.
//! - **A truncation** removes blocks and reuses their numbers. The store records the new count
//!   before it touches the files, and the reader checks that record after it has mapped the bytes:
//!   if there is none, the map came first and the bytes cannot be cut; if there is one, the answer
//!   is [`Error::Unknown`].
//!
//! The first access to a block compares its checksum and its header; later ones find a bit set and
//! use the bytes directly. Blocks of a packed segment are verified by chunk.

use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_io::{
    Error as IoError, FRAME_HEADER_LEN, FormatError, GlobalOffset, SegmentsReader, StoreId,
    decode_frame,
};
use varve_types::BlockHash;

use crate::bytes::BlockBytes;
use crate::error::{Error, Result};
use crate::hash_table::Tag;
use crate::number::{BlockNumber, TxPosition};
use crate::packed::Packed;
use crate::row::BlockRow;
use crate::view::{View, damaged_table};

/// What the store and all its readers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: StoreId,
    pub(crate) secret: [u8; 16],
    pub(crate) segments: SegmentsReader,
    pub(crate) view: ArcSwap<View>,
    /// The packed segments, oldest first.
    pub(crate) packed: ArcSwap<Vec<Arc<Packed>>>,
    /// How many blocks each truncation left, oldest first.
    pub(crate) cuts: ArcSwap<Vec<u32>>,
}

impl Shared {
    /// The first position whose bytes are held.
    pub(crate) fn start(&self) -> GlobalOffset {
        let packed = self.packed.load();
        packed.first().map_or_else(|| self.segments.start(), |first| first.range().start)
    }

    /// The packed segment that holds `position`.
    fn packed_at(&self, position: GlobalOffset) -> Option<Arc<Packed>> {
        let packed = self.packed.load();
        let behind = packed.partition_point(|segment| segment.range().start <= position);
        let segment = behind.checked_sub(1).and_then(|index| packed.get(index))?;
        (position < segment.range().end).then(|| Arc::clone(segment))
    }
}

/// The store at one moment.
#[derive(Debug, Clone)]
pub struct BlockReader {
    shared: Arc<Shared>,
    view: Arc<View>,
    count: u32,
}

impl BlockReader {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let view = shared.view.load_full();
        let count = view.count();
        Self { shared: Arc::clone(shared), view, count }
    }

    /// A reader of what the store holds now.
    #[must_use]
    pub fn latest(&self) -> Self {
        Self::new(&self.shared)
    }

    /// The number of blocks: block numbers are below it.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The number of the block with this hash.
    pub fn number_of(&self, hash: &BlockHash) -> Result<Option<BlockNumber>> {
        let found = self.view.find(Tag::new(&self.shared.secret, hash), hash)?;
        Ok(found.filter(|number| number.get() < self.count.min(self.limit())))
    }

    /// The hash of a block.
    pub fn hash(&self, number: BlockNumber) -> Result<BlockHash> {
        self.check(number)?;
        self.view.hash(number)
    }

    /// What the index holds about a block: hash, header, length, number of transactions. Available
    /// even when the bytes are pruned.
    pub fn row(&self, number: BlockNumber) -> Result<BlockRow> {
        self.check(number)?;
        self.view.row(number)
    }

    /// The whole block.
    pub fn raw(&self, number: BlockNumber) -> Result<BlockBytes> {
        let row = self.row(number)?;
        self.read(number, &row, 0..row.length)
    }

    /// A range of the bytes of a block.
    pub fn slice(&self, number: BlockNumber, range: Range<u64>) -> Result<BlockBytes> {
        let row = self.row(number)?;
        if range.start > range.end || range.end > row.length {
            let Range { start, end } = range;
            return Err(Error::OutOfBlock { number, start, end, length: row.length });
        }
        self.read(number, &row, range)
    }

    /// One transaction of a block.
    pub fn tx(&self, number: BlockNumber, position: TxPosition) -> Result<BlockBytes> {
        let row = self.row(number)?;
        let range = self.range_of(number, &row, position)?;
        self.read(number, &row, range)
    }

    /// Where in its block a transaction lies.
    #[cfg(test)]
    pub(crate) fn tx_range(&self, number: BlockNumber, position: TxPosition) -> Result<Range<u64>> {
        let row = self.row(number)?;
        self.range_of(number, &row, position)
    }

    /// The first block whose bytes are held: all from there on are, and none before.
    pub fn first_held(&self) -> Result<BlockNumber> {
        self.view.first_at(self.shared.start())
    }

    fn range_of(
        &self,
        number: BlockNumber,
        row: &BlockRow,
        position: TxPosition,
    ) -> Result<Range<u64>> {
        if position.get() >= row.txs {
            return Err(Error::NoTransaction { number, position, txs: row.txs });
        }
        self.view.tx_offsets(number, row)?.range(position).ok_or_else(damaged_table)
    }

    /// Refuses numbers that this reader does not see.
    fn check(&self, number: BlockNumber) -> Result<()> {
        let count = self.count.min(self.limit());
        if number.get() < count { Ok(()) } else { Err(Error::Unknown { number, count }) }
    }

    /// How many of the blocks have not been truncated since the view was made.
    fn limit(&self) -> u32 {
        let cuts = self.shared.cuts.load();
        cuts.get(self.view.cuts..).unwrap_or_default().iter().copied().min().unwrap_or(u32::MAX)
    }

    /// Bytes of a block, `range` of which lies inside.
    fn read(&self, number: BlockNumber, row: &BlockRow, range: Range<u64>) -> Result<BlockBytes> {
        let payload = row.position.plus(FRAME_HEADER_LEN as u64);
        let wanted = payload.plus(range.start)..payload.plus(range.end);
        let found = self.read_held(number, row, wanted);
        // After the bytes were found, not before: see the module's doc.
        self.check(number)?;
        found
    }

    fn read_held(
        &self,
        number: BlockNumber,
        row: &BlockRow,
        wanted: Range<GlobalOffset>,
    ) -> Result<BlockBytes> {
        if let Some(packed) = self.shared.packed_at(row.position) {
            return packed.read(wanted).map(BlockBytes::owned);
        }
        match self.read_plain(number, row, &wanted) {
            Err(Error::Storage(IoError::OutOfRange { .. })) => {
                // No plain file holds it any longer. It was just packed, or pruned.
                match self.shared.packed_at(row.position) {
                    Some(packed) => packed.read(wanted).map(BlockBytes::owned),
                    None => Err(Error::Pruned { number }),
                }
            }
            found => found,
        }
    }

    fn read_plain(
        &self,
        number: BlockNumber,
        row: &BlockRow,
        wanted: &Range<GlobalOffset>,
    ) -> Result<BlockBytes> {
        if !self.view.verified.get(number) {
            self.verify(row)?;
            self.view.verified.set(number);
        }
        let length = wanted.end.get() - wanted.start.get();
        // An empty range may lie at the very end of the log, where nothing can be read.
        if length == 0 {
            return Ok(BlockBytes::owned(Vec::new()));
        }
        Ok(BlockBytes::mapped(self.shared.segments.bytes(wanted.start, length)?))
    }

    /// Compares a block's frame with its checksums and its row.
    fn verify(&self, row: &BlockRow) -> Result<()> {
        let length = row.length.saturating_add(FRAME_HEADER_LEN as u64);
        let frame = self.shared.segments.bytes(row.position, length)?;
        let payload = decode_frame(&frame, self.shared.store, row.position);
        let checked = payload.and_then(|block| {
            let same = block.len() as u64 == row.length && block.starts_with(&row.header);
            let what = "the block is not the one that the index says";
            if same { Ok(()) } else { Err(FormatError::Damaged { at: FRAME_HEADER_LEN, what }) }
        });
        checked.map_err(|error| {
            let (path, offset) = self.shared.segments.place(row.position).unwrap_or_default();
            error.in_file(&path, offset).into()
        })
    }
}
