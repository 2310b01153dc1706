//! Targets and work.
//!
//! A block is proven when its hash, read as a number, is not above its *target*. The header
//! carries the target in four bytes, as a floating-point number of base 256:
//!
//! ```text
//! bits   │ exponent 8 │ sign 1 │ mantissa 23 │        target = mantissa · 256^(exponent − 3)
//! ```
//!
//! The *work* of a block is the number of hashes it takes on average to find one: 2^256 divided
//! by target + 1. The chain with the most work wins, not the longest.

#[cfg(test)]
mod tests;

use std::fmt;

use varve_types::BlockHash;

use crate::u256::U256;

/// The number that a block's hash must not exceed. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(U256);

impl Target {
    /// The target that a header's bits stand for, or `None` when they are negative, zero or more
    /// than 256 bits.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        let exponent = bits >> 24;
        let mantissa = u64::from(bits & 0x007f_ffff);
        let negative = bits & 0x0080_0000 != 0;
        let number = match exponent {
            0..=3 => U256::from_u64(mantissa >> (8 * (3 - exponent))),
            _ => U256::from_u64(mantissa).shl(8 * (exponent - 3)),
        };
        let overflow = exponent > 34
            || (exponent > 33 && mantissa > 0xff)
            || (exponent > 32 && mantissa > 0xffff);
        (!negative && !overflow && number != U256::ZERO).then_some(Self(number))
    }

    /// The bits that stand for the target. Only the upper bits of the number survive.
    #[must_use]
    pub(crate) fn to_bits(self) -> u32 {
        let bytes = self.0.bits().div_ceil(8);
        let mantissa = match bytes {
            0..=3 => self.0.low_u64() << (8 * (3 - bytes)),
            _ => self.0.shr(8 * (bytes - 3)).low_u64(),
        };
        let mantissa = u32::try_from(mantissa).expect("three bytes");
        // The topmost bit of the mantissa is its sign: shift it away.
        match mantissa & 0x0080_0000 {
            0 => (bytes << 24) | mantissa,
            _ => ((bytes + 1) << 24) | (mantissa >> 8),
        }
    }

    /// The target with these bytes, the most significant first; `None` when it is zero.
    #[must_use]
    pub fn from_be_bytes(mut bytes: [u8; 32]) -> Option<Self> {
        bytes.reverse();
        Self::new(U256::from_le_bytes(&bytes))
    }

    pub(crate) fn new(number: U256) -> Option<Self> {
        (number != U256::ZERO).then_some(Self(number))
    }

    pub(crate) const fn number(self) -> U256 {
        self.0
    }

    /// Whether a block with this hash has the work that the target requires.
    #[must_use]
    pub(crate) fn is_met_by(self, hash: &BlockHash) -> bool {
        U256::from_le_bytes(hash.as_bytes()) <= self.0
    }
}

/// How many hashes a block, or a chain of blocks, has taken on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work(U256);

impl Work {
    /// The work of nothing.
    pub const ZERO: Self = Self(U256::ZERO);

    /// The work of a block with this target: 2^256 / (target + 1).
    ///
    /// 2^256 does not fit, so this is (2^256 − target − 1) / (target + 1) + 1, as in Core.
    #[must_use]
    pub fn of(target: Target) -> Self {
        let divisor = target.0.wrapping_add(U256::ONE);
        match target.0.not().checked_div(divisor) {
            Some(quotient) => Self(quotient.wrapping_add(U256::ONE)),
            // The target is 2^256 − 1: every hash meets it.
            None => Self(U256::ONE),
        }
    }

    /// The work of a block with these bits: zero when the bits are not a target.
    #[must_use]
    pub fn of_bits(bits: u32) -> Self {
        Target::from_bits(bits).map_or(Self::ZERO, Self::of)
    }

    /// The work of both. It would take 2^256 hashes to overflow.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// The difference, or zero when `other` is more.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        if other < self { Self(self.0.wrapping_sub(other.0)) } else { Self::ZERO }
    }

    /// The work of `count` blocks of this work. It would take 2^256 hashes to overflow.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self(self.0.wrapping_mul(count))
    }

    /// Seconds that the work above `below` takes when a block of the work `rate` takes `spacing`:
    /// Core's "block proof equivalent time". Zero when there is none above.
    #[must_use]
    pub fn seconds_above(self, below: Self, rate: Self, spacing: u32) -> u64 {
        if self <= below {
            return 0;
        }
        let work = self.0.wrapping_sub(below.0).wrapping_mul(spacing);
        let seconds = work.checked_div(rate.0).filter(|seconds| seconds.bits() <= 63);
        seconds.map_or(u64::MAX, U256::low_u64)
    }

    /// The number, the least significant byte first.
    #[must_use]
    pub fn to_le_bytes(self) -> [u8; 32] {
        self.0.to_le_bytes()
    }

    /// The work with this number, the least significant byte first.
    #[must_use]
    pub fn from_le_bytes(bytes: &[u8; 32]) -> Self {
        Self(U256::from_le_bytes(bytes))
    }

    pub(crate) const fn number(self) -> U256 {
        self.0
    }
}

/// As Core shows `chainwork`: 64 hex digits.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_le_bytes().iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
