//! The background jobs of a table.

use varve_runs::{Lane, Run, Slot, Stop};

use super::flush::{Flushed, Flushing};
use super::merge::Merging;
use crate::search::codec::Search;
use crate::search::error::{Result, SearchError};
use crate::search::options::SearchOptions;

/// Background jobs. Fields are dropped in this order: jobs are asked to stop before their threads
/// are joined.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) stop: StopOnDrop,
    pub(super) flush: Slot<Flushing, Result<Flushed>>,
    pub(super) merges: [Slot<Merging, Result<Option<Run<Search>>>>; 2],
    pub(super) flush_lane: Lane,
    pub(super) merge_lanes: [Lane; 2],
    /// Bytes of runs written since the table was opened.
    pub(super) written: u64,
    /// Merge everything when nothing else is due.
    pub(super) tidy: bool,
}

/// Asks jobs to stop when the table is dropped.
#[derive(Debug, Default)]
pub(super) struct StopOnDrop(pub(super) Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Work {
    pub(super) fn new(options: &SearchOptions) -> Result<Self> {
        let lane = |name: &str| Lane::new(options.compaction, name).map_err(SearchError::Thread);
        Ok(Self {
            stop: StopOnDrop::default(),
            flush: Slot::default(),
            merges: [Slot::default(), Slot::default()],
            flush_lane: lane("search-flush")?,
            merge_lanes: [lane("search-merge")?, lane("search-merge2")?],
            written: 0,
            tidy: false,
        })
    }
}
