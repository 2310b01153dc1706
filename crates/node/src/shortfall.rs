//! Whether a sync came as far as it should.
//!
//! A sync ends when its source has no more. That is a success when the chain ends at the best
//! header that is known, or at the height where it was to stop. Otherwise something is missing, and
//! a script that runs the command must be able to see it. The first line that applies decides:
//!
//! | the chain ends | then |
//! |---|---|
//! | at the stop height or above | done |
//! | below the best header | [`Shortfall::Behind`] |
//! | because a refused block or header bars a branch with more work | [`Shortfall::Refused`] |
//! | and a block cannot be read that may belong above the tip | [`Shortfall::Unread`] |
//! | below the network's known work, and the source was peers | [`Shortfall::LittleWork`] |
//! | otherwise: what was refused or not read is stale | done |
//!
//! The best header is that of the branches without a mark. A block that the operator has marked is
//! not a refusal. What a sync has left out is in [`LeftOut`](crate::organizer::LeftOut).

use std::fmt;

use varve_types::{BlockHash, Height, Network};

use crate::header_tree::{HeaderId, HeaderTree, Invalid};
use crate::organizer::Organizer;
use crate::source::Warning;

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
        /// How many blocks above it were left out with it.
        above: u64,
        /// Whether its header was taken. Else there is nothing to reconsider.
        is_known: bool,
    },
    /// A block of the source could not be read, and may belong above the tip.
    Unread {
        /// Where the chain ends.
        tip: Height,
        /// What the source said.
        warning: Warning,
    },
    /// Peers have given a chain that has less work than the network's.
    LittleWork {
        /// Where the chain ends.
        tip: Height,
        /// The network.
        network: Network,
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
                         from another source, or run `varve invalidate {hash}` to give its branch \
                         up"
                    ),
                    None => write!(f, "; run the same command again"),
                }
            }
            Self::Refused { tip, invalid: Invalid { block, reason }, above, is_known } => {
                write!(
                    f,
                    "the chain ends at height {tip}, because block {block} on a branch with more \
                     work is refused ({reason})"
                )?;
                if *above > 0 {
                    write!(f, ", and with it {above} above it")?;
                }
                write!(f, "; sync from another source")?;
                match is_known {
                    true => write!(f, ", or run `varve reconsider` if the verdict is wrong"),
                    false => Ok(()),
                }
            }
            Self::Unread { tip, warning } => write!(
                f,
                "the chain ends at height {tip}, and {warning}; sync from another source too"
            ),
            Self::LittleWork { tip, network } => write!(
                f,
                "the chain ends at height {tip} with less work than the chain of {network} has; \
                 name other peers"
            ),
        }
    }
}

impl Organizer {
    /// What is missing after the last sync, which was to stop at `stop`.
    #[must_use]
    pub fn shortfall(&self, stop: Option<Height>) -> Option<Shortfall> {
        let tree = &self.stores.chain.read().tree;
        let (id, best) = (self.stores.tip, tree.best_header());
        let (tip, work) = (tree.height(id), tree.work(id));
        if stop.is_some_and(|stop| tip >= stop) {
            return None;
        }
        if tree.work(best) > work {
            let missing = tree.to_fetch(best, 1).first().copied();
            let missing = missing.map(|id| (tree.height(id), tree.hash(id)));
            return Some(Shortfall::Behind { tip, headers: tree.height(best), missing });
        }
        if let Some((invalid, above)) = self.better_refused(tree) {
            return Some(Shortfall::Refused { tip, invalid, above, is_known: true });
        }
        if let Some(refused) = self.left_out.better_header(tree, work) {
            let is_known = tree.find(&refused.invalid.block).is_some();
            let (invalid, above) = (refused.invalid, refused.above);
            return Some(Shortfall::Refused { tip, invalid, above, is_known });
        }
        if let Some(warning) = self.left_out.better_unread(work) {
            return Some(Shortfall::Unread { tip, warning: warning.clone() });
        }
        let params = tree.params();
        let is_low = self.left_out.is_of_peers() && work < params.minimum_work;
        is_low.then_some(Shortfall::LittleWork { tip, network: params.network })
    }

    /// A block of the tree that was refused although a branch above it has more work than the tip,
    /// and how many blocks that branch has above it.
    fn better_refused(&self, tree: &HeaderTree) -> Option<(Invalid, u64)> {
        let work = tree.work(self.stores.tip);
        let refused = |leaf: HeaderId| {
            let invalid = tree.invalid(leaf).filter(|_| tree.work(leaf) > work)?;
            let is_ours = invalid.is_by_operator() || !self.left_out.is_refused(&invalid.block);
            let height = tree.height(tree.find(&invalid.block)?).to_u32();
            (!is_ours).then(|| (invalid, u64::from(tree.height(leaf).to_u32() - height)))
        };
        let leaves = tree.ids().filter(|id| tree.children(*id).next().is_none());
        leaves.filter_map(refused).max_by_key(|(_, above)| *above)
    }
}
