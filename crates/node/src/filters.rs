//! The BIP158 filters of the confirmed chain, where the folder keeps them.
//!
//! A filter is made of the scripts that a block makes and spends, and its header chains it to the
//! one below. So they are made upward, from the highest confirmed block that has one, with every
//! commit. An index that was just chosen begins at genesis. Filters of blocks that lost stay.

use varve_archive::{Chain as ArchiveChain, MmapTables, Snapshot, View};
use varve_types::Height;

use crate::error::Error;
use crate::stores::Stores;

/// After so many filters they are made durable, and leave memory.
const CHECKPOINT: u32 = 1_000;

impl Stores {
    /// Makes the filters that are missing. `progress` is told how many of the chain's are there.
    pub(crate) fn index_filters(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        let Some((top, _)) = self.archive.now().top(ArchiveChain::Confirmed) else {
            return Ok(());
        };
        let first = filtered(self.archive.now())?.map_or(0, |height| height.to_u32() + 1);
        let view = View::new(self.archive.snapshot(), self.blocks.reader());
        for height in first..=top.to_u32() {
            let link = view.to_confirmed(Height::new(height));
            let filter = link.map(|link| view.compute_filter(link)).transpose()?.flatten();
            let (Some(link), Some(filter)) = (link, filter) else {
                let what = format!("the archive does not have what block {height} spends");
                return Err(Error::Disagree { what });
            };
            self.archive.set_filters(&[(link, filter)])?;
            progress(u64::from(height) + 1, u64::from(top.to_u32()) + 1);
            if (height - first) % CHECKPOINT == CHECKPOINT - 1 {
                self.checkpoint()?;
            }
        }
        Ok(())
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
