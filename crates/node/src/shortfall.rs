//! Whether a sync came as far as it should.
//!
//! A sync ends when its source has no more. That is a success when the chain ends at the best
//! header that is known, or at the height where it was to stop. Otherwise something is missing, and
//! whoever runs the command in a script must hear of it.
//!
//! | the chain ends | a refused block has a branch with more work | then |
//! |---|---|---|
//! | at the stop height or above | – | done |
//! | below the best header | – | [`Shortfall::Behind`] |
//! | at the best header | yes | [`Shortfall::Refused`] |
//! | at the best header | no | done: what was refused is stale |
//!
//! The best header is that of the branches without a mark. A block that the operator has marked is
//! not a refusal.

use std::collections::BTreeSet;
use std::fmt;

use varve_types::{BlockHash, Height};

use crate::header_tree::Invalid;
use crate::organizer::{INVALIDATED, Organizer};

/// What is missing after a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortfall {
    /// The chain ends below the best header.
    Behind {
        /// Where the chain ends.
        tip: Height,
        /// Where the headers end.
        headers: Height,
        /// The lowest block of their branch that is not stored.
        missing: Option<(Height, BlockHash)>,
    },
    /// A block that was refused keeps the chain from a branch with more work.
    Refused {
        /// Where the chain ends.
        tip: Height,
        /// The block, and why.
        invalid: Invalid,
    },
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Behind { tip, headers, missing } => {
                write!(f, "the chain ends at height {tip}, but headers go up to {headers}")?;
                match missing {
                    Some((height, hash)) => write!(
                        f,
                        ": block {hash} at height {height} did not come or cannot be read; sync \
                         from another source"
                    ),
                    None => write!(f, "; run the same command again"),
                }
            }
            Self::Refused { tip, invalid: Invalid { block, reason } } => write!(
                f,
                "the chain ends at height {tip}, because block {block} on a branch with more work \
                 is refused ({reason}); sync from another source, or run `varve reconsider` if the \
                 verdict is wrong"
            ),
        }
    }
}

impl Organizer {
    /// What is missing after a sync that was to stop at `stop` and refused these blocks.
    #[must_use]
    pub fn shortfall(
        &self,
        stop: Option<Height>,
        refused: &BTreeSet<BlockHash>,
    ) -> Option<Shortfall> {
        let tree = &self.stores.chain.read().tree;
        let (tip, best) = (self.stores.tip, tree.best_header());
        let height = tree.height(tip);
        if stop.is_some_and(|stop| height >= stop) {
            return None;
        }
        if tree.work(best) > tree.work(tip) {
            let missing = tree.to_fetch(best, 1).first().copied();
            let missing = missing.map(|id| (tree.height(id), tree.hash(id)));
            return Some(Shortfall::Behind { tip: height, headers: tree.height(best), missing });
        }
        let has_more_work = |hash: &BlockHash| {
            let id = tree.find(hash)?;
            let tips = tree.chain_tips(tip);
            let tips = tips.iter().filter_map(|tip| tree.find(&tip.hash));
            let work = tips.filter(|leaf| tree.is_on_branch(id, *leaf)).map(|leaf| tree.work(leaf));
            work.max().filter(|work| *work > tree.work(tip))
        };
        let invalid = refused.iter().filter(|hash| has_more_work(hash).is_some());
        let invalid = invalid.filter_map(|hash| tree.invalid(tree.find(hash)?));
        let mut invalid = invalid.filter(|invalid| &*invalid.reason != INVALIDATED);
        invalid.next().map(|invalid| Shortfall::Refused { tip: height, invalid })
    }
}
