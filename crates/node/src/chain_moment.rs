//! What a snapshot knows of headers beside its confirmed chain: branches, refusals, script checks.
//!
//! The header tree is shared with the writer and only grows, so one moment of it is a number of
//! headers: a header with a higher number came later and does not count. Refusals are an exception:
//! they are answered as they are known now, because a verdict is no part of a commit.

use std::fmt;

use varve_types::{BlockHash, Height};

use crate::chain::{SharedBranch, SharedChain};
use crate::checked::{CheckedHeights, ScriptsChecked};
use crate::header_tree::{ChainTip, HeaderId, Invalid};

/// The header tree at one commit.
#[derive(Clone)]
pub(crate) struct ChainMoment {
    chain: SharedChain,
    tip: HeaderId,
    /// Headers with a number below this are part of the moment.
    count: u32,
    best: Height,
    checked: CheckedHeights,
}

impl ChainMoment {
    /// The tree as it is now, with `tip` confirmed.
    pub(crate) fn now(chain: &SharedChain, tip: HeaderId, checked: CheckedHeights) -> Self {
        let (count, best) = {
            let tree = &chain.read().tree;
            let count = u32::try_from(tree.len()).unwrap_or(u32::MAX);
            (count, tree.height(tree.best_header()))
        };
        Self { chain: chain.clone(), tip, count, best, checked }
    }

    /// The headers of the confirmed chain.
    pub(crate) const fn branch(&self) -> SharedBranch<'_> {
        self.chain.branch(self.tip)
    }

    /// Every branch, and the confirmed tip. Walks all headers.
    pub(crate) fn chain_tips(&self) -> Vec<ChainTip> {
        self.chain.read().tree.chain_tips_among(self.tip, self.count)
    }

    /// The height of the best header.
    pub(crate) const fn best(&self) -> Height {
        self.best
    }

    /// Whether and why a block cannot be in the chain.
    pub(crate) fn invalid(&self, hash: &BlockHash) -> Option<Invalid> {
        let tree = &self.chain.read().tree;
        tree.find(hash).and_then(|id| tree.invalid(id))
    }

    /// The blocks that are invalid themselves, and why, in the order of their hashes.
    pub(crate) fn invalid_blocks(&self) -> Vec<Invalid> {
        let tree = &self.chain.read().tree;
        let reasons = tree.invalid_blocks();
        let mut invalid: Vec<Invalid> = reasons
            .map(|(id, reason)| Invalid { block: tree.hash(id), reason: reason.into() })
            .collect();
        invalid.sort_unstable_by_key(|invalid| invalid.block);
        invalid
    }

    /// How the scripts of the confirmed chain were settled.
    pub(crate) fn scripts(&self, tip: Height) -> ScriptsChecked {
        self.checked.summary(tip)
    }
}

impl fmt::Debug for ChainMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tip, count, best, .. } = self;
        let mut debug = f.debug_struct("ChainMoment");
        debug.field("tip", tip).field("count", count).field("best", best).finish_non_exhaustive()
    }
}
