//! Leaves of the index as plain numbers, for fuzzing.

use super::leaf::{self, Leaf};
use super::row::Row;
use crate::embedded::key::Place;

/// The rows of a leaf; `None` when the payload is damaged.
#[must_use]
pub fn decode_leaf(payload: &[u8]) -> Option<Vec<u128>> {
    let leaf = Leaf::parse(payload).ok()?;
    Some(leaf.rows().map(Row::bits).collect())
}

/// The rows of a leaf that share the place of `row`, by search; `None` when the payload is damaged.
#[must_use]
pub fn find_in_leaf(payload: &[u8], row: u128) -> Option<Vec<u128>> {
    let leaf = Leaf::parse(payload).ok()?;
    Some(leaf.at(Row::from_bits(row).place()).map(Row::bits).collect())
}

/// Whether two rows have the same place, and so are found together.
#[must_use]
pub fn same_place(a: u128, b: u128) -> bool {
    let place = |row| -> Place { Row::from_bits(row).place() };
    place(a) == place(b)
}

/// The payload of a leaf with these rows, at most 255 of them.
#[must_use]
pub fn encode_leaf(rows: &[u128]) -> Vec<u8> {
    let mut payload = Vec::new();
    leaf::encode(rows.iter().map(|row| Row::from_bits(*row)), &mut payload);
    payload
}
