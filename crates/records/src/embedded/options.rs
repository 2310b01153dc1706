//! The settings of a store on disk, and how a memory budget is split.
//!
//! ```text
//!  within(memory)   1/8   the youngest files of the log          at most 256 MiB
//!                   1/16  the file being written                 4 MiB to 128 MiB
//!                   1/4   the index: changes since the last checkpoint, filters, directories
//!                   3/8   records in lists: unmined, due, preserved, conflicting
//!                   rest  what operations under way hold
//! ```
//!
//! A record that scans look for stays in memory, some 58 bytes each, so that a page of a scan costs
//! what it returns. Their number is the caller's doing: unmined transactions, and spent ones that
//! wait for the pruner. So it has a share of the budget, and beyond it new records are refused with
//! [`EngineError::Full`]. Everything that shrinks the lists still works: blocks, pruning, deletion.

use std::fmt;

use varve_io::StoreId;
use varve_runs::Compaction;

#[cfg(doc)]
use crate::engine::{EngineError, EngineStatus};

/// What a store is known by. Both are drawn at random by the program that creates the store; an
/// existing store keeps its own.
#[derive(Clone, Copy)]
pub struct StoreKey {
    /// In every file and frame: bytes of another store do not verify.
    pub id: StoreId,
    /// Keys the hash of the index, so that crafted txids cannot pile up in one place.
    pub secret: [u8; 16],
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// How a store is kept.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedOptions {
    /// Used when the store is created.
    pub key: StoreKey,
    /// Bytes of a file of the log.
    pub segment_size: u64,
    /// Bytes of the log's youngest files that are kept in memory, beside the last one.
    pub cache: u64,
    /// Bytes of the log between two checkpoints of the index, at least.
    pub checkpoint_every: u64,
    /// Bytes of memory for the index: a quarter for what changed since the last checkpoint, half
    /// for the filter of the largest run, which is less precise, or is not kept at all, when that
    /// is too little.
    pub memory: u64,
    /// Bytes of memory for records in lists. When index and lists together exceed `memory` and
    /// this, operations that create records fail with [`EngineError::Full`].
    pub lists: u64,
    /// Where checkpoints and merges of the index run.
    pub upkeep: Compaction,
    /// The longest transaction in a record, in bytes.
    pub body_limit: u64,
}

impl EmbeddedOptions {
    /// The sizes for a process with 2 GiB or more.
    #[must_use]
    pub const fn new(key: StoreKey) -> Self {
        Self {
            key,
            segment_size: 128 << 20,
            cache: 256 << 20,
            checkpoint_every: 256 << 20,
            memory: 512 << 20,
            lists: 768 << 20,
            upkeep: Compaction::Threads,
            body_limit: 32 << 20,
        }
    }

    /// The same within a budget, in bytes, split as drawn above.
    #[must_use]
    pub fn within(self, memory: u64) -> Self {
        let cache = self.cache.min(memory / 8);
        let segment_size = self.segment_size.min(memory / 16).max(4 << 20);
        Self { cache, segment_size, memory: memory / 4, lists: memory / 8 * 3, ..self }
    }

    /// Bytes that index and lists may take together before creations are refused.
    pub(super) const fn index_limit(&self) -> u64 {
        self.memory.saturating_add(self.lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: StoreKey = StoreKey { id: StoreId([1; 16]), secret: [2; 16] };

    #[test]
    fn the_shares_leave_a_part_of_every_budget() {
        for memory in [64 << 20, 450 << 20, 2 << 30, 64_u64 << 30] {
            let options = EmbeddedOptions::new(KEY).within(memory);
            let shares = options.index_limit() + options.cache + options.segment_size;
            assert!(shares <= memory / 16 * 13, "{shares} of {memory}");
        }
        let usual = EmbeddedOptions::new(KEY);
        assert_eq!(usual.index_limit(), usual.within(2 << 30).index_limit());
    }
}
