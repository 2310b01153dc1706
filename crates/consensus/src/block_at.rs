//! A block at its height.

use std::sync::OnceLock;

use varve_types::{Block, BlockHash, Height, Tx, Txid};

use crate::sigops;

/// A block, its height, and what is computed once for all rules: its hashes, and the signature
/// operations of its transactions.
#[derive(Clone, Debug)]
pub struct BlockAt<'a> {
    height: Height,
    hash: BlockHash,
    block: &'a Block<'a>,
    txids: Vec<Txid>,
    sigops: OnceLock<Box<[u64]>>,
}

impl<'a> BlockAt<'a> {
    /// The block at this height. Computes the txids.
    #[must_use]
    pub fn new(height: Height, block: &'a Block<'a>) -> Self {
        let (hash, txids, sigops) = (block.hash(), block.txids(), OnceLock::new());
        Self { height, hash, block, txids, sigops }
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

    /// The legacy signature operations of each transaction, in block order. Counted by the first
    /// rule that asks, in whichever thread it runs; the rules of spends reuse the count.
    pub(crate) fn legacy_sigops(&self) -> &[u64] {
        self.sigops.get_or_init(|| self.block.txs().iter().map(sigops::legacy).collect())
    }
}
