//! One state of the table, and what reads its pages.
//!
//! A version is what is in memory and what is in runs, together: rows leave the one when they are
//! in the other, in one exchange of a pointer. Readers hold a version, and so the panes and the
//! files it names, even after those were merged and removed.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use varve_io::BatchReader;
use varve_runs::{PageBuffers, Query, Runs};

use super::codec::History;
use super::error::Result;
use super::pane::{Mark, Pane};

/// A state of the table.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// Blocks in memory, oldest first.
    pub(super) panes: Box<[Arc<Pane>]>,
    /// Runs, youngest first.
    pub(super) runs: Runs<History>,
    /// The state of the runs alone.
    pub(super) watermark: Option<Mark>,
}

impl Version {
    pub(super) fn tip(&self) -> Option<Mark> {
        self.panes.last().map_or(self.watermark, |pane| pane.mark)
    }
}

/// What the writer and the readers of a table share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) version: ArcSwap<Version>,
    /// Readers of files that are not in use.
    idle: Mutex<Vec<Fetcher>>,
}

/// What reads the pages of one lookup: a ring and the memory it reads to.
#[derive(Debug)]
struct Fetcher {
    reader: BatchReader,
    buffers: PageBuffers,
}

/// Reads that are under way at once for one lookup.
const DEPTH: u16 = 64;
/// Fetchers that are kept. A lookup that finds none makes one.
const IDLE_MAX: usize = 16;

impl Shared {
    pub(super) fn new(version: Version) -> Self {
        Self { version: ArcSwap::from_pointee(version), idle: Mutex::default() }
    }

    /// Reads the pages of a query that are not mapped, lets `join` look into them, and keeps the
    /// memory for the next.
    pub(super) fn fetch(
        &self,
        mut query: Query<History>,
        join: impl FnOnce(&Query<History>) -> Result<()>,
    ) -> Result<()> {
        if query.unread() == 0 {
            return join(&query);
        }
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut fetcher = idle.unwrap_or_else(|| Fetcher {
            reader: BatchReader::new(DEPTH),
            buffers: PageBuffers::default(),
        });
        query.fetch(&mut fetcher.reader, &mut fetcher.buffers)?;
        join(&query)?;
        query.release(&mut fetcher.buffers);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(fetcher);
        }
        Ok(())
    }
}
