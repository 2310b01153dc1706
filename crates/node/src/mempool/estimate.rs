//! Fee estimates: what the present mempool and the last blocks say, and no promise.
//!
//! For a target of n blocks the estimate is the largest of
//!
//! 1. *the floor*: the lowest rate that the mempool takes;
//! 2. *the queue*: the rate of the transaction that would be the last in the n-th block if every
//!    block took a million virtual bytes of the best rates and nothing arrived meanwhile. Where the
//!    mempool has less than that, the floor;
//! 3. *the recent blocks*, for targets up to 2: the median, over the last six blocks, of the rate
//!    that three quarters of a block's virtual bytes paid or exceeded. A block that was less than
//!    three quarters full counts as the floor: its room was free. Only transactions that were in
//!    the mempool count, because their fees are known.
//!
//! The queue knows what waits and not what will come; the recent blocks know what came. A wallet
//! that must be sure replaces its fee.

use std::sync::Arc;

use super::fee_rate::FeeRate;
use super::version::Version;

/// Virtual bytes of a full block.
const BLOCK_VSIZE: u64 = 1_000_000;
/// Blocks that are remembered.
const RECENT: usize = 6;
/// Targets for which recent blocks count.
const SOON: u32 = 2;

/// What the last blocks took, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentBlocks(Arc<Vec<FeeRate>>);

impl RecentBlocks {
    /// Adds a block by the rates and sizes of what it took out of the mempool.
    pub(super) fn push(&mut self, mut taken: Vec<(FeeRate, u64)>, block_vsize: u64) {
        taken.sort_unstable_by(|one, other| other.cmp(one));
        let total: u64 = taken.iter().map(|(_, vsize)| vsize).sum();
        let mut seen = 0;
        let quartile = taken.iter().find(|(_, vsize)| {
            seen += vsize;
            seen * 4 >= total * 3
        });
        let contested = block_vsize * 4 >= BLOCK_VSIZE * 3;
        let rate = quartile.filter(|_| contested).map_or(FeeRate::ZERO, |(rate, _)| *rate);
        let recent = Arc::make_mut(&mut self.0);
        recent.push(rate);
        if recent.len() > RECENT {
            recent.remove(0);
        }
    }

    /// Forgets the newest blocks, which were disconnected.
    pub(super) fn pop(&mut self) {
        Arc::make_mut(&mut self.0).pop();
    }

    fn median(&self) -> FeeRate {
        let mut rates = self.0.to_vec();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied().unwrap_or(FeeRate::ZERO)
    }
}

impl Version {
    /// The rate that should confirm a transaction within this many blocks; see the module for what
    /// that means. It walks the best rates up to the target.
    #[must_use]
    pub fn estimate(&self, blocks: u32) -> FeeRate {
        let target = u64::from(blocks.max(1)) * BLOCK_VSIZE;
        let mut seen = 0;
        let last = self.by_rate.iter_back().find(|(_, vsize)| {
            seen += **vsize;
            seen >= target
        });
        let queue = last.map_or(FeeRate::ZERO, |((rate, _), _)| *rate);
        let recent = if blocks <= SOON { self.recent.median() } else { FeeRate::ZERO };
        self.min_rate.max(queue).max(recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_blocks_count_when_they_were_full() {
        let rate = FeeRate::per_kvb;
        let mut recent = RecentBlocks::default();
        assert_eq!(recent.median(), FeeRate::ZERO);
        let taken = vec![(rate(1), 250_000), (rate(9), 250_000), (rate(5), 500_000)];
        recent.push(taken.clone(), 1_000_000);
        assert_eq!(recent.median(), rate(5), "nine, then five reach three quarters");
        (0..6).for_each(|_| recent.push(taken.clone(), 700_000));
        assert_eq!((recent.0.len(), recent.median()), (6, FeeRate::ZERO));
        (0..6).for_each(|_| recent.pop());
        recent.push(Vec::new(), 1_000_000);
        assert_eq!(recent.median(), FeeRate::ZERO);
    }
}
