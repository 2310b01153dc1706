//! The unspent set's figures at every height of the confirmed chain.
//!
//! A row a height, in a log of frames. MuHash is a product, so a row is the row below, times the
//! coins that the block makes, divided by those that it spends. That quotient, with the differences
//! of the counts, is the block's [`SetChange`].
//!
//! ```text
//!  0        4        36       44        52       60                 828
//!  ┌────────┬────────┬────────┬─────────┬────────┬──────────────────┐
//!  │ height │ block  │ txouts │ bogosize│ amount │ MuHash: product  │
//!  │ u32    │ 32 B   │ u64    │ u64     │ u64    │ and divisor 768 B│
//!  └────────┴────────┴────────┴─────────┴────────┴──────────────────┘
//! ```
//!
//! - **With the index** `stats` the check of each block returns its change
//!   ([`connected`](crate::connected)), and the commit that confirms the block appends the row.
//! - **Without it** the log lags: a question for a height computes the rows up to it out of blocks
//!   and archive, on all threads, and is one read afterwards.
//!
//! After a reorganisation the rows above the fork name other blocks; they are cut off. A log that
//! begins late is what a removal has left. Opening for append removes such a log, and one that is
//! damaged, and starts again; `status` and `verify` change nothing and say what is damaged.

mod log;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use varve_blocks::BlockNumber;
use varve_io::Error::NotFound;
use varve_types::muhash::MuHash;
use varve_types::{BlockHash, Coin, Height, Outpoint, Reader};

use crate::connected::Wanted;
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::header_tree::HeaderId;
use crate::organizer::Organizer;
use crate::recompute::Recompute;
use crate::snapshot::{ArchiveView, NodeReader};
use crate::store_files::STATS;
use crate::stores::Stores;

pub(crate) use log::{CHECKPOINT, PREFIX, StatsLog};

const ROW_LEN: usize =
    size_of::<u32>() + size_of::<BlockHash>() + 3 * size_of::<u64>() + MuHash::LEN;
const _: () = assert!(ROW_LEN == 828);
/// Rows between two syncs of a catch-up, which continues from there after a crash.
const SYNC_EVERY: u32 = 1024;
/// Changes that wait for a commit, at most: 14 MB. A branch may be this long before it wins; the
/// rows of a longer one are computed again out of the archive.
const CHANGES_MAX: usize = 16_384;

/// What the set was at a height.
#[derive(Clone, Debug)]
pub struct SetStats {
    /// The height.
    pub height: Height,
    /// The block there.
    pub block: BlockHash,
    /// How many coins there were.
    pub txouts: u64,
    /// Core's measure of their size.
    pub bogosize: u64,
    /// What they were worth, in satoshi.
    pub total_amount: u64,
    muhash: MuHash,
}

impl SetStats {
    /// The hash of all coins, in internal byte order: Core shows it reversed.
    #[must_use]
    pub fn muhash(&self) -> [u8; 32] {
        self.muhash.finalize()
    }

    /// The genesis block leaves no coin.
    fn genesis(block: BlockHash) -> Self {
        let (height, muhash) = (Height::GENESIS, MuHash::new());
        Self { height, block, txouts: 0, bogosize: 0, total_amount: 0, muhash }
    }

    /// The row of the block above, which changes the set like this.
    fn next(&self, block: BlockHash, change: &SetChange) -> Self {
        let mut muhash = self.muhash.clone();
        muhash.combine(&change.muhash);
        Self {
            height: self.height.checked_add(1).unwrap_or_default(),
            block,
            txouts: self.txouts.wrapping_add(change.txouts),
            bogosize: self.bogosize.wrapping_add(change.bogosize),
            total_amount: self.total_amount.wrapping_add(change.amount),
            muhash,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROW_LEN);
        bytes.extend_from_slice(&self.height.to_u32().to_le_bytes());
        bytes.extend_from_slice(self.block.as_bytes());
        for figure in [self.txouts, self.bogosize, self.total_amount] {
            bytes.extend_from_slice(&figure.to_le_bytes());
        }
        bytes.extend_from_slice(&self.muhash.to_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let height = Height::new(reader.u32("a height").ok()?);
        let block = BlockHash::from_bytes(*reader.array("a block hash").ok()?);
        let txouts = reader.u64("a count").ok()?;
        let bogosize = reader.u64("a size").ok()?;
        let total_amount = reader.u64("an amount").ok()?;
        let muhash = MuHash::from_bytes(reader.array("a product").ok()?);
        reader.end().ok()?;
        Some(Self { height, block, txouts, bogosize, total_amount, muhash })
    }
}

/// What one block adds to the figures. Differences wrap, so that they may be negative.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetChange {
    txouts: u64,
    bogosize: u64,
    amount: u64,
    muhash: MuHash,
}

impl SetChange {
    /// Adds a coin, which is serialised into `buffer` to be hashed.
    pub(crate) fn add(&mut self, point: &Outpoint, coin: &Coin<'_>, buffer: &mut Vec<u8>) {
        buffer.clear();
        coin.write_for_hash(point, buffer);
        self.muhash.insert(buffer);
        self.txouts = self.txouts.wrapping_add(1);
        self.bogosize = self.bogosize.wrapping_add(coin.bogosize());
        self.amount = self.amount.wrapping_add(coin.value.to_sat());
    }

    /// Removes a coin, in the same way.
    pub(crate) fn remove(&mut self, point: &Outpoint, coin: &Coin<'_>, buffer: &mut Vec<u8>) {
        buffer.clear();
        coin.write_for_hash(point, buffer);
        self.muhash.remove(buffer);
        self.txouts = self.txouts.wrapping_sub(1);
        self.bogosize = self.bogosize.wrapping_sub(coin.bogosize());
        self.amount = self.amount.wrapping_sub(coin.value.to_sat());
    }
}

/// The log, opened by the first sync with the index, else by the first question.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLog(Arc<Mutex<Option<StatsLog>>>);

impl SharedLog {
    fn lock(&self) -> MutexGuard<'_, Option<StatsLog>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The highest row that is there, at most up to the tip. Waits for a catch-up in another
    /// thread.
    pub(crate) fn counted(
        &self,
        directory: &DataDirectory,
        tip: Height,
    ) -> Result<Option<Height>, Error> {
        match &*self.lock() {
            Some(log) => Ok(log.rows().checked_sub(1).map(|last| Height::new(last).min(tip))),
            None => counted(directory, tip),
        }
    }
}

/// What was read of the log.
#[derive(Clone, Debug, Default)]
pub struct SetRows {
    /// The rows of the heights that were asked for, as far as they are there. A row may be that of
    /// a block that has left the chain since.
    pub rows: Vec<SetStats>,
    /// The height of the last row that is there; `None` when there is none, or another thread is
    /// counting.
    pub counted: Option<Height>,
}

impl SetRows {
    fn read(log: &StatsLog, heights: &[Height]) -> Result<Self, Error> {
        let counted = log.rows().checked_sub(1).map(Height::new);
        let there = heights.iter().filter(|height| Some(**height) <= counted);
        let rows = there.map(|height| log.row(*height)).collect::<Result<_, _>>()?;
        Ok(Self { rows, counted })
    }
}

/// Rows of a folder that no writer has open.
pub(crate) fn set_rows(directory: &DataDirectory, heights: &[Height]) -> Result<SetRows, Error> {
    read_stats(directory)?.map_or(Ok(SetRows::default()), |log| SetRows::read(&log, heights))
}

impl NodeReader {
    /// The figures of the unspent set at these heights, as far as they were counted. Waits for
    /// nobody: while another thread is counting, nothing is there.
    pub fn set_rows(&self, heights: &[Height]) -> Result<SetRows, Error> {
        match self.stats.0.try_lock().as_deref() {
            Ok(Some(log)) => SetRows::read(log, heights),
            Ok(None) => set_rows(&self.directory, heights),
            Err(_) => Ok(SetRows::default()),
        }
    }
}

/// The figures as the writer has them: the log, and changes of blocks that no commit has.
#[derive(Default)]
pub(crate) struct Stats {
    log: SharedLog,
    changes: BTreeMap<(Height, BlockHash), SetChange>,
}

impl Stats {
    /// Opens the log of a folder with pruned blocks, where a damaged one cannot start again: that
    /// is left for `verify` to report.
    pub(crate) fn open_pruned(&self, directory: &DataDirectory) -> Result<(), Error> {
        let opened = open_for_append(directory, Damaged::Refused);
        match opened {
            Ok(log) => *self.lock() = Some(log),
            Err(Error::Storage(error)) if error.is_damage() || matches!(error, NotFound { .. }) => {
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(crate) fn log(&self) -> &SharedLog {
        &self.log
    }

    fn lock(&self) -> MutexGuard<'_, Option<StatsLog>> {
        self.log.lock()
    }

    /// Keeps the change of a block until a commit confirms it.
    pub(crate) fn connected(&mut self, height: Height, block: BlockHash, change: SetChange) {
        self.changes.insert((height, block), change);
        if self.changes.len() > CHANGES_MAX {
            self.changes.pop_first();
        }
    }

    /// Whether enough changes wait that a commit is due.
    pub(crate) fn is_crowded(&self) -> bool {
        self.changes.len() >= CHANGES_MAX / 2
    }

    /// Appends the rows of the blocks that were confirmed above `fork`, lowest first, as far as
    /// their changes are known. A log that ends below the fork is left to a catch-up.
    pub(crate) fn confirm(
        &mut self,
        fork: (Height, BlockHash),
        above: impl IntoIterator<Item = (Height, BlockHash)>,
    ) -> Result<(), Error> {
        let changes = std::mem::take(&mut self.changes);
        let mut log = self.log.lock();
        let Some(log) = log.as_mut().filter(|log| log.rows() > fork.0.to_u32()) else {
            return Ok(());
        };
        let mut last = log.row(fork.0)?;
        if last.block != fork.1 {
            return Ok(());
        }
        log.cut_above(fork.0)?;
        let mut rows = Vec::new();
        for at in above {
            let Some(change) = changes.get(&at) else { break };
            last = last.next(at.1, change);
            assert_eq!(last.height, at.0, "confirmed blocks follow one another");
            rows.push(last.clone());
        }
        Ok(log.append(&rows)?)
    }

    /// Makes the rows durable.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.lock().as_mut().map_or(Ok(()), StatsLog::sync).map_err(Error::from)
    }

    /// The height of the last row of the confirmed chain; rows of another branch are cut off.
    /// `None` when the log is not kept.
    pub(crate) fn indexed_to(
        &self,
        view: &ArchiveView,
        tip: Height,
    ) -> Result<Option<Height>, Error> {
        let mut log = self.lock();
        Ok(log.as_mut().map(|log| log.last(view, tip)).transpose()?.map(|row| row.height))
    }
}

/// Extends a log to the confirmed block at `height`, out of archive and blocks.
fn catch_up(
    log: &mut StatsLog,
    recompute: &Recompute,
    height: Height,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SetStats, Error> {
    let mut last = log.last(&recompute.view, height)?;
    let heights = last.height.to_u32() + 1..=height.to_u32();
    let mut unsynced = 0;
    recompute.each(heights, &mut |connected| {
        let change = connected.change.expect("the change is all that is asked for");
        last = last.next(connected.block, &change);
        log.append(std::slice::from_ref(&last))?;
        unsynced += 1;
        if unsynced == SYNC_EVERY {
            log.sync()?;
            unsynced = 0;
        }
        progress(last.height.to_u32().into(), height.to_u32().into());
        Ok(())
    })?;
    log.sync()?;
    Ok(last)
}

impl Organizer {
    /// What the set was at a height of the confirmed chain. `progress` gets how many rows are
    /// computed and how many there are to be.
    pub fn stats_at(
        &self,
        height: Height,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SetStats, Error> {
        let snapshot = self.snapshot();
        let view = snapshot.view();
        let tip = snapshot.tip.0;
        if height > tip {
            return Err(Error::AboveTip { height, tip });
        }
        let mut log = self.stores.stats.lock();
        let log = match &mut *log {
            Some(log) => log,
            none => {
                let is_pruned = snapshot.blocks.first_held()? > BlockNumber::ZERO;
                let damaged = if is_pruned { Damaged::Refused } else { Damaged::Removed };
                none.insert(open_for_append(&self.directory, damaged)?)
            }
        };
        if height < log.last(&view, tip)?.height {
            return log.row(height);
        }
        let wanted = Wanted { change: true, ..Wanted::default() };
        let recompute = self.stores.recompute(view, wanted, self.options.workers);
        catch_up(log, &recompute, height, progress)
    }

    /// Reads every row and compares it with its checksum and its height.
    pub(crate) fn verify_rows(&self) -> Result<(), Error> {
        let log = self.stores.stats.lock();
        let read = if log.is_none() { read_stats(&self.directory)? } else { None };
        let Some(log) = log.as_ref().or(read.as_ref()) else { return Ok(()) };
        (0..log.rows()).try_for_each(|height| log.row(Height::new(height)).map(drop))
    }
}

impl Stores {
    /// Appends the figures of the blocks above `fork` up to `tip`.
    pub(crate) fn confirm_stats(&mut self, fork: Height, tip: HeaderId) -> Result<(), Error> {
        let mut above: Vec<(Height, BlockHash)> = {
            let tree = &self.chain.read().tree;
            let branch = std::iter::successors(Some(tip), |id| tree.parent(*id));
            let above = branch.take_while(|id| tree.height(*id) >= fork);
            above.map(|id| (tree.height(id), tree.hash(id))).collect()
        };
        match above.pop() {
            Some(fork) => self.stats.confirm(fork, above.into_iter().rev()),
            None => Ok(()),
        }
    }
}

/// The highest row in a folder that no writer has open, at most up to the tip.
pub(crate) fn counted(directory: &DataDirectory, tip: Height) -> Result<Option<Height>, Error> {
    let last = read_stats(directory)?.and_then(|log| log.rows().checked_sub(1));
    Ok(last.map(|last| Height::new(last).min(tip)))
}

/// The log as it is; `None` when there is none.
fn read_stats(directory: &DataDirectory) -> Result<Option<StatsLog>, Error> {
    let storage = directory.root().directory("stats")?;
    if storage.list()?.iter().all(|name| name == varve_io::LOCK_FILE) {
        return Ok(None);
    }
    let log = StatsLog::open(storage, directory.identity().store)?;
    Ok(Some(log).filter(StatsLog::is_whole))
}

/// What becomes of a damaged log, or of one that begins late.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Damaged {
    /// It starts again: all rows can be computed again.
    Removed,
    /// It is an error: blocks are pruned.
    Refused,
}

/// The log, to be appended to.
fn open_for_append(directory: &DataDirectory, damaged: Damaged) -> Result<StatsLog, Error> {
    let store = directory.identity().store;
    let open = || StatsLog::open(directory.root().directory("stats")?, store);
    let opened = open();
    if damaged == Damaged::Refused {
        return Ok(opened?);
    }
    match opened {
        Ok(log) if log.is_whole() => Ok(log),
        Err(error) if !error.is_damage() && !matches!(error, NotFound { .. }) => Err(error.into()),
        _ => {
            directory.clear(&STATS)?;
            Ok(open()?)
        }
    }
}
