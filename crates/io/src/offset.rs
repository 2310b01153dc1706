//! Two kinds of position that must never be mixed up.
//!
//! A [`FileOffset`] counts bytes from the start of one file. A [`GlobalOffset`] counts bytes from
//! the start of a log that is spread over many files. If they are confused, a rollback can cut one
//! segment file at the length of the whole log: right with one segment, data loss with two. So
//! confusing them does not compile:
//!
//! ```compile_fail
//! # use varve_io::{FileOffset, GlobalOffset};
//! let end_of_log = GlobalOffset::new(5_000);
//! let cut: FileOffset = end_of_log;
//! ```

use std::fmt;

/// A position in one file, in bytes from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileOffset(u64);

/// A position in a log of many files, in bytes from the log's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GlobalOffset(u64);

impl FileOffset {
    /// The start of the file.
    pub const ZERO: Self = Self(0);

    /// The position `bytes` after the start.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The distance from the start in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `bytes` further on. Saturates: a saturated position is past the end of every
    /// file, so reading there fails.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }
}

impl GlobalOffset {
    /// The start of the log.
    pub const ZERO: Self = Self(0);

    /// The position `bytes` after the start.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The distance from the start in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `bytes` further on, saturating like [`FileOffset::plus`].
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }

    /// How far this lies after `earlier`, or `None` when it lies before it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }
}

impl fmt::Display for FileOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for GlobalOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
