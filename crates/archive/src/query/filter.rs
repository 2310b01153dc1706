//! BIP158 filters, where they are kept, and the chain of their headers (BIP157).

use varve_types::Height;

use crate::backend::{Chain, Tables};
use crate::bip158;
use crate::error::{ArchiveError, Result};
use crate::link::HeaderLink;
use crate::row::FilterRow;
use crate::snapshot::Snapshot;
use crate::source::BlockSource;
use crate::view::View;

/// Filter hashes of a range of blocks, as BIP157's `cfheaders` has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterHashes {
    /// The filter header below the first.
    pub previous: [u8; 32],
    /// The hashes, upward.
    pub hashes: Vec<[u8; 32]>,
}

impl<T: Tables> Snapshot<T> {
    /// The filter of a block; `None` when it was not made.
    pub fn filter(&self, link: HeaderLink) -> Result<Option<FilterRow>> {
        Ok(self.filters_of(&[link])?.pop().flatten())
    }

    /// The filters of blocks.
    fn filters_of(&self, links: &[HeaderLink]) -> Result<Vec<Option<FilterRow>>> {
        if !self.indexes.filters {
            return Err(ArchiveError::NoIndex { index: "filter" });
        }
        let mut rows = Vec::with_capacity(links.len());
        self.tables.filters(links, &mut rows)?;
        Ok(rows)
    }

    /// The filter header of a block; `None` when its filter was not made.
    pub fn filter_header(&self, link: HeaderLink) -> Result<Option<[u8; 32]>> {
        Ok(self.filter(link)?.map(|row| row.header))
    }

    /// The filter header that stands below the block at this height of its chain: zero below
    /// genesis.
    pub fn previous_filter_header(&self, link: HeaderLink) -> Result<Option<[u8; 32]>> {
        self.header(link)?.parent.map_or(Ok(Some([0; 32])), |parent| self.filter_header(parent))
    }

    /// The filter hashes of confirmed blocks from a height on, with the filter header below the
    /// first. `None` when a filter is missing or the chain does not reach so far.
    pub fn filter_hashes(&self, from: Height, count: u32) -> Result<Option<FilterHashes>> {
        let Some(first) = self.to_confirmed(from) else { return Ok(None) };
        let Some(previous) = self.previous_filter_header(first)? else { return Ok(None) };
        let heights = from.to_u32()..from.to_u32().saturating_add(count);
        let links: Option<Vec<_>> =
            heights.map(|height| self.at(Chain::Confirmed, Height::new(height))).collect();
        let Some(links) = links else { return Ok(None) };
        let rows: Option<Vec<_>> = self.filters_of(&links)?.into_iter().collect();
        Ok(rows.map(|rows| {
            let hashes = rows.iter().map(FilterRow::hash).collect();
            FilterHashes { previous, hashes }
        }))
    }

    /// The filter headers of every `interval`-th confirmed block up to a height, the first one at
    /// `interval`: BIP157's `cfcheckpt`. `None` when a filter is missing.
    pub fn filter_checkpoints(&self, last: Height, interval: u32) -> Result<Option<Vec<[u8; 32]>>> {
        let heights = (1..).map(|count| interval.saturating_mul(count));
        let heights = heights.take_while(|height| *height <= last.to_u32() && interval > 0);
        let links: Option<Vec<_>> =
            heights.map(|height| self.to_confirmed(Height::new(height))).collect();
        let Some(links) = links else { return Ok(None) };
        let rows: Option<Vec<_>> = self.filters_of(&links)?.into_iter().collect();
        Ok(rows.map(|rows| rows.into_iter().map(|row| row.header).collect()))
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// Computes the filter of a block from its bytes and those of what it spends. `None` when the
    /// block has not come, the filter below it is missing, or a prevout is.
    pub fn compute_filter(&self, link: HeaderLink) -> Result<Option<FilterRow>> {
        let Some(previous) = self.previous_filter_header(link)? else { return Ok(None) };
        let Some(prevouts) = self.block_prevouts(link)? else { return Ok(None) };
        let prevouts: Option<Vec<_>> = prevouts.into_iter().collect();
        let Some(prevouts) = prevouts else { return Ok(None) };
        let spent = prevouts.iter().map(|output| output.script.as_slice());
        self.with_block(link, |block| {
            let body = bip158::basic_filter(block, spent);
            let header = bip158::filter_header(&body, previous);
            FilterRow { header, body }
        })
    }
}
