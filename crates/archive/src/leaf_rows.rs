//! Leaves that are encoded and decoded whole: what their builders and walks share.
//!
//! A builder gathers rows until a leaf is surely full and lets the codec take as many as fit. A
//! walk decodes a leaf and goes through its rows.

use std::fmt::Debug;

use varve_io::FormatError;
use varve_runs::{Codec, LeafBuilder, LeafPlace, LeafWalk, Pages};

/// A codec of such leaves.
pub(crate) trait WholeLeaves: Codec<Hasher = ()> {
    /// A row that borrows nothing.
    type Owned: Copy + Debug + Send;
    /// No leaf has more rows.
    const ROWS_MAX: usize;

    fn own(row: &Self::Row<'_>) -> Self::Owned;

    fn lend(row: &Self::Owned) -> Self::Row<'_>;

    /// Appends a leaf of the first of `rows`, as many as fit, and returns their number.
    fn encode(rows: &[Self::Owned], out: &mut Vec<u8>) -> usize;

    /// Replaces `out` by the rows of a leaf.
    fn decode(payload: &[u8], out: &mut Vec<Self::Owned>) -> Result<(), FormatError>;

    /// The refusal of a row that does not come after the one before it.
    fn out_of_order(row: &Self::Owned) -> Self::Error;
}

/// Gathers rows until a leaf is surely full.
#[derive(Debug)]
pub(crate) struct Gather<C: WholeLeaves> {
    rows: Vec<C::Owned>,
    /// Rows at the front that are written.
    written: usize,
    payload: Vec<u8>,
}

impl<C: WholeLeaves> Gather<C> {
    fn write_leaf(&mut self, pages: &mut Pages<C>) -> Result<(), C::Error> {
        let rows = self.rows.get(self.written..).unwrap_or_default();
        self.payload.clear();
        let count = C::encode(rows, &mut self.payload);
        let rows = rows.get(..count).unwrap_or_default();
        let key = |row: &C::Owned| C::key(&C::lend(row));
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            let hashes = rows.iter().map(|row| C::hash(&(), &key(row)));
            pages.leaf((key(first), key(last)), &self.payload, hashes)?;
        }
        self.written += count;
        Ok(())
    }
}

impl<C: WholeLeaves> LeafBuilder<C> for Gather<C> {
    fn new(_: u64) -> Self {
        Self { rows: Vec::with_capacity(2 * C::ROWS_MAX), written: 0, payload: Vec::new() }
    }

    #[inline]
    fn push(&mut self, row: &C::Row<'_>, _: u64, pages: &mut Pages<C>) -> Result<(), C::Error> {
        let order = C::order(row);
        if self.rows.last().is_some_and(|last| C::order(&C::lend(last)) >= order) {
            return Err(C::out_of_order(&C::own(row)));
        }
        self.rows.push(C::own(row));
        if self.rows.len() < 2 * C::ROWS_MAX {
            return Ok(());
        }
        while self.rows.len() - self.written >= C::ROWS_MAX {
            self.write_leaf(pages)?;
        }
        self.rows.drain(..self.written);
        self.written = 0;
        Ok(())
    }

    fn finish(&mut self, pages: &mut Pages<C>) -> Result<(), C::Error> {
        while self.written < self.rows.len() {
            self.write_leaf(pages)?;
        }
        Ok(())
    }
}

/// The rows of the leaf in which a cursor stands.
#[derive(Debug)]
pub(crate) struct LeafRows<C: WholeLeaves> {
    rows: Vec<C::Owned>,
    /// The row after the one it stands at.
    next: usize,
}

impl<C: WholeLeaves> Default for LeafRows<C> {
    fn default() -> Self {
        Self { rows: Vec::new(), next: 0 }
    }
}

impl<C: WholeLeaves> LeafWalk<C> for LeafRows<C> {
    fn enter(&mut self, payload: &[u8], at: LeafPlace<'_, C>) -> Result<(), C::Error> {
        self.next = 0;
        C::decode(payload, &mut self.rows).map_err(|error| at.error(error))
    }

    #[inline]
    fn next(&mut self, _: LeafPlace<'_, C>) -> Result<bool, C::Error> {
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    #[inline]
    fn row(&self) -> Option<C::Row<'_>> {
        self.rows.get(self.next.checked_sub(1)?).map(C::lend)
    }
}
