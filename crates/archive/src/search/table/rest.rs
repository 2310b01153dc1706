//! The end of a writer: young rows are saved, so that the next opening need not read blocks.
//!
//! They go to one run with a filter, like any small run. A reader of the table at rest does not
//! take them into memory, and without a filter every lookup would cost a page of them.

use std::sync::Arc;

use varve_runs::{NewRun, Run, Source as _, Span};

use super::SearchTable;
use super::flush::{LazyWriter, merge_panes};
use super::load::{RESTED, Saved};
use crate::layers::Upkeep as _;
use crate::link::TxLink;
use crate::search::codec::Search;
use crate::search::error::Result;

impl SearchTable {
    /// Saves the young rows and all merges, and abandons flushes and merges under way: the next
    /// opening decides them again. The owner has saved its tables before, so all links are durable.
    pub fn rest(&mut self) -> Result<()> {
        self.stop_jobs()?;
        let rested = self.write_young()?;
        let saved = Saved { end: self.end, ..self.saved.clone() };
        self.save(saved, rested.map(Arc::new))?;
        self.sweep()
    }

    /// Writes all young rows to a run; `None` when there are none.
    fn write_young(&mut self) -> Result<Option<Run<Search>>> {
        let panes = self.young.panes().to_vec();
        let expected = panes.iter().map(|pane| pane.len() as u64).sum();
        let new = NewRun {
            number: self.layers.next_number(),
            span: Span { first: RESTED, last: RESTED },
            expected,
            filter: self.layers.policy().flush_filter(expected, &self.layers.infos()),
            chunk_keys: self.layers.budget().buffers().chunk_keys,
        };
        let mut writer = LazyWriter::new(&self.layers.storage, *self.layers.runs.key(), new);
        let mut rows = merge_panes(panes, TxLink::new(u64::MAX))?;
        while let Some(row) = rows.head() {
            writer.push(&row)?;
            rows.advance()?;
        }
        writer.finish()
    }
}
