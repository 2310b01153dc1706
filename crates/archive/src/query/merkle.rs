//! Merkle proofs: of a transaction in its block, and of a header under a checkpoint.
//!
//! Electrum's `cp_height` asks for the branch of a block hash in the tree over the hashes of all
//! blocks up to the checkpoint, and for the root of that tree. The tree is cut at the height of an
//! interval (see `interval`): below the cut it is the interval of the target, above it the tree
//! over interval roots.
//!
//! ```text
//! siblings of the proof:   11 within the interval of the target │ ⌈log2 intervals⌉ above
//! ```
//!
//! A last, partial interval is made whole by Bitcoin's rule, level by level: an odd last node is
//! paired with itself. When there is more than one interval its subtree must reach the same height
//! as the others, so the rule is applied on all eleven levels.

use varve_types::merkle::{MerkleBranch, merkle_root};
use varve_types::{Height, MerkleRoot, sha256d};

use super::TxPlace;
use crate::backend::{Chain, Tables};
use crate::error::{ArchiveError, Result};
use crate::interval::{INTERVAL, INTERVAL_DEPTH};
use crate::snapshot::Snapshot;
use crate::source::BlockSource;
use crate::view::View;

/// That a block is the one at its height, under a root that the asker trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderProof {
    /// The hashes beside the way from the block hash to the root.
    pub branch: MerkleBranch,
    /// The root over all block hashes up to the checkpoint.
    pub root: MerkleRoot,
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// The branch of a transaction in its block's tree.
    pub fn tx_branch(&self, place: &TxPlace) -> Result<MerkleBranch> {
        let txids = self.txids(place.block)?;
        let leaves = txids.unwrap_or_default().iter().map(|txid| txid.to_bytes()).collect();
        let branch = MerkleBranch::new(leaves, place.position as usize);
        branch.ok_or(ArchiveError::Damaged { what: "a transaction outside of its block" })
    }
}

impl<T: Tables> Snapshot<T> {
    /// The proof of the confirmed block at `target` under the one at `checkpoint`; `None` when the
    /// checkpoint is above the top or below the target.
    pub fn header_proof(&self, target: Height, checkpoint: Height) -> Result<Option<HeaderProof>> {
        if target > checkpoint || self.to_confirmed(checkpoint).is_none() {
            return Ok(None);
        }
        let intervals = checkpoint.to_u32() / INTERVAL + 1;
        let own = target.to_u32() / INTERVAL;
        let leaves = self.interval(own, checkpoint)?;
        let index = (target.to_u32() % INTERVAL) as usize;
        let outside = ArchiveError::Damaged { what: "a height outside of its interval" };
        let mut branch = MerkleBranch::new(leaves, index).ok_or(outside)?;
        if intervals > 1 {
            complete(&mut branch, self.hash_at(target)?)?;
            let roots = (0..intervals).map(|interval| self.interval_root(interval, checkpoint));
            let roots = roots.collect::<Result<Vec<_>>>()?;
            let above = MerkleBranch::new(roots, own as usize);
            let above = above.ok_or(ArchiveError::Damaged { what: "an interval that is none" })?;
            branch.siblings.extend(above.siblings);
        }
        branch.index = u64::from(target.to_u32());
        let root = branch.root(self.hash_at(target)?);
        let root = root.ok_or(ArchiveError::Damaged { what: "a proof that is too short" })?;
        Ok(Some(HeaderProof { branch, root }))
    }

    fn hash_at(&self, height: Height) -> Result<[u8; 32]> {
        let hashes = self.hashes_from(Chain::Confirmed, height, 1)?;
        let hash = hashes.first().ok_or(ArchiveError::Damaged { what: "a gap in a chain" })?;
        Ok(hash.to_bytes())
    }

    /// The hashes of an interval, up to the checkpoint.
    fn interval(&self, interval: u32, checkpoint: Height) -> Result<Vec<[u8; 32]>> {
        let first = interval * INTERVAL;
        let count = INTERVAL.min(checkpoint.to_u32() - first + 1);
        let hashes = self.hashes_from(Chain::Confirmed, Height::new(first), count)?;
        Ok(hashes.into_iter().map(|hash| hash.to_bytes()).collect())
    }

    /// The root of an interval at its full height.
    fn interval_root(&self, interval: u32, checkpoint: Height) -> Result<[u8; 32]> {
        let last = interval * INTERVAL + (INTERVAL - 1);
        let whole = last <= checkpoint.to_u32();
        let last = self.to_confirmed(Height::new(last)).filter(|_| whole);
        if let Some(root) = last.and_then(|last| self.intervals.get(last)) {
            return Ok(root);
        }
        let leaves = self.interval(interval, checkpoint)?;
        let missing = INTERVAL_DEPTH - leaves.len().next_power_of_two().trailing_zeros();
        let mut root = merkle_root(leaves).root.to_bytes();
        for _ in 0..missing {
            root = sha256d([root, root].as_flattened());
        }
        if let Some(last) = last {
            self.intervals.put(last, root);
        }
        Ok(root)
    }
}

/// Lengthens a branch within a partial interval to the full height: each missing sibling is the
/// node itself.
fn complete(branch: &mut MerkleBranch, leaf: [u8; 32]) -> Result<()> {
    let root = branch.root(leaf).ok_or(ArchiveError::Damaged { what: "a branch too short" })?;
    let mut node = root.to_bytes();
    for _ in branch.siblings.len()..INTERVAL_DEPTH as usize {
        branch.siblings.push(node);
        node = sha256d([node, node].as_flattened());
    }
    Ok(())
}
