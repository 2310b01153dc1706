//! Leaves as bytes, for the fuzz target.

use super::leaf::{Leaf, encode};
use super::row::{Fingerprint, Row};
use crate::link::TxLink;

/// The first of `rows`, which ascend, as a leaf, and how many they are.
#[must_use]
pub fn encode_leaf(rows: &[Row]) -> (Vec<u8>, usize) {
    let mut payload = Vec::new();
    let count = encode(rows, &mut payload);
    (payload, count)
}

/// The rows of a leaf; `None` when the bytes are none.
#[must_use]
pub fn decode_leaf(payload: &[u8]) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    Leaf::parse(payload).and_then(|leaf| leaf.decode(&mut rows)).ok()?;
    Some(rows)
}

/// The links that a search in a leaf finds, without looking at the rest of it.
#[must_use]
pub fn find_in_leaf(payload: &[u8], key: Fingerprint) -> Option<Vec<TxLink>> {
    Leaf::parse(payload).ok().map(|leaf| leaf.find(key).collect())
}
