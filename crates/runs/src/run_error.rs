//! What can go wrong with runs, whatever their rows are.

use std::path::PathBuf;

/// Why an operation on runs failed. A codec's error converts from it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The storage failed, or what it holds is damaged; says where.
    #[error(transparent)]
    Storage(#[from] varve_io::Error),
    /// A run would have more leaves than a run can have.
    #[error(
        "{} has grown past 2^32 pages; lower the fan-in so that runs stay smaller", path.display()
    )]
    TooManyLeaves {
        /// The file.
        path: PathBuf,
    },
    /// The store is being closed; the file being written was given up.
    #[error("the store was closed before the file was written; open it again")]
    Stopped,
}
