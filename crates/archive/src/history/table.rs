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
//! 3. **Flush**, when enough blocks lie below the window and the owner has saved their links: their
//!    panes are added up into one run. A lane does it beside the writer. When the file is there,
//!    the manifest names it, with the new *watermark*: the block up to which runs have everything.
//! 4. **Merge**, when the policy says so, in two more lanes. The next manifest names what came of
//!    it; until then the files that were merged stay.
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
mod merge;

use std::sync::Arc;

use varve_io::{PAGE_LEN, Storage};
use varve_runs::{Kept, Lane, Manifest, Run, RunNumber, Runs, Slot, Stop, StoreKey};
use varve_types::{BlockHash, Height};

use super::batch::{Batch, Negation};
use super::codec::History;
use super::error::{HistoryError, Result};
use super::identity::HistoryKeys;
use super::options::HistoryOptions;
use super::pane::{Mark, Pane};
use super::version::{Shared, Version};
use super::view::HistoryReader;
use crate::link::TxLink;
use crate::search::LINK_BITS;
use crate::search::budget::Budget;
use crate::search::policy::Policy;
use flush::Flushing;
use load::{Loaded, MANIFEST, encode_mark};
use merge::Merging;

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
    /// The link of its first transaction, not below the end of its parent's.
    pub first: TxLink,
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
    storage: Arc<dyn Storage>,
    keys: HistoryKeys,
    options: HistoryOptions,
    shared: Arc<Shared>,
    /// Blocks that are in no run, oldest first.
    panes: Vec<Arc<Pane>>,
    /// This many of the oldest are being flushed.
    frozen: usize,
    runs: Runs<History>,
    /// What the manifest says.
    watermark: Option<Mark>,
    /// The owner has saved all links below.
    durable: TxLink,
    /// The number for the next file, and for the next flush.
    next: RunNumber,
    step: u32,
    work: Work,
}

/// The jobs beside the writer. Fields are dropped in this order: jobs are asked to stop before
/// their threads are waited for.
#[derive(Debug)]
struct Work {
    stop: StopOnDrop,
    flush: Slot<Flushing, Result<Option<Run<History>>>>,
    merges: [Slot<Merging, Result<Option<Run<History>>>>; 2],
    flush_lane: Lane,
    merge_lanes: [Lane; 2],
    /// Bytes of runs written since the table was opened.
    written: u64,
    /// Merge everything when nothing else is due.
    tidy: bool,
}

/// Tells jobs to stop when it is dropped.
#[derive(Debug, Default)]
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl HistoryTable {
    /// Opens the table in this directory, or makes one. `bound` is the first link that the owner
    /// has not saved: a table that has such links is refused.
    pub fn open(
        storage: Arc<dyn Storage>,
        keys: HistoryKeys,
        options: HistoryOptions,
        bound: TxLink,
    ) -> Result<Self> {
        // What an earlier process left may not be durable yet.
        storage.sync_dir()?;
        let Loaded { manifest, watermark, runs } = load(&storage, keys.store(), bound)?;
        manifest.sweep(&*storage, &Kept::NOTHING, &[])?;
        let version = Version { panes: Box::default(), runs: runs.clone(), watermark };
        let lane = |name: &str| Lane::new(options.compaction, name).map_err(HistoryError::Thread);
        let work = Work {
            stop: StopOnDrop::default(),
            flush: Slot::default(),
            merges: [Slot::default(), Slot::default()],
            flush_lane: lane("history-flush")?,
            merge_lanes: [lane("history-merge")?, lane("history-merge2")?],
            written: 0,
            tidy: false,
        };
        let steps = runs.infos().into_iter().map(|info| info.span.last.to_u32());
        let step = steps.max().unwrap_or(0) + 1;
        Ok(Self {
            shared: Arc::new(Shared::new(version)),
            next: manifest.next,
            panes: Vec::new(),
            frozen: 0,
            durable: bound,
            storage,
            keys,
            options,
            runs,
            watermark,
            step,
            work,
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
        let most = self.budget().young(self.runs.memory());
        while self.young_memory() > most && !self.work.flush.is_free() {
            self.take_flush(true)?;
            self.start_flush();
        }
        Ok(())
    }

    /// Connects a block of the confirmed chain. All of it is in memory, so it does not fail for
    /// want of room on a disk.
    pub fn connect(&mut self, block: &Connected, batch: Batch) -> Result<()> {
        let Connected { height, hash, parent, first, count } = *block;
        let follows = match self.tip() {
            Some(tip) => tip.hash == parent && tip.height.checked_add(1) == Some(height),
            None => height == Height::GENESIS,
        };
        if !follows {
            return Err(HistoryError::Gap { height, hash });
        }
        let end = self.tip().map_or(TxLink::new(0), |tip| tip.end);
        let mark = Mark { height, hash, end: first.plus(count) };
        if first < end || mark.end.to_u64() >> LINK_BITS > 0 {
            return Err(HistoryError::Links { hash, first, end });
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

    /// Takes the owner's promise that all links below `durable` are saved, so that they will not be
    /// given to other transactions after a crash; starts what is due.
    pub fn settle(&mut self, durable: TxLink) -> Result<()> {
        self.durable = self.durable.max(durable);
        self.maintain()
    }

    /// Merges all runs into one when nothing more urgent is due, in the background: for when a sync
    /// has ended.
    pub fn tidy(&mut self) -> Result<()> {
        self.work.tidy = true;
        self.maintain()
    }

    /// Waits for everything under way and for what it makes due.
    pub fn finish(&mut self) -> Result<()> {
        loop {
            self.take_flush(true)?;
            self.take_merges(true)?;
            self.start_flush();
            self.start_merges();
            let mut slots = self.work.merges.iter();
            if self.work.flush.is_free() && slots.all(Slot::is_free) {
                return Ok(());
            }
        }
    }

    /// Flushes everything down to the tip and saves it. What is under way is given up: the next
    /// opening decides it again. The owner has saved all links.
    pub fn rest(&mut self) -> Result<()> {
        // The old flag is set as it is dropped.
        self.work.stop = StopOnDrop::default();
        let results = [self.take_flush(true), self.take_merges(true), self.take_merges(true)];
        let failed =
            results.into_iter().find_map(|result| result.err().filter(|error| !error.is_stopped()));
        failed.map_or(Ok(()), Err)?;
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
        let infos = self.runs.infos();
        let sum = |of: fn(&varve_runs::RunInfo) -> u64| infos.iter().map(of).sum::<u64>();
        HistorySize {
            rows: sum(|info| info.adds + info.deletes),
            young: self.panes.len(),
            young_bytes: self.young_memory(),
            runs: infos.len(),
            bytes: sum(|info| info.pages) * PAGE_LEN as u64,
            index: self.runs.memory(),
        }
    }

    /// Bytes of runs written since the table was opened.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.work.written
    }

    /// Compares everything on disk with its checksums.
    pub fn verify(&self) -> Result<()> {
        self.runs.as_slice().iter().try_for_each(|run| run.verify())
    }

    fn young_memory(&self) -> usize {
        self.panes.iter().map(|pane| pane.memory()).sum()
    }

    const fn budget(&self) -> Budget {
        Budget::new(self.options.memory, self.options.fan_in)
    }

    fn policy(&self) -> Policy {
        Policy { fan_in: self.options.fan_in, filtered: self.budget().filtered() }
    }

    fn store(&self) -> StoreKey {
        self.keys.store()
    }

    fn publish(&self) {
        let (panes, runs) = (self.panes.clone().into(), self.runs.clone());
        let version = Version { panes, runs, watermark: self.watermark };
        self.shared.version.store(Arc::new(version));
    }

    /// Takes in what threads have finished, and starts what is due.
    fn maintain(&mut self) -> Result<()> {
        self.take_flush(false)?;
        self.take_merges(false)?;
        self.start_flush();
        self.start_merges();
        // Without threads they are done.
        self.take_flush(false)?;
        self.take_merges(false)
    }

    fn next_number(&mut self) -> RunNumber {
        let number = self.next;
        self.next.0 += 1;
        number
    }

    /// Writes a manifest of the runs as they are.
    fn save(&mut self, watermark: Option<Mark>) -> Result<()> {
        self.manifest(watermark).store(&*self.storage, MANIFEST)?;
        self.watermark = watermark;
        Ok(())
    }

    fn manifest(&self, watermark: Option<Mark>) -> Manifest {
        let (runs, owner) = (self.runs.infos(), encode_mark(watermark));
        Manifest { key: self.store(), next: self.next, runs, owner }
    }

    /// Removes files that the last manifest does not name, unless they are being written.
    fn sweep(&self) -> Result<()> {
        let flushing = self.work.flush.about().map(|flushing| flushing.number);
        let merging = self.work.merges.iter().filter_map(Slot::about);
        let numbers = flushing.into_iter().chain(merging.map(|merging| merging.number)).collect();
        let kept = Kept { numbers, from: self.next };
        self.manifest(self.watermark).sweep(&*self.storage, &kept, &[])?;
        Ok(())
    }
}
