//! One number of bytes for the whole set, and who gets how much of it.
//!
//! ```text
//!  memory  ├─ runs ─┬─ merge ─┬─ undo ─┬─ buffers ─┬─ window ───────────────────────────────┤
//!                                                  0            W/3            3W/4       W
//!                                                    the youngest     the oldest    a block
//!                                                    pane is sealed   pane is       waits
//!                                                                     flushed
//! ```
//!
//! - **runs**: the directories and filters of all runs, about 1.3 bytes a coin, in memory always.
//! - **merge**: the same again for the runs that are being merged: their merge has its own.
//! - **undo**: the cache of recent undo records.
//! - **buffers**: an eighth of the whole, at most 32 MiB: 1 MiB of pages and one chunk of a filter
//!   for each of three files being written, and the order of the entries of a pane.
//! - **window**: W, what is left, but no less than a quarter of the whole. Should the runs of a
//!   large set leave less than that, the set takes more memory than it was told: it could not work
//!   with less.
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

/// The window's share, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) window: usize,
    /// Undo records that are not written yet.
    pub(crate) unwritten: usize,
}

impl Budget {
    /// What `memory` leaves for the window beside the others.
    pub(crate) fn new(memory: usize, others: &[usize]) -> Self {
        let buffers = (memory / 8).min(BUFFERS_MAX);
        let others = others.iter().fold(buffers, |sum, part| sum.saturating_add(*part));
        let unwritten = (memory / 16).clamp(1 << 20, 64 << 20);
        Self { window: memory.saturating_sub(others).max(memory / 4), unwritten }
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

    #[test]
    fn the_window_gets_what_is_left_but_a_quarter_at_least() {
        assert_eq!(Budget::new(800, &[100, 200, 50]).window, 350);
        assert_eq!(Budget::new(800, &[100, 900]).window, 200);
        assert_eq!(Budget::new(1 << 30, &[]).window, (1 << 30) - BUFFERS_MAX);
        assert_eq!(Budget::new(0, &[7]).window, 0);
    }
}
