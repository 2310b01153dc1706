//! Why a header does not come into the tree, and who is to blame.

use varve_consensus::HeaderError;
use varve_types::BlockHash;

use super::Invalid;

/// Why a header was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The header below it is not known. Ask the giver for the headers between.
    #[error("{hash} follows {previous}, which is not known: ask for the headers below it")]
    Orphan {
        /// The header.
        hash: BlockHash,
        /// The one below it.
        previous: BlockHash,
    },
    /// It breaks a rule, or could not be checked.
    #[error("{hash} is refused: {source}")]
    Refused {
        /// The header.
        hash: BlockHash,
        /// The rule.
        source: HeaderError,
    },
    /// Its block, or one below, is known to break a rule.
    #[error("{hash} is or stands on an invalid block: {}", invalid.reason)]
    Invalid {
        /// The header.
        hash: BlockHash,
        /// That block, and what is wrong with it.
        invalid: Invalid,
    },
}

impl InsertError {
    /// Whether the giver is to blame: not for an orphan, nor for a clock that may be ours, nor for
    /// a mark that our operator has set.
    #[must_use]
    pub fn is_blameworthy(&self) -> bool {
        match self {
            Self::Orphan { .. } => false,
            Self::Refused { source, .. } => {
                !matches!(source, HeaderError::TimeTooNew { .. } | HeaderError::MissingAncestor(_))
            }
            Self::Invalid { invalid, .. } => !invalid.is_by_operator(),
        }
    }

    /// What is wrong with the block that is at fault, with Core's name of it where it has one.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Orphan { .. } => self.to_string(),
            Self::Refused { source, .. } => match source.reject_reason() {
                Some(name) => format!("{name}: {source}"),
                None => source.to_string(),
            },
            Self::Invalid { invalid, .. } => invalid.reason.to_string(),
        }
    }

    /// The block that is at fault: the header's, or the invalid one below it.
    #[must_use]
    pub const fn culprit(&self) -> BlockHash {
        match self {
            Self::Orphan { hash, .. } | Self::Refused { hash, .. } => *hash,
            Self::Invalid { invalid, .. } => invalid.block,
        }
    }
}
