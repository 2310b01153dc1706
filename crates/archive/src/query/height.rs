//! Ranges of the two chains: hashes and headers by height.

use varve_types::{BlockHash, Header, Height};

use crate::backend::{Chain, Tables};
use crate::error::Result;
use crate::snapshot::{Snapshot, height_of};

impl<T: Tables> Snapshot<T> {
    /// Whether there is a genesis block.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.confirmed.len() > 0 && self.candidate.len() > 0
    }

    /// The hashes of a chain at these heights; heights above its top are left out.
    fn hashes(
        &self,
        chain: Chain,
        heights: impl IntoIterator<Item = Height>,
    ) -> Result<Vec<BlockHash>> {
        let links: Vec<_> =
            heights.into_iter().filter_map(|height| self.at(chain, height)).collect();
        let mut rows = Vec::with_capacity(links.len());
        self.tables.headers(&links, &mut rows)?;
        Ok(rows.into_iter().map(|row| row.hash).collect())
    }

    /// Up to `count` hashes of a chain from a height on.
    pub fn hashes_from(&self, chain: Chain, from: Height, count: u32) -> Result<Vec<BlockHash>> {
        let end = height_of(self.heights(chain).len()).to_u32();
        let end = end.min(from.to_u32().saturating_add(count));
        self.hashes(chain, (from.to_u32()..end).map(Height::new))
    }

    /// Up to `count` serialised headers of a chain from a height on.
    pub fn headers_from(
        &self,
        chain: Chain,
        from: Height,
        count: u32,
    ) -> Result<Vec<[u8; Header::LEN]>> {
        let end = from.to_u32().saturating_add(count);
        let heights = from.to_u32()..end;
        let links: Vec<_> =
            heights.map_while(|height| self.at(chain, Height::new(height))).collect();
        let mut rows = Vec::with_capacity(links.len());
        self.tables.headers(&links, &mut rows)?;
        let mut previous = match rows.first().and_then(|row| row.parent) {
            Some(parent) => self.header(parent)?.hash,
            None => BlockHash::ZERO,
        };
        Ok(rows
            .into_iter()
            .map(|row| row.to_bytes(std::mem::replace(&mut previous, row.hash)))
            .collect())
    }
}
