//! Which fields of a record a read brings.
//!
//! The head of a record is small and comes with every read. What may be large is asked for:
//!
//! | bit | brings |
//! |---|---|
//! | `TX` | the transaction |
//! | `INPOINTS` | the outpoints it spends |
//! | `UTXOS` | the slots, and so who spent each output |
//! | `ALERTS` | freezes and reassignments |
//! | `CHILDREN` | conflicting and pruned spenders |
//!
//! Block ids bring heights and subtree indexes, and slots bring the counts, because those are in
//! the head.

/// A set of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields(u8);

impl Fields {
    /// Nothing but the head.
    pub const HEAD: Self = Self(0);
    /// The transaction.
    pub const TX: Self = Self(1);
    /// What it spends.
    pub const INPOINTS: Self = Self(1 << 1);
    /// The slots.
    pub const UTXOS: Self = Self(1 << 2);
    /// Freezes and reassignments.
    pub const ALERTS: Self = Self(1 << 3);
    /// Conflicting and pruned spenders.
    pub const CHILDREN: Self = Self(1 << 4);
    /// Everything.
    pub const ALL: Self = Self(0b1_1111);
    /// What `get` brings when nothing is said.
    pub const GET: Self = Self::TX.union(Self::INPOINTS);
    /// What `get_meta` brings: the same without the transaction.
    pub const META: Self = Self::INPOINTS;

    /// These fields and those.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The fields that are in both.
    #[must_use]
    pub(crate) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of those fields are here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_sets() {
        assert!(Fields::GET.contains(Fields::TX) && !Fields::META.contains(Fields::TX));
        assert!(Fields::META.contains(Fields::INPOINTS) && !Fields::GET.contains(Fields::UTXOS));
        let all = [Fields::TX, Fields::INPOINTS, Fields::UTXOS, Fields::ALERTS, Fields::CHILDREN];
        assert_eq!(all.into_iter().fold(Fields::HEAD, Fields::union), Fields::ALL);
    }
}
