//! The header tree, and how much of each block was checked on its branch.
//!
//! The organizer writes it while the workers that check blocks read branches. So it is behind a
//! lock, which both hold briefly.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use varve_consensus::{Ancestor, Ancestors};
use varve_types::Height;

use crate::checked::{Checked, CheckedHeights, CheckedSpan, spans};
use crate::header_tree::{HeaderId, HeaderTree};

/// A branch is not followed while one that is arriving is more blocks above it than this: a day's.
const FAR: u32 = 144;

/// The headers and what is known of them.
pub(crate) struct Chain {
    pub(crate) tree: HeaderTree,
    /// By the number of the header: how much of its block was checked, with no fault found.
    checked: Vec<Checked>,
}

impl Chain {
    pub(crate) const fn new(tree: HeaderTree) -> Self {
        Self { tree, checked: Vec::new() }
    }

    /// How much of the block of this header was checked, with no fault found.
    pub(crate) fn checked(&self, id: HeaderId) -> Checked {
        self.checked.get(id.to_u32() as usize).copied().unwrap_or_default()
    }

    /// This much of the block was checked. What was checked before stays so.
    pub(crate) fn set_checked(&mut self, id: HeaderId, checked: Checked) {
        let index = id.to_u32() as usize;
        if self.checked.len() <= index {
            self.checked.resize(index + 1, Checked::Nothing);
        }
        if let Some(known) = self.checked.get_mut(index) {
            *known = (*known).max(checked);
        }
    }

    /// The blocks up to this one are confirmed, and checked as recorded.
    pub(crate) fn restore_checked(&mut self, tip: HeaderId, heights: &CheckedHeights) {
        let mut at = Some(tip);
        while let Some(id) = at {
            self.set_checked(id, heights.at(self.tree.height(id)));
            at = self.tree.parent(id);
        }
    }

    /// How the scripts of the blocks above `fork` up to `tip` were settled.
    pub(crate) fn spans_above(&self, fork: Height, tip: HeaderId) -> Vec<CheckedSpan> {
        let below = |id: &HeaderId| self.tree.parent(*id);
        let branch = std::iter::successors(Some(tip), below);
        let above = branch.take_while(|id| self.tree.height(*id) > fork);
        let mut checked: Vec<Checked> = above.map(|id| self.checked(id)).collect();
        checked.reverse();
        spans(fork.checked_add(1).unwrap_or_default(), checked)
    }

    /// Where the chain should go from `tip`: to the best chain, but not above `stop`; `tip` itself
    /// when that is as good or on the way already, and rather than to less work than it has.
    ///
    /// `coming` is a header whose blocks are arriving: while they do, a branch that is going to
    /// lose against it is not taken for the best. It must not be a header that someone only
    /// promises, or the chain would wait for blocks that nobody sends.
    pub(crate) fn target(
        &self,
        tip: HeaderId,
        stop: Option<Height>,
        coming: Option<HeaderId>,
    ) -> HeaderId {
        let tree = &self.tree;
        let best = coming.map_or_else(|| tree.best_chain(), |coming| self.best_to_last(coming));
        let is_valid = tree.invalid(tip).is_none();
        if tree.work(best) <= tree.work(tip) && is_valid {
            return tip;
        }
        let height = stop.map_or(tree.height(best), |stop| stop.min(tree.height(best)));
        let target = tree.ancestor(best, height).expect("not above the best");
        let is_worse = tree.work(target) < tree.work(tip) || tree.is_on_branch(target, tip);
        if is_worse && is_valid { tip } else { target }
    }

    /// The best chain, but only as far as it is on the branch of `coming`, when that is far above:
    /// beyond, the set would go there and come back.
    fn best_to_last(&self, coming: HeaderId) -> HeaderId {
        let tree = &self.tree;
        let best = tree.best_chain();
        let above = tree.height(coming).since(tree.height(best)).unwrap_or(0);
        let is_going_to_lose = above > FAR && tree.work(coming) > tree.work(best);
        if is_going_to_lose && tree.invalid(coming).is_none() {
            tree.fork_point(best, coming)
        } else {
            best
        }
    }
}

/// The chain as organizer and workers share it.
#[derive(Clone)]
pub(crate) struct SharedChain(Arc<RwLock<Chain>>);

impl SharedChain {
    pub(crate) fn new(chain: Chain) -> Self {
        Self(Arc::new(RwLock::new(chain)))
    }

    /// The branch that ends with `tip`.
    pub(crate) const fn branch(&self, tip: HeaderId) -> SharedBranch<'_> {
        SharedBranch { chain: self, tip }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Chain> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Chain> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The headers of one branch. The lock is taken for each that is asked for, not for as long as a
/// block is checked: the organizer would wait for all checks under way whenever it writes, and the
/// workers for the organizer.
pub(crate) struct SharedBranch<'a> {
    chain: &'a SharedChain,
    tip: HeaderId,
}

impl Ancestors for SharedBranch<'_> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.chain.read().tree.branch(self.tip).ancestor(height)
    }
}

#[cfg(test)]
mod tests {
    use varve_consensus::Params;
    use varve_types::{Header, Network};

    use super::*;
    use crate::fixture::{NOW, chain_above, genesis};

    /// Ten blocks, of two branches above: four of the one, six of the other.
    #[test]
    fn a_branch_that_is_going_to_lose_is_not_followed() {
        let mut chain = Chain::new(HeaderTree::new(Params::new(Network::Regtest), [7; 16]));
        let common = chain_above(&genesis(), 10, 1);
        let stale = chain_above(&common[9], 6, 2);
        let winner = chain_above(&common[9], 6 + FAR as usize + 1, 3);
        let (winner, rest) = winner.split_at(6 + FAR as usize);
        let mut insert = |headers: &[_], stored: usize| -> Vec<HeaderId> {
            let insert = |header| chain.tree.insert(Header::new(header), NOW).unwrap();
            let ids: Vec<HeaderId> = headers.iter().map(insert).collect();
            ids[..stored].iter().for_each(|id| chain.tree.mark_stored(*id));
            ids
        };
        let common = insert(&common, 10);
        let (stale, won) = (insert(&stale, 6), insert(winner, 4));
        let target = |chain: &Chain, tip, coming| chain.target(tip, None, Some(coming));
        let (tip, near) = (common[8], *won.last().unwrap());
        assert_eq!(target(&chain, tip, near), stale[5], "what comes is not far above");
        let last = chain.tree.insert(Header::new(&rest[0]), NOW).unwrap();
        assert_eq!(target(&chain, tip, last), common[9]);
        assert_eq!(chain.target(tip, None, None), stale[5], "nothing better comes");
        assert_eq!(target(&chain, stale[5], last), stale[5], "it is not left before it has lost");
        won[4..].iter().take(3).for_each(|id| chain.tree.mark_stored(*id));
        assert_eq!(target(&chain, tip, last), won[6]);
        assert_eq!(target(&chain, stale[5], last), won[6]);
        won[7..].iter().chain([&last]).for_each(|id| chain.tree.mark_stored(*id));
        assert_eq!(target(&chain, tip, last), last);
    }
}
