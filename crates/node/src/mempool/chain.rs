//! What the mempool asks of the confirmed chain, and what it is given of blocks.

use std::fmt;

use varve_consensus::{Ancestors, OwnedCoin};
use varve_types::{Block, BlockHash, Height, Outpoint};

use crate::commit_log::CommitSequence;

/// The end of the confirmed chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Its height.
    pub height: Height,
    /// Its hash.
    pub hash: BlockHash,
    /// The commit that made it the tip.
    pub sequence: CommitSequence,
}

/// The confirmed chain at one commit: its unspent outputs, and its headers for lock times.
pub trait Chain: Ancestors {
    /// The last block.
    fn tip(&self) -> Tip;

    /// The coins at these outpoints, in their order; `None` where none is unspent. One call serves
    /// a batch of transactions.
    fn coins(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<OwnedCoin>>, ChainError>;
}

/// Where and when a step is made.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The chain that the version of the step belongs to.
    pub chain: &'a dyn Chain,
    /// Seconds of the caller's clock.
    pub now: u64,
}

impl fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("tip", &self.chain.tip()).field("now", &self.now).finish()
    }
}

/// The unspent set could not be asked.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the unspent set could not answer the mempool: {0}")]
pub struct ChainError(pub String);

/// A block that joins the confirmed chain or leaves it.
#[derive(Clone, Copy, Debug)]
pub struct ChainBlock<'a> {
    /// Its height.
    pub height: Height,
    /// The block.
    pub block: &'a Block<'a>,
}

/// One move of the tip: blocks left, the tip first; then blocks joined, the lowest first. A
/// reorganisation is one change.
#[derive(Clone, Copy, Debug)]
pub struct ChainChange<'a> {
    /// Blocks that left, from the old tip down to the fork.
    pub disconnected: &'a [ChainBlock<'a>],
    /// Blocks that joined, from the fork up to the new tip.
    pub connected: &'a [ChainBlock<'a>],
}
