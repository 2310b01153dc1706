//! What can go wrong with a table.

use std::path::PathBuf;

use varve_io::GlobalOffset;

/// The result of an operation on a table.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on a table failed. What was committed before stays readable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage refused, or bytes on it are damaged.
    #[error(transparent)]
    Io(#[from] varve_io::Error),
    /// The tables were written by another version of the program.
    #[error(
        "{} has format {found}, this program reads {supported}: run `varve repair`, or sync into \
         a new folder", path.display()
    )]
    OtherVersion {
        /// The manifest.
        path: PathBuf,
        /// The format that it has.
        found: u32,
        /// The format that this program reads.
        supported: u32,
    },
    /// The links of the table are used up.
    #[error("the table `{table}` is full: it holds {rows} rows; split it or widen its links")]
    Full {
        /// The table.
        table: String,
        /// How many rows it holds.
        rows: u64,
    },
    /// A link that names no row.
    #[error("row {link} is not in the table `{table}`, which ends at {end}")]
    NoRow {
        /// The table.
        table: String,
        /// The link asked for, or found in a row.
        link: u64,
        /// The first link that is not given out.
        end: u64,
    },
    /// A chain of rows that never ends, or rows that fit to no chain.
    #[error("the rows of the table `{table}` do not chain at row {link}; run `varve repair`")]
    BrokenChain {
        /// The table.
        table: String,
        /// The row.
        link: u64,
    },
    /// A value that a slab body cannot hold.
    #[error("a value of {len} bytes does not fit into `{table}`, which takes {least} to {most}")]
    SlabLength {
        /// The table.
        table: String,
        /// The length given.
        len: usize,
        /// The shortest value.
        least: usize,
        /// The longest value.
        most: usize,
    },
    /// An index behind the end of an array.
    #[error("index {index} is behind the end of the array `{table}`, which is {len}")]
    NoIndex {
        /// The array.
        table: String,
        /// The index asked for.
        index: u64,
        /// The length of the array.
        len: u64,
    },
    /// The body was written at another position than its links say.
    #[error("`{table}` wrote a slab at {written}, its link says {link}; open the store again")]
    Misplaced {
        /// The table.
        table: String,
        /// The link.
        link: u64,
        /// The position in the body.
        written: GlobalOffset,
    },
    /// A manifest or a mark that is sound but cannot be used.
    #[error("the checkpoint `{table}` cannot be used: {what}")]
    BadMark {
        /// The table, or the manifest.
        table: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl Error {
    /// True when freeing space and calling again can help.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io(error) if error.is_disk_full())
    }

    /// True when stored bytes are not what was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Io(error) => error.is_damage(),
            Self::BrokenChain { .. } | Self::BadMark { .. } => true,
            _ => false,
        }
    }
}
