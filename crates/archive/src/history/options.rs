//! How the table is kept. All of it may differ from one opening to the next.

use varve_runs::Compaction;

/// How the history table is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// The bytes of memory that the table may take.
    pub memory: usize,
    /// How many alike runs are merged into one.
    pub fan_in: usize,
    /// Blocks below the tip that stay in memory while there is room.
    pub window: u32,
    /// A flush is due when blocks below the window take this many bytes.
    pub flush_bytes: usize,
    /// A flush is due when this many blocks are below the window, however small they are: every
    /// lookup asks each of them, and after a crash they are connected again.
    pub flush_blocks: usize,
    /// Whether flushes and merges have threads of their own.
    pub compaction: Compaction,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            fan_in: 8,
            window: 144,
            flush_bytes: 64 << 20,
            flush_blocks: 256,
            compaction: Compaction::Threads,
        }
    }
}
