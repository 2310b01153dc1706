//! What a sync reports while it runs: progress, new tips, refusals, warnings.

use varve_types::{BlockHash, Height};

use crate::mempool;
use crate::settings::Index;
use crate::source::Warning;

/// What happens during a sync.
#[derive(Debug)]
pub enum Report<'a> {
    /// Headers came.
    Headers {
        /// The height of the best header.
        height: Height,
    },
    /// A block was stored.
    Stored {
        /// Its length.
        bytes: u64,
    },
    /// A block was joined to the set. Readers do not see it yet.
    Connected {
        /// Its height.
        height: Height,
        /// Its length.
        bytes: u64,
    },
    /// The tip moved.
    Committed {
        /// The height of the tip.
        height: Height,
        /// The tip.
        hash: BlockHash,
    },
    /// A header or block was refused.
    Refused {
        /// The block.
        hash: BlockHash,
        /// Why.
        reason: &'a str,
    },
    /// An index that lags caught up with a block.
    Indexed {
        /// The index.
        index: Index,
        /// How many blocks it has.
        done: u64,
        /// How many it is to have.
        all: u64,
    },
    /// Search tables are merged at the end of a sync.
    Merging {
        /// About how many bytes are done.
        done: u64,
        /// How many are to be.
        all: u64,
    },
    /// Scripts of a confirmed block were checked in place.
    ScriptsChecked {
        /// How many blocks are done.
        done: u64,
        /// How many are to be.
        all: u64,
    },
    /// Scripts of confirmed blocks cannot be checked, because blocks are pruned.
    ScriptsPruned {
        /// How many blocks stay unchecked.
        blocks: u64,
    },
    /// Nobody has the bytes of a block.
    Missing {
        /// The block.
        hash: BlockHash,
    },
    /// The mempool is open: readers see it.
    MempoolOpened {
        /// Transactions that it kept from before.
        kept: usize,
    },
    /// Readers see another version of the mempool, at the same tip or at a new one.
    MempoolChanged {
        /// What happened, in its order. A commit that moves the tip comes before.
        events: &'a [mempool::Event],
    },
    /// There is no mempool for a while; the chain goes on.
    MempoolClosed {
        /// Why.
        reason: &'a str,
    },
    /// The source warns.
    Warning(&'a Warning),
}
