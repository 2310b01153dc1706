//! The end of a writer: young rows are saved, so that the next opening need not read blocks.

use std::sync::Arc;

use super::SearchTable;
use super::flush::write_rested;
use super::load::Saved;
use super::work::StopOnDrop;
use crate::search::error::Result;

impl SearchTable {
    /// Saves the young rows and all merges. What is under way is given up: the next opening decides
    /// it again. The owner has saved its tables before: all links are durable.
    pub fn rest(&mut self) -> Result<()> {
        self.stop_work()?;
        let number = self.next_number();
        let to = (&self.storage, self.key);
        let panes = self.young.panes().to_vec();
        let rested = write_rested(to, (number, self.budget().buffers()), panes)?;
        let saved = Saved { end: self.end, ..self.saved.clone() };
        self.save(saved, rested.map(Arc::new))?;
        self.sweep()
    }

    /// Stops what is under way, and takes in what is done.
    fn stop_work(&mut self) -> Result<()> {
        // The old flag is set as it is dropped.
        self.work.stop = StopOnDrop::default();
        let results = [self.take_flush(true), self.take_merges(true), self.take_merges(true)];
        let failed =
            results.into_iter().find_map(|result| result.err().filter(|error| !error.is_stopped()));
        failed.map_or(Ok(()), Err)
    }
}
