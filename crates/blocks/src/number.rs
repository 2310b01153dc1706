//! The two integer types that identify blocks and transactions of this store.

use std::fmt;

/// A block of a store: counted from 0 in order of arrival, whatever its branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(u32);

/// A transaction of a block: counted from 0, the coinbase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxPosition(u32);

macro_rules! plain_number {
    ($name:ident) => {
        impl $name {
            /// The first.
            pub const ZERO: Self = Self(0);

            /// The one after `number` others.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The plain number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

plain_number!(BlockNumber);
plain_number!(TxPosition);

impl BlockNumber {
    /// How many blocks a store can hold: all numbers but the last, which the hash table cannot
    /// represent.
    pub(crate) const LIMIT: u32 = u32::MAX;

    /// The numbers before this one, as an index into rows.
    pub(crate) const fn index(self) -> u64 {
        self.0 as u64
    }
}
