//! One memory budget for the whole set, and how it is split.
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
//! - **merge**: the same again, always reserved: a merge of all runs builds a second index.
//! - **joiner**: a quarter of the whole, between 1 and 128 MiB, while one is at work: its blocks
//!   and the coins found for them. A block that takes more than that is processed alone.
//! - **undo**: a sixteenth for the cache of recent records (or less, if the owner says so), and a
//!   sixteenth, between 1 and 64 MiB, for those that are not written yet.
//! - **buffers**: an eighth of the whole, between 7 and 32 MiB, or more while more is in use: 1 MiB
//!   of pages and one chunk of a filter for each file being written, pages read ahead for each run
//!   being merged, and the order of the entries of a pane. A small set takes small chunks, reads
//!   fewer pages ahead and merges in one lane ([`buffers_of`], [`has_two_merges`]).
//! - **window**: W, what is left, but no less than an eighth of the whole. When the index of a
//!   large set leaves less than that, an error says so ([`needed`]): such a set is not opened,
//!   and [`Database::set_memory`](crate::Database::set_memory) refuses.
//!
//! **The window keeps below W** as long as no block takes more than W/8. A pane that has W/3 is
//! sealed before the next block, so that there are several and the coins of the youngest stay
//! longest. From 3W/4 on the oldest is flushed, whether it is deep or not, while blocks fill the
//! rest. A block waits only when it does not fit although a flush is in progress. A sixteenth is
//! reserved for tables that grow.
//!
//! A mainnet window of 400 blocks, including the coins spent in it, takes about 500 MB.
//!
//! Memory held by readers is not counted: a version that a reader keeps holds the panes and runs
//! that it needs.

use varve_runs::Buffers;

use crate::error::Error;

/// Bytes for the files being written, unless more is in use.
const BUFFERS: std::ops::RangeInclusive<usize> = 7 << 20..=32 << 20;
/// Sets with less than this use [`Buffers::SMALL`]. (Tests give less than the minimum, so that
/// panes are flushed at once; no bound applies to those sets.)
const SMALL: std::ops::Range<usize> = MEMORY_MIN..128 << 20;
/// Bytes for the blocks in a joiner.
const JOINING: std::ops::RangeInclusive<usize> = 1 << 20..=128 << 20;
/// Bytes of undo records that wait to be written.
const UNWRITTEN: std::ops::RangeInclusive<usize> = 1 << 20..=64 << 20;

/// The minimum budget of a set: with less, file buffers would take most of it.
pub(crate) const MEMORY_MIN: usize = 16 << 20;

/// The sizes of the buffers of one file in a set with this budget.
pub(crate) fn buffers_of(memory: usize) -> Buffers {
    if SMALL.contains(&memory) { Buffers::SMALL } else { Buffers::LARGE }
}

/// Whether a set with this budget may run two merges at once.
pub(crate) fn has_two_merges(memory: usize) -> bool {
    !SMALL.contains(&memory)
}

/// The memory that the parts of a set hold now, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The budget of the set.
    pub budget: usize,
    /// Coins in the window.
    pub window: usize,
    /// The limit of the window.
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

/// How the memory of a set is split when all of it is in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySplit {
    /// Directories and filters of the runs.
    pub index: usize,
    /// Set aside for the index that a merge of all runs makes.
    pub merge: usize,
    /// Blocks in the joiner, with what was found for them.
    pub joining: usize,
    /// Undo records, those not yet written and those kept for reading.
    pub undo: usize,
    /// Pages of files being written and merged.
    pub buffers: usize,
    /// Coins in the window.
    pub window: usize,
}

impl MemorySplit {
    /// The split of `memory` for a set whose runs have an index of `index` bytes. `cache` is the
    /// owner's limit for cached undo records.
    #[must_use]
    pub fn new(memory: usize, index: usize, cache: usize) -> Self {
        let joining = Budget::joining(memory);
        let Budget { window, unwritten } = Budget::new(memory, cache, 0, &[index, index, joining]);
        let undo = unwritten + Budget::cache(memory, cache);
        Self { index, merge: index, joining, undo, buffers: Budget::buffers(memory), window }
    }
}

/// The shares that depend on how large the others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) window: usize,
    /// Undo records that are not written yet.
    pub(crate) unwritten: usize,
}

/// The minimum budget for a set whose runs have `index` bytes of directories and filters, which
/// exist twice while all runs are merged.
const fn needed(index: usize) -> usize {
    index.saturating_mul(2).saturating_add(MEMORY_MIN)
}

/// Refuses a set whose index alone takes most of the memory. A small set is never refused here:
/// [`Options::with_memory`](crate::Options::with_memory) enforces the absolute minimum.
pub(crate) const fn check(given: usize, index: usize) -> Result<(), Error> {
    let needed = needed(index);
    if index > MEMORY_MIN / 4 && given < needed {
        return Err(Error::Memory { given, needed });
    }
    Ok(())
}

impl Budget {
    /// What `memory` leaves for the window beside the others. `cache` is the owner's limit for
    /// cached undo records, `buffers` what is in use.
    pub(crate) fn new(memory: usize, cache: usize, buffers: usize, others: &[usize]) -> Self {
        let buffers = Self::buffers(memory).max(if memory < MEMORY_MIN { 0 } else { buffers });
        let unwritten = (memory / 16).clamp(*UNWRITTEN.start(), *UNWRITTEN.end());
        let undo = Self::cache(memory, cache).saturating_add(unwritten);
        let first = buffers.saturating_add(undo);
        let others = others.iter().fold(first, |sum, part| sum.saturating_add(*part));
        Self { window: memory.saturating_sub(others).max(memory / 8), unwritten }
    }

    /// What is set aside for buffers.
    fn buffers(memory: usize) -> usize {
        let least = if memory < MEMORY_MIN { 0 } else { *BUFFERS.start() };
        (memory / 8).clamp(least, *BUFFERS.end())
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

    /// Whether the oldest pane must be flushed, deep or not.
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
        let window = |memory, cache, others: &[usize]| Budget::new(memory, cache, 0, others).window;
        assert_eq!(window(64 * MIB, 0, &[]), (64 - 8 - 4) * MIB);
        assert_eq!(window(64 * MIB, 16 * MIB, &[5 * MIB]), (64 - 8 - 4 - 4 - 5) * MIB);
        assert_eq!(window(64 * MIB, 0, &[900 * MIB]), 8 * MIB);
        assert_eq!(window(1 << 30, MIB, &[]), (1024 - 32 - 64 - 1) * MIB);
        assert_eq!(window(0, 9, &[7]), 0);
        let busy = Budget::new(64 * MIB, 0, 11 * MIB, &[]).window;
        assert_eq!(busy, (64 - 11 - 4) * MIB, "more buffers are in use than are set aside");
    }

    #[test]
    fn the_shares_add_up() {
        for memory in [MEMORY_MIN, 64 * MIB, 256 * MIB, 3 << 29] {
            let MemorySplit { index, merge, joining, undo, buffers, window } =
                MemorySplit::new(memory, MIB / 2, 16 * MIB);
            assert_eq!(index + merge + joining + undo + buffers + window, memory, "of {memory}");
        }
    }

    /// The reserve covers the largest merge and a flush of the largest pane at the same time.
    #[test]
    fn the_buffers_that_are_set_aside_are_enough() {
        for memory in [MEMORY_MIN, 32 * MIB, 64 * MIB, 256 * MIB] {
            let (buffers, lanes) = (buffers_of(memory), has_two_merges(memory));
            let merge = buffers.writer(usize::MAX) + 6 * buffers.stream(u64::MAX);
            // A third of the window, of which an entry takes about 110 bytes.
            let pane = memory / 2 / 3 / 110;
            let flush = buffers.writer(pane) + 16 * pane;
            let all = flush + merge * (1 + usize::from(lanes)) + Buffers::WRITER_LEN;
            assert!(all <= Budget::buffers(memory), "{all} of {memory}");
        }
    }

    #[test]
    fn a_set_whose_index_takes_most_of_the_memory_is_refused() {
        assert!(check(MEMORY_MIN, MEMORY_MIN / 4).is_ok(), "a small set fits anywhere");
        assert!(check(26 * MIB, 5 * MIB).is_ok());
        let refused = check(26 * MIB - 1, 5 * MIB);
        let Err(Error::Memory { given, needed }) = refused else { panic!("{refused:?}") };
        assert_eq!((given, needed), (26 * MIB - 1, 26 * MIB));
    }
}
