//! What can go wrong with a search table.

use std::path::PathBuf;

use varve_runs::RunError;

use super::row::Row;
use crate::link::TxLink;

/// What an operation on a search table answers.
pub type Result<T> = std::result::Result<T, SearchError>;

/// Why an operation on a search table failed. What was appended before stays readable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The storage refused, or bytes on it are damaged.
    #[error(transparent)]
    Run(RunError),
    /// The table was written by another version of the program.
    #[error(
        "{} has format {found}, this program reads {supported}: run `varve repair`, or sync into \
         a new folder", path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version this program reads.
        supported: u32,
    },
    /// A run was given rows that do not ascend.
    #[error("row {row} does not follow the row before it: run `varve repair`")]
    Order {
        /// The row.
        row: Row,
    },
    /// A block whose links are not the next ones.
    #[error("the block of {first} was appended where that of {end} is due: append them in order")]
    Gap {
        /// The first link of the block.
        first: TxLink,
        /// The link that is due.
        end: TxLink,
    },
    /// A link that has more bits than a row has room for.
    #[error("{link} is beyond 2^56, which a search table cannot hold")]
    Link {
        /// The link.
        link: TxLink,
    },
    /// The table was saved later than the tables it leads to.
    #[error(
        "the search table in {} knows transactions up to {watermark}, the archive only up to \
         {bound}: they are of different moments; run `varve repair`", path.display()
    )]
    Ahead {
        /// The folder.
        path: PathBuf,
        /// The first link that is not in the table's runs.
        watermark: TxLink,
        /// The first link that the archive does not have.
        bound: TxLink,
    },
    /// The folder holds the table of another store.
    #[error("the search table in {} belongs to another store: run `varve repair`", path.display())]
    OtherStore {
        /// The folder.
        path: PathBuf,
    },
    /// The system has no thread for the work beside the writer.
    #[error("cannot start a thread for the search table: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<varve_io::Error> for SearchError {
    fn from(error: varve_io::Error) -> Self {
        RunError::from(error).into()
    }
}

/// The tables can be rebuilt from the blocks, so another version is no dead end here.
impl From<RunError> for SearchError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Storage(varve_io::Error::WrongVersion { path, found, supported }) => {
                Self::OtherVersion { path, found, supported }
            }
            error => Self::Run(error),
        }
    }
}

impl SearchError {
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
            Self::Order { .. } | Self::Ahead { .. } | Self::OtherStore { .. } => true,
            _ => false,
        }
    }

    pub(super) const fn is_stopped(&self) -> bool {
        matches!(self, Self::Run(RunError::Stopped))
    }
}
