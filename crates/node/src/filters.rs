//! The BIP158 filters, where the folder keeps them.
//!
//! The check of a block computes its filter ([`connected`](crate::connected)). When the block
//! leaves the joiner, its filter is chained to that of the block below and archived, whether or not
//! the block is confirmed later: filters are kept by block, and those of blocks that lost stay. A
//! block has a filter only if the one below has.
//!
//! Filters of confirmed blocks that are missing, because the index was just chosen or a crash has
//! lost them, are computed again from below before a sync begins.

use std::num::NonZeroUsize;

use varve_archive::{Chain as ArchiveChain, FilterRow, MmapTables, Snapshot};
use varve_types::{BlockHash, Height};

use crate::connected::{BlockFilter, Wanted};
use crate::error::Error;
use crate::stores::{Stores, missing};

/// After this many filters a catch-up makes them durable, which frees their memory.
const CHECKPOINT: u32 = 1_000;

impl Stores {
    /// Archives the filter of a block, if the block below has one.
    pub(crate) fn add_filter(&mut self, hash: BlockHash, filter: BlockFilter) -> Result<(), Error> {
        let now = self.archive.now();
        let link = now.to_header(hash)?.ok_or_else(|| missing(hash))?;
        let Some(previous) = now.previous_filter_header(link)? else { return Ok(()) };
        let header = filter.header(previous);
        Ok(self.archive.set_filters(&[(link, FilterRow { header, body: filter.body })])?)
    }

    /// Computes the filters that the confirmed chain lacks, on `threads` threads. `progress` gets
    /// how many of the chain's are there, and how many there are to be.
    pub(crate) fn catch_up_filters(
        &mut self,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        let now = self.archive.now();
        let Some((top, _)) = now.top(ArchiveChain::Confirmed) else { return Ok(()) };
        let first = filtered(now)?.map_or(0, |height| height.to_u32() + 1);
        let wanted = Wanted { filter: true, ..Wanted::default() };
        let recompute = self.recompute(self.view(), wanted, threads);
        recompute.each(first..=top.to_u32(), &mut |connected| {
            let height = connected.height.to_u32();
            let filter = connected.filter.expect("the filter is all that is asked for");
            self.add_filter(connected.block, filter)?;
            progress(u64::from(height) + 1, u64::from(top.to_u32()) + 1);
            if (height - first) % CHECKPOINT == CHECKPOINT - 1 {
                self.checkpoint()?;
            }
            Ok(())
        })
    }
}

/// The highest confirmed block that has a filter.
pub(crate) fn filtered(now: &Snapshot<MmapTables>) -> Result<Option<Height>, Error> {
    let mut at = now.top(ArchiveChain::Confirmed);
    while let Some((height, link)) = at {
        if now.filter(link)?.is_some() {
            return Ok(Some(height));
        }
        let below = height.checked_sub(1);
        at = below.and_then(|below| Some((below, now.to_confirmed(below)?)));
    }
    Ok(None)
}
