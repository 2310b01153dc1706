//! The part of archiving a block that needs only the block.

use std::num::NonZeroUsize;

use varve_consensus::{BlockAt, block_base_size};
use varve_types::pushdata::PushdataRule;
use varve_types::{BlockHash, PushdataHash, Tx};

use crate::backend::{Indexes, MakeRows};
use crate::error::{ArchiveError, Result};
use crate::query::pushes;
use crate::row::BlockKeys;
use crate::side_by_side::side_by_side;

/// Prepares blocks for archiving, in any thread.
#[derive(Clone, Copy, Debug)]
pub struct BlockPreparer<M> {
    maker: M,
    pushdata: Option<PushdataRule>,
}

/// A block ready to be archived.
#[derive(Clone, Debug)]
pub struct PreparedBlock<R> {
    pub(super) hash: BlockHash,
    pub(super) size: u32,
    pub(super) base_size: u32,
    pub(super) inputs: u32,
    pub(super) outputs: u32,
    pub(super) offsets: Vec<u32>,
    pub(super) rows: R,
}

impl<M: MakeRows> BlockPreparer<M> {
    pub(super) const fn new(maker: M, indexes: Indexes) -> Self {
        Self { maker, pushdata: indexes.pushdata }
    }

    /// Prepares a block. Refuses blocks of 4 GiB and more.
    pub fn prepare(&self, block: &BlockAt<'_>) -> Result<PreparedBlock<M::Rows>> {
        let (hash, len) = (block.hash(), block.block().bytes().len());
        let size = u32::try_from(len);
        let size = size.map_err(|_| ArchiveError::TooLarge { hash, size: len as u64 })?;
        let base_size = u32::try_from(block_base_size(block.block())).unwrap_or(size);
        let mut offsets = Vec::with_capacity(block.txids().len());
        let (mut spends, mut pushes) = (Vec::new(), Vec::new());
        let (mut inputs, mut outputs) = (0, 0);
        for (position, (offset, tx)) in (0..).zip(block.block().txs_with_offsets()) {
            offsets.push(u32::try_from(offset).expect("the block is below 4 GiB"));
            let points = tx.inputs().map(|input| input.outpoint);
            inputs += count(points.len());
            spends.extend(points.filter(|point| !point.is_null()).map(|point| (point, position)));
            outputs += count(tx.outputs().len());
            if let Some(rule) = self.pushdata {
                pushes.extend(pushed(rule, tx).into_iter().map(|hash| (hash, position)));
            }
        }
        let keys = BlockKeys { txids: block.txids(), spends: &spends, pushes: &pushes };
        let rows = self.maker.rows(&keys);
        Ok(PreparedBlock { hash, size, base_size, inputs, outputs, offsets, rows })
    }

    /// Prepares many blocks in `threads` threads and returns the results in their order: `run`
    /// reads each block and passes it to the preparer.
    pub fn prepare_many<I: Sync, R: Send>(
        &self,
        blocks: &[I],
        threads: NonZeroUsize,
        run: impl Fn(&Self, &I) -> R + Sync,
    ) -> Vec<R> {
        side_by_side(blocks.iter(), threads.get(), |block| run(self, block))
    }
}

/// A count of things in a block below 4 GiB.
fn count(things: usize) -> u32 {
    u32::try_from(things).expect("fewer than the bytes of the block")
}

/// The hashes of the items that a transaction pushes, each once.
fn pushed(rule: PushdataRule, tx: &Tx<'_>) -> Vec<PushdataHash> {
    let mut hashes: Vec<PushdataHash> = pushes(rule, tx).map(|(_, item)| item.hash()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}
