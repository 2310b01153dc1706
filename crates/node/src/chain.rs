//! The header tree, and which blocks have been found valid on their branch.
//!
//! The organizer writes it; the workers that check blocks look back along branches meanwhile. So it
//! is behind a lock, which both hold for moments.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use varve_consensus::{Ancestor, Ancestors};
use varve_types::Height;

use crate::header_tree::{HeaderId, HeaderTree};

/// A branch is not followed while one that is arriving is more blocks above it than this: a day's.
const FAR: u32 = 144;

/// The headers and what is known of them.
pub(crate) struct Chain {
    pub(crate) tree: HeaderTree,
    /// By the number of the header: its block was connected, checked and good.
    valid: Vec<bool>,
}

impl Chain {
    pub(crate) const fn new(tree: HeaderTree) -> Self {
        Self { tree, valid: Vec::new() }
    }

    /// The block of this header may be connected without checks.
    pub(crate) fn is_valid(&self, id: HeaderId) -> bool {
        self.valid.get(id.to_u32() as usize).copied().unwrap_or_default()
    }

    pub(crate) fn set_valid(&mut self, id: HeaderId) {
        let index = id.to_u32() as usize;
        if self.valid.len() <= index {
            self.valid.resize(index + 1, false);
        }
        if let Some(valid) = self.valid.get_mut(index) {
            *valid = true;
        }
    }

    /// All blocks up to this one are valid.
    pub(crate) fn set_branch_valid(&mut self, tip: HeaderId) {
        let mut at = Some(tip);
        while let Some(id) = at.filter(|id| !self.is_valid(*id)) {
            self.set_valid(id);
            at = self.tree.parent(id);
        }
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
        if tree.work(best) <= tree.work(tip) && tree.invalid(tip).is_none() {
            return tip;
        }
        let height = stop.map_or(tree.height(best), |stop| stop.min(tree.height(best)));
        let target = tree.ancestor(best, height).expect("not above the best");
        let is_worse = tree.work(target) < tree.work(tip) && tree.invalid(tip).is_none();
        if is_worse || tree.is_on_branch(target, tip) { tip } else { target }
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
