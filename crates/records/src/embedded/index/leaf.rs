//! A leaf: a page of rows, as many as it holds.
//!
//! ```text
//!  0        4                  20                 36
//!  ┌────────┬──────────────────┬──────────────────┬─ ─ ┬────────┐
//!  │ count  │ row, 16          │ row, 16          │    │ zeroes │
//!  │ u32    │ as in `row`      │                  │    │        │
//!  └────────┴──────────────────┴──────────────────┴─ ─ ┴────────┘
//! ```
//!
//! Rows have one width, so a search halves the page without decoding it. Rows of one place may go
//! on in the next leaf.

use varve_io::{FormatError, PAGE_PAYLOAD_LEN};
use varve_runs::{LeafBuilder, LeafPlace, LeafWalk, Pages};

use super::row::{ROW_LEN, Row, RowCodec, RowError};
use crate::embedded::key::Place;

const COUNT_LEN: usize = size_of::<u32>();
/// Rows of a full leaf.
const ROWS_MAX: usize = (PAGE_PAYLOAD_LEN - COUNT_LEN) / ROW_LEN;
const _: () = assert!(ROWS_MAX == 255);

/// The rows of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf<'a> {
    rows: &'a [[u8; ROW_LEN]],
}

impl<'a> Leaf<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let wrong = |what| FormatError::Damaged { at: 0, what };
        let (count, rows) =
            payload.split_first_chunk().ok_or(wrong("a leaf of the index is cut short"))?;
        let count = usize::try_from(u32::from_le_bytes(*count)).unwrap_or(usize::MAX);
        let (rows, _) = rows.as_chunks();
        let rows = rows.get(..count).filter(|rows| !rows.is_empty());
        Ok(Self { rows: rows.ok_or(wrong("a leaf of the index has a wrong count"))? })
    }

    /// All rows, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> + use<'a> {
        self.rows.iter().map(decode)
    }

    /// The rows of a place.
    pub(super) fn at(&self, place: Place) -> impl Iterator<Item = Row> + use<'a> {
        let least = Row::least(place);
        let from = self.rows.partition_point(|row| u128::from_le_bytes(*row) < least);
        let rows = self.rows.get(from..).unwrap_or_default().iter();
        rows.map(decode).take_while(move |row| row.place() == place)
    }
}

fn decode(bytes: &[u8; ROW_LEN]) -> Row {
    Row::from_bits(u128::from_le_bytes(*bytes))
}

/// Appends the payload of a leaf with these rows, at most [`ROWS_MAX`].
pub(super) fn encode(rows: impl ExactSizeIterator<Item = Row>, payload: &mut Vec<u8>) {
    assert!(rows.len() <= ROWS_MAX, "a leaf is one page");
    let count = u32::try_from(rows.len()).expect("a page has few rows");
    payload.extend_from_slice(&count.to_le_bytes());
    rows.for_each(|row| payload.extend_from_slice(&row.bits().to_le_bytes()));
}

/// A leaf being filled.
#[derive(Debug)]
pub(in crate::embedded) struct RowLeaf {
    rows: Vec<Row>,
    hashes: Vec<u64>,
    /// The last row of the leaf before.
    last: Option<Row>,
    payload: Vec<u8>,
}

impl LeafBuilder<RowCodec> for RowLeaf {
    fn new(_expected: u64) -> Self {
        let (rows, hashes) = (Vec::with_capacity(ROWS_MAX), Vec::with_capacity(ROWS_MAX));
        Self { rows, hashes, last: None, payload: Vec::with_capacity(PAGE_PAYLOAD_LEN) }
    }

    fn push(&mut self, row: &Row, hash: u64, pages: &mut Pages<RowCodec>) -> Result<(), RowError> {
        if self.last.is_some_and(|last| last.order() >= row.order()) {
            return Err(RowError::Order { at: row.at() });
        }
        if self.rows.len() == ROWS_MAX {
            self.finish(pages)?;
        }
        self.last = Some(*row);
        self.rows.push(*row);
        self.hashes.push(hash);
        Ok(())
    }

    fn finish(&mut self, pages: &mut Pages<RowCodec>) -> Result<(), RowError> {
        let [first, .., last] = self.rows.as_slice() else {
            let Some(only) = self.rows.first().copied() else { return Ok(()) };
            return self.write((only.place(), only.place()), pages);
        };
        let keys = (first.place(), last.place());
        self.write(keys, pages)
    }
}

impl RowLeaf {
    fn write(&mut self, keys: (Place, Place), pages: &mut Pages<RowCodec>) -> Result<(), RowError> {
        self.payload.clear();
        encode(self.rows.drain(..), &mut self.payload);
        pages.leaf(keys, &self.payload, self.hashes.drain(..))
    }
}

/// Goes through the rows of one leaf after the other.
#[derive(Debug, Default)]
pub(in crate::embedded) struct RowWalk {
    rows: Vec<Row>,
    /// The place behind the row it stands at.
    next: usize,
}

impl LeafWalk<RowCodec> for RowWalk {
    fn enter(&mut self, payload: &[u8], at: LeafPlace<'_, RowCodec>) -> Result<(), RowError> {
        let leaf = Leaf::parse(payload).map_err(|error| at.error(error))?;
        self.rows.clear();
        self.rows.extend(leaf.rows());
        self.next = 0;
        Ok(())
    }

    fn next(&mut self, _: LeafPlace<'_, RowCodec>) -> Result<bool, RowError> {
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    fn row(&self) -> Option<Row> {
        self.rows.get(self.next.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use varve_io::GlobalOffset;

    use super::*;

    fn page(rows: &[Row], count: u32) -> Vec<u8> {
        let mut payload = count.to_le_bytes().to_vec();
        rows.iter().for_each(|row| payload.extend_from_slice(&row.bits().to_le_bytes()));
        payload.resize(PAGE_PAYLOAD_LEN, 0);
        payload
    }

    #[test]
    fn a_leaf_finds_all_rows_of_a_place() {
        let row = |tag, at| Row::add(Place::new(3, tag), GlobalOffset::new(at), 7, true);
        let rows = [row(1, 9), row(5, 2), row(5, 4), row(5, 8), row(6, 1)];
        let payload = page(&rows, 5);
        let leaf = Leaf::parse(&payload).unwrap();
        let at = |shard, tag| leaf.at(Place::new(shard, tag)).collect::<Vec<_>>();
        assert_eq!(at(3, 5), rows[1..4]);
        assert_eq!(at(3, 1), rows[..1]);
        assert_eq!(at(3, 6), rows[4..]);
        for (shard, tag) in [(3, 0), (3, 2), (3, 7), (2, 5), (4, 5)] {
            assert_eq!(at(shard, tag), []);
        }
    }

    #[test]
    fn a_wrong_count_is_damage() {
        let row = Row::delete(Place::new(0, 0), GlobalOffset::ZERO);
        for count in [0, 256, u32::MAX] {
            assert!(Leaf::parse(&page(&[row], count)).is_err(), "{count}");
        }
        assert!(Leaf::parse(&[1, 0, 0]).is_err());
        assert!(Leaf::parse(&page(&[row], 255)).is_ok());
    }
}
