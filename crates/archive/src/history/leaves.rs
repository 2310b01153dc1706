//! Leaves in memory: the rows of a block, sorted, in small leaves behind one another.
//!
//! A lookup finds the leaf by the first keys and scans its groups, so leaves are an eighth of a
//! page: about 15 groups, a quarter of a microsecond.

use varve_io::FormatError;

use super::leaf::{self, Leaf};
use super::row::{Key, Row};

/// Bytes of a leaf.
const LIMIT: usize = 512;

/// Rows in leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaves {
    firsts: Vec<Key>,
    /// Where each leaf ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Leaves {
    /// Encodes rows in order.
    pub(super) fn new(mut rows: &[Row]) -> Self {
        let mut leaves = Self::default();
        while let Some(first) = rows.first() {
            leaves.firsts.push(first.key);
            let ahead = rows.get(..LIMIT).unwrap_or(rows);
            let taken = leaf::encode(ahead, LIMIT, &mut leaves.bytes);
            leaves.ends.push(leaves.bytes.len());
            rows = rows.get(taken..).unwrap_or_default();
        }
        leaves.bytes.shrink_to_fit();
        leaves.firsts.shrink_to_fit();
        leaves.ends.shrink_to_fit();
        leaves
    }

    pub(super) const fn count(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.firsts.capacity() * size_of::<Key>()
            + self.ends.capacity() * size_of::<usize>()
    }

    /// The leaf that has the last row not above `key`; `None` when all are above.
    pub(super) fn locate(&self, key: &Key) -> Option<usize> {
        self.firsts.partition_point(|first| first <= key).checked_sub(1)
    }

    pub(super) fn first(&self, number: usize) -> Option<&Key> {
        self.firsts.get(number)
    }

    /// A leaf, whose links count from `base`.
    pub(super) fn leaf(&self, number: usize, base: u64) -> Result<Leaf<'_>, FormatError> {
        let before = number.checked_sub(1).and_then(|before| self.ends.get(before));
        let start = before.copied().unwrap_or(0);
        let end = self.ends.get(number).copied().unwrap_or(start);
        Leaf::parse(self.bytes.get(start..end).unwrap_or_default(), base)
    }
}
