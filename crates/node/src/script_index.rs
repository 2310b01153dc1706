//! The script history as the organizer keeps it.
//!
//! ```text
//!  worker     Connected ─► Batch ─┐
//!  organizer              waiting ◄┘ ── commit ─► table.connect ─► view in the NodeSnapshot
//!             rewind of the set ─► table.disconnect, or negate
//! ```
//!
//! 1. The check of a block makes its rows ([`connected`](crate::connected)). They wait here until a
//!    commit confirms the block. Blocks are connected after the commit is durable, so the table's
//!    watermark never names a block that was not confirmed.
//! 2. When the set is rewound, the table disconnects the same block. If its rows are in a run, they
//!    are negated: the set, which stands below the block then, has every coin that it spent. Where
//!    blocks are pruned, negations are flushed at once, because after a crash nobody could make
//!    them again.
//! 3. A table that lags (just chosen, or after a crash) catches up out of the blocks
//!    ([`Recompute`](crate::recompute)); where those are pruned, from the set and its undo records
//!    (`recovery::indexes`).
//!
//! Transactions are named by their [ordinals](crate::ordinals).

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;

use varve_archive::history::{
    Batch, BlockChanges, Connected, Disconnected, HistoryKeys, HistoryOptions, HistoryReader,
    HistoryTable, HistoryView, Mark, Negation,
};
use varve_archive::{ArchiveError, Chain as ArchiveChain, HeaderLink, TxLink};
use varve_types::{BlockHash, Height, Outpoint};
use varve_utxo::{Compaction, Secret, StoreKey};

use crate::budget::Budget;
use crate::connected::Wanted;
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::ordinals::Ordinals;
use crate::recovery::SEARCH_BESIDE;
use crate::snapshot::ArchiveView;
use crate::store_files::SCRIPT;
use crate::stores::{Stores, missing};

/// The keys of a folder's script history.
pub(crate) fn keys(directory: &DataDirectory) -> HistoryKeys {
    let identity = directory.identity();
    HistoryKeys::new(StoreKey { id: identity.store, secret: Secret::new(identity.secret) })
}

/// Opens the table of a folder that nobody writes.
pub(crate) fn at_rest(directory: &DataDirectory) -> Result<HistoryView, Error> {
    let storage = directory.store(SCRIPT.folder)?;
    Ok(HistoryReader::at_rest(&storage, keys(directory))?.view())
}

/// The script history as the writer has it.
pub(crate) struct ScriptIndex {
    table: HistoryTable,
    keys: HistoryKeys,
    ordinals: Ordinals,
    /// Rows of blocks that no commit has, or that the set was turned away from and back to.
    waiting: BTreeMap<(Height, BlockHash), Batch>,
    waiting_bytes: usize,
    /// Bytes of waiting rows at most. Those of the lowest blocks are dropped first, and made of the
    /// blocks again.
    waiting_most: usize,
    threads: NonZeroUsize,
}

impl ScriptIndex {
    pub(crate) fn open(
        directory: &DataDirectory,
        options: HistoryOptions,
        budget: &Budget,
        ordinals: Ordinals,
        threads: NonZeroUsize,
    ) -> Result<Self, Error> {
        let memory = budget.history_table();
        let compaction =
            if memory < SEARCH_BESIDE { Compaction::Inline } else { options.compaction };
        let options = HistoryOptions { memory, compaction, ..options };
        let (storage, keys) = (directory.store(SCRIPT.folder)?, keys(directory));
        let table = HistoryTable::open(storage, keys, options)?;
        let waiting_most = budget.history / 4;
        let (waiting, waiting_bytes) = (BTreeMap::new(), 0);
        Ok(Self { table, keys, ordinals, waiting, waiting_bytes, waiting_most, threads })
    }

    /// The block up to which it goes.
    pub(crate) fn tip(&self) -> Option<Mark> {
        self.table.tip()
    }

    /// What a snapshot of the node holds.
    pub(crate) fn view(&self) -> (HistoryView, Ordinals) {
        (self.table.reader().view(), self.ordinals.clone())
    }

    /// Keeps the rows of a block until a commit confirms it.
    pub(crate) fn connected(&mut self, height: Height, block: BlockHash, batch: Batch) {
        self.waiting_bytes += batch.memory();
        if let Some(old) = self.waiting.insert((height, block), batch) {
            self.waiting_bytes -= old.memory();
        }
        while self.waiting_bytes > self.waiting_most {
            let Some((_, dropped)) = self.waiting.pop_first() else { break };
            self.waiting_bytes -= dropped.memory();
        }
    }

    /// Whether enough rows wait that a commit is due.
    pub(crate) const fn is_crowded(&self) -> bool {
        self.waiting_bytes >= self.waiting_most / 2
    }

    /// Starts what is due beside the writer.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        Ok(self.table.settle()?)
    }

    /// Flushes everything.
    pub(crate) fn rest(&mut self) -> Result<(), Error> {
        Ok(self.table.rest()?)
    }

    /// Merges the runs into one, in the background. Returns whether merges are still running. On a
    /// full disk the runs stay as they are and still answer.
    pub(crate) fn tidy(&mut self) -> Result<bool, Error> {
        match self.table.tidy() {
            Err(error) if error.is_disk_full() => Ok(false),
            tidied => Ok(tidied?),
        }
    }

    /// Bytes of the runs being merged: about how many are done, and all of them.
    pub(crate) fn merging(&self) -> (u64, u64) {
        self.table.merging()
    }

    /// Compares everything on disk with its checksums.
    pub(crate) fn verify(&self) -> Result<(), Error> {
        Ok(self.table.verify()?)
    }

    /// Takes the tip back in memory; `false` when its negation is needed.
    pub(crate) fn disconnect(&mut self) -> bool {
        self.table.disconnect() != Disconnected::InRuns
    }

    /// Takes the tip back by its negation. `parent` is the block below.
    pub(crate) fn negate(
        &mut self,
        view: &ArchiveView,
        block: HeaderLink,
        changes: &BlockChanges,
    ) -> Result<(), Error> {
        let tip = self.table.tip().ok_or_else(|| disagree("there is no block to take back"))?;
        let row = view.block(block)?.ok_or_else(|| missing(tip.hash))?;
        let first = TxLink::new(tip.end.to_u64().saturating_sub(row.tx_count.into()));
        let origins = self.origins(view, block, changes)?;
        let parent = view.header(block)?.parent.map(|parent| view.header(parent)).transpose()?;
        let parent = parent.map(|row| Mark { height: row.height, hash: row.hash, end: first });
        self.table.negate(parent, Negation::new(&self.keys, changes, first, &origins));
        Ok(())
    }

    /// The ordinals of the transactions that made what a block spends. Where those are pruned, that
    /// of the first of their block stands for them: the outpoint decides when a list is read.
    fn origins(
        &self,
        view: &ArchiveView,
        block: HeaderLink,
        changes: &BlockChanges,
    ) -> Result<Vec<TxLink>, Error> {
        let outputs = match view.block_prevouts(block) {
            Err(ArchiveError::Pruned { .. }) => Vec::new(),
            found => found?.unwrap_or_default(),
        };
        let positions: HashMap<Outpoint, u32> =
            outputs.iter().flatten().map(|output| (output.point(), output.tx.position)).collect();
        let origin = |spent: &varve_archive::history::Spent| {
            let position = positions.get(&spent.outpoint).copied().unwrap_or_default();
            Ok(self.ordinals.first(view, spent.height)?.plus(position))
        };
        changes.spent.iter().map(origin).collect()
    }

    /// Connects the block above the tip.
    fn connect(
        &mut self,
        view: &ArchiveView,
        height: Height,
        batch: Option<Batch>,
    ) -> Result<bool, Error> {
        let none = || disagree("a block of the confirmed chain is not archived");
        let link = view.to_confirmed(height).ok_or_else(none)?;
        let (header, row) = (view.header(link)?, view.block(link)?.ok_or_else(none)?);
        let hash = header.hash;
        let waiting = self.waiting.remove(&(height, hash));
        self.waiting_bytes -= waiting.as_ref().map_or(0, Batch::memory);
        let genesis = (height == Height::GENESIS).then(Batch::default);
        let Some(batch) = batch.or(waiting).or(genesis) else { return Ok(false) };
        let parent = header.parent.map(|parent| view.header(parent)).transpose()?;
        let parent = parent.map_or(BlockHash::from_bytes([0; 32]), |row| row.hash);
        let count = row.tx_count;
        self.table.tend()?;
        self.table.connect(&Connected { height, hash, parent, count }, batch)?;
        Ok(true)
    }
}

impl Stores {
    /// Brings the script history to the confirmed tip, which has changed above `fork` at most.
    /// `progress` gets how many blocks it has and how many there are to be, when rows are made of
    /// blocks again.
    pub(crate) fn follow_scripts(
        &mut self,
        fork: Height,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        if self.scripts.is_none() {
            return Ok(());
        }
        let view = self.view();
        self.leave_stale_scripts(&view, fork)?;
        let Some((top, _)) = view.top(ArchiveChain::Confirmed) else { return Ok(()) };
        let Some(index) = &mut self.scripts else { return Ok(()) };
        let next = |index: &ScriptIndex| index.tip().map_or(0, |tip| tip.height.to_u32() + 1);
        while next(index) <= top.to_u32() && index.connect(&view, Height::new(next(index)), None)? {
        }
        let (first, keys, threads) = (next(index), index.keys, index.threads);
        if first <= top.to_u32() {
            let wanted = Wanted { scripts: Some(keys), ..Wanted::default() };
            let recompute = self.recompute(view.clone(), wanted, threads);
            let Some(index) = &mut self.scripts else { return Ok(()) };
            recompute.each(first..=top.to_u32(), &mut |connected| {
                index.connect(&view, connected.height, connected.scripts)?;
                progress(u64::from(connected.height.to_u32()) + 1, u64::from(top.to_u32()) + 1);
                Ok(())
            })?;
        }
        // What is left is of branches that lost.
        if let Some(index) = &mut self.scripts {
            index.waiting.retain(|(height, _), _| *height > top);
            index.waiting_bytes = index.waiting.values().map(Batch::memory).sum();
        }
        Ok(())
    }

    /// The same where blocks may be pruned: then a history that lacks rows of them lags.
    pub(crate) fn keep_up_scripts(&mut self, fork: Height) -> Result<(), Error> {
        match self.follow_scripts(fork, &mut |_, _| {}) {
            Err(Error::Pruned { .. }) => Ok(()),
            followed => followed,
        }
    }

    /// After an opening: takes blocks back that are no longer confirmed. Blocks that are lacking
    /// are left to the next sync.
    pub(crate) fn restore_scripts(&mut self) -> Result<(), Error> {
        let view = self.view();
        self.leave_stale_scripts(&view, Height::GENESIS)
    }

    /// Takes blocks back until the history's tip is confirmed, and follows the chain's ordinals.
    fn leave_stale_scripts(&mut self, view: &ArchiveView, fork: Height) -> Result<(), Error> {
        let threads = NonZeroUsize::MIN;
        let recompute = self.recompute(view.clone(), Wanted::default(), threads);
        let Some(index) = &mut self.scripts else { return Ok(()) };
        index.ordinals.turn(view, fork)?;
        while let Some(tip) = index.tip() {
            let link = view.to_header(tip.hash)?.ok_or_else(|| missing(tip.hash))?;
            if view.to_confirmed(tip.height) == Some(link) {
                return Ok(());
            }
            if !index.disconnect() {
                index.negate(view, link, &recompute.script_changes(link)?)?;
            }
        }
        Ok(())
    }
}

fn disagree(what: &str) -> Error {
    Error::Disagree { what: what.to_owned() }
}
