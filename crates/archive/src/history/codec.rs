//! What the rows of the history are to `varve-runs`.
//!
//! Every row has a key of its own, so a page is found for any place within a script: the first 64
//! bits of the identity lead through the directory, and where a script fills several leaves their
//! first keys are kept whole. The rows of one key in several runs are added up by
//! [`Combine`](super::combine::Combine), not by a choice among them.

use varve_io::{Kind, PAGE_PAYLOAD_LEN};
use varve_runs::{Codec, Keys, LeafBuilder, LeafPlace, LeafWalk, Pages, Secret};

use super::error::HistoryError;
use super::identity::Identity;
use super::leaf::{self, Leaf, ROWS_MAX};
use super::row::{Key, Place, Row};

/// The rows of the history table.
#[derive(Debug)]
pub(super) struct History;

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
    type Builder = Builder;
    type Walk = Walk;
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

/// Gathers rows until a leaf is surely full.
#[derive(Debug)]
pub(super) struct Builder {
    rows: Vec<Row>,
    /// Rows at the front that are written.
    written: usize,
    payload: Vec<u8>,
}

impl Builder {
    fn write_leaf(&mut self, pages: &mut Pages<History>) -> Result<(), HistoryError> {
        let rows = self.rows.get(self.written..).unwrap_or_default();
        let rows = rows.get(..ROWS_MAX).unwrap_or(rows);
        self.payload.clear();
        let count = leaf::encode(rows, PAGE_PAYLOAD_LEN, &mut self.payload);
        let rows = rows.get(..count).unwrap_or_default();
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            let hashes = rows.iter().map(|row| History::hash(&(), &row.key));
            pages.leaf((first.key, last.key), &self.payload, hashes)?;
        }
        self.written += count;
        Ok(())
    }
}

impl LeafBuilder<History> for Builder {
    fn new(_: u64) -> Self {
        Self { rows: Vec::with_capacity(2 * ROWS_MAX), written: 0, payload: Vec::new() }
    }

    #[inline]
    fn push(&mut self, row: &&Row, _: u64, pages: &mut Pages<History>) -> Result<(), HistoryError> {
        if self.rows.last().is_some_and(|last| last.key >= row.key) {
            return Err(HistoryError::Order { row: row.key.to_string() });
        }
        self.rows.push(**row);
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

    fn finish(&mut self, pages: &mut Pages<History>) -> Result<(), HistoryError> {
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

impl LeafWalk<History> for Walk {
    fn enter(&mut self, payload: &[u8], at: LeafPlace<'_, History>) -> Result<(), HistoryError> {
        self.next = 0;
        let decoded = Leaf::parse(payload, 0).and_then(|leaf| leaf.decode(&mut self.rows));
        decoded.map_err(|error| at.error(error))
    }

    #[inline]
    fn next(&mut self, _: LeafPlace<'_, History>) -> Result<bool, HistoryError> {
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    #[inline]
    fn row(&self) -> Option<&Row> {
        self.rows.get(self.next.checked_sub(1)?)
    }
}
