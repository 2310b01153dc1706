//! One state of a table, and how readers reach it.
//!
//! A version is the panes in memory and the runs together: one pointer swap moves rows from the
//! panes to a run. Readers hold a reference to their version, so its panes and files outlive merges
//! and the removal of their names.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use varve_io::BatchReader;
use varve_runs::{PageBuffers, Runs};

use super::codec::Search;
use super::pane::Pane;
use crate::link::TxLink;

/// A state of a table.
#[derive(Debug)]
pub(super) struct Version {
    /// Rows in memory, oldest first.
    pub(super) panes: Box<[Arc<Pane>]>,
    /// The runs of the confirmed chain, youngest first, and behind them those of stale branches.
    pub(super) runs: Runs<Search>,
    /// Rows with links from here on are invalid: a file of young rows may have some, of blocks that
    /// the owner has lost.
    pub(super) end: TxLink,
}

/// What the writer and the readers of a table share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) version: ArcSwap<Version>,
    /// Idle fetchers.
    idle: Mutex<Vec<Fetcher>>,
    reads: Reads,
}

/// What reads the pages of one lookup: a ring and the memory it reads to.
#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) reader: BatchReader,
    pub(super) buffers: PageBuffers,
}

/// Reads that are under way at once for one lookup.
const DEPTH: u16 = 64;
/// Idle fetchers that are kept. A lookup that finds none creates one.
const IDLE_MAX: usize = 16;

#[derive(Debug, Default)]
struct Reads {
    pages: AtomicU64,
    direct: AtomicU64,
}

/// Pages of runs that lookups have looked at since the table was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageReads {
    /// All of them, through the map or not.
    pub pages: u64,
    /// Those that were read past the page cache.
    pub direct: u64,
}

impl Shared {
    pub(super) fn new(version: Version) -> Self {
        let (idle, reads) = (Mutex::default(), Reads::default());
        Self { version: ArcSwap::from_pointee(version), idle, reads }
    }

    /// A fetcher for one lookup.
    pub(super) fn fetcher(&self) -> Fetcher {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Fetcher {
            reader: BatchReader::new(DEPTH),
            buffers: PageBuffers::default(),
        })
    }

    /// Takes it back. One whose lookup has failed may still have reads under way, and is dropped.
    pub(super) fn release(&self, fetcher: Fetcher) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(fetcher);
        }
    }

    pub(super) fn count(&self, reads: PageReads) {
        self.reads.pages.fetch_add(reads.pages, Ordering::Relaxed);
        self.reads.direct.fetch_add(reads.direct, Ordering::Relaxed);
    }

    pub(super) fn reads(&self) -> PageReads {
        PageReads {
            pages: self.reads.pages.load(Ordering::Relaxed),
            direct: self.reads.direct.load(Ordering::Relaxed),
        }
    }
}
