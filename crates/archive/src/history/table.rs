//! The history table as its writer sees it.
//!
//! ```text
//!  block ─► Batch ─► connect ─► panes ──flush──► run ─┐
//!  (any thread)        │                         run ─┼─merge─► run
//!                      ▼                         run ─┘
//!                   Version  ◄── HistoryReader
//! ```
//!
//! 1. **Connect.** The rows of a block of the confirmed chain become a pane, and readers find them.
//!    That needs no disk; before it the owner [tends](HistoryTable::tend) the table.
//! 2. **Disconnect.** A block whose pane is in memory goes with it. For one that is in a run, or on
//!    its way there, the owner appends its [`Negation`], which takes back every row.
//! 3. **Flush**, when enough blocks lie below the window: their
//!    panes are added up into one run. A lane does it beside the writer. When the file is there,
//!    the manifest names it, with the new *watermark*: the block up to which runs have everything.
//! 4. **Merge**, when the policy says so, in two more lanes. The next manifest names what came of
//!    it; until then the files that were merged stay.
//!
//! A transaction is named by its *ordinal*: how many come before it in the chain that was
//! connected. No ordinal is given to another transaction of the same chain, so any block may be
//! flushed.
//!
//! There is no log. After a crash the table is at its watermark, and the owner connects the blocks
//! above it again; if the watermark's block is no longer confirmed, it first disconnects down to
//! one that is. [`HistoryTable::rest`] flushes everything, so after a clean end the watermark
//! is the tip.
//!
//! **When a job fails**, the call that notices fails, and nothing has changed. The next decides the
//! same again, so it is tried again when there is space again.

mod flush;
mod load;

use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{Kept, Manifest, Run};
use varve_types::{BlockHash, Height};

use super::batch::{Batch, Negation};
use super::codec::History;
use super::error::{HistoryError, Result};
use super::identity::HistoryKeys;
use super::options::HistoryOptions;
use super::pane::{Mark, Pane};
use super::version::Version;
use super::view::HistoryReader;
use crate::layers::{LayerOptions, Layers, Upkeep as _};
use crate::link::TxLink;
use crate::search::LINK_BITS;
use crate::shared::Shared;
use flush::Flushing;
use load::{Loaded, MANIFEST, encode_mark};

pub(super) use load::load;

/// A block to be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Its height.
    pub height: Height,
    /// The block.
    pub hash: BlockHash,
    /// The block below, which must be the table's tip.
    pub parent: BlockHash,
    /// How many transactions it has.
    pub count: u32,
}

/// What came of [`HistoryTable::disconnect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnected {
    /// The tip is gone, and this is the tip now.
    Done(Option<Mark>),
    /// The tip is no longer in memory: [`HistoryTable::negate`] takes it back.
    InRuns,
}

/// The size of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistorySize {
    /// Rows in runs.
    pub rows: u64,
    /// Blocks that are in memory alone.
    pub young: usize,
    /// Their bytes of memory.
    pub young_bytes: usize,
    /// Runs.
    pub runs: usize,
    /// Bytes of the runs.
    pub bytes: u64,
    /// Bytes of directories and filters in memory.
    pub index: usize,
}

/// The history table, open for its one writer. Others use [`HistoryTable::reader`].
#[derive(Debug)]
pub struct HistoryTable {
    keys: HistoryKeys,
    options: HistoryOptions,
    shared: Arc<Shared<Version>>,
    /// Blocks that are in no run, oldest first.
    panes: Vec<Arc<Pane>>,
    /// This many of the oldest are being flushed.
    frozen: usize,
    layers: Layers<History, Flushing, Option<Run<History>>>,
    /// What the manifest says.
    watermark: Option<Mark>,
    /// The number for the next flush.
    step: u32,
}

impl HistoryTable {
    /// Opens the table in this directory, or makes one.
    pub fn open(
        storage: Arc<dyn Storage>,
        keys: HistoryKeys,
        options: HistoryOptions,
    ) -> Result<Self> {
        // What an earlier process left may not be durable yet.
        storage.sync_dir()?;
        let Loaded { manifest, watermark, runs } = load(&storage, keys.store())?;
        manifest.sweep(&*storage, &Kept::NOTHING, &[])?;
        let version = Version { panes: Box::default(), runs: runs.clone(), watermark };
        let steps = runs.infos().into_iter().map(|info| info.span.last.to_u32());
        let step = steps.max().unwrap_or(0) + 1;
        let HistoryOptions { memory, fan_in, compaction, .. } = options;
        let threads = ["history-flush", "history-merge", "history-merge2"];
        let layers = LayerOptions { memory, fan_in, compaction, threads };
        let layers = Layers::new(storage, runs, manifest.next, layers);
        Ok(Self {
            shared: Arc::new(Shared::new(version)),
            layers: layers.map_err(HistoryError::Thread)?,
            panes: Vec::new(),
            frozen: 0,
            keys,
            options,
            watermark,
            step,
        })
    }

    /// The last block connected; `None` before the first. The owner connects the block above it.
    #[must_use]
    pub fn tip(&self) -> Option<Mark> {
        self.panes.last().map_or(self.watermark, |pane| pane.mark)
    }

    /// The block up to which everything is in runs, durably: after a crash this is the tip.
    #[must_use]
    pub const fn watermark(&self) -> Option<Mark> {
        self.watermark
    }

    /// Takes in what is done, starts what is due, and waits for a flush when the memory is full: to
    /// be called before each block.
    pub fn tend(&mut self) -> Result<()> {
        self.maintain()?;
        let most = self.layers.young_max();
        while self.young_memory() > most && !self.layers.flush.is_free() {
            self.take_flush(true)?;
            self.start_flush();
        }
        Ok(())
    }

    /// Connects a block of the confirmed chain. All of it is in memory, so it does not fail for
    /// want of room on a disk.
    pub fn connect(&mut self, block: &Connected, batch: Batch) -> Result<()> {
        let Connected { height, hash, parent, count } = *block;
        let follows = match self.tip() {
            Some(tip) => tip.hash == parent && tip.height.checked_add(1) == Some(height),
            None => height == Height::GENESIS,
        };
        if !follows {
            return Err(HistoryError::Gap { height, hash });
        }
        let first = self.tip().map_or(TxLink::new(0), |tip| tip.end);
        let mark = Mark { height, hash, end: first.plus(count) };
        if mark.end.to_u64() >> LINK_BITS > 0 {
            return Err(HistoryError::Full { hash });
        }
        self.panes.push(Arc::new(Pane::connected(first, batch.0, mark)));
        self.publish();
        Ok(())
    }

    /// Disconnects the tip, if it is in memory.
    pub fn disconnect(&mut self) -> Disconnected {
        let in_memory = self.panes.len() > self.frozen;
        if !in_memory || self.panes.last().is_none_or(|pane| pane.negates) {
            return Disconnected::InRuns;
        }
        self.panes.pop();
        self.publish();
        Disconnected::Done(self.tip())
    }

    /// Disconnects a tip that is not in memory by its negation. `parent` is the block below it, and
    /// becomes the tip; `None` below the first block.
    ///
    /// # Panics
    ///
    /// When [`HistoryTable::disconnect`] would do.
    pub fn negate(&mut self, parent: Option<Mark>, negation: Negation) {
        let last = self.panes.get(self.frozen..).and_then(|panes| panes.last());
        assert!(last.is_none_or(|pane| pane.negates), "blocks in memory are disconnected first");
        self.panes.push(Arc::new(Pane::negated(negation.0, parent)));
        self.publish();
    }

    /// Takes in what is done and starts what is due, between blocks.
    pub fn settle(&mut self) -> Result<()> {
        self.maintain()
    }

    /// Merges all runs into one when nothing more urgent is due, in the background: for when a sync
    /// has ended. Returns whether merges are still running; call it until it returns `false`.
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

    /// Waits for everything under way and for what it makes due.
    pub fn finish(&mut self) -> Result<()> {
        self.finish_jobs()
    }

    /// Flushes everything down to the tip and saves it. What is under way is given up: the next
    /// opening decides it again. The owner has saved all links.
    pub fn rest(&mut self) -> Result<()> {
        self.stop_jobs()?;
        self.flush_all()
    }

    /// A reader, to be cloned into other threads.
    #[must_use]
    pub fn reader(&self) -> HistoryReader {
        HistoryReader::new(Arc::clone(&self.shared), self.keys)
    }

    /// The size of the table.
    #[must_use]
    pub fn size(&self) -> HistorySize {
        let infos = self.layers.runs.infos();
        HistorySize {
            rows: infos.iter().map(|info| info.adds + info.deletes).sum(),
            young: self.panes.len(),
            young_bytes: self.young_memory(),
            runs: infos.len(),
            bytes: self.layers.bytes(),
            index: self.layers.runs.memory(),
        }
    }

    /// Bytes of runs written since the table was opened.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.layers.written()
    }

    /// Compares everything on disk with its checksums.
    pub fn verify(&self) -> Result<()> {
        self.layers.verify()
    }

    fn young_memory(&self) -> usize {
        self.panes.iter().map(|pane| pane.memory()).sum()
    }

    /// Writes a manifest of the runs as they are.
    fn save(&mut self, watermark: Option<Mark>) -> Result<()> {
        self.manifest(watermark).store(&*self.layers.storage, MANIFEST)?;
        self.watermark = watermark;
        Ok(())
    }

    fn manifest(&self, watermark: Option<Mark>) -> Manifest {
        self.layers.manifest(self.layers.runs.infos(), encode_mark(watermark))
    }

    /// Removes files that the last manifest does not name, unless they are being written.
    fn sweep(&self) -> Result<()> {
        let flushing = self.layers.flush.about().map(|flushing| flushing.number);
        self.layers.sweep(&self.manifest(self.watermark), flushing)
    }
}
