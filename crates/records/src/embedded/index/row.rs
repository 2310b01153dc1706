//! A row of a run: a version that lies in no list, or the end of one.
//!
//! ```text
//!  one number of 128 bits, little-endian
//!  127      88 87             34   33       32      31     0
//!  ┌──────────┬─────────────────┬────────┬────────┬────────┐
//!  │ place    │ position in log │ record │ delete │ weight │
//!  │ 40 bits  │ 54 bits         │ 1 bit  │ 1 bit  │ u32    │
//!  └──────────┴─────────────────┴────────┴────────┴────────┘
//! ```
//!
//! Rows are in the order of place and position, which is the order of the numbers. `record` is set
//! for a record and not for a chunk of one; the weight of a delete is 0.
//!
//! **Merging.** Place and position name a version for ever. An add and a delete of the same one
//! cancel; a delete alone waits for the run that has its add. When nothing older is left, there is
//! nothing it could wait for, and the index is damaged.

#![expect(clippy::cast_possible_truncation, reason = "fields are cut from a wider number")]

use varve_io::{GlobalOffset, Kind};
use varve_runs::{Codec, Keys, RunError, Secret};
use varve_types::mix64;

use super::leaf::{RowLeaf, RowWalk};
use crate::embedded::key::{PLACE_BITS, Place};

/// The bytes of a row.
pub(super) const ROW_LEN: usize = size_of::<u128>();

const POSITION_BITS: u32 = 54;
const DELETE: u128 = 1 << 32;
const RECORD: u128 = 1 << 33;
const POSITION_AT: u32 = 34;
const PLACE_AT: u32 = POSITION_AT + POSITION_BITS;
const _: () = assert!(PLACE_AT + PLACE_BITS == u128::BITS);

/// One row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::embedded) struct Row(u128);

impl Row {
    /// A version of a key.
    pub(super) const fn add(place: Place, at: GlobalOffset, weight: u32, record: bool) -> Self {
        let record = if record { RECORD } else { 0 };
        Self(Self::name(place, at) << POSITION_AT | record | weight as u128)
    }

    /// The end of one.
    pub(super) const fn delete(place: Place, at: GlobalOffset) -> Self {
        Self(Self::name(place, at) << POSITION_AT | DELETE)
    }

    const fn name(place: Place, at: GlobalOffset) -> u128 {
        (place.bits() as u128) << POSITION_BITS | (at.get() & ((1 << POSITION_BITS) - 1)) as u128
    }

    /// The least number that a row of this place may have.
    pub(super) const fn least(place: Place) -> u128 {
        (place.bits() as u128) << PLACE_AT
    }

    pub(super) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(super) const fn bits(self) -> u128 {
        self.0
    }

    /// Place and position: what rows are ordered by.
    pub(in crate::embedded) const fn order(self) -> u128 {
        self.0 >> POSITION_AT
    }

    pub(in crate::embedded) const fn place(self) -> Place {
        Place::from_bits((self.0 >> PLACE_AT) as u64)
    }

    /// Where the version lies.
    pub(in crate::embedded) const fn at(self) -> GlobalOffset {
        GlobalOffset::new((self.0 >> POSITION_AT) as u64 & ((1 << POSITION_BITS) - 1))
    }

    /// Bytes of the log that it needs.
    pub(in crate::embedded) const fn weight(self) -> u32 {
        self.0 as u32
    }

    /// It is a record, not a chunk of one.
    pub(in crate::embedded) const fn is_record(self) -> bool {
        self.0 & RECORD != 0
    }

    pub(super) const fn is_delete(self) -> bool {
        self.0 & DELETE != 0
    }
}

/// Rows of the index, as `varve_runs` sees them.
#[derive(Debug)]
pub(in crate::embedded) struct RowCodec;

/// Why a run cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(in crate::embedded) enum RowError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// A version died that no run has.
    #[error(
        "the runs of the index delete a version at {at} of the log that none of them has; restore \
         the records from a copy"
    )]
    Lost { at: GlobalOffset },
    /// A row does not follow the one before it.
    #[error("a row of the index at {at} of the log comes out of order")]
    Order { at: GlobalOffset },
}

impl From<varve_io::Error> for RowError {
    fn from(error: varve_io::Error) -> Self {
        Self::Run(error.into())
    }
}

/// For callers that also read the log.
impl From<RowError> for varve_io::Error {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Run(RunError::Storage(error)) => error,
            error => Self::Poisoned { cause: error.to_string().into() },
        }
    }
}

impl Codec for RowCodec {
    const KIND: Kind = Kind(*b"RECRUN1\0");
    const REPEATS: bool = true;
    type Order = u128;
    type Row<'a> = Row;
    type Hasher = ();
    type Builder = RowLeaf;
    type Walk = RowWalk;
    type Error = RowError;

    fn hasher(_: Secret) {}

    /// Places are bits of a keyed hash; mixing them is enough.
    fn hash((): &(), key: &Place) -> u64 {
        mix64(key.bits())
    }

    fn key(row: &Row) -> Place {
        row.place()
    }

    fn order(row: &Row) -> u128 {
        row.order()
    }

    fn is_delete(row: &Row) -> bool {
        row.is_delete()
    }

    fn settle<'a>(
        rows: impl Iterator<Item = (usize, Self::Row<'a>)>,
        whole: bool,
    ) -> Result<Option<usize>, RowError> {
        let (mut add, mut delete) = (None, None);
        for (source, row) in rows {
            *(if row.is_delete() { &mut delete } else { &mut add }) = Some((source, row.at()));
        }
        match (add, delete) {
            (Some(_), Some(_)) | (None, None) => Ok(None),
            (Some((source, _)), None) => Ok(Some(source)),
            (None, Some((_, at))) if whole => Err(RowError::Lost { at }),
            (None, Some((source, _))) => Ok(Some(source)),
        }
    }
}

impl Keys for RowCodec {
    type Key = Place;
    const KEY_LEN: usize = 8;
    const IS_PREFIX: bool = true;

    fn prefix(place: &Place) -> u64 {
        place.bits() << (u64::BITS - PLACE_BITS)
    }

    fn encode_key(place: &Place, out: &mut Vec<u8>) {
        out.extend_from_slice(&place.bits().to_le_bytes());
    }

    fn decode_key(bytes: &[u8]) -> Option<Place> {
        let bits = u64::from_le_bytes(*bytes.first_chunk()?);
        (bits >> PLACE_BITS == 0).then(|| Place::from_bits(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: GlobalOffset = GlobalOffset::new((1 << POSITION_BITS) - 1);

    #[test]
    fn a_row_gives_its_fields_back() {
        let place = Place::new(255, 0xdead_beef);
        let row = Row::add(place, AT, u32::MAX, true);
        assert_eq!((row.place(), row.at(), row.weight()), (place, AT, u32::MAX));
        assert!(row.is_record() && !row.is_delete());
        let delete = Row::delete(place, AT);
        assert_eq!((delete.place(), delete.at(), delete.weight()), (place, AT, 0));
        assert!(delete.is_delete() && !delete.is_record());
        assert_eq!(row.order(), delete.order());
    }

    #[test]
    fn rows_are_in_the_order_of_place_and_position() {
        let [a, b] = [Place::new(1, 7), Place::new(2, 3)];
        let rows = [
            Row::add(a, GlobalOffset::new(5), 9, true),
            Row::delete(a, GlobalOffset::new(6)),
            Row::add(b, GlobalOffset::ZERO, 1, false),
        ];
        assert!(rows.iter().map(|row| row.order()).is_sorted());
        assert!(rows.iter().map(|row| row.bits()).is_sorted());
        assert!(Row::least(b) > rows[1].bits() && Row::least(b) <= rows[2].bits());
    }

    #[test]
    fn an_add_and_a_delete_cancel_and_a_delete_alone_waits() {
        let place = Place::new(0, 1);
        let add = Row::add(place, AT, 1, true);
        let delete = Row::delete(place, AT);
        let settle = |rows: &[Row], whole| {
            RowCodec::settle(rows.iter().copied().enumerate(), whole).map_err(|e| e.to_string())
        };
        assert_eq!(settle(&[delete, add], true), Ok(None));
        assert_eq!(settle(&[add], true), Ok(Some(0)));
        assert_eq!(settle(&[delete], false), Ok(Some(0)));
        assert!(settle(&[delete], true).unwrap_err().contains("restore"));
    }
}
