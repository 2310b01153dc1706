//! The young rows: panes in the order of their links, few of them.
//!
//! ```text
//!  oldest                                                  youngest
//!  ┌──────────────────────────────┬─────────────┬──────┬───┬─┐
//!  │ pane                         │ pane        │      │   │ │   each at least twice the next
//!  └──────────────────────────────┴─────────────┴──────┴───┴─┘
//!  ◄── frozen while it is flushed ──►
//! ```
//!
//! The rows of a block are a new pane at the end. As long as the last pane has more than half the
//! rows of the one before, both are merged. So there are about log₂ (rows / rows of a block) panes,
//! and a row is merged as often. Panes that are being flushed stay as they are until their rows are
//! in a run.

use std::ops::Range;
use std::sync::Arc;

use super::batch::{Batch, PART_LEN};
use super::pane::Pane;
use crate::link::TxLink;

/// The rows that are in no run.
#[derive(Debug, Default)]
pub(super) struct Young {
    panes: Vec<Arc<Pane>>,
    /// How many of the oldest are being flushed.
    frozen: usize,
}

impl Young {
    pub(super) fn new(panes: impl IntoIterator<Item = Pane>) -> Self {
        let mut young = Self::default();
        panes.into_iter().for_each(|pane| young.push(pane));
        young
    }

    /// Adds the rows of a block whose transactions have these links.
    pub(super) fn append(&mut self, links: Range<TxLink>, batch: Batch) {
        for part in batch.into_parts() {
            let start = links.start.to_u64() + part.start;
            let end = links.end.to_u64().min(start + PART_LEN);
            self.push(Pane::new(start..end, part.rows));
        }
    }

    fn push(&mut self, pane: Pane) {
        if pane.len() == 0 {
            return;
        }
        let mut pane = pane;
        while self.panes.len() > self.frozen
            && let Some(last) = self.panes.last()
            && pane.len() * 2 > last.len()
            && let Some(merged) = last.merged(&pane)
        {
            pane = merged;
            self.panes.pop();
        }
        self.panes.push(Arc::new(pane));
    }

    /// The panes, oldest first.
    pub(super) fn panes(&self) -> &[Arc<Pane>] {
        &self.panes
    }

    /// About how many rows have links below `limit`: in a pane they are spread evenly over links.
    pub(super) fn rows_below(&self, limit: TxLink) -> usize {
        self.below(limit).map(|pane| pane.rows_below(limit)).sum()
    }

    fn below(&self, limit: TxLink) -> impl Iterator<Item = &Arc<Pane>> {
        self.panes.iter().take_while(move |pane| pane.links().start < limit.to_u64())
    }

    /// The bytes of memory that the rows take.
    pub(super) fn memory(&self) -> usize {
        self.panes.iter().map(|pane| pane.memory()).sum()
    }

    /// Keeps the panes with rows below `limit` as they are, and returns them.
    pub(super) fn freeze(&mut self, limit: TxLink) -> Vec<Arc<Pane>> {
        let panes: Vec<_> = self.below(limit).map(Arc::clone).collect();
        self.frozen = panes.len();
        panes
    }

    /// The flush of the frozen panes has failed.
    pub(super) const fn thaw(&mut self) {
        self.frozen = 0;
    }

    /// The rows of the frozen panes with links below `limit` are in runs: they go.
    pub(super) fn remove_flushed(&mut self, limit: TxLink) {
        let limit = limit.to_u64();
        let young = self.panes.split_off(self.frozen);
        let frozen = std::mem::take(self).panes;
        for pane in frozen.iter().filter(|pane| pane.links().end > limit) {
            self.push(pane.without_below(limit));
        }
        for pane in young {
            match Arc::try_unwrap(pane) {
                Ok(pane) => self.push(pane),
                Err(shared) => self.panes.push(shared),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::row::Fingerprint;

    /// Appends blocks of one transaction with `rows` rows.
    fn append(young: &mut Young, blocks: Range<u64>, rows: u64) {
        for block in blocks {
            let fingerprint =
                |row: u64| Fingerprint::new((block * rows + row).wrapping_mul(1 << 40));
            let batch = Batch::new((0..rows).map(|row| (fingerprint(row), 0)));
            young.append(TxLink::new(block)..TxLink::new(block + 1), batch);
        }
    }

    fn sizes(young: &Young) -> Vec<usize> {
        young.panes.iter().map(|pane| pane.len()).collect()
    }

    #[test]
    fn panes_double() {
        let mut young = Young::default();
        append(&mut young, 0..1000, 4);
        let sizes = sizes(&young);
        assert_eq!(sizes.iter().sum::<usize>(), 4000);
        assert!(sizes.len() <= 10 && sizes.is_sorted_by(|old, new| *old >= 2 * new), "{sizes:?}");
        for limit in [0, 1, 500, 999, 1000] {
            let rows = 4 * usize::try_from(limit).unwrap();
            assert_eq!(young.rows_below(TxLink::new(limit)), rows);
        }
        assert!(young.memory() >= 32_000);
    }

    #[test]
    fn what_is_flushed_goes_and_nothing_else() {
        let mut young = Young::default();
        append(&mut young, 0..100, 4);
        let limit = TxLink::new(70);
        let frozen = young.freeze(limit);
        assert!(frozen.len() < young.panes.len() || frozen.len() == sizes(&young).len());
        let before = sizes(&young);
        append(&mut young, 100..140, 4);
        assert_eq!(sizes(&young)[..frozen.len()], before[..frozen.len()], "they stay");
        young.remove_flushed(limit);
        assert_eq!(sizes(&young).iter().sum::<usize>(), 70 * 4);
        assert!(young.panes.iter().all(|pane| pane.links().start >= 70));
        assert_eq!(young.panes.last().unwrap().links().end, 140);
        young.freeze(TxLink::new(80));
        young.thaw();
        append(&mut young, 140..600, 4);
        assert!(sizes(&young).len() < 12);
    }

    #[test]
    fn a_huge_block_makes_several_panes() {
        let mut young = Young::default();
        let batch = Batch::new([7, 1 << 24].map(|position| (Fingerprint::new(9 << 24), position)));
        let (first, end) = (TxLink::new(5), TxLink::new(5 + (1 << 24) + 1));
        young.append(first..end, batch);
        let links: Vec<u64> = young.panes.iter().map(|pane| pane.links().start).collect();
        assert_eq!(links, [5, 5 + (1 << 24)]);
    }
}
