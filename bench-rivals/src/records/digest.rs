//! The digest that proves that all sides did the same work: how many records, and a sum of their
//! hashes that does not depend on their order.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};

/// All records of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordsDigest {
    pub(super) records: u64,
    sum: u64,
}

impl RecordsDigest {
    /// Adds a record, as its plain value.
    pub(super) fn add(&mut self, txid: &[u8], value: &[u8]) {
        let mut hasher = foldhash::quality::FixedState::default().build_hasher();
        hasher.write(txid);
        hasher.write(value);
        self.records += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

impl fmt::Display for RecordsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.records, self.sum)
    }
}
