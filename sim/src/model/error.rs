//! Why the model refuses a block or a transaction.

use varve_types::{BlockHash, DecodeError};

/// Why the model refuses a block or a transaction.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The bytes are not a block or a transaction.
    #[error("bytes do not decode: {0}")]
    Decode(#[from] DecodeError),
    /// A block whose parent never arrived.
    #[error("block {hash} has the unknown parent {previous}")]
    Orphan {
        /// The block.
        hash: BlockHash,
        /// Its parent.
        previous: BlockHash,
    },
    /// A reorg below the undo data.
    #[error("block {hash} forks off deeper than the model can rewind")]
    TooDeep {
        /// The tip of the other branch.
        hash: BlockHash,
    },
    /// A rule of consensus is broken.
    #[error("at height {height}: {rule}")]
    Rule {
        /// The block's height, or the next one for an unconfirmed transaction.
        height: u32,
        /// What is wrong.
        rule: String,
    },
}
