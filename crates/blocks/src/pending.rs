//! The rows of blocks added after the last checkpoint: in memory, shared with readers.
//!
//! The index on disk is append-only and cannot be truncated, so a row goes there only when a
//! checkpoint makes it final. Until then it is kept here, in chunks of slots that are set once. The
//! writer sets slots in order and publishes the count of blocks afterwards; a reader reads only
//! slots below its count. A new chunk appears in the next view.

use std::sync::{Arc, OnceLock};

use crate::row::BlockRow;

/// The slots of a chunk: enough that a view is seldom replaced, few enough not to burden a store of
/// a handful of blocks.
const CHUNK: usize = 256;

/// A block that is not in the index yet.
#[derive(Debug)]
pub(crate) struct PendingBlock {
    /// Its row, without the position of its offsets table.
    pub(crate) row: BlockRow,
    /// The table of its transaction offsets.
    pub(crate) offsets: Vec<u8>,
}

/// Rows in order, from the first that is not in the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    chunks: Vec<Arc<[OnceLock<Arc<PendingBlock>>]>>,
}

impl Pending {
    /// How many blocks fit.
    pub(crate) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// The same blocks, shared, with room for more.
    pub(crate) fn grown(&self) -> Self {
        let mut chunks = self.chunks.clone();
        chunks.push((0..CHUNK).map(|_| OnceLock::new()).collect());
        Self { chunks }
    }

    /// A copy with the first `count` blocks in separate slots.
    pub(crate) fn cut(&self, count: usize) -> Self {
        let mut cut = Self::default();
        for index in 0..count {
            if index == cut.room() {
                cut = cut.grown();
            }
            let block = self.slot(index).and_then(OnceLock::get).expect("below the count");
            cut.set(index, Arc::clone(block));
        }
        cut
    }

    /// Puts the block at `index`, once.
    pub(crate) fn set(&self, index: usize, block: Arc<PendingBlock>) {
        let slot = self.slot(index).expect("the writer makes room first");
        slot.set(block).expect("the writer sets every slot once");
    }

    /// The block at `index`, if it is set.
    pub(crate) fn get(&self, index: usize) -> Option<&PendingBlock> {
        self.slot(index)?.get().map(Arc::as_ref)
    }

    fn slot(&self, index: usize) -> Option<&OnceLock<Arc<PendingBlock>>> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }
}
