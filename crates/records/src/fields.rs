//! Which fields of a record a read brings.
//!
//! The head of a record is small and comes with every read. What may be large is asked for:
//!
//! | bit | brings | names it answers to |
//! |---|---|---|
//! | `TX` | the transaction | `tx`, `inputs`, `outputs` |
//! | `INPOINTS` | what it spends | `txInpoints` |
//! | `UTXOS` | the slots | `utxos`, `spendingDatas` |
//! | `ALERTS` | freezes and reassignments | `utxoSpendableIn`, `reassignments`, `freezeWindows` |
//! | `CHILDREN` | spenders apart from the slots | `conflictingChildren`, `deletedChildren` |
//!
//! Block ids bring heights and subtree indexes, and slots bring the counts, because those are in
//! the head.

/// A set of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields(u8);

/// The names of the fields that are in the head.
const HEAD_NAMES: &[&str] = &[
    "version",
    "lockTime",
    "fee",
    "sizeInBytes",
    "extendedSize",
    "isCoinbase",
    "spendingHeight",
    "createdAt",
    "external",
    "frozen",
    "locked",
    "conflicting",
    "creating",
    "unminedSince",
    "preserveUntil",
    "deleteAtHeight",
    "blockIDs",
    "blockHeights",
    "subtreeIdxs",
    "totalUtxos",
    "recordUtxos",
    "spentUtxos",
    "totalExtraRecs",
    "spentExtraRecs",
];

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
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of those fields are here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What brings the field of this name; `None` when no field has it.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "tx" | "inputs" | "outputs" => Some(Self::TX),
            "txInpoints" => Some(Self::INPOINTS),
            "utxos" | "spendingDatas" => Some(Self::UTXOS),
            "utxoSpendableIn" | "reassignments" | "freezeWindows" => Some(Self::ALERTS),
            "conflictingChildren" | "deletedChildren" => Some(Self::CHILDREN),
            name => HEAD_NAMES.contains(&name).then_some(Self::HEAD),
        }
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

    #[test]
    fn fields_have_the_names_of_the_original() {
        assert_eq!(Fields::by_name("utxos"), Some(Fields::UTXOS));
        assert_eq!(Fields::by_name("blockHeights"), Some(Fields::HEAD));
        assert_eq!(Fields::by_name("nrUtxos"), None, "a name of the old layout");
    }
}
