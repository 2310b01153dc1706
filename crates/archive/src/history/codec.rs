//! What the rows of the history are to `varve-runs`.
//!
//! Every row has a key of its own, so a page is found for any place within a script: the first 64
//! bits of the identity lead through the directory, and where a script fills several leaves their
//! first keys are kept whole. The rows of one key in several runs are added up by
//! [`Combine`], not by a choice among them.

use varve_io::{FormatError, Kind, PAGE_PAYLOAD_LEN};
use varve_runs::{Codec, Cursor, Keys, Secret};

use super::combine::{Combine, combine};
use super::error::HistoryError;
use super::identity::Identity;
use super::leaf::{self, Leaf, ROWS_MAX};
use super::row::{Key, Place, Row};
use crate::layers::Layered;
use crate::leaf_rows::{Gather, LeafRows, WholeLeaves};

/// The rows of the history table.
#[derive(Debug)]
pub(crate) struct History;

const IDENTITY_LEN: usize = 10;
const PLACE_LEN: usize = size_of::<u128>();

impl Keys for History {
    type Key = Key;
    const KEY_LEN: usize = IDENTITY_LEN + PLACE_LEN;
    const IS_PREFIX: bool = false;

    #[inline]
    fn prefix(key: &Key) -> u64 {
        key.identity.prefix()
    }

    fn encode_key(key: &Key, out: &mut Vec<u8>) {
        let identity = key.identity.bits().to_le_bytes();
        out.extend_from_slice(identity.get(..IDENTITY_LEN).unwrap_or_default());
        out.extend_from_slice(&key.place.0.to_le_bytes());
    }

    fn decode_key(bytes: &[u8]) -> Option<Key> {
        let (identity, place) = bytes.split_at_checked(IDENTITY_LEN)?;
        let bits = identity.iter().rev().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        let place = Place(u128::from_le_bytes(place.try_into().ok()?));
        Some(Key { identity: Identity::from_bits(bits)?, place })
    }
}

impl Codec for History {
    const KIND: Kind = Kind(*b"HISTRYRN");
    const REPEATS: bool = false;

    type Order = Key;
    type Row<'a> = &'a Row;
    type Hasher = ();
    type Builder = Gather<Self>;
    type Walk = LeafRows<Self>;
    type Error = HistoryError;

    fn hasher(_: Secret) {}

    /// An identity is a keyed hash already; all rows of a script have one hash.
    #[inline]
    fn hash((): &(), key: &Key) -> u64 {
        let hash =
            (key.identity.prefix() ^ key.identity.check()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash ^ hash >> 32
    }

    #[inline]
    fn key(row: &&Row) -> Key {
        row.key
    }

    #[inline]
    fn order(row: &&Row) -> Key {
        row.key
    }

    #[inline]
    fn is_delete(row: &&Row) -> bool {
        row.weight() < 0
    }

    /// Rows that meet are added up by `combine`, which this table's merges use in place of a choice
    /// of one of them.
    #[inline]
    fn settle<'a>(
        mut rows: impl Iterator<Item = (usize, &'a Row)>,
        _: bool,
    ) -> Result<Option<usize>, HistoryError> {
        Ok(rows.next().map(|(source, _)| source))
    }
}

impl WholeLeaves for History {
    type Owned = Row;
    const ROWS_MAX: usize = ROWS_MAX;

    #[inline]
    fn own(row: &&Row) -> Row {
        **row
    }

    #[inline]
    fn lend(row: &Row) -> &Row {
        row
    }

    fn encode(rows: &[Row], out: &mut Vec<u8>) -> usize {
        leaf::encode(rows.get(..ROWS_MAX).unwrap_or(rows), PAGE_PAYLOAD_LEN, out)
    }

    fn decode(payload: &[u8], out: &mut Vec<Row>) -> Result<(), FormatError> {
        Leaf::parse(payload, 0)?.decode(out)
    }

    fn out_of_order(row: &Row) -> HistoryError {
        HistoryError::Order { row: row.key.to_string() }
    }
}

impl Layered for History {
    type Merged = Combine<Cursor<Self>>;

    fn merged(cursors: Vec<Cursor<Self>>) -> Result<Self::Merged, HistoryError> {
        combine(cursors)
    }
}
