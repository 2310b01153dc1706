//! What can go wrong with the undo log.

use std::sync::Arc;

use varve_io::GlobalOffset;

use crate::entry_list::EntryError;

/// Why an undo record cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] varve_io::Error),
    /// A record that verified does not decode.
    #[error(
        "the undo record at position {at} is damaged: {error}; rebuild the set from the blocks"
    )]
    Damaged {
        /// Where it is in the log.
        at: GlobalOffset,
        /// What is wrong.
        error: EntryError,
    },
    /// An earlier write failed, and later ones were not tried.
    #[error("undo records from position {at} on are not written: {cause}")]
    Unwritten {
        /// Where the log ends.
        at: GlobalOffset,
        /// How the earlier write failed, and what to do.
        cause: Arc<str>,
    },
    /// A record that would not be where the one above it says.
    #[error("the undo log ends at {end}, not at {at} where its next record belongs; open it again")]
    OutOfOrder {
        /// Where the record belongs.
        at: GlobalOffset,
        /// Where the log ends.
        end: GlobalOffset,
    },
    /// The block below the last record that is kept cannot be disconnected from here.
    #[error("no undo record is kept for this block; pass a source of spent coins")]
    TooDeep,
}

impl UndoError {
    /// True when a stored record is not what was written, or not there.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Storage(error) => {
                error.is_damage()
                    || matches!(
                        error,
                        varve_io::Error::OutOfRange { .. } | varve_io::Error::NotFound { .. }
                    )
            }
            Self::Damaged { .. } => true,
            Self::Unwritten { .. } | Self::OutOfOrder { .. } | Self::TooDeep => false,
        }
    }
}
