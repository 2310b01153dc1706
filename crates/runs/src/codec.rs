//! What a store supplies: its rows, their order, and their bytes in a page.
//!
//! A run is a file of *leaves*, pages of rows in order. Everything around the rows is the same for
//! every store; what a row is, the store says by a [`Codec`]:
//!
//! ```text
//!  rows in order ─► LeafBuilder ─► Pages ─► file ─► Query ─► payload ─► the store's own search
//!                                             └───► Cursor ─► LeafWalk ─► rows in order
//! ```
//!
//! - A *key* is what is searched for ([`Keys`]). Its *prefix*, 8 bytes, leads through the
//!   directory.
//! - A [`LeafBuilder`] fills pages and hands them to [`Pages`].
//! - A [`LeafWalk`] goes through the rows of a page, for merges and scans. A lookup does not use
//!   it: the store joins keys and pages itself, in whatever stages suit its leaves.
//!
//! All of it is resolved when it is compiled: a row costs no call through a pointer.

use std::fmt::Debug;

use varve_io::Kind;

use crate::leaf_place::LeafPlace;
use crate::pages::Pages;
use crate::run_error::RunError;
use crate::secret::Secret;

/// What is searched for. Directories and filters know no more of a store.
pub trait Keys: Debug + Send + Sync + 'static {
    /// A key.
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
    /// What the page file of a run says it is.
    const KIND: Kind;
    /// Whether the rows of one key may fill more than one leaf. A key is then looked for in a range
    /// of leaves, and its prefix must be all of it. Otherwise a builder keeps them in one leaf.
    const REPEATS: bool;

    /// Rows ascend by this, strictly, within a run.
    type Order: Copy + Debug + Ord + Send + Sync;
    /// A row, which may borrow from a page.
    type Row<'a>: Copy + Debug;
    /// The hash of keys under a secret, for filters.
    type Hasher: Clone + Debug + Send + Sync;
    /// Writes leaves.
    type Builder: LeafBuilder<Self>;
    /// Reads leaves from front to back.
    type Walk: LeafWalk<Self>;
    /// What can go wrong.
    type Error: std::error::Error + From<RunError> + Send + Sync + 'static;

    /// The hash under a store's secret.
    fn hasher(secret: Secret) -> Self::Hasher;

    /// The hash of a key. It is part of the format: filters are made of it.
    fn hash(hasher: &Self::Hasher, key: &Self::Key) -> u64;

    /// The key of a row.
    fn key(row: &Self::Row<'_>) -> Self::Key;

    /// The place of a row among others.
    fn order(row: &Self::Row<'_>) -> Self::Order;

    /// Whether a row takes back one in an older run. They are counted apart.
    fn is_delete(_row: &Self::Row<'_>) -> bool {
        false
    }

    /// What a merge leaves of rows of equal order, at most one from each source: the number of the
    /// source whose row stays, if any. `whole` when there is nothing older than all sources. The
    /// sources are numbered as they were passed, and there is at least one row.
    fn settle<'a>(
        rows: impl Iterator<Item = (usize, Self::Row<'a>)>,
        whole: bool,
    ) -> Result<Option<usize>, Self::Error>;
}

/// Fills leaves with rows in order.
pub trait LeafBuilder<C: Codec>: Debug + Send {
    /// A builder for a run of about so many rows.
    fn new(expected: u64) -> Self;

    /// Takes a row, which has a key of this hash. Writes the leaf in the making when it is full.
    /// Refuses a row that is not behind the one before it.
    fn push(&mut self, row: &C::Row<'_>, hash: u64, pages: &mut Pages<C>) -> Result<(), C::Error>;

    /// Writes the leaf in the making, if it has rows.
    fn finish(&mut self, pages: &mut Pages<C>) -> Result<(), C::Error>;
}

/// Goes through the rows of one leaf after another.
pub trait LeafWalk<C: Codec>: Debug + Default + Send {
    /// Stands before the first row of this leaf.
    fn enter(&mut self, payload: &[u8], at: LeafPlace<'_, C>) -> Result<(), C::Error>;

    /// Moves to the next row; false behind the last. The cursor compares the order.
    fn next(&mut self, at: LeafPlace<'_, C>) -> Result<bool, C::Error>;

    /// The row it stands at; `None` before the first.
    fn row(&self) -> Option<C::Row<'_>>;
}
