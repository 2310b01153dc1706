//! Rows that are not in the body yet: given out, filled and linked in memory.
//!
//! ```text
//!  row       base                 base + length
//!  ──────────┬────────────────────┬─────────────
//!  the body  │ slots of the stage │ not given out
//! ```
//!
//! A slot is a row that is filled once and a link that is written when the row is committed. Row
//! numbers are given out by one atomic addition, so rows that are asked for together follow one
//! another. Until its next link is known a row cannot go to the body, which is append-only; when
//! the owner settles the stage, no insert is under way, and a row without a link was abandoned.

use super::shelves::Shelves;
use super::sync::{AtomicU64, OnceLock, Ordering};

/// Slots on the first shelf. (A model of loom looks at every one of them.)
const FIRST_SHELF: u64 = if cfg!(loom) { 1 } else { 1024 };

/// The next link of a row that is not committed.
pub(crate) const UNLINKED: u64 = u64::MAX - 1;

/// A row in the making.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    pub(crate) row: OnceLock<T>,
    next: AtomicU64,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { row: OnceLock::default(), next: AtomicU64::new(UNLINKED) }
    }
}

impl<T> Slot<T> {
    /// The link below this row, [`UNLINKED`] before it is committed.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Called before the row becomes the top of its chain, by who commits it.
    pub(crate) fn set_next(&self, next: u64) {
        self.next.store(next, Ordering::Release);
    }
}

/// The rows since the body was last settled.
#[derive(Debug)]
pub(crate) struct Stage<T> {
    base: u64,
    len: AtomicU64,
    slots: Shelves<Slot<T>>,
}

impl<T> Stage<T> {
    /// An empty stage behind a body of `base` rows.
    pub(crate) fn new(base: u64) -> Self {
        Self { base, len: AtomicU64::new(0), slots: Shelves::new(FIRST_SHELF) }
    }

    /// The first row of the stage.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of memory, without what rows point to.
    pub(crate) fn memory(&self) -> usize {
        self.slots.memory()
    }

    /// The first row that is not given out.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.base + self.len.load(Ordering::Acquire)
    }

    /// Gives out `rows` rows that follow one another; `None` when the table would exceed `limit`.
    pub(crate) fn allocate(&self, rows: u64, limit: u64) -> Option<u64> {
        let room = limit.checked_sub(self.base)?;
        let mut len = self.len.load(Ordering::Relaxed);
        loop {
            let longer = len.checked_add(rows).filter(|longer| *longer <= room)?;
            match self.len.compare_exchange(len, longer, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(self.base + len),
                Err(found) => len = found,
            }
        }
    }

    /// The slot of a row that was given out, to be filled.
    pub(crate) fn fill(&self, row: u64) -> &Slot<T> {
        self.slots.grow(row - self.base)
    }

    /// The slot of a row; `None` when it is not in the stage.
    #[inline]
    pub(crate) fn slot(&self, row: u64) -> Option<&Slot<T>> {
        self.slots.get(row.checked_sub(self.base)?)
    }
}
