//! What the set is made of: coins added and coins deleted.
//!
//! An entry adds a coin or deletes one. Outpoint and *birth* (the step that created the coin) name
//! a coin for ever: the same outpoint made again after a reorganisation has another birth. A
//! delete carries the birth of the coin it deletes, so the two cancel wherever they meet, and a
//! delete never touches a coin it was not meant for.
//!
//! Where several entries of one outpoint and birth meet, they count: an add is +1, a delete −1. The
//! sum is +1 (the coin is there), 0 (they cancelled) or −1 (the coin is in an older source).

use varve_runs::Sequence;
use varve_types::{Coin, Outpoint};

/// One change of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The coin's outpoint.
    pub outpoint: Outpoint,
    /// The step that created the coin.
    pub birth: Sequence,
    /// The coin that is added, or `None` when it is deleted.
    pub coin: Option<Coin<'a>>,
}

impl<'a> Entry<'a> {
    /// Adds a coin.
    #[must_use]
    pub const fn add(outpoint: Outpoint, birth: Sequence, coin: Coin<'a>) -> Self {
        Self { outpoint, birth, coin: Some(coin) }
    }

    /// Deletes the coin of this birth.
    #[must_use]
    pub const fn delete(outpoint: Outpoint, birth: Sequence) -> Self {
        Self { outpoint, birth, coin: None }
    }

    /// Entries are ordered by this.
    #[must_use]
    pub const fn key(&self) -> (Outpoint, Sequence) {
        (self.outpoint, self.birth)
    }
}
