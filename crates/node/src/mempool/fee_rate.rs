//! Fee rates, and sums of fee and size.
//!
//! A rate is kept in satoshi per million virtual bytes: fine enough that rates that differ by one
//! satoshi in a transaction of 400,000 bytes differ here, and one integer to sort by.

use std::fmt;

use varve_types::Amount;

/// Virtual bytes in the unit of a rate.
const UNIT: u64 = 1_000_000;

/// Satoshi per million virtual bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeeRate(u64);

impl FeeRate {
    /// No fee at all.
    pub const ZERO: Self = Self(0);

    /// This many satoshi for 1,000 virtual bytes, as nodes are configured.
    #[must_use]
    pub const fn per_kvb(satoshi: u64) -> Self {
        Self(satoshi.saturating_mul(UNIT / 1_000))
    }

    /// The rate of a fee over a size, rounded down. An empty size has the rate zero.
    #[must_use]
    pub fn of(fee: Amount, vsize: u64) -> Self {
        let rate = u128::from(fee.to_sat()) * u128::from(UNIT);
        let rate = rate.checked_div(u128::from(vsize)).unwrap_or(0);
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// The fee of a size at this rate, rounded up.
    #[must_use]
    pub fn fee(self, vsize: u64) -> Amount {
        let fee = (u128::from(self.0) * u128::from(vsize)).div_ceil(u128::from(UNIT));
        Amount::from_sat(u64::try_from(fee).unwrap_or(u64::MAX))
    }

    /// Satoshi for 1,000 virtual bytes, rounded down.
    #[must_use]
    pub const fn sat_per_kvb(self) -> u64 {
        self.0 / (UNIT / 1_000)
    }

    /// Satoshi for a million virtual bytes: the exact value.
    #[must_use]
    pub const fn sat_per_million_vb(self) -> u64 {
        self.0
    }

    /// Both rates together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The rate after it halved this many times.
    #[must_use]
    pub(super) const fn halved(self, times: u64) -> Self {
        if times >= 64 { Self::ZERO } else { Self(self.0 >> times) }
    }
}

/// In satoshi per virtual byte, with three decimals.
impl fmt::Display for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = self.0 / (UNIT / 1_000);
        write!(f, "{}.{:03} sat/vB", thousandths / 1_000, thousandths % 1_000)
    }
}

/// How many transactions, how large and how much they pay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Transactions.
    pub count: u64,
    /// Virtual bytes.
    pub vsize: u64,
    /// Fees.
    pub fees: Amount,
}

impl Sum {
    /// The rate of all of them together.
    #[must_use]
    pub fn rate(&self) -> FeeRate {
        FeeRate::of(self.fees, self.vsize)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.vsize += other.vsize;
        self.fees = self.fees.checked_add(other.fees).expect(FEES);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        let taken = self.count.checked_sub(other.count).zip(self.vsize.checked_sub(other.vsize));
        (self.count, self.vsize) = taken.expect(FEES);
        self.fees = self.fees.checked_sub(other.fees).expect(FEES);
    }
}

/// Fees come out of coins that exist, so no sum of them overflows; and what is taken from a sum
/// was added to it.
const FEES: &str = "sums of fees and sizes stay between nothing and all there is";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_round_down_and_fees_up() {
        let rate = FeeRate::of(Amount::from_sat(1_000), 3_000);
        assert_eq!((rate.sat_per_kvb(), rate.to_string()), (333, "0.333 sat/vB".to_owned()));
        assert_eq!(FeeRate::per_kvb(1_000).fee(141), Amount::from_sat(141));
        assert_eq!(FeeRate::per_kvb(100).fee(141), Amount::from_sat(15));
        assert_eq!(FeeRate::of(Amount::from_sat(5), 0), FeeRate::ZERO);
        let one_more = FeeRate::of(Amount::from_sat(400_001), 400_000);
        assert!(one_more > FeeRate::per_kvb(1_000));
        assert_eq!(FeeRate::per_kvb(8).halved(2), FeeRate::per_kvb(2));
        assert_eq!(FeeRate::per_kvb(8).halved(100), FeeRate::ZERO);
    }
}
