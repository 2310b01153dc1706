//! The joiner's share of the memory, by bytes.
//!
//! A block is charged when it is submitted, four times its bytes: for the block itself, its txids
//! and keys, the coins found, its undo record and what it adds to the window. Dense blocks of small
//! transactions take about that much; blocks of large data take less. What the owner's check takes
//! is added ([`JoinerOptions::check`](super::JoinerOptions::check)). Pages that are read for it are
//! charged as well while it holds them. The whole charge is released when the block leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a block takes for each of its bytes, besides what its check takes.
const FACTOR: usize = 4;

/// The limit in bytes, and the use.
#[derive(Debug)]
pub(super) struct Room {
    /// What the check of a block takes for each of its bytes.
    check: usize,
    limit: usize,
    taken: usize,
    /// Shares the current use with the owner of the set.
    shown: Arc<AtomicUsize>,
}

impl Room {
    pub(super) fn new(limit: usize, shown: Arc<AtomicUsize>, check: usize) -> Self {
        Self { check, limit, taken: 0, shown }
    }

    /// What a block of this length is charged.
    pub(super) const fn charge(&self, len: usize) -> usize {
        len.saturating_mul(FACTOR + self.check)
    }

    /// Whether this many more bytes fit.
    pub(super) const fn fits(&self, bytes: usize) -> bool {
        self.taken.saturating_add(bytes) <= self.limit
    }

    /// Whether the limit is exceeded.
    pub(super) const fn is_over(&self) -> bool {
        self.taken > self.limit
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.set(self.taken.saturating_add(bytes));
    }

    pub(super) fn give_back(&mut self, bytes: usize) {
        self.set(self.taken.saturating_sub(bytes));
    }

    fn set(&mut self, taken: usize) {
        self.taken = taken;
        self.shown.store(taken, Ordering::Relaxed);
    }
}
