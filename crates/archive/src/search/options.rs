//! Options of a search table. All of them may change from one opening to the next.

use varve_runs::Compaction;

/// Memory, merging and flushing of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// The memory budget in bytes.
    pub memory: usize,
    /// Runs of similar size that are merged into one.
    pub fan_in: usize,
    /// The most rows of one flush, however much memory there is.
    pub flush_rows: usize,
    /// Transactions that make a flush due, however few rows they have: it bounds the blocks that
    /// are read again after a crash.
    pub flush_links: u64,
    /// Whether flushes and merges run in background threads.
    pub compaction: Compaction,
}

impl Default for SearchOptions {
    /// 256 MiB. Runs of eight million rows are merged eight at a time; a crash leaves the blocks of
    /// at most as many transactions to be read again.
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            fan_in: 8,
            flush_rows: 8 << 20,
            flush_links: 8 << 20,
            compaction: Compaction::Threads,
        }
    }
}
