//! One moment of the whole node.
//!
//! Readers hold one [`Arc`] of it: the unspent set, the history and the raw blocks, all at the tip
//! of one commit. The writer publishes the next one without waiting for them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_archive::{MmapTables, View};
use varve_blocks::BlockReader;
use varve_types::{BlockHash, Height};
use varve_utxo::Version;

use crate::commit_log::CommitSequence;

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
}

impl NodeSnapshot {
    /// The questions that also take bytes of blocks.
    #[must_use]
    pub fn view(&self) -> ArchiveView {
        View::new(self.archive.clone(), self.blocks.clone())
    }
}

/// Takes snapshots in any thread, also while the organizer works.
#[derive(Clone, Debug)]
pub struct NodeReader {
    pub(crate) published: Arc<ArcSwap<NodeSnapshot>>,
}

impl NodeReader {
    /// The node as it is now, for as long as one likes. Waits for nobody.
    #[must_use]
    pub fn snapshot(&self) -> Arc<NodeSnapshot> {
        self.published.load_full()
    }
}
