//! The row codec of search tables for `varve-runs`.
//!
//! The key is the fingerprint, and its rows may fill many leaves. There are no deletes and no row
//! is in two runs, so a merge keeps every row.

use varve_io::{FormatError, Kind};
use varve_runs::{Codec, Cursor, Keys, Merge, RunInfo, Secret};

use super::error::SearchError;
use super::leaf::{self, Leaf, ROWS_MAX};
use super::row::{Fingerprint, Row};
use super::table::chain_len;
use crate::layers::Layered;
use crate::leaf_rows::{Gather, LeafRows, WholeLeaves};

/// The rows of a search table.
#[derive(Debug)]
pub(crate) struct Search;

impl Keys for Search {
    type Key = Fingerprint;
    const KEY_LEN: usize = size_of::<u64>();
    const IS_PREFIX: bool = true;

    /// The fingerprint at the top, so that it is spread over all numbers.
    #[inline]
    fn prefix(key: &Fingerprint) -> u64 {
        key.bits() << (u64::BITS - Fingerprint::BITS)
    }

    fn encode_key(key: &Fingerprint, out: &mut Vec<u8>) {
        out.extend_from_slice(&Self::prefix(key).to_le_bytes());
    }

    fn decode_key(bytes: &[u8]) -> Option<Fingerprint> {
        let prefix = u64::from_le_bytes(bytes.try_into().ok()?);
        let key = Fingerprint::new(prefix);
        (Self::prefix(&key) == prefix).then_some(key)
    }
}

impl Codec for Search {
    const KIND: Kind = Kind(*b"SEARCHRN");
    const REPEATS: bool = true;

    type Order = u128;
    type Row<'a> = Row;
    type Hasher = ();
    type Builder = Gather<Self>;
    type Walk = LeafRows<Self>;
    type Error = SearchError;

    fn hasher(_: Secret) {}

    /// A fingerprint is a keyed hash already; its bits only have to be spread over 64.
    #[inline]
    fn hash((): &(), key: &Fingerprint) -> u64 {
        let hash = key.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash ^ hash >> 32
    }

    #[inline]
    fn key(row: &Row) -> Fingerprint {
        row.fingerprint
    }

    #[inline]
    fn order(row: &Row) -> u128 {
        row.key()
    }

    #[inline]
    fn settle<'a>(
        mut rows: impl Iterator<Item = (usize, Self::Row<'a>)>,
        _: bool,
    ) -> Result<Option<usize>, SearchError> {
        Ok(rows.next().map(|(source, _)| source))
    }
}

impl WholeLeaves for Search {
    type Owned = Row;
    const ROWS_MAX: usize = ROWS_MAX;

    #[inline]
    fn own(row: &Row) -> Row {
        *row
    }

    #[inline]
    fn lend(row: &Row) -> Row {
        *row
    }

    fn encode(rows: &[Row], out: &mut Vec<u8>) -> usize {
        leaf::encode(rows, out)
    }

    fn decode(payload: &[u8], out: &mut Vec<Row>) -> Result<(), FormatError> {
        Leaf::parse(payload)?.decode(out)
    }

    fn out_of_order(row: &Row) -> SearchError {
        SearchError::Order { row: *row }
    }
}

/// The runs of stale branches lie behind those of the chain.
impl Layered for Search {
    type Merged = Merge<Self, Cursor<Self>>;

    fn merged(cursors: Vec<Cursor<Self>>) -> Result<Self::Merged, SearchError> {
        Merge::new(cursors, true)
    }

    fn layer_count(runs: &[RunInfo]) -> usize {
        chain_len(runs)
    }
}
