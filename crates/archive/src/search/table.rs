//! A search table as its writer sees it.
//!
//! ```text
//!  block ─► Batch ─► append ─► panes ──flush──► run ─┐
//!  (any thread)       │                         run ─┼─merge─► run
//!                     ▼                         run ─┘
//!                  Version  ◄── SearchReader
//! ```
//!
//! 1. **Append.** The rows of a block become a pane (`young`), and readers find them. That needs
//!    no disk; before it the owner [tends](SearchTable::tend) the table.
//! 2. **Settle.** The owner reports from time to time which links are *durable*, so that they are
//!    not assigned to another transaction after a crash, which are *deep* in the confirmed chain,
//!    and which of those belong to stale branches. Only durable rows may go to a run, and rows that
//!    are not deep go there only when the memory is full.
//! 3. **Flush** (`flush`), when enough rows may go: those of the confirmed chain to one run, those
//!    of stale branches to another, of which there are few. A lane does it while more blocks
//!    are appended. When the files are written, the manifest names them, with the new *watermark*:
//!    the link below which everything is in runs. Swapping the version removes the rows from the
//!    panes.
//! 4. **Merge** (`layers`), when the policy says so, in two more lanes. The next manifest names the
//!    result; until then the merged files stay.
//!
//! There is no log. After a crash the table is as the last manifest says, and the owner appends
//! the blocks from [`SearchTable::end`] on again. [`SearchTable::rest`] saves the panes too, as a
//! run that the next opening loads into memory, so that after a clean shutdown there are no such
//! blocks.
//!
//! A reorganisation changes nothing here: a row belongs to a transaction in a block, on whatever
//! branch the block is.
//!
//! **When a job fails**, the call that notices fails, and nothing has changed. The next call makes
//! the same decision, so the job is retried once there is space.

mod flush;
mod load;
mod rest;

use std::ops::Range;
use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{Kept, Manifest, Run, StoreKey};

use super::batch::Batch;
use super::budget::SearchMemory;
use super::codec::Search;
use super::error::{Result, SearchError};
use super::find::SearchReader;
use super::options::SearchOptions;
use super::row::LINK_BITS;
use super::version::Version;
use super::young::Young;
use crate::layers::{LayerOptions, Layers, Upkeep as _};
use crate::link::TxLink;
use crate::shared::Shared;
use flush::{Flushed, Flushing};
use load::{Loaded, MANIFEST, Saved};

pub(super) use flush::chain_len;
pub(super) use load::{load, saved};

/// What the owner promises about links.
#[derive(Clone, Copy, Debug)]
pub struct Settled<'a> {
    /// The owner has saved all below: they will not be assigned to other transactions.
    pub durable: TxLink,
    /// All below are deep in the confirmed chain, except `stale`. Not above `durable`.
    pub deep: TxLink,
    /// Links of stale branches: ascending, disjoint, and none below the `deep` of the call before.
    pub stale: &'a [Range<TxLink>],
    /// The owner's bytes, saved with the watermark once `deep` is the watermark.
    pub owner: &'a [u8],
}

/// The size of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchSize {
    /// All rows.
    pub rows: u64,
    /// Rows that are only in memory.
    pub young: u64,
    /// Runs.
    pub runs: usize,
    /// Bytes of the runs.
    pub bytes: u64,
    /// Bytes of directories and filters in memory.
    pub index: u64,
}

/// A search table, open for writing. There is one writer; [`SearchTable::reader`] is for others.
#[derive(Debug)]
pub struct SearchTable {
    options: SearchOptions,
    shared: Arc<Shared<Version>>,
    young: Young,
    layers: Layers<Search, Flushing, Flushed>,
    /// The first link whose rows are not here.
    end: TxLink,
    /// What the manifest says.
    saved: Saved,
    /// The run that holds the young rows of the last rest, as long as the manifest names it.
    rested: Option<Arc<Run<Search>>>,
    settled: Promise,
    /// The number for the next flush.
    step: u32,
}

/// What the owner has promised so far, since the last flush.
#[derive(Debug, Default)]
struct Promise {
    durable: TxLink,
    deep: TxLink,
    stale: Vec<Range<u64>>,
    owner: Vec<u8>,
}

impl SearchTable {
    /// Opens the table in this directory, or creates one. `key` was drawn at random for the store,
    /// and `bound` is the first link that the owner has not saved: young rows from there on are
    /// dropped, and a table whose runs have such rows is refused.
    pub fn open(
        storage: Arc<dyn Storage>,
        key: StoreKey,
        options: SearchOptions,
        bound: TxLink,
    ) -> Result<Self> {
        // What an earlier process left may not be durable yet.
        storage.sync_dir()?;
        let loaded = load(&storage, key, bound)?;
        let young = Young::new(loaded.panes()?);
        let Loaded { manifest, saved, rested, runs, end } = loaded;
        manifest.sweep(&*storage, &Kept::NOTHING, &[])?;
        let version = Version { panes: young.panes().into(), runs: runs.clone(), end };
        let settled = Promise {
            durable: saved.watermark,
            deep: saved.watermark,
            owner: saved.owner.clone(),
            ..Promise::default()
        };
        let step = flush::next_step(&runs.infos());
        let SearchOptions { memory, fan_in, compaction, .. } = options;
        let threads = ["search-flush", "search-merge", "search-merge2"];
        let layers = LayerOptions { memory, fan_in, compaction, threads };
        let layers = Layers::new(storage, runs, manifest.next, layers);
        let mut table = Self {
            shared: Arc::new(Shared::new(version)),
            layers: layers.map_err(SearchError::Thread)?,
            step,
            options,
            young,
            end,
            saved,
            rested,
            settled,
        };
        if table.saved.end > table.end {
            // The links from `bound` on will be given to others: the file of young rows must not
            // be believed beyond it the next time either.
            let (saved, rested) = (table.saved.clone(), table.rested.clone());
            table.save(Saved { end, ..saved }, rested)?;
        }
        Ok(table)
    }

    /// The first link whose rows are not here. The owner appends the blocks from there on.
    #[must_use]
    pub const fn end(&self) -> TxLink {
        self.end
    }

    /// The link below which everything is in runs, durably, and the owner's bytes saved with it.
    #[must_use]
    pub fn watermark(&self) -> (TxLink, &[u8]) {
        (self.saved.watermark, &self.saved.owner)
    }

    /// Appends the rows of a block whose `count` transactions have the links from `first` on, which
    /// must be [`SearchTable::end`]. Works in memory alone, so it cannot fail on a full disk: the
    /// owner appends a block to several tables, and none may lag. It [tends](SearchTable::tend) the
    /// tables before.
    pub fn append(&mut self, first: TxLink, count: u32, batch: Batch) -> Result<()> {
        if first != self.end {
            return Err(SearchError::Gap { first, end: self.end });
        }
        let end = first.plus(count);
        if end.to_u64() >> LINK_BITS > 0 {
            return Err(SearchError::Link { link: end });
        }
        self.young.append(first..end, batch);
        self.end = end;
        self.publish();
        Ok(())
    }

    /// Takes in finished jobs, starts those that are due, and waits for a flush when the memory is
    /// full. Call it before each block.
    pub fn tend(&mut self) -> Result<()> {
        self.maintain()?;
        self.make_room()
    }

    /// Takes the owner's promise about links, and starts the jobs that are due.
    pub fn settle(&mut self, settled: &Settled<'_>) -> Result<()> {
        let Settled { durable, deep, stale, owner } = *settled;
        debug_assert!(deep <= durable && durable <= self.end, "what is promised is appended");
        let promise = &mut self.settled;
        promise.durable = promise.durable.max(durable);
        promise.deep = promise.deep.max(deep);
        promise.stale.extend(stale.iter().map(|range| range.start.to_u64()..range.end.to_u64()));
        promise.owner.clear();
        promise.owner.extend_from_slice(owner);
        self.maintain()
    }

    /// The first link whose rows the disk does not have: a crash now leaves the blocks from there
    /// on to be appended again.
    #[must_use]
    pub const fn saved_end(&self) -> TxLink {
        self.saved.end
    }

    /// Whether the young rows take more than their share of the memory and nothing more may be
    /// flushed: the owner should save its tables, and [settle](SearchTable::settle).
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        let is_full = self.young.memory() > self.layers.young_max();
        is_full && self.layers.flush.is_free() && self.settled.durable <= self.saved.watermark
    }

    /// Merges all runs into one when nothing more urgent is due, in the background: for when a sync
    /// has caught up. Returns whether merges are still running; call it until it returns `false`.
    pub fn tidy(&mut self) -> Result<bool> {
        self.layers.request_tidy();
        self.maintain()?;
        Ok(self.layers.is_merging())
    }

    /// Bytes of the runs being merged: about how many are done, and all of them.
    #[must_use]
    pub fn merging(&self) -> (u64, u64) {
        self.layers.progress()
    }

    /// A reader; clone it into other threads.
    #[must_use]
    pub fn reader(&self) -> SearchReader {
        SearchReader::new(Arc::clone(&self.shared))
    }

    /// How the memory is used at this moment.
    #[must_use]
    pub fn memory(&self) -> SearchMemory {
        SearchMemory {
            budget: self.options.memory,
            young: self.young.memory(),
            young_max: self.layers.young_max(),
            index: self.layers.runs.memory(),
            buffers: self.layers.budget().all_buffers(),
        }
    }

    /// The size of the table.
    #[must_use]
    pub fn size(&self) -> SearchSize {
        let infos = self.layers.runs.infos();
        let young = self.young.panes().iter().map(|pane| pane.len() as u64).sum();
        SearchSize {
            rows: infos.iter().map(|info| info.adds).sum::<u64>() + young,
            young,
            runs: infos.len(),
            bytes: self.layers.bytes(),
            index: self.layers.runs.memory() as u64,
        }
    }

    /// Bytes of runs written since the table was opened.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.layers.written()
    }

    /// Verifies the checksums of everything on disk.
    pub fn verify(&self) -> Result<()> {
        self.layers.verify()?;
        self.rested.iter().try_for_each(|run| run.verify())
    }

    /// Waits for all jobs under way and for those that they make due.
    pub fn finish(&mut self) -> Result<()> {
        self.finish_jobs()
    }

    /// Waits for flushes until the young rows are within their budget, as far as rows may be
    /// flushed.
    fn make_room(&mut self) -> Result<()> {
        let most = self.layers.young_max();
        while self.young.memory() > most && !self.layers.flush.is_free() {
            self.take_flush(true)?;
            self.start_flush();
        }
        Ok(())
    }

    /// Writes a manifest of the runs as they are.
    fn save(&mut self, saved: Saved, rested: Option<Arc<Run<Search>>>) -> Result<()> {
        self.manifest(&saved, &rested).store(&*self.layers.storage, MANIFEST)?;
        (self.saved, self.rested) = (saved, rested);
        Ok(())
    }

    fn manifest(&self, saved: &Saved, rested: &Option<Arc<Run<Search>>>) -> Manifest {
        let rested = rested.iter().map(|run| run.info());
        self.layers.manifest(rested.chain(self.layers.runs.infos()).collect(), saved.encode())
    }

    /// Removes files that the last manifest does not name, unless they are being written.
    fn sweep(&self) -> Result<()> {
        let flushing = self.layers.flush.about().into_iter().flat_map(Flushing::numbers);
        self.layers.sweep(&self.manifest(&self.saved, &self.rested), flushing)
    }
}
