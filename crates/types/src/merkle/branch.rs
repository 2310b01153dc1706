//! The proof that a leaf is in a tree.

use super::reduce;
use crate::hash::{MerkleRoot, sha256d};

/// The siblings on the path from a leaf to the root, bottom up.
///
/// ```text
/// for leaf 2 of a b c:   [c, ab]
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleBranch {
    /// The index of the leaf, from zero. Its bits say left or right, level by level.
    pub index: u64,
    /// The sibling at each level.
    pub siblings: Vec<[u8; 32]>,
}

impl MerkleBranch {
    /// The branch of the leaf at `index`, or `None` when there is no such leaf.
    #[must_use]
    pub fn new(mut leaves: Vec<[u8; 32]>, index: usize) -> Option<Self> {
        let mut siblings = Vec::new();
        let mut at = index;
        leaves.get(at)?;
        while leaves.len() > 1 {
            let sibling = leaves.get(at ^ 1).or(leaves.last()).copied();
            siblings.extend(sibling);
            reduce(&mut leaves);
            at /= 2;
        }
        debug_assert_eq!(at, 0, "the way up ends at the root");
        Some(Self { index: index as u64, siblings })
    }

    /// The root of the tree in which `leaf` has this branch, or `None` when the index does not
    /// lie in a tree of this depth.
    ///
    /// A leaf is proven when this is the root in the header. A caller that accepts proofs
    /// from others must also know that `leaf` is a txid: an inner node is 64 bytes that hash like a
    /// transaction of 64 bytes.
    #[must_use]
    pub fn root(&self, leaf: [u8; 32]) -> Option<MerkleRoot> {
        let mut index = self.index;
        let mut node = leaf;
        for sibling in &self.siblings {
            let pair = if index.is_multiple_of(2) { [node, *sibling] } else { [*sibling, node] };
            node = sha256d(pair.as_flattened());
            index /= 2;
        }
        (index == 0).then_some(MerkleRoot::from_bytes(node))
    }
}
