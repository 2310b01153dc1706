//! A 256-bit number, for targets and for sums of work.
//!
//! Only what the rules of difficulty need: comparing, adding, subtracting, shifting, multiplying
//! by a number of seconds, and dividing. Overflow wraps, as it does in Core's arithmetic, and the
//! callers say why it cannot happen. Speed does not matter: a header takes a handful of these.
//!
//! ```text
//! limbs   [ bits 0..64 │ 64..128 │ 128..192 │ 192..256 ]     least significant first
//! ```

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

/// An unsigned number of 256 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct U256([u64; 4]);

impl U256 {
    pub(crate) const ZERO: Self = Self([0; 4]);
    pub(crate) const ONE: Self = Self([1, 0, 0, 0]);

    pub(crate) const fn from_u64(number: u64) -> Self {
        Self([number, 0, 0, 0])
    }

    /// From bytes with the least significant first: the internal order of a hash.
    pub(crate) fn from_le_bytes(bytes: &[u8; 32]) -> Self {
        let mut limbs = [0; 4];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *limb = u64::from_le_bytes(*bytes);
        }
        Self(limbs)
    }

    pub(crate) fn to_le_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (bytes, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *bytes = limb.to_le_bytes();
        }
        bytes
    }

    /// How many bits it takes to write the number: 0 for zero.
    pub(crate) fn bits(self) -> u32 {
        let top = (0_u32..).zip(self.0).filter(|(_, limb)| *limb != 0).last();
        top.map_or(0, |(at, limb)| 64 * at + 64 - limb.leading_zeros())
    }

    /// The lowest 64 bits.
    pub(crate) const fn low_u64(self) -> u64 {
        let [low, ..] = self.0;
        low
    }

    pub(crate) fn wrapping_add(self, other: Self) -> Self {
        let mut carry = false;
        let mut sum = self.0;
        for (limb, other) in sum.iter_mut().zip(other.0) {
            let (first, over) = limb.overflowing_add(other);
            let (second, again) = first.overflowing_add(u64::from(carry));
            *limb = second;
            carry = over || again;
        }
        Self(sum)
    }

    pub(crate) fn wrapping_sub(self, other: Self) -> Self {
        self.wrapping_add(other.not()).wrapping_add(Self::ONE)
    }

    pub(crate) fn wrapping_mul(self, factor: u32) -> Self {
        let mut carry = 0_u128;
        let mut product = self.0;
        for limb in &mut product {
            carry += u128::from(*limb) * u128::from(factor);
            *limb = low_half(carry);
            carry >>= 64;
        }
        Self(product)
    }

    /// All bits inverted.
    pub(crate) fn not(self) -> Self {
        Self(self.0.map(|limb| !limb))
    }

    pub(crate) fn shl(self, count: u32) -> Self {
        let (limbs, bits) = ((count / 64) as usize, count % 64);
        let shifted = |at: usize| {
            let limb = |at: Option<usize>| at.and_then(|at| self.0.get(at)).copied().unwrap_or(0);
            let high = limb(at.checked_sub(limbs)) << bits;
            let low = limb(at.checked_sub(limbs + 1)).checked_shr(64 - bits).unwrap_or(0);
            high | low
        };
        Self([shifted(0), shifted(1), shifted(2), shifted(3)])
    }

    pub(crate) fn shr(self, count: u32) -> Self {
        let (limbs, bits) = ((count / 64) as usize, count % 64);
        let shifted = |at: usize| {
            let limb = |at: usize| self.0.get(at).copied().unwrap_or(0);
            let low = limb(at + limbs) >> bits;
            let high = limb(at + limbs + 1).checked_shl(64 - bits).unwrap_or(0);
            low | high
        };
        Self([shifted(0), shifted(1), shifted(2), shifted(3)])
    }

    /// The quotient, rounded down, by long division bit by bit. `None` by zero.
    pub(crate) fn checked_div(self, divisor: Self) -> Option<Self> {
        let Some(shift) = self.bits().checked_sub(divisor.bits()) else {
            return Some(Self::ZERO);
        };
        if divisor == Self::ZERO {
            return None;
        }
        let mut rest = self;
        let mut quotient = Self::ZERO;
        for shift in (0..=shift).rev() {
            let subtrahend = divisor.shl(shift);
            quotient = quotient.shl(1);
            if rest >= subtrahend {
                rest = rest.wrapping_sub(subtrahend);
                quotient = quotient.wrapping_add(Self::ONE);
            }
        }
        Some(quotient)
    }
}

impl Ord for U256 {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for U256 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
const fn low_half(number: u128) -> u64 {
    number as u64
}
