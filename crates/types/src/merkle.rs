//! Merkle trees over the transactions of a block.
//!
//! ```text
//!            root
//!          /      \
//!       ab          cc        a node is the double SHA-256 of its two children
//!      /  \        /  \
//!     a    b      c   (c)     an odd last node is paired with itself
//! ```
//!
//! The last rule has a flaw (CVE-2012-2459): the leaves `a b c` and `a b c c` have the same root,
//! so a valid block can be turned into an invalid one with the same hash. A tree in which two
//! *different* nodes of a pair have the same hash is therefore flagged as `mutated`, and such a
//! block must not be remembered as invalid.
//!
//! Two ways to a root:
//! * [`merkle_root`] over all leaves at once, a level at a time through the hash lanes;
//! * [`MerkleBranch::root`] from one leaf and the siblings on its way up.

mod branch;

pub use branch::MerkleBranch;

use crate::hash::MerkleRoot;

/// The root of a tree, and whether the tree could have been mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MerkleTree {
    /// The root. Zero when there are no leaves.
    pub root: MerkleRoot,
    /// Two paired nodes are equal: another list of leaves has the same root.
    pub mutated: bool,
}

/// The root over these leaves (the internal bytes of txids or wtxids).
///
/// The leaves are overwritten: level after level is computed in their place.
#[must_use]
pub fn merkle_root(mut leaves: Vec<[u8; 32]>) -> MerkleTree {
    let mut mutated = false;
    while leaves.len() > 1 {
        mutated |= reduce(&mut leaves);
    }
    let root = leaves.first().copied().unwrap_or_default();
    MerkleTree { root: MerkleRoot::from_bytes(root), mutated }
}

/// Replaces one level by the level above it. Returns whether two paired nodes were equal.
fn reduce(level: &mut Vec<[u8; 32]>) -> bool {
    let mutated = level.as_chunks::<2>().0.iter().any(|[left, right]| left == right);
    if level.len() % 2 == 1 {
        level.extend(level.last().copied());
    }
    varve_sha256::double_pairs(level);
    level.truncate(level.len() / 2);
    mutated
}

#[cfg(test)]
mod tests;
