//! What is known of the blocks behind the headers: stored, whole, invalid.
//!
//! Blocks come in any order. A chain is *whole* up to a header when its block and all below are
//! stored; the moment is kept as a rank, because of two chains with the same work the one that was
//! whole first stays the tip.
//!
//! ```text
//! stored     ■ ■ ■ □ ■ ■         storing the fourth makes the fourth, fifth and sixth whole
//! whole      ■ ■ ■ □ □ □
//! ```
//!
//! A mark of either kind goes up through all descendants by their child links. Taking the best
//! chain away looks through all rows for the next one; that takes a proof of work to cause.

use std::sync::Arc;

use varve_types::BlockHash;

use super::{HeaderId, HeaderTree, Row};

/// Why a block cannot be in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The block that breaks the rules: this one, or one below it.
    pub block: BlockHash,
    /// What is wrong with it.
    pub reason: Arc<str>,
}

impl Invalid {
    /// Whether an operator has set the mark. That says nothing about the giver of the block.
    #[must_use]
    pub fn is_by_operator(&self) -> bool {
        &*self.reason == INVALIDATED
    }
}

/// The reason of a mark that an operator has set.
pub(crate) const INVALIDATED: &str = "invalidated by the operator; `varve reconsider` undoes it";

impl HeaderTree {
    /// The block of this header has been stored.
    pub fn mark_stored(&mut self, id: HeaderId) {
        self.row_mut(id).state.stored = true;
        let below_is_whole = self.parent(id).is_none_or(|parent| self.is_whole(parent));
        if !below_is_whole {
            return;
        }
        let mut rising = vec![id];
        while let Some(id) = rising.pop() {
            if !self.row(id).state.stored || self.is_whole(id) {
                continue;
            }
            self.ranks += 1;
            self.row_mut(id).rank = self.ranks;
            if !self.row(id).state.invalid && self.work(id) > self.work(self.best_chain) {
                self.best_chain = id;
            }
            // The children come latest first; the last pushed is taken first.
            rising.extend(self.children(id));
        }
    }

    /// Whether the block of this header has been stored.
    #[must_use]
    pub fn is_stored(&self, id: HeaderId) -> bool {
        self.row(id).state.stored
    }

    /// Whether this block and all below it have been stored.
    #[must_use]
    pub fn is_whole(&self, id: HeaderId) -> bool {
        self.row(id).rank > 0
    }

    /// The block of this header breaks the rules, and with it all above it. Genesis does not.
    pub fn mark_invalid(&mut self, id: HeaderId, reason: &str) {
        if id == HeaderId::GENESIS {
            return;
        }
        self.reasons.insert(id, Arc::from(reason));
        self.spread(id, true);
        self.choose_again();
    }

    /// Takes the mark of a block back, and with it what all above it inherited.
    pub fn clear_invalid(&mut self, id: HeaderId) {
        if self.reasons.remove(&id).is_none() || self.inherits(id) {
            return;
        }
        self.spread(id, false);
        self.choose_again();
    }

    /// Whether and why this block cannot be in the chain.
    #[must_use]
    pub fn invalid(&self, id: HeaderId) -> Option<Invalid> {
        let mut at = id;
        while self.row(at).state.invalid {
            if let Some(reason) = self.reasons.get(&at) {
                return Some(Invalid { block: self.hash(at), reason: reason.clone() });
            }
            at = self.parent(at)?;
        }
        None
    }

    /// The blocks that are invalid themselves, with their reasons.
    pub(crate) fn invalid_blocks(&self) -> impl Iterator<Item = (HeaderId, &str)> {
        self.reasons.iter().map(|(id, reason)| (*id, &**reason))
    }

    fn inherits(&self, id: HeaderId) -> bool {
        self.parent(id).is_some_and(|parent| self.row(parent).state.invalid)
    }

    /// Sets the mark of a header and of all above it, except those that are marked themselves.
    fn spread(&mut self, id: HeaderId, invalid: bool) {
        let mut rising = vec![id];
        while let Some(at) = rising.pop() {
            if at != id && self.reasons.contains_key(&at) {
                continue;
            }
            self.row_mut(at).state.invalid = invalid;
            rising.extend(self.children(at));
        }
    }

    /// Finds both bests among all rows.
    fn choose_again(&mut self) {
        let (mut header, mut chain) = (HeaderId::GENESIS, HeaderId::GENESIS);
        for id in self.ids() {
            let Row { work, rank, state, .. } = self.row(id);
            if state.invalid {
                continue;
            }
            if *work > self.work(header) {
                header = id;
            }
            let best = self.row(chain);
            if *rank > 0 && (*work > best.work || (*work == best.work && *rank < best.rank)) {
                chain = id;
            }
        }
        (self.best_header, self.best_chain) = (header, chain);
    }
}
