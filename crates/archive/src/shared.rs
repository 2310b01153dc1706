//! What the writer and the readers of a table share: the newest version, and what reads its pages.
//!
//! A version is the rows in memory and the runs together: rows leave the one when they are in the
//! other, in one swap of a pointer. Readers hold a reference to their version, so its panes and
//! files outlive merges and the removal of their names.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use varve_io::BatchReader;
use varve_runs::{Codec, PageBuffers, Query};

/// The newest version of a table, and idle fetchers.
#[derive(Debug)]
pub(crate) struct Shared<V> {
    pub(crate) version: ArcSwap<V>,
    idle: Mutex<Vec<Fetcher>>,
    reads: Reads,
}

/// What reads the pages of one lookup: a ring and the memory it reads to.
#[derive(Debug)]
struct Fetcher {
    reader: BatchReader,
    buffers: PageBuffers,
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

impl<V> Shared<V> {
    pub(crate) fn new(version: V) -> Self {
        let version = ArcSwap::new(Arc::new(version));
        Self { version, idle: Mutex::default(), reads: Reads::default() }
    }

    /// Reads the pages of a query that are not mapped, lets `join` look into them, and keeps the
    /// memory for the next. A fetcher whose lookup failed may still have reads under way, and is
    /// dropped.
    pub(crate) fn fetch<C: Codec>(
        &self,
        mut query: Query<C>,
        join: impl FnOnce(&Query<C>) -> Result<(), C::Error>,
    ) -> Result<(), C::Error> {
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

    pub(crate) fn count(&self, reads: PageReads) {
        self.reads.pages.fetch_add(reads.pages, Ordering::Relaxed);
        self.reads.direct.fetch_add(reads.direct, Ordering::Relaxed);
    }

    pub(crate) fn reads(&self) -> PageReads {
        PageReads {
            pages: self.reads.pages.load(Ordering::Relaxed),
            direct: self.reads.direct.load(Ordering::Relaxed),
        }
    }
}
