//! One moment of the whole node.
//!
//! Readers hold one [`Arc`] of it: the unspent set, the history and the raw blocks, all at the tip
//! of one commit. The writer publishes the next one without waiting for them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_archive::history::HistoryView;
use varve_archive::{MmapTables, View};
use varve_blocks::BlockReader;
use varve_types::{BlockHash, Height};
use varve_utxo::Version;

use crate::chain_moment::ChainMoment;
use crate::checked::ScriptsChecked;
use crate::commit_log::CommitSequence;
use crate::data_directory::DataDirectory;
use crate::desk::Desk;
use crate::error::Error;
use crate::filters::filtered;
use crate::header_tree::{ChainTip, Invalid};
use crate::index_size::index_bytes;
use crate::mempool;
use crate::ordinals::Ordinals;
use crate::pins::{Pin, Pins};
use crate::prune::pruned_below;
use crate::scripts::Scripts;
use crate::settings::{Index, Settings};
use crate::stats::SharedLog;

/// The archive at one moment, with the bytes of the blocks.
pub type ArchiveView = View<MmapTables, BlockReader>;

/// The node at one commit.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    /// The commit.
    pub sequence: CommitSequence,
    /// The tip of the confirmed chain.
    pub tip: (Height, BlockHash),
    /// The unspent outputs.
    pub utxo: Arc<Version>,
    /// The history, on every branch.
    pub archive: varve_archive::Snapshot<MmapTables>,
    /// The raw blocks.
    pub blocks: BlockReader,
    pub(crate) chain: ChainMoment,
    /// The script history, where it is kept.
    pub(crate) scripts: Option<(HistoryView, Ordinals)>,
    /// The unconfirmed transactions at this tip; `None` while there is no mempool.
    pub mempool: Option<Arc<mempool::Version>>,
}

impl NodeSnapshot {
    /// The questions that also take bytes of blocks.
    #[must_use]
    pub fn view(&self) -> ArchiveView {
        View::new(self.archive.clone(), self.blocks.clone())
    }

    /// The histories of scripts, up to the block that the index has reached.
    pub fn script_histories(&self) -> Result<Scripts, Error> {
        let (history, ordinals) = self.scripts.clone().ok_or(Error::NoHistory)?;
        Ok(Scripts::new(self.view(), history, ordinals))
    }

    /// Every branch that was known, and the confirmed tip. Walks all headers.
    #[must_use]
    pub fn chain_tips(&self) -> Vec<ChainTip> {
        self.chain.chain_tips()
    }

    /// The height of the best header.
    #[must_use]
    pub const fn header_height(&self) -> Height {
        self.chain.best()
    }

    /// Whether and why a block cannot be in the chain, as it is known now.
    #[must_use]
    pub fn invalid(&self, hash: &BlockHash) -> Option<Invalid> {
        self.chain.invalid(hash)
    }

    /// The blocks that are invalid themselves, as it is known now, in the order of their hashes.
    #[must_use]
    pub fn invalid_blocks(&self) -> Vec<Invalid> {
        self.chain.invalid_blocks()
    }

    /// How the scripts of the confirmed chain were settled.
    #[must_use]
    pub fn scripts(&self) -> ScriptsChecked {
        self.chain.scripts(self.tip.0)
    }

    /// The lowest height from which on all blocks of the confirmed chain have their bytes; `None`
    /// when all have.
    pub fn pruned_below(&self) -> Result<Option<Height>, Error> {
        pruned_below(&self.archive, &self.blocks, self.tip.0)
    }
}

/// Takes snapshots in any thread, also while the organizer works, and keeps the folder locked.
#[derive(Clone, Debug)]
pub struct NodeReader {
    pub(crate) published: Arc<ArcSwap<NodeSnapshot>>,
    pub(crate) directory: Arc<DataDirectory>,
    pub(crate) settings: Settings,
    pub(crate) stats: SharedLog,
    pub(crate) desk: Desk,
    pub(crate) pins: Pins,
}

impl NodeReader {
    /// Keeps the bytes of blocks that a snapshot can reach which is taken now, for as long as the
    /// pin is held: pruning waits for it.
    #[must_use]
    pub fn pin(&self) -> Pin {
        self.pins.pin()
    }

    /// Where transactions are handed in while a sync follows.
    #[must_use]
    pub const fn desk(&self) -> &Desk {
        &self.desk
    }

    /// The node as it is now. Does not wait for the writer, and stays valid for as long as it is
    /// held.
    #[must_use]
    pub fn snapshot(&self) -> Arc<NodeSnapshot> {
        self.published.load_full()
    }

    /// How the folder is kept.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// The height up to which an index goes; `None` when it has not begun.
    pub fn indexed(&self, index: Index) -> Result<Option<Height>, Error> {
        let snapshot = self.snapshot();
        match index {
            Index::Filter => filtered(&snapshot.archive),
            // Rows are appended with the block.
            Index::Pushdata => Ok(Some(snapshot.tip.0)),
            Index::Script => {
                let tip = snapshot.scripts.as_ref().and_then(|(history, _)| history.tip());
                Ok(tip.map(|tip| tip.height))
            }
            Index::Stats => self.stats.counted(&self.directory, snapshot.tip.0),
        }
    }

    /// The bytes of an index's files.
    pub fn index_bytes(&self, index: Index) -> Result<u64, Error> {
        index_bytes(&self.directory, index)
    }

    /// The bytes of the archive's files.
    pub fn archive_bytes(&self) -> Result<u64, Error> {
        let storage = self.directory.store("archive")?;
        Ok(varve_archive::stored_bytes(storage.as_ref())?)
    }
}
