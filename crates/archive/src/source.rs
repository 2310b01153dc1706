//! Where the bytes of blocks are.
//!
//! Rows point into the block store. The queries reach it through [`BlockSource`], so that tests put
//! blocks in memory and a back end never sees bytes at all.

use std::ops::Range;
use std::sync::Arc;

use varve_blocks::{BlockBytes, BlockReader};

pub use varve_blocks::BlockNumber;

/// Why bytes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Pruning dropped them.
    #[error("the block's bytes are pruned")]
    Pruned,
    /// There is no such block, or it is shorter.
    #[error("block number {number} has no bytes {range:?}; run `varve repair`")]
    Missing {
        /// The block.
        number: BlockNumber,
        /// What was asked for.
        range: Range<u32>,
    },
    /// The store failed.
    #[error("the block store failed: {0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Bytes of blocks, by the block's number.
pub trait BlockSource {
    /// Bytes that are lent or owned.
    type Bytes<'a>: AsRef<[u8]>
    where
        Self: 'a;

    /// These bytes of the block.
    fn bytes(&self, number: BlockNumber, range: Range<u32>)
    -> Result<Self::Bytes<'_>, SourceError>;
}

impl<S: BlockSource> BlockSource for &S {
    type Bytes<'a>
        = S::Bytes<'a>
    where
        Self: 'a;

    fn bytes(
        &self,
        number: BlockNumber,
        range: Range<u32>,
    ) -> Result<Self::Bytes<'_>, SourceError> {
        (**self).bytes(number, range)
    }
}

impl<S: BlockSource> BlockSource for Arc<S> {
    type Bytes<'a>
        = S::Bytes<'a>
    where
        Self: 'a;

    fn bytes(
        &self,
        number: BlockNumber,
        range: Range<u32>,
    ) -> Result<Self::Bytes<'_>, SourceError> {
        (**self).bytes(number, range)
    }
}

/// The block store itself.
impl BlockSource for BlockReader {
    type Bytes<'a> = BlockBytes;

    fn bytes(&self, number: BlockNumber, range: Range<u32>) -> Result<BlockBytes, SourceError> {
        self.slice(number, range.start.into()..range.end.into()).map_err(|error| match error {
            varve_blocks::Error::Pruned { .. } => SourceError::Pruned,
            varve_blocks::Error::Unknown { .. } | varve_blocks::Error::OutOfBlock { .. } => {
                SourceError::Missing { number, range }
            }
            other => SourceError::Failed(Box::new(other)),
        })
    }
}

/// Blocks in memory, some of which may be pruned: for tests and small chains.
#[derive(Clone, Debug, Default)]
pub struct MemoryBlocks {
    blocks: Vec<Option<Arc<[u8]>>>,
}

impl MemoryBlocks {
    /// Takes a block and gives it the next number.
    pub fn push(&mut self, bytes: &[u8]) -> BlockNumber {
        self.blocks.push(Some(bytes.into()));
        BlockNumber::new(
            u32::try_from(self.blocks.len() - 1).expect("fewer blocks than memory holds"),
        )
    }

    /// Drops the bytes of a block.
    pub fn prune(&mut self, number: BlockNumber) {
        if let Some(block) = self.blocks.get_mut(number.get() as usize) {
            *block = None;
        }
    }
}

impl BlockSource for MemoryBlocks {
    type Bytes<'a> = &'a [u8];

    fn bytes(&self, number: BlockNumber, range: Range<u32>) -> Result<&[u8], SourceError> {
        let missing = || SourceError::Missing { number, range: range.clone() };
        let block = self.blocks.get(number.get() as usize).ok_or_else(missing)?;
        let block = block.as_ref().ok_or(SourceError::Pruned)?;
        let (start, end) = (range.start as usize, range.end as usize);
        block.get(start..end).ok_or_else(missing)
    }
}
