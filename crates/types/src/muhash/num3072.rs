//! Numbers modulo 2^3072 − 1103717.
//!
//! 48 limbs of 64 bits, the lowest first. A value is any number below 2^3072; since the prime is
//! so close to that, reduction is a multiplication by 1103717: 2^3072 ≡ 1103717.
//!
//! ```text
//! product = high · 2^3072 + low  ≡  high · 1103717 + low          (a carry of 22 bits is left,
//!                                                                  and folded in the same way)
//! ```
//!
//! Only [`Num3072::to_bytes`] needs the one representative below the prime.
#![expect(clippy::cast_possible_truncation, reason = "splitting products into limbs")]

use super::product::product;

/// The length in limbs.
pub(super) const LIMBS: usize = 48;
/// The length in bytes.
pub(super) const BYTES: usize = LIMBS * 8;
/// 2^3072 minus the prime.
const EXCESS: u64 = 1_103_717;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Num3072([u64; LIMBS]);

impl Num3072 {
    pub(super) const ONE: Self = {
        let mut limbs = [0; LIMBS];
        limbs[0] = 1;
        Self(limbs)
    };

    pub(super) fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        let mut limbs = [0; LIMBS];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.as_chunks().0) {
            *limb = u64::from_le_bytes(*bytes);
        }
        Self(limbs)
    }

    /// The bytes of the representative below the prime.
    pub(super) fn to_bytes(&self) -> [u8; BYTES] {
        // At or above the prime exactly when adding the excess overflows; the sum without the
        // overflow is then the value minus the prime.
        let mut reduced = self.0;
        let limbs = if add_small(&mut reduced, EXCESS) { &reduced } else { &self.0 };
        let mut bytes = [0; BYTES];
        for (bytes, limb) in bytes.as_chunks_mut().0.iter_mut().zip(limbs) {
            *bytes = limb.to_le_bytes();
        }
        bytes
    }

    pub(super) fn multiply(&mut self, other: &Self) {
        self.0 = reduce(&product(&self.0, &other.0));
    }

    /// The inverse, by Fermat: `self` to the power of the prime minus two.
    ///
    /// The exponent 2^3072 − 1103719 has 3051 ones on top, then 21 mixed bits. The power with
    /// n ones as exponent is built by doubling n: 3051 squarings but only 19 multiplications.
    pub(super) fn inverse(&self) -> Self {
        const LOW_BITS: u32 = 21;
        const ONES: u32 = 3072 - LOW_BITS;
        const LOW: u64 = (1 << LOW_BITS) - (EXCESS + 2);
        let mut power = self.clone();
        let mut ones = 1;
        for bit in (0..ONES.ilog2()).rev() {
            let half = power.clone();
            power.square(ones);
            power.multiply(&half);
            ones *= 2;
            if ONES >> bit & 1 == 1 {
                power.square(1);
                power.multiply(self);
                ones += 1;
            }
        }
        debug_assert_eq!(ones, ONES);
        for bit in (0..LOW_BITS).rev() {
            power.square(1);
            if LOW >> bit & 1 == 1 {
                power.multiply(self);
            }
        }
        power
    }

    /// Squares `times` times.
    fn square(&mut self, times: u32) {
        for _ in 0..times {
            self.0 = reduce(&product(&self.0, &self.0));
        }
    }
}

/// Folds the upper half of a product into the lower.
fn reduce(product: &[u64; 2 * LIMBS]) -> [u64; LIMBS] {
    let (low, high) = product.split_at(LIMBS);
    let mut limbs = [0; LIMBS];
    let mut carry = 0;
    for ((limb, low), high) in limbs.iter_mut().zip(low).zip(high) {
        let sum = u128::from(*high) * u128::from(EXCESS) + u128::from(*low) + u128::from(carry);
        *limb = sum as u64;
        carry = (sum >> 64) as u64;
    }
    // The carry is at most the excess, so its fold is below 2^42. If adding that overflows, what
    // is left is small, and the last fold cannot overflow again.
    if add_small(&mut limbs, carry * EXCESS) {
        add_small(&mut limbs, EXCESS);
    }
    limbs
}

/// Adds a number and returns whether the sum overflows.
fn add_small(limbs: &mut [u64; LIMBS], mut carry: u64) -> bool {
    for limb in limbs {
        let (sum, overflow) = limb.overflowing_add(carry);
        *limb = sum;
        if !overflow {
            return false;
        }
        carry = 1;
    }
    true
}
