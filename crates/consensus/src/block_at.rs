//! A block in its place.

use varve_types::{Block, BlockHash, Height, Tx, Txid};

/// A block, the height it stands at, and its hashes, which are computed once for all rules.
#[derive(Clone, Debug)]
pub struct BlockAt<'a> {
    height: Height,
    hash: BlockHash,
    block: &'a Block<'a>,
    txids: Vec<Txid>,
}

impl<'a> BlockAt<'a> {
    /// The block at this height. Computes the txids.
    #[must_use]
    pub fn new(height: Height, block: &'a Block<'a>) -> Self {
        Self { height, hash: block.hash(), block, txids: block.txids() }
    }

    /// The height.
    #[must_use]
    pub const fn height(&self) -> Height {
        self.height
    }

    /// The hash of the block.
    #[must_use]
    pub const fn hash(&self) -> BlockHash {
        self.hash
    }

    /// The block.
    #[must_use]
    pub const fn block(&self) -> &'a Block<'a> {
        self.block
    }

    /// The txids, in block order.
    #[must_use]
    pub fn txids(&self) -> &[Txid] {
        &self.txids
    }

    /// The transactions with their txids, in block order.
    pub fn txs(&self) -> impl Iterator<Item = (Txid, &'a Tx<'a>)> {
        self.txids.iter().copied().zip(self.block.txs())
    }
}
