//! Stored blocks that stay in memory until they are joined.
//!
//! A block is checked, stored, and needed again a moment later, when it is joined to the set. While
//! it is still in memory it need not be read and parsed again.
//!
//! Most blocks are taken out when they are joined. Others never are: their branch loses, or has an
//! invalid block. They are evicted when the tip has passed their height, or when lower blocks,
//! which are needed sooner, need the room. An evicted block is read from the store.

use std::collections::BTreeMap;

use varve_types::Height;

use crate::header_tree::HeaderId;
use crate::owned_block::OwnedBlock;

/// The blocks, the lowest first.
pub(crate) struct Kept<B = OwnedBlock> {
    blocks: BTreeMap<(Height, HeaderId), (B, u64)>,
    bytes: u64,
    limit: u64,
}

impl<B> Kept<B> {
    /// Keeps at most `limit` bytes.
    pub(crate) const fn new(limit: u64) -> Self {
        Self { blocks: BTreeMap::new(), bytes: 0, limit }
    }

    /// Keeps a block that takes `bytes` of memory, if there is room or a higher one can be evicted.
    pub(crate) fn insert(&mut self, height: Height, id: HeaderId, block: B, bytes: u64) {
        let fits = |kept: &Self| kept.bytes + bytes <= kept.limit;
        while !fits(self) {
            match self.blocks.last_entry() {
                Some(last) if *last.key() > (height, id) => self.bytes -= last.remove().1,
                _ => return,
            }
        }
        if let Some((_, old)) = self.blocks.insert((height, id), (block, bytes)) {
            self.bytes -= old;
        }
        self.bytes += bytes;
    }

    /// Takes a block out.
    pub(crate) fn take(&mut self, height: Height, id: HeaderId) -> Option<B> {
        let (block, bytes) = self.blocks.remove(&(height, id))?;
        self.bytes -= bytes;
        Some(block)
    }

    /// The tip is at this height: blocks up to it have had their turn or get none.
    pub(crate) fn pass(&mut self, height: Height) {
        self.retain(|at, _| at > height);
    }

    /// Drops the blocks that do not hold to this.
    pub(crate) fn retain(&mut self, keep: impl Fn(Height, HeaderId) -> bool) {
        self.blocks.retain(|(height, id), _| keep(*height, *id));
        self.bytes = self.blocks.values().map(|(_, bytes)| bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: HeaderId = HeaderId::GENESIS;

    fn kept(heights: &[u32]) -> Kept<u32> {
        let mut kept = Kept::new(100);
        heights.iter().for_each(|height| kept.insert(Height::new(*height), ID, *height, 30));
        kept
    }

    fn heights(kept: &Kept<u32>) -> Vec<u32> {
        assert!(kept.bytes <= kept.limit && kept.bytes == 30 * kept.blocks.len() as u64);
        kept.blocks.values().map(|(height, _)| *height).collect()
    }

    #[test]
    fn the_lowest_are_kept_and_no_more_than_the_limit() {
        assert_eq!(heights(&kept(&[5, 9, 7])), [5, 7, 9]);
        assert_eq!(heights(&kept(&[5, 9, 7, 11])), [5, 7, 9], "the highest has to wait");
        assert_eq!(heights(&kept(&[5, 9, 7, 1])), [1, 5, 7], "it makes room for a lower one");
        assert_eq!(heights(&kept(&[5, 5, 5, 5, 9])), [5, 9], "one block counts once");
        let mut kept = kept(&[5, 9]);
        kept.insert(Height::new(1), ID, 1, 101);
        assert_eq!(heights(&kept), [] as [u32; 0], "not even alone");
    }

    #[test]
    fn what_the_tip_has_passed_makes_room() {
        let mut kept = kept(&[5, 6, 7]);
        assert_eq!(kept.take(Height::new(6), ID), Some(6));
        assert_eq!(kept.take(Height::new(6), ID), None);
        kept.pass(Height::new(5));
        assert_eq!(heights(&kept), [7]);
        kept.retain(|_, _| false);
        assert_eq!((heights(&kept), kept.bytes), (vec![], 0));
    }
}
