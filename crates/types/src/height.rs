//! The place of a block in a chain.

use std::fmt;

/// The number of blocks below a block: the genesis block is at height 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Height(u32);

impl Height {
    /// The height of the genesis block.
    pub const GENESIS: Self = Self(0);

    /// This height.
    #[must_use]
    pub const fn new(height: u32) -> Self {
        Self(height)
    }

    /// The height as a number.
    #[must_use]
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// `count` blocks above, unless no such height exists.
    #[must_use]
    pub const fn checked_add(self, count: u32) -> Option<Self> {
        match self.0.checked_add(count) {
            Some(height) => Some(Self(height)),
            None => None,
        }
    }

    /// `count` blocks below, unless that is below the genesis block.
    #[must_use]
    pub const fn checked_sub(self, count: u32) -> Option<Self> {
        match self.0.checked_sub(count) {
            Some(height) => Some(Self(height)),
            None => None,
        }
    }

    /// How many blocks this is above `other`, unless it is below.
    #[must_use]
    pub const fn since(self, other: Self) -> Option<u32> {
        self.0.checked_sub(other.0)
    }
}

impl From<u32> for Height {
    fn from(height: u32) -> Self {
        Self(height)
    }
}

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Height::new(7).checked_add(3), Some(Height::new(10)));
        assert_eq!(Height::new(u32::MAX).checked_add(1), None);
        assert_eq!(Height::new(7).checked_sub(7), Some(Height::GENESIS));
        assert_eq!(Height::GENESIS.checked_sub(1), None);
        assert_eq!(Height::new(9).since(Height::new(4)), Some(5));
        assert_eq!(Height::new(4).since(Height::new(9)), None);
    }
}
