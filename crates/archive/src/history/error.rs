//! What can go wrong with the history table.

use std::path::PathBuf;

use varve_runs::RunError;
use varve_types::{BlockHash, Height};

/// What an operation on the history table answers.
pub type Result<T> = std::result::Result<T, HistoryError>;

/// Why an operation on the history table failed. What was connected before stays readable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The storage refused, or bytes on it are damaged.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run was given rows that do not ascend.
    #[error("row {row} does not follow the row before it: drop the script index and add it again")]
    Order {
        /// The row.
        row: String,
    },
    /// A block that does not stand on the last one connected.
    #[error(
        "block {hash} at height {} does not follow the history's last block: connect the blocks \
         of the confirmed chain in order, from the history's tip on", height.to_u32()
    )]
    Gap {
        /// The height of the block.
        height: Height,
        /// The block.
        hash: BlockHash,
    },
    /// More transactions than a row has room for.
    #[error("with block {hash} the chain has more than 2^56 transactions")]
    Full {
        /// The block.
        hash: BlockHash,
    },
    /// The folder holds the table of another store.
    #[error("the history in {} belongs to another store: run `varve repair`", path.display())]
    OtherStore {
        /// The folder.
        path: PathBuf,
    },
    /// The system has no thread for the work beside the writer.
    #[error("cannot start a thread for the history: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<varve_io::Error> for HistoryError {
    fn from(error: varve_io::Error) -> Self {
        Self::Run(error.into())
    }
}

impl HistoryError {
    /// True when freeing space and calling again can help.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Run(RunError::Storage(error)) if error.is_disk_full())
    }

    /// True when stored bytes are not what was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Run(RunError::Storage(error)) => error.is_damage(),
            Self::Order { .. } | Self::OtherStore { .. } => true,
            _ => false,
        }
    }

    pub(super) const fn is_stopped(&self) -> bool {
        matches!(self, Self::Run(RunError::Stopped))
    }
}
