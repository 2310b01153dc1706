//! What a store supplies: its rows, their order, and their bytes in a page.
//!
//! A run is a file of *leaves*, pages of rows in order. Everything around the rows is the same for
//! every store; a [`Codec`] says what a row is:
//!
//! ```text
//!  rows in order ─► LeafBuilder ─► Pages ─► file ─► Query ─► payload ─► the store's own search
//!                                             └───► Cursor ─► LeafWalk ─► rows in order
//! ```
//!
//! - A *key* is what is searched for ([`Keys`]). Its *prefix*, 8 bytes, leads through the
//!   directory.
//! - A [`LeafBuilder`] fills pages and hands them to [`Pages`].
//! - A [`LeafWalk`] walks the rows of a page, for merges and scans. Lookups do not use it: the
//!   store joins keys and pages itself, in whatever stages suit its leaves.
//!
//! All of it is resolved at compile time: a row costs no call through a pointer.

use std::fmt::Debug;

use varve_io::Kind;

use crate::leaf_place::LeafPlace;
use crate::pages::Pages;
use crate::run_error::RunError;
use crate::secret::Secret;

/// What is searched for: all that directories and filters know about a store.
pub trait Keys: Debug + Send + Sync + 'static {
    /// A key; equal keys have equal bytes.
    type Key: Copy + Debug + Ord + Send + Sync;
    /// The length of a key in bytes.
    const KEY_LEN: usize;
    /// Whether the prefix is the whole key, so that keys with equal prefixes are equal.
    const IS_PREFIX: bool;

    /// The first 8 bytes of a key as a number, ordered as the keys are.
    fn prefix(key: &Self::Key) -> u64;

    /// Appends the bytes of a key, [`Keys::KEY_LEN`] of them.
    fn encode_key(key: &Self::Key, out: &mut Vec<u8>);

    /// The key with these bytes; `None` when they are not [`Keys::KEY_LEN`] bytes of a key.
    fn decode_key(bytes: &[u8]) -> Option<Self::Key>;
}

/// What the rows of a store are.
pub trait Codec: Keys + Sized {
    /// The kind in the header of a run's page file.
    const KIND: Kind;
    /// Whether the rows of one key may fill more than one leaf. If so, a lookup probes a range of
    /// leaves, and the prefix must be the whole key. If not, the builder keeps them in one leaf.
    const REPEATS: bool;

    /// Rows of a run ascend strictly by this.
    type Order: Copy + Debug + Ord + Send + Sync;
    /// A row, which may borrow from a page.
    type Row<'a>: Copy + Debug;
    /// The hash of keys under a secret, for filters.
    type Hasher: Clone + Debug + Send + Sync;
    /// Fills leaves.
    type Builder: LeafBuilder<Self>;
    /// Walks leaves from front to back.
    type Walk: LeafWalk<Self>;
    /// The store's error, into which [`RunError`] converts.
    type Error: std::error::Error + From<RunError> + Send + Sync + 'static;

    /// The hash under a store's secret.
    fn hasher(secret: Secret) -> Self::Hasher;

    /// The hash of a key. It is part of the format: filters are built from it.
    fn hash(hasher: &Self::Hasher, key: &Self::Key) -> u64;

    /// The key of a row.
    fn key(row: &Self::Row<'_>) -> Self::Key;

    /// What rows are sorted by.
    fn order(row: &Self::Row<'_>) -> Self::Order;

    /// Whether a row deletes one in an older run. Such rows are counted separately.
    fn is_delete(_row: &Self::Row<'_>) -> bool {
        false
    }

    /// What a merge keeps of rows of equal order, at most one from each source: the number of the
    /// source whose row stays, if any. `whole` is set when nothing is older than the sources, which
    /// are numbered as they were passed. There is at least one row.
    fn settle<'a>(
        rows: impl Iterator<Item = (usize, Self::Row<'a>)>,
        whole: bool,
    ) -> Result<Option<usize>, Self::Error>;
}

/// Fills leaves with rows in order.
pub trait LeafBuilder<C: Codec>: Debug + Send {
    /// A builder for a run of about `expected` rows.
    fn new(expected: u64) -> Self;

    /// Adds a row, whose key has this hash. Writes the current leaf when it is full. Refuses a row
    /// that does not come after the last one.
    fn push(&mut self, row: &C::Row<'_>, hash: u64, pages: &mut Pages<C>) -> Result<(), C::Error>;

    /// Writes the current leaf, if it has rows.
    fn finish(&mut self, pages: &mut Pages<C>) -> Result<(), C::Error>;
}

/// Walks the rows of one leaf after another.
pub trait LeafWalk<C: Codec>: Debug + Default + Send {
    /// Moves to this leaf, before its first row.
    fn enter(&mut self, payload: &[u8], at: LeafPlace<'_, C>) -> Result<(), C::Error>;

    /// Moves to the next row; false at the end of the leaf. The cursor checks the order.
    fn next(&mut self, at: LeafPlace<'_, C>) -> Result<bool, C::Error>;

    /// The current row; `None` before the first.
    fn row(&self) -> Option<C::Row<'_>>;
}
