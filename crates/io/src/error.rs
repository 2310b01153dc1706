//! What can go wrong under the seam, each case with the file, the offset and what to do.
//!
//! Two layers. A [`FormatError`] comes from a decoder, which sees bytes and no file: it says what
//! is wrong and at which byte of the slice. An [`Error`] comes from an operation on a file and
//! adds the path; a `FormatError` becomes [`Error::Corrupt`] by [`FormatError::in_file`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::offset::{FileOffset, GlobalOffset};

/// The result of every operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on storage failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb: `read`, `sync`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// No space is left. Nothing acknowledged is lost: free some space and call again.
    #[error("the disk is full: cannot {action} {}; free some space and try again", path.display())]
    DiskFull {
        /// What was attempted.
        action: &'static str,
        /// The file that could not grow.
        path: PathBuf,
    },
    /// An earlier failure left the disk in an unknown state, so writing has stopped.
    #[error(
        "writing has stopped since this failure: {cause}; check the disk, then open the store again"
    )]
    Poisoned {
        /// The first failure.
        cause: Arc<str>,
    },
    /// A file ends before bytes that must be there.
    #[error(
        "{} ends at byte {len}, but bytes up to {wanted} are needed; restore the file",
        path.display()
    )]
    UnexpectedEnd {
        /// The file.
        path: PathBuf,
        /// Where it ends.
        len: FileOffset,
        /// Where it must reach.
        wanted: FileOffset,
    },
    /// Bytes that were written completely have changed since.
    #[error(
        "{} is damaged at byte {offset}: {what}; restore the file or rebuild the store",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the damage was seen.
        offset: FileOffset,
        /// What is wrong there.
        what: &'static str,
    },
    /// The file is sound, but of a format this program does not read.
    #[error(
        "{} has format version {found}, this program reads {supported}; use a matching release",
        path.display()
    )]
    WrongVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version this program reads.
        supported: u32,
    },
    /// Another opener holds the directory.
    #[error("{} is in use by {holder}; stop it first, or open another directory", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The holder that the lock file names.
        holder: String,
    },
    /// The file does not exist.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The missing file.
        path: PathBuf,
    },
    /// A file to be created exists.
    #[error("{} exists already; remove it first", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// A file has a name that the store would give, but the store did not write it.
    #[error("{} was not written by this store; move it to another place", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Bytes under a memory map must not change.
    #[error(
        "cannot {action} {}: it is mapped up to byte {end}; drop its readers first",
        path.display()
    )]
    Mapped {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The end of the furthest map that is in the way.
        end: FileOffset,
    },
    /// A position outside what a log holds: pruned, cut off, or never written.
    #[error("position {at} is outside the log {}, which holds {start} to {end}", path.display())]
    OutOfRange {
        /// The log's first file, or its directory.
        path: PathBuf,
        /// The position asked for.
        at: GlobalOffset,
        /// The first position held.
        start: GlobalOffset,
        /// The position after the last one held.
        end: GlobalOffset,
    },
    /// A piece is bigger than its container allows.
    #[error(
        "{len} bytes do not fit into {}, which takes {limit}; pass less at once",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The length given.
        len: u64,
        /// The longest that fits.
        limit: u64,
    },
    /// A file name with a path in it.
    #[error("`{name}` is not a plain file name; pass a name without `/`, not `.` or `..`")]
    BadName {
        /// The name given.
        name: String,
    },
}

impl Error {
    /// Sorts an error of the operating system into its variant.
    pub(crate) fn from_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path },
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::DiskFull { action, path },
            _ => Self::Io { action, path, source },
        }
    }

    /// True when freeing space and calling again can help.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull { .. })
    }

    /// True when stored bytes are not what was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::UnexpectedEnd { .. })
    }
}

/// What a decoder found wrong with a slice of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes are not what was written.
    #[error("{what} at byte {at}")]
    Damaged {
        /// The byte of the slice.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// The bytes are sound, but of another version.
    #[error("format version {found}, expected {supported}")]
    Version {
        /// The version found.
        found: u32,
        /// The version this program reads.
        supported: u32,
    },
}

impl FormatError {
    pub(crate) const fn damaged(at: usize, what: &'static str) -> Self {
        Self::Damaged { at, what }
    }

    /// The same finding as an error of the file whose bytes from `base` were decoded.
    #[must_use]
    pub fn in_file(self, path: &Path, base: FileOffset) -> Error {
        let path = path.to_path_buf();
        match self {
            Self::Damaged { at, what } => {
                Error::Corrupt { path, offset: base.plus(at as u64), what }
            }
            Self::Version { found, supported } => Error::WrongVersion { path, found, supported },
        }
    }
}
