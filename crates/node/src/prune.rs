//! Drops old blocks when the folder is to keep only the youngest bytes of them.
//!
//! After every checkpoint the oldest files of blocks are dropped, as far as they hold none of
//!
//! 1. the youngest blocks, up to the size that the settings name;
//! 2. blocks above the *horizon*, on whatever branch: as many heights below the tip as there are
//!    undo records ([`UndoConfig::blocks`](varve_utxo::UndoConfig)). The tip is here the highest
//!    block that the confirmed chain shares with the set's checkpoint, so what recovery may have
//!    to append again is above it;
//! 3. blocks whose rows a search table of the archive has in memory alone: after a crash they are
//!    made of the blocks again.
//!
//! 4. blocks that a reader has pinned (`pins`).
//!
//! A block whose header is not known (lost in a crash and not received again) holds nothing back.
//! It is dropped with its file, and fetched again if its header arrives.
//!
//! A rewind down to the horizon takes undo records and no bytes, and the blocks of the branch that
//! wins are above it. Where records are missing (a deep reorganisation has restarted the undo log),
//! nothing is dropped until there are enough again.
//!
//! Filters and figures of the set take the outputs that blocks spend, which may lie in pruned
//! blocks. They have them from the check of each block (`connected`), so they must be at the tip
//! before anything is dropped: an index that lags could never catch up.
//!
//! Rows of the archive stay. A question that needs dropped bytes is answered [`Error::Pruned`].

use varve_archive::{Chain as ArchiveChain, MmapTables, Snapshot};
use varve_blocks::{BlockNumber, BlockReader, Keep};
use varve_types::Height;

use crate::error::Error;
use crate::header_tree::HeaderId;
use crate::organizer::Organizer;
use crate::settings::{Index, Prune};

/// More than a file of blocks has around each of them.
const FRAME: u64 = 64;

impl Organizer {
    /// Drops what need not be kept. All stores have just been made durable.
    pub(crate) fn prune(&mut self) -> Result<(), Error> {
        let Prune::To(bytes) = self.settings.prune else { return Ok(()) };
        let Some(horizon) = self.horizon() else { return Ok(()) };
        if !self.are_indexes_at_tip()? {
            return Ok(());
        }
        let from = self.first_above(horizon)?;
        let from = self.stores.archive.needed_from()?.map_or(from, |needed| from.min(needed));
        let pinned = self.stores.pins.raise(from.min(self.youngest(bytes)?));
        let from = pinned.map_or(from, |pinned| pinned.min(from));
        let first = self.stores.blocks.prune(Keep { from, bytes })?;
        self.stores.forget_pruned(first);
        Ok(())
    }

    /// Whether every chosen index that takes the outputs which blocks spend has all of the
    /// confirmed chain.
    fn are_indexes_at_tip(&self) -> Result<bool, Error> {
        let tip = Some(self.snapshot().tip.0);
        for index in [Index::Filter, Index::Script, Index::Stats] {
            if self.settings.indexes.has(index) && self.indexed(index)? != tip {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The height down to which a rewind must be possible; `None` when all blocks are to be kept.
    fn horizon(&self) -> Option<Height> {
        let (_, saved) = self.utxo.checkpoint().tip?;
        let tree = &self.stores.chain.read().tree;
        let shared = tree.fork_point(tree.find(&saved)?, self.stores.tip);
        let horizon = tree.height(shared).checked_sub(self.options.undo.blocks)?;
        self.utxo.undo_from().filter(|from| *from <= horizon)?;
        Some(horizon)
    }

    /// The first block held that is above the horizon.
    fn first_above(&self, horizon: Height) -> Result<BlockNumber, Error> {
        let reader = self.stores.blocks.reader();
        let tree = &self.stores.chain.read().tree;
        for number in reader.first_held()?.get()..reader.count() {
            let id = tree.find(&reader.hash(BlockNumber::new(number))?);
            if id.is_some_and(|id| tree.height(id) > horizon) {
                return Ok(BlockNumber::new(number));
            }
        }
        Ok(BlockNumber::new(reader.count()))
    }

    /// The first block that pruning to this many bytes does not reach.
    fn youngest(&self, bytes: u64) -> Result<BlockNumber, Error> {
        let reader = self.stores.blocks.reader();
        let (mut number, first) = (reader.count(), reader.first_held()?.get());
        let mut sum = 0;
        while number > first {
            sum += reader.row(BlockNumber::new(number - 1))?.length + FRAME;
            if sum > bytes {
                break;
            }
            number -= 1;
        }
        Ok(BlockNumber::new(number))
    }

    /// Refuses to leave for a branch that begins below what can be rewound, before anything is.
    pub(crate) fn check_reach(&self, target: HeaderId) -> Result<(), Error> {
        if self.stores.blocks.reader().first_held()? == BlockNumber::ZERO {
            return Ok(());
        }
        let tree = &self.stores.chain.read().tree;
        let at = self.utxo.tip().and_then(|(_, hash)| tree.find(&hash));
        let fork = at.map(|at| tree.height(tree.fork_point(at, target)));
        let lowest = fork.and_then(|fork| fork.checked_add(1));
        match lowest.zip(self.utxo.undo_from()) {
            Some((height, from)) if height < from => Err(Error::Pruned { height }),
            _ => Ok(()),
        }
    }

    /// The lowest height from which on all blocks of the confirmed chain have their bytes; `None`
    /// when all have.
    pub fn pruned_below(&self) -> Result<Option<Height>, Error> {
        let snapshot = self.snapshot();
        pruned_below(&snapshot.archive, &snapshot.blocks, snapshot.tip.0)
    }
}

/// The same of a chain up to `tip`.
pub(crate) fn pruned_below(
    archive: &Snapshot<MmapTables>,
    blocks: &BlockReader,
    tip: Height,
) -> Result<Option<Height>, Error> {
    let first = blocks.first_held()?;
    if first == BlockNumber::ZERO {
        return Ok(None);
    }
    let mut lowest = tip;
    while let Some(below) = lowest.checked_sub(1) {
        let link = archive.at(ArchiveChain::Confirmed, below);
        let row = link.map(|link| archive.block(link)).transpose()?.flatten();
        if row.is_none_or(|row| row.number < first) {
            break;
        }
        lowest = below;
    }
    Ok(Some(lowest))
}
