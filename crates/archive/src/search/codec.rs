//! The row codec of search tables for `varve-runs`.
//!
//! The key is the fingerprint, and its rows may fill many leaves. There are no deletes and no row
//! is in two runs, so a merge keeps every row.

use varve_io::Kind;
use varve_runs::{Codec, Keys, LeafBuilder, LeafPlace, LeafWalk, Pages, Secret};

use super::error::SearchError;
use super::leaf::{self, Leaf, ROWS_MAX};
use super::row::{Fingerprint, Row};

/// The rows of a search table.
#[derive(Debug)]
pub(super) struct Search;

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
    type Builder = Builder;
    type Walk = Walk;
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

/// Gathers rows until a leaf is surely full.
#[derive(Debug)]
pub(super) struct Builder {
    rows: Vec<Row>,
    /// Rows at the front that are written.
    written: usize,
    payload: Vec<u8>,
}

impl Builder {
    fn write_leaf(&mut self, pages: &mut Pages<Search>) -> Result<(), SearchError> {
        let rows = self.rows.get(self.written..).unwrap_or_default();
        self.payload.clear();
        let count = leaf::encode(rows, &mut self.payload);
        let rows = rows.get(..count).unwrap_or_default();
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            let hashes = rows.iter().map(|row| Search::hash(&(), &row.fingerprint));
            pages.leaf((first.fingerprint, last.fingerprint), &self.payload, hashes)?;
        }
        self.written += count;
        Ok(())
    }
}

impl LeafBuilder<Search> for Builder {
    fn new(_: u64) -> Self {
        Self { rows: Vec::with_capacity(2 * ROWS_MAX), written: 0, payload: Vec::new() }
    }

    #[inline]
    fn push(&mut self, row: &Row, _: u64, pages: &mut Pages<Search>) -> Result<(), SearchError> {
        if self.rows.last().is_some_and(|last| last.key() >= row.key()) {
            return Err(SearchError::Order { row: *row });
        }
        self.rows.push(*row);
        if self.rows.len() < 2 * ROWS_MAX {
            return Ok(());
        }
        while self.rows.len() - self.written >= ROWS_MAX {
            self.write_leaf(pages)?;
        }
        self.rows.drain(..self.written);
        self.written = 0;
        Ok(())
    }

    fn finish(&mut self, pages: &mut Pages<Search>) -> Result<(), SearchError> {
        while self.written < self.rows.len() {
            self.write_leaf(pages)?;
        }
        Ok(())
    }
}

/// The rows of the leaf in which a cursor stands.
#[derive(Debug, Default)]
pub(super) struct Walk {
    rows: Vec<Row>,
    /// The row after the one it stands at.
    next: usize,
}

impl LeafWalk<Search> for Walk {
    fn enter(&mut self, payload: &[u8], at: LeafPlace<'_, Search>) -> Result<(), SearchError> {
        self.next = 0;
        let decoded = Leaf::parse(payload).and_then(|leaf| leaf.decode(&mut self.rows));
        decoded.map_err(|error| at.error(error))
    }

    #[inline]
    fn next(&mut self, _: LeafPlace<'_, Search>) -> Result<bool, SearchError> {
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    #[inline]
    fn row(&self) -> Option<Row> {
        self.rows.get(self.next.checked_sub(1)?).copied()
    }
}
