//! One bit for each block: "its checksum was compared since the store was opened".
//!
//! Bits live in chunks that views share, so the store grows without copying. A truncation copies
//! the bits of the blocks that stay, so a late reader of a removed block cannot mark the block that
//! reuses its number as verified.

use std::sync::Arc;

use varve_io::Bitmap;

use crate::number::BlockNumber;

/// The blocks of a chunk: 8 KiB of bits.
const CHUNK: u32 = 1 << 16;

#[derive(Debug, Clone, Default)]
pub(crate) struct Verified {
    chunks: Vec<Arc<Bitmap>>,
}

impl Verified {
    /// How many blocks have a bit.
    pub(crate) fn room(&self) -> usize {
        self.chunks.len() * CHUNK as usize
    }

    /// The same bits, shared, and room for at least `blocks`.
    pub(crate) fn grown(&self, blocks: usize) -> Self {
        let mut grown = self.clone();
        while grown.room() < blocks {
            grown.chunks.push(Arc::new(Bitmap::new(CHUNK.into())));
        }
        grown
    }

    /// A copy with the bits of the first `count` blocks.
    pub(crate) fn cut(&self, count: u32) -> Self {
        let cut = Self::default().grown(self.room());
        let known = (0..count).map(BlockNumber::new).filter(|&number| self.get(number));
        known.for_each(|number| cut.set(number));
        cut
    }

    pub(crate) fn get(&self, number: BlockNumber) -> bool {
        self.chunk(number).is_some_and(|chunk| chunk.get((number.get() % CHUNK).into()))
    }

    pub(crate) fn set(&self, number: BlockNumber) {
        if let Some(chunk) = self.chunk(number) {
            chunk.set((number.get() % CHUNK).into());
        }
    }

    fn chunk(&self, number: BlockNumber) -> Option<&Bitmap> {
        self.chunks.get((number.get() / CHUNK) as usize).map(Arc::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_independent_and_a_cut_shares_none() {
        let verified = Verified::default().grown(70_000);
        for number in [0, 63, 64, 65_535, 65_536, 69_999] {
            assert!(!verified.get(BlockNumber::new(number)));
            verified.set(BlockNumber::new(number));
        }
        let set = |bits: &Verified| {
            (0..200_000).filter(|&n| bits.get(BlockNumber::new(n))).collect::<Vec<u32>>()
        };
        assert_eq!(set(&verified), [0, 63, 64, 65_535, 65_536, 69_999]);
        let cut = verified.cut(65_536);
        verified.set(BlockNumber::new(1));
        assert_eq!(set(&cut), [0, 63, 64, 65_535]);
    }
}
