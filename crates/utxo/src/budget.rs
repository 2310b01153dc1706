//! One number of bytes for the whole set, and who gets how much of it.
//!
//! ```text
//!  memory  ├─ index ─┬─ merge ─┬─ joiner ─┬─ undo ─┬─ buffers ─┬─ window ────────────────────┤
//!                                                              0       W/3       3W/4      W
//!
//!  W/3   the youngest pane is sealed
//!  3W/4  the oldest pane is flushed
//!  W     a block waits
//! ```
//!
//! - **index**: the directories and filters of all runs, about 1.3 bytes a coin, in memory always.
//! - **merge**: the same again for the runs that are being merged: their merge has its own.
//! - **joiner**: a quarter of the whole, between 1 and 128 MiB, while one is at work: its blocks
//!   and what was found for them. A block that takes more than that is let through alone.
//! - **undo**: a sixteenth for the cache of recent records (or less, as the owner says), and a
//!   sixteenth, between 1 and 64 MiB, for those that are not written yet.
//! - **buffers**: an eighth of the whole, at most 32 MiB: 1 MiB of pages and one chunk of a filter
//!   for each file being written, half a MiB for each run being merged, and the order of the
//!   entries of a pane.
//! - **window**: W, what is left, but no less than an eighth of the whole. Should the index of a
//!   large set leave less than that, the set takes more memory than it was given until it is opened
//!   again: then it is refused, with what it needs ([`needed`]).
//!
//! **The window keeps below W** as long as no block takes more than W/8. A pane that has W/3 is
//! sealed before the next block, so that there are several and the coins of the youngest stay
//! longest. From 3W/4 on the oldest is flushed, whether it is deep or not, while blocks fill the
//! rest. Only when a block does not fit although a flush is under way, it waits. A sixteenth is
//! left for tables that grow.
//!
//! A mainnet window of 400 blocks, with all that has died in it, takes about 500 MB.
//!
//! What readers hold is theirs: a version that is kept keeps the panes and runs that it needs.

/// Bytes for the files being written, at most.
const BUFFERS_MAX: usize = 32 << 20;
/// Bytes for the blocks in a joiner.
const JOINING: std::ops::RangeInclusive<usize> = 1 << 20..=128 << 20;
/// Bytes of undo records that wait to be written.
const UNWRITTEN: std::ops::RangeInclusive<usize> = 1 << 20..=64 << 20;

/// The least memory that a set can be given: below that the buffers of files take most of it.
pub(crate) const MEMORY_MIN: usize = 16 << 20;

/// How the memory of a set is split, in bytes: what is held now, not what may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// What the set was given.
    pub budget: usize,
    /// Young coins.
    pub window: usize,
    /// The most that they may take.
    pub window_max: usize,
    /// Directories and filters of the runs, those being merged counted twice.
    pub index: usize,
    /// Undo records in memory.
    pub undo: usize,
    /// Pages of files being written and merged.
    pub buffers: usize,
    /// Blocks in the joiner, with what was found for them.
    pub joining: usize,
}

impl MemoryUse {
    /// All parts together.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.window + self.index + self.undo + self.buffers + self.joining
    }
}

/// The shares that depend on how large the others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) window: usize,
    /// Undo records that are not written yet.
    pub(crate) unwritten: usize,
}

/// The least memory for a set whose runs have an index of so many bytes: it is there twice while
/// all runs are merged.
pub(crate) const fn needed(index: usize) -> usize {
    index.saturating_mul(2).saturating_add(MEMORY_MIN)
}

impl Budget {
    /// What `memory` leaves for the window beside the others. `cache` is what the owner wants to
    /// have of undo records.
    pub(crate) fn new(memory: usize, cache: usize, others: &[usize]) -> Self {
        let buffers = (memory / 8).min(BUFFERS_MAX);
        let unwritten = (memory / 16).clamp(*UNWRITTEN.start(), *UNWRITTEN.end());
        let undo = Self::cache(memory, cache).saturating_add(unwritten);
        let first = buffers.saturating_add(undo);
        let others = others.iter().fold(first, |sum, part| sum.saturating_add(*part));
        Self { window: memory.saturating_sub(others).max(memory / 8), unwritten }
    }

    /// The cache of undo records.
    pub(crate) fn cache(memory: usize, wanted: usize) -> usize {
        wanted.min(memory / 16)
    }

    /// The joiner's share.
    pub(crate) fn joining(memory: usize) -> usize {
        (memory / 4).clamp(*JOINING.start(), *JOINING.end())
    }

    /// Whether a pane takes no more blocks.
    pub(crate) const fn is_pane_full(&self, pane: usize) -> bool {
        pane >= self.window / 3
    }

    /// Whether the oldest pane must go, deep or not.
    pub(crate) const fn is_flush_due(&self, window: usize, coming: usize) -> bool {
        window.saturating_add(coming) >= self.window / 4 * 3
    }

    /// Whether the step that brings `coming` bytes does not fit.
    pub(crate) const fn is_full(&self, window: usize, coming: usize) -> bool {
        window.saturating_add(coming) > self.window / 16 * 15
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn the_window_gets_what_is_left_but_an_eighth_at_least() {
        let window = |memory, cache, others: &[usize]| Budget::new(memory, cache, others).window;
        assert_eq!(window(64 * MIB, 0, &[]), (64 - 8 - 4) * MIB);
        assert_eq!(window(64 * MIB, 16 * MIB, &[5 * MIB]), (64 - 8 - 4 - 4 - 5) * MIB);
        assert_eq!(window(64 * MIB, 0, &[900 * MIB]), 8 * MIB);
        assert_eq!(window(1 << 30, MIB, &[]), (1024 - 32 - 64 - 1) * MIB);
        assert_eq!(window(0, 9, &[7]), 0);
    }

    #[test]
    fn the_shares_add_up() {
        for memory in [MEMORY_MIN, 64 * MIB, 256 * MIB, 3 << 29] {
            let joining = Budget::joining(memory);
            let budget = Budget::new(memory, 16 * MIB, &[joining]);
            let buffers = (memory / 8).min(BUFFERS_MAX);
            let undo = budget.unwritten + Budget::cache(memory, 16 * MIB);
            assert_eq!(budget.window + undo + buffers + joining, memory, "of {memory}");
        }
    }
}
