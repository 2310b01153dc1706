//! A row: one change to what is known of a script.
//!
//! A table is the sum of all its changes. A script has rows of three kinds, in this order:
//!
//! | row | place | says |
//! |---|---|---|
//! | sums | 0 | what the changes of this run or pane add to the script's [`Sums`] |
//! | transaction | 2⁹⁶ + link | it pays the script or spends from it, once however often it does |
//! | output | 2 · 2⁹⁶ + height · 2⁶⁴ + 64 keyed bits of the outpoint | it is unspent |
//!
//! Each of the last two has a *weight*: 1 adds, −1 takes back. Rows of one key in several runs meet
//! in a merge or a query, and their weights add up: what comes to zero is gone, and in the whole
//! table every weight is 0 or 1. So the order of changes does not matter, spending an output takes
//! no look at the row that made it, and a block is disconnected by the rows of its negation.

use std::fmt;

use super::identity::Identity;
use super::sums::Sums;
use crate::link::TxLink;

/// Where a row of a script stands among its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place(pub(super) u128);

const SECTION: u32 = 96;
const TX: u128 = 1 << SECTION;
const OUTPUT: u128 = 2 << SECTION;

impl Place {
    pub(super) const SUMS: Self = Self(0);
    pub(super) const MAX: Self = Self(u128::MAX);
    /// Behind the last transaction, and the first output.
    pub(super) const FIRST_OUTPUT: Self = Self(OUTPUT);

    #[inline]
    pub(super) const fn tx(link: TxLink) -> Self {
        Self(TX | link.to_u64() as u128)
    }

    #[inline]
    pub(super) const fn output(height: u32, print: u64) -> Self {
        Self(OUTPUT | (height as u128) << u64::BITS | print as u128)
    }

    #[inline]
    pub(super) const fn is_tx(self) -> bool {
        self.0 >> SECTION == 1
    }

    /// The low 64 bits: the link of a transaction, or the keyed bits of an outpoint.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low 64 bits are wanted")]
    pub(super) const fn low(self) -> u64 {
        self.0 as u64
    }

    /// The height of an output's block.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the 32 bits above the low 64")]
    pub(super) const fn height(self) -> u32 {
        (self.0 >> u64::BITS) as u32
    }
}

/// What a row is found by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(super) identity: Identity,
    pub(super) place: Place,
}

impl Key {
    pub(super) const MAX: Self = Self { identity: Identity::MAX, place: Place::MAX };

    /// That of the sums, which every script has in every run that has anything of it.
    #[inline]
    pub(super) const fn sums(identity: Identity) -> Self {
        Self { identity, place: Place::SUMS }
    }
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Sums(Sums),
    /// The weight of a transaction.
    Tx(Weight),
    /// An output that is unspent, with its transaction and its number there; `None` takes it back.
    Output(Option<(TxLink, u32)>),
}

/// Whether a row adds or takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Add,
    Remove,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(super) key: Key,
    pub(super) body: Body,
}

impl Row {
    pub(super) const fn new(identity: Identity, place: Place, body: Body) -> Self {
        Self { key: Key { identity, place }, body }
    }

    /// Its weight; that of sums is 1.
    pub(super) const fn weight(&self) -> i32 {
        match self.body {
            Body::Tx(Weight::Remove) | Body::Output(None) => -1,
            _ => 1,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020x}:{:x}", self.identity.bits(), self.place.0)
    }
}
