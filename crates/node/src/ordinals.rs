//! The ordinal of a transaction: how many come before it in the confirmed chain.
//!
//! The script history names a transaction by its ordinal. Ordinals ascend along the chain whatever
//! the order in which blocks were archived, and those of two branches never meet: rows of blocks
//! that left the chain are taken back. Rows of the archive do not have that: peers send blocks out
//! of order, and rows are numbered as blocks come.
//!
//! The archive knows how many transactions each block has. Their sums below every 32nd height are
//! kept here, 8 bytes each: 0.2 MB at 900,000 blocks. A lookup adds up at most 31 rows to that.

use std::sync::Arc;

use varve_archive::{HeaderLink, MmapTables, Snapshot, TxLink};
use varve_types::Height;

use crate::error::Error;

/// Heights between two sums.
const STRIDE: u32 = 32;

/// Sums of the confirmed chain.
#[derive(Clone, Debug)]
pub(crate) struct Ordinals {
    /// Entry `i` counts the transactions below height `i` · [`STRIDE`].
    sums: Arc<Vec<u64>>,
}

/// A transaction by its place in the confirmed chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainPlace {
    pub(crate) height: Height,
    pub(crate) block: HeaderLink,
    pub(crate) position: u32,
    /// Its row in the archive.
    pub(crate) link: TxLink,
}

impl Ordinals {
    /// The sums of the archive's confirmed chain. Reads every block row once.
    pub(crate) fn of(now: &Snapshot<MmapTables>) -> Result<Self, Error> {
        let mut ordinals = Self { sums: Arc::new(vec![0]) };
        ordinals.turn(now, Height::GENESIS)?;
        Ok(ordinals)
    }

    /// Follows the confirmed chain, which has changed above `fork` at most.
    pub(crate) fn turn(&mut self, now: &Snapshot<MmapTables>, fork: Height) -> Result<(), Error> {
        let sums = Arc::make_mut(&mut self.sums);
        // Sums up to this one count blocks up to the fork alone.
        let kept = (fork.to_u32() + 1) / STRIDE + 1;
        sums.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        let top = now.top(varve_archive::Chain::Confirmed).map(|(top, _)| top.to_u32());
        let Some(top) = top else { return Ok(()) };
        loop {
            let last = u32::try_from(sums.len() - 1).unwrap_or(u32::MAX);
            let from = last.saturating_mul(STRIDE);
            if from + STRIDE > top + 1 {
                return Ok(());
            }
            let mut sum = sums.last().copied().unwrap_or_default();
            for height in from..from + STRIDE {
                sum += u64::from(count(now, height)?.unwrap_or_default());
            }
            sums.push(sum);
        }
    }

    /// The ordinal of the coinbase at a height; behind the tip, that of the next block.
    pub(crate) fn first(
        &self,
        now: &Snapshot<MmapTables>,
        height: Height,
    ) -> Result<TxLink, Error> {
        let height = height.to_u32();
        let near = (height / STRIDE).min(u32::try_from(self.sums.len() - 1).unwrap_or(u32::MAX));
        let mut sum = self.sums.get(near as usize).copied().unwrap_or_default();
        for height in near * STRIDE..height {
            let Some(count) = count(now, height)? else { break };
            sum += u64::from(count);
        }
        Ok(TxLink::new(sum))
    }

    /// The transaction with this ordinal.
    pub(crate) fn place(
        &self,
        now: &Snapshot<MmapTables>,
        ordinal: TxLink,
    ) -> Result<Option<ChainPlace>, Error> {
        let near = self.sums.partition_point(|sum| *sum <= ordinal.to_u64()).saturating_sub(1);
        let mut sum = self.sums.get(near).copied().unwrap_or_default();
        let mut height = u32::try_from(near).unwrap_or(u32::MAX).saturating_mul(STRIDE);
        while let Some(block) = now.to_confirmed(Height::new(height)) {
            let Some(row) = now.block(block)? else { return Ok(None) };
            let position = ordinal.to_u64() - sum;
            if let Some(position) =
                u32::try_from(position).ok().filter(|position| *position < row.tx_count)
            {
                let (height, link) = (Height::new(height), row.first_tx.plus(position));
                return Ok(Some(ChainPlace { height, block, position, link }));
            }
            sum += u64::from(row.tx_count);
            height += 1;
        }
        Ok(None)
    }
}

/// How many transactions the confirmed block at a height has.
fn count(now: &Snapshot<MmapTables>, height: u32) -> Result<Option<u32>, Error> {
    let Some(link) = now.to_confirmed(Height::new(height)) else { return Ok(None) };
    Ok(now.block(link)?.map(|row| row.tx_count))
}
