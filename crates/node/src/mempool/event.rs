//! What happens in the mempool, for those who watch.
//!
//! A step ends in this order: its records are durable, [`Sink::publish`] makes its version visible,
//! then its events are delivered, in the order in which they happened. So a watcher that gets an
//! event and asks finds the answer changed.

use std::sync::Arc;

use varve_types::{BlockHash, Outpoint, Txid};

use super::version::Version;

/// Who watches.
pub trait Sink {
    /// Makes a version visible to readers: the node swaps its snapshot here, with the tip that the
    /// version belongs to.
    fn publish(&mut self, version: &Arc<Version>);

    /// Takes an event of the version that was published last.
    fn event(&mut self, event: &Event);
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A transaction is in the mempool now.
    Accepted {
        /// The transaction.
        txid: Txid,
    },
    /// A transaction is no longer in the mempool.
    Removed {
        /// The transaction.
        txid: Txid,
        /// Why.
        reason: Removal,
    },
    /// A transaction was refused because an output that it spends is taken.
    DoubleSpend {
        /// The output.
        outpoint: Outpoint,
        /// Who spends it, and stays.
        holder: Txid,
        /// Who wanted it.
        refused: Txid,
    },
}

/// Why a transaction left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A block has it.
    Mined {
        /// The block.
        block: BlockHash,
    },
    /// Another transaction took its place (RBF), or that of one it builds on.
    Replaced {
        /// The replacement.
        by: Txid,
    },
    /// A confirmed transaction, or one that the node accepted, spends what it spends, or what one
    /// that it builds on spends.
    Conflict {
        /// The winner.
        with: Txid,
    },
    /// There was no room, and it paid least.
    Evicted,
    /// It waited too long.
    Expired,
    /// A reorganisation took away what it needs: a coin, a mature coinbase or a passed lock time.
    Invalidated,
    /// The node that decides no longer has it.
    Dropped,
}

impl Removal {
    /// Whether it lost a double spend: its record stays, marked as conflicting.
    pub(super) const fn is_conflict(&self) -> bool {
        matches!(self, Self::Replaced { .. } | Self::Conflict { .. })
    }
}
