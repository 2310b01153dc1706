//! How the memory of a table, one number of bytes, is split.
//!
//! ```text
//!  memory  ├─ index ─┬─ merge ─┬─ buffers ─┬─ young rows ───────────────────┤
//!                                          0              Y/2             Y
//!
//!  Y/2   settled rows are flushed
//!  Y     the next block waits for the flush
//! ```
//!
//! - **index**: directories, 8 bytes a page, and filters, 1.2 bytes a row, of which there are at
//!   most a quarter of the whole.
//! - **merge**: the directory of the run that a merge of everything makes, the index again at most.
//! - **buffers**: 1 MiB of pages for each file being written, a chunk of its filter, and pages read
//!   ahead for each run being merged ([`Buffers`]): a flush and two merges.
//! - **young rows**: what is left, but a quarter of the whole at least: 8 bytes a row.

use varve_runs::Buffers;

/// Tables with less than this have small buffers.
const SMALL: usize = 64 << 20;
/// Bytes of a filter for each row, in tenths.
const FILTER_TENTHS: u64 = 12;
/// Rows are flushed in no larger pieces, so that little has to be read again after a crash.
const FLUSH_ROWS_MAX: usize = 8 << 20;

/// How the memory of a table is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    memory: usize,
    fan_in: usize,
}

impl Budget {
    pub(crate) const fn new(memory: usize, fan_in: usize) -> Self {
        Self { memory, fan_in }
    }

    /// The buffers of one file.
    pub(crate) const fn buffers(&self) -> Buffers {
        if self.memory < SMALL { Buffers::SMALL } else { Buffers::LARGE }
    }

    /// The buffers of a flush and two merges.
    pub(crate) fn all_buffers(&self) -> usize {
        let one = self.buffers();
        let merge = one.writer(usize::MAX) + self.fan_in * one.stream(u64::MAX);
        one.writer(usize::MAX) + 2 * merge
    }

    /// Rows of which there may be filters.
    pub(crate) fn filtered(&self) -> u64 {
        (self.memory as u64 / 4).saturating_mul(10) / FILTER_TENTHS
    }

    /// The most bytes of young rows beside an index of `index` bytes.
    pub(crate) fn young(&self, index: usize) -> usize {
        let others = index.saturating_mul(2).saturating_add(self.all_buffers());
        self.memory.saturating_sub(others).max(self.memory / 4)
    }

    /// Rows that make a flush worth while.
    pub(crate) fn flush_rows(&self, index: usize) -> usize {
        (self.young(index) / 2 / size_of::<u64>()).clamp(1, FLUSH_ROWS_MAX)
    }
}

/// How much memory a table takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchMemory {
    /// What the table was given.
    pub budget: usize,
    /// Rows that are in no run.
    pub young: usize,
    /// The most that they may take before blocks wait.
    pub young_max: usize,
    /// Directories and filters of the runs.
    pub index: usize,
    /// Pages of files being written and merged.
    pub buffers: usize,
}

impl SearchMemory {
    /// All parts together.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.young + self.index + self.buffers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn the_shares_add_up() {
        for memory in [16 * MIB, 64 * MIB, 512 * MIB] {
            let budget = Budget::new(memory, 8);
            let index = memory / 8;
            let all = 2 * index + budget.all_buffers() + budget.young(index);
            assert!(all <= memory + memory / 4, "{all} of {memory}");
            assert!(budget.young(index) >= memory / 4);
            assert!(budget.flush_rows(index) * 16 <= budget.young(index));
        }
    }

    #[test]
    fn a_large_table_flushes_eight_million_rows() {
        assert_eq!(Budget::new(1 << 30, 8).flush_rows(100 * MIB), FLUSH_ROWS_MAX);
    }
}
