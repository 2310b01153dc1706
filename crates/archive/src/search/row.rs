//! A row: the fingerprint of a key, and the transaction that contains it.
//!
//! The fingerprint is the top 40 bits of the key's hash under the store's secret
//! ([`Keyed`](crate::primitive::Keyed)). With n rows, a key that has no row meets one of another
//! key with probability n / 2⁴⁰: one in 800 at the number of mainnet's transactions. So a search
//! returns candidates, and the bytes of the block decide.
//!
//! A link is below 2⁵⁶, so that a page stores it in one unaligned load whatever its bits. At a
//! billion transactions a second that lasts two years; at a million, beyond the year 4000.

use std::fmt;

use crate::link::TxLink;

/// The top 40 bits of the keyed hash of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Bits of a fingerprint.
    pub const BITS: u32 = 40;
    /// The highest fingerprint.
    pub(crate) const MAX: Self = Self((1 << Self::BITS) - 1);

    /// The fingerprint of a key with this keyed hash.
    #[must_use]
    #[inline]
    pub const fn new(hash: u64) -> Self {
        Self(hash >> (u64::BITS - Self::BITS))
    }

    /// The fingerprint with these bits; `None` when they are more than 40.
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Option<Self> {
        if bits <= Self::MAX.0 { Some(Self(bits)) } else { None }
    }

    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010x}", self.0)
    }
}

/// The bits that a link may have.
pub(crate) const LINK_BITS: u32 = 56;

/// A fingerprint and a transaction that it is found in. Rows are ordered by fingerprint, then by
/// link, and no two are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The fingerprint of the key.
    pub fingerprint: Fingerprint,
    /// The transaction.
    pub link: TxLink,
}

impl Row {
    /// Both as one number, ordered as rows are: one comparison without a branch.
    #[inline]
    pub(crate) const fn key(self) -> u128 {
        (self.fingerprint.0 as u128) << u64::BITS | self.link.to_u64() as u128
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.fingerprint, self.link)
    }
}
