//! Links: how one row names another.
//!
//! A link is the number of a row in its table, counted from zero in the order of writing. It is the
//! row's primary key and is never stored in the row itself. Each table has its own type, so a
//! transaction cannot be looked up in the header table.
//!
//! Rows are appended and never changed, so a *bound* (the number of rows at some moment) says
//! exactly which rows that moment had.

use std::fmt;

/// A row of the header table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderLink(u32);

impl HeaderLink {
    /// The row with this number.
    #[must_use]
    pub const fn new(row: u32) -> Self {
        Self(row)
    }

    /// The number of the row.
    #[must_use]
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// The number of the row, as an index in memory.
    #[must_use]
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("a u32 is an address")
    }
}

impl fmt::Display for HeaderLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header row {}", self.0)
    }
}

/// A row of the transaction table: one transaction in one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxLink(u64);

impl TxLink {
    /// The row with this number.
    #[must_use]
    pub const fn new(row: u64) -> Self {
        Self(row)
    }

    /// The number of the row.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The row `count` further on. Rows are far fewer than 2^64.
    #[must_use]
    pub fn plus(self, count: u32) -> Self {
        Self(self.0.saturating_add(u64::from(count)))
    }
}

impl fmt::Display for TxLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction row {}", self.0)
    }
}

/// How many rows the tables have at some moment: what a reader at that moment may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Rows of the header table.
    pub headers: u32,
    /// Rows of the transaction table.
    pub txs: u64,
}

impl Bounds {
    /// Whether the header row existed at the moment.
    #[must_use]
    pub(crate) const fn has_header(&self, link: HeaderLink) -> bool {
        link.0 < self.headers
    }

    /// Whether the transaction row existed at the moment.
    #[must_use]
    pub(crate) const fn has_tx(&self, link: TxLink) -> bool {
        link.0 < self.txs
    }
}
