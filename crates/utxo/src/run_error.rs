//! What can go wrong with runs and their manifest.

use std::path::PathBuf;

use varve_runs::Sequence;
use varve_types::{Network, Outpoint};

/// Why an operation on runs failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The storage failed, or what it holds is damaged; says where.
    #[error(transparent)]
    Storage(#[from] varve_io::Error),
    /// Entries count to something that no history of a coin gives.
    #[error(
        "the runs disagree about coin {outpoint} of birth {birth}: its entries count to {count}; \
         rebuild the set from the blocks"
    )]
    Count {
        /// The coin's outpoint.
        outpoint: Outpoint,
        /// The step that created it.
        birth: Sequence,
        /// Adds less deletes, over everything that was merged.
        count: i32,
    },
    /// An entry was passed that does not come after the previous one.
    #[error(
        "entry {outpoint} of birth {birth} is out of order; pass entries by outpoint, then birth"
    )]
    Order {
        /// The entry's outpoint.
        outpoint: Outpoint,
        /// The entry's birth.
        birth: Sequence,
    },
    /// More entries of one outpoint than a page takes.
    #[error("{outpoint} was made and reorganised away too often; rebuild the set from the blocks")]
    Crowd {
        /// The outpoint.
        outpoint: Outpoint,
    },
    /// A coin that cannot be packed: its amount exceeds the money supply, or its bytes are not a
    /// coin.
    #[error("coin {outpoint} cannot be stored: its amount exceeds the money supply")]
    Amount {
        /// The coin's outpoint.
        outpoint: Outpoint,
    },
    /// A run would have more leaves than a run can have.
    #[error(
        "{} has grown past 2^32 pages; lower the fan-in so that runs stay smaller", path.display()
    )]
    TooManyLeaves {
        /// The file.
        path: PathBuf,
    },
    /// The set is being closed, so what was being written is given up.
    #[error("the set was closed before the file was written; open it again")]
    Stopped,
    /// The set belongs to another network.
    #[error(
        "{} holds the unspent set of {found}, not of {wanted}; open another directory",
        path.display()
    )]
    OtherNetwork {
        /// The directory.
        path: PathBuf,
        /// The network in the manifest.
        found: Network,
        /// The network asked for.
        wanted: Network,
    },
}

impl From<varve_runs::RunError> for RunError {
    fn from(error: varve_runs::RunError) -> Self {
        match error {
            varve_runs::RunError::Storage(error) => Self::Storage(error),
            varve_runs::RunError::TooManyLeaves { path } => Self::TooManyLeaves { path },
            varve_runs::RunError::Stopped => Self::Stopped,
        }
    }
}
