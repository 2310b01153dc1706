//! How a table is kept. All of it may differ from one opening to the next.

use varve_runs::Compaction;

/// How a table is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// The bytes of memory that the table may take.
    pub memory: usize,
    /// How many alike runs are merged into one.
    pub fan_in: usize,
    /// Rows that are flushed together at most, however much memory there is.
    pub flush_rows: usize,
    /// A flush is due when so many transactions may be flushed, however few rows they have: after
    /// a crash their blocks are read again.
    pub flush_links: u64,
    /// Whether flushes and merges have threads of their own.
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
