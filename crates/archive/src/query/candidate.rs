//! Rows that a search returns: where they are, and which of them are worth reading.
//!
//! A search returns links. Before any bytes are read, rows that the snapshot does not see and rows
//! that cannot be the answer (on another branch, not confirmed) are dropped. The others are sorted
//! by row, so that a transaction is read once and blocks are read in order.

use super::RowPlace;
use crate::backend::{Match, Tables};
use crate::error::Result;
use crate::snapshot::Snapshot;

/// A row that may match a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The index of the key in the query.
    pub(super) key: usize,
    /// Where the row stands.
    pub(super) row: RowPlace,
}

impl<T: Tables> Snapshot<T> {
    /// The wanted candidates, by row and then by key, without duplicates.
    pub(super) fn candidates(
        &self,
        matches: &[Match],
        is_wanted: impl Fn(usize, &RowPlace) -> bool,
    ) -> Result<Vec<Candidate>> {
        let visible = matches.iter().filter(|(_, link)| self.bounds().has_tx(*link));
        let mut visible: Vec<_> = visible.map(|(key, link)| (*link, *key)).collect();
        visible.sort_unstable();
        visible.dedup();
        let mut links: Vec<_> = visible.iter().map(|(link, _)| *link).collect();
        links.dedup();
        let mut rows = self.row_places(&links)?.into_iter().peekable();
        let mut candidates = Vec::with_capacity(visible.len());
        for (link, key) in visible {
            while rows.next_if(|row| row.link < link).is_some() {}
            let row = rows.peek().filter(|row| row.link == link && is_wanted(key, row));
            candidates.extend(row.map(|row| Candidate { key, row: *row }));
        }
        Ok(candidates)
    }
}
