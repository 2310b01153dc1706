//! A quantity of coin, in satoshi.

use std::fmt;

/// Satoshi. One coin is 100,000,000 of them.
///
/// An amount read from a transaction may be any 64-bit number; [`Amount::is_money`] says whether it
/// can exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Amount(u64);

impl Amount {
    /// Zero satoshi.
    pub const ZERO: Self = Self(0);
    /// One coin.
    pub const COIN: Self = Self(100_000_000);
    /// The maximum of an output and of a sum of outputs.
    pub const MAX_MONEY: Self = Self(21_000_000 * Self::COIN.0);

    /// This many satoshi.
    #[must_use]
    pub const fn from_sat(satoshi: u64) -> Self {
        Self(satoshi)
    }

    /// The number of satoshi.
    #[must_use]
    pub const fn to_sat(self) -> u64 {
        self.0
    }

    /// Whether the amount is at most [`Amount::MAX_MONEY`].
    #[must_use]
    pub const fn is_money(self) -> bool {
        self.0 <= Self::MAX_MONEY.0
    }

    /// The sum, unless it overflows.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, unless it is negative.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }
}

/// In coins with eight decimals, as Core prints amounts.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:08}", self.0 / Self::COIN.0, self.0 % Self::COIN.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_display() {
        assert!(Amount::MAX_MONEY.is_money());
        assert!(!Amount::from_sat(Amount::MAX_MONEY.to_sat() + 1).is_money());
        assert_eq!(Amount::from_sat(u64::MAX).checked_add(Amount::from_sat(1)), None);
        assert_eq!(Amount::ZERO.checked_sub(Amount::from_sat(1)), None);
        assert_eq!(Amount::from_sat(5_000_000_001).to_string(), "50.00000001");
    }
}
