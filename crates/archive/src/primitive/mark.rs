//! What a checkpoint says about one table: 60 bytes for the owner's manifest.
//!
//! ```text
//!  0          8         12        20        28         32       36        44       52      60
//!  ┌──────────┬─────────┬─────────┬─────────┬──────────┬────────┬─────────┬────────┬───────┐
//!  │ body end │ tail crc│ length  │ linked  │ buckets  │ load   │ epoch   │ pages  │ redo  │
//!  │ u64      │ u32     │ u64     │ u64     │ u32      │ u32    │ u64     │ u64    │ u64   │
//!  └──────────┴─────────┴─────────┴─────────┴──────────┴────────┴─────────┴────────┴───────┘
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | body end, tail crc | how far the body is durable (`LogCheckpoint` of `io`) |
//! | length | the cells of an array; the rows of a slab map |
//! | linked | the rows that the saved head knows; opening relinks those after it |
//! | buckets, load | the geometry of a hash head, fixed when the table is made |
//! | epoch, pages, redo | the saved cells: when, how many pages, how many of them by redo |
//!
//! Fields that a table does not use are zero.

use varve_io::LogCheckpoint;

use super::cells::CellsMark;
use super::head::Geometry;

/// A table at a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub(crate) log: LogCheckpoint,
    pub(crate) len: u64,
    pub(crate) linked: u64,
    pub(crate) geometry: Geometry,
    pub(crate) cells: CellsMark,
}

const END_AT: usize = 0;
const LEN_AT: usize = END_AT + LogCheckpoint::LEN;
const LINKED_AT: usize = LEN_AT + size_of::<u64>();
const BUCKETS_AT: usize = LINKED_AT + size_of::<u64>();
const LOAD_AT: usize = BUCKETS_AT + size_of::<u32>();
const EPOCH_AT: usize = LOAD_AT + size_of::<u32>();
const PAGES_AT: usize = EPOCH_AT + size_of::<u64>();
const REDO_AT: usize = PAGES_AT + size_of::<u64>();
const _: () = assert!(REDO_AT + size_of::<u64>() == Mark::LEN && Mark::LEN == 60);

impl Mark {
    /// The length of a mark in bytes.
    pub const LEN: usize = 60;

    /// The mark of a table that does not exist yet.
    pub const NEW: Self = Self {
        log: LogCheckpoint::NEW,
        len: 0,
        linked: 0,
        geometry: Geometry { buckets: 0, load: 0 },
        cells: CellsMark { epoch: 0, pages: 0, redo: 0 },
    };

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            let (place, behind) = std::mem::take(&mut rest).split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = behind;
        };
        put(&self.log.encode());
        put(&self.len.to_le_bytes());
        put(&self.linked.to_le_bytes());
        put(&self.geometry.buckets.to_le_bytes());
        put(&self.geometry.load.to_le_bytes());
        put(&self.cells.epoch.to_le_bytes());
        put(&self.cells.pages.to_le_bytes());
        put(&self.cells.redo.to_le_bytes());
        bytes
    }

    /// Inverse of [`Mark::encode`]. The manifest's checksum protects it.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            log: LogCheckpoint::decode(field(bytes, END_AT)),
            len: u64::from_le_bytes(field(bytes, LEN_AT)),
            linked: u64::from_le_bytes(field(bytes, LINKED_AT)),
            geometry: Geometry {
                buckets: u32::from_le_bytes(field(bytes, BUCKETS_AT)),
                load: u32::from_le_bytes(field(bytes, LOAD_AT)),
            },
            cells: CellsMark {
                epoch: u64::from_le_bytes(field(bytes, EPOCH_AT)),
                pages: u64::from_le_bytes(field(bytes, PAGES_AT)),
                redo: u64::from_le_bytes(field(bytes, REDO_AT)),
            },
        }
    }

    /// The geometry of the table: its own, or the one `configured` when it does not exist yet.
    pub(crate) fn geometry(&self, configured: Geometry) -> Geometry {
        if self.geometry.is_sound() { self.geometry } else { configured }
    }
}

fn field<const N: usize>(bytes: &[u8; Mark::LEN], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    *found.expect("the fields lie inside the mark, asserted above")
}

#[cfg(test)]
mod tests {
    use varve_io::GlobalOffset;

    use super::*;

    #[test]
    fn a_mark_comes_back_field_by_field() {
        let mark = Mark {
            log: LogCheckpoint { end: GlobalOffset::new(1), tail_crc: 2 },
            len: 3,
            linked: 4,
            geometry: Geometry { buckets: 5, load: 6 },
            cells: CellsMark { epoch: 7, pages: 8, redo: 9 },
        };
        let bytes = mark.encode();
        assert_eq!(Mark::decode(&bytes), mark);
        let places = [0, 8, 12, 20, 28, 32, 36, 44, 52].map(|at| bytes[at]);
        assert_eq!(places, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(Mark::decode(&Mark::NEW.encode()), Mark::NEW);
    }
}
