//! The head of a hash table: buckets that hold the top of a chain of rows, and a small filter.
//!
//! ```text
//!  cell  63                LINK_BITS              0
//!        ┌─────────────────┬──────────────────────┐     all ones: no row, nothing in the filter
//!        │ filter, inverted│ link of the top row  │
//!        └─────────────────┴──────────────────────┘
//! ```
//!
//! **Chains.** A row holds the link that was in its bucket before it, so a bucket is a stack: the
//! newest row first. A push writes the old link into the new row, which is not reachable yet, and
//! exchanges the cell; if another push was faster, it retries.
//!
//! **Filter.** The bits above the link, M of them, are a Bloom filter of the keys in the bucket,
//! with K = ⌊log2 M⌋ bits a key. Bits are stored inverted: a key *clears* its bits. A lookup that
//! fails the filter reads no row.
//!
//! **Generations.** A head grows without moving a row, because links are part of immutable rows.
//! The number of a row decides its generation once and for all:
//!
//! ```text
//!  generation   buckets      rows                             cells of the head
//!  0            n            0 … load·n − 1                   0 … n − 1
//!  1            2n           load·n … 3·load·n − 1            n … 3n − 1
//!  g            2^g·n        load·n·(2^g − 1) …               n·(2^g − 1) …
//! ```
//!
//! A lookup probes the generations from the newest to the oldest. Half of all rows are in the
//! newest full one, a quarter in the one before, so a row that exists is found after two cells on
//! average; one that does not exist costs one cell a generation, and the filter avoids the rest.
//! Growing only starts to use new cells: no reader can miss a row, and no writer waits.

use super::cells::{Cell, Cells, EMPTY};
use super::error::Result;

/// The buckets of a head's first generation, and the rows a bucket holds on average when its
/// generation is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The buckets of the first generation, at least one.
    pub buckets: u32,
    /// Rows a bucket, at least one.
    pub load: u32,
}

impl Geometry {
    /// A head that holds `rows` rows in its first generation, four a bucket.
    #[must_use]
    pub fn for_rows(rows: u32) -> Self {
        let load = 4;
        Self { buckets: rows.div_ceil(load).max(1), load }
    }

    pub(crate) const fn is_sound(self) -> bool {
        self.buckets > 0 && self.load > 0
    }

    /// The rows of the first generation.
    fn first(self) -> u64 {
        u64::from(self.buckets) * u64::from(self.load)
    }

    /// The generation of row `number`.
    pub(crate) fn generation(self, number: u64) -> u32 {
        (number / self.first() + 1).ilog2()
    }

    /// The cells of a head of `rows` rows.
    pub(crate) fn cells(self, rows: u64) -> u64 {
        rows.checked_sub(1).map_or(0, |last| self.start(self.generation(last) + 1))
    }

    /// The cell of a hash in a generation.
    #[inline]
    pub(crate) fn cell(self, generation: u32, hash: u64) -> u64 {
        let buckets = u128::from(u64::from(self.buckets) << generation);
        let bucket = ((u128::from(hash) * buckets) >> 64) as u64;
        self.start(generation) + bucket
    }

    /// The first cell of a generation.
    #[inline]
    fn start(self, generation: u32) -> u64 {
        u64::from(self.buckets) * ((1 << generation) - 1)
    }
}

/// The bits of a hash in a filter of `64 - LINK_BITS` bits, at the place of the filter in a cell.
#[inline]
fn filter<const LINK_BITS: u32>(hash: u64) -> u64 {
    let width = u64::BITS - LINK_BITS;
    let bytes = hash.to_le_bytes();
    let chosen = bytes.iter().take(width.ilog2() as usize);
    chosen.fold(0, |bits, byte| bits | 1 << (LINK_BITS + ((u32::from(*byte) * width) >> 8)))
}

/// The cells of a hash table, read as tops of chains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a, const LINK_BITS: u32> {
    pub(crate) cells: &'a Cells,
    pub(crate) geometry: Geometry,
}

impl<'a, const LINK_BITS: u32> Head<'a, LINK_BITS> {
    const LINK: u64 = (1 << LINK_BITS) - 1;
    /// The link that ends every chain.
    pub(crate) const TERMINAL: u64 = Self::LINK;

    /// The tops of the chains that may hold a key with this hash, newest generation first, in a
    /// table of `rows` rows.
    #[inline]
    pub(crate) fn tops(self, hash: u64, rows: u64) -> impl Iterator<Item = Result<u64>> + 'a {
        let generations = rows.checked_sub(1).map_or(0, |last| self.geometry.generation(last) + 1);
        let wanted = filter::<LINK_BITS>(hash);
        (0..generations).rev().filter_map(move |generation| {
            match self.cells.get(self.geometry.cell(generation, hash)) {
                Ok(EMPTY) => None,
                Ok(cell) => (cell & wanted == 0).then_some(Ok(cell & Self::LINK)),
                Err(error) => Some(Err(error)),
            }
        })
    }

    /// The cell that row `number` with this hash goes to.
    #[inline]
    pub(crate) fn cell(self, number: u64, hash: u64) -> Result<Cell<'a>> {
        self.cells.touch(self.geometry.cell(self.geometry.generation(number), hash))
    }

    /// Makes `link` the top of a cell's chain. `set_next` gets the link below it, several times
    /// when pushes race; the last one counts.
    #[inline]
    pub(crate) fn push(cell: Cell<'_>, hash: u64, link: u64, set_next: impl Fn(u64)) {
        let mut old = cell.load();
        loop {
            set_next(old & Self::LINK);
            let filter = old & !Self::LINK & !filter::<LINK_BITS>(hash);
            match cell.exchange(old, filter | link) {
                Ok(()) => return,
                Err(found) => old = found,
            }
        }
    }

    /// The link on top of the chain in a cell with this value.
    pub(crate) const fn link(cell: u64) -> u64 {
        cell & Self::LINK
    }
}
