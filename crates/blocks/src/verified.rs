//! One bit a block: "its checksum was compared since the store was opened".
//!
//! Set by any number of readers. Two that race both verify and both set, which is harmless, so
//! relaxed ordering is enough: the bytes the bit speaks about never change. A cut makes a copy
//! for the blocks that stay, so a late reader of a block that was cut cannot vouch for the one
//! that takes its number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::number::BlockNumber;

/// The blocks of a chunk: 8 KiB of bits.
const CHUNK: usize = 1 << 16;
const WORD: usize = u64::BITS as usize;

#[derive(Debug, Clone, Default)]
pub(crate) struct Verified {
    chunks: Vec<Arc<[AtomicU64]>>,
}

impl Verified {
    /// How many blocks have a bit.
    pub(crate) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// The same bits, shared, and room for at least `blocks`.
    pub(crate) fn grown(&self, blocks: usize) -> Self {
        let mut grown = self.clone();
        while grown.room() < blocks {
            grown.chunks.push((0..CHUNK / WORD).map(|_| AtomicU64::new(0)).collect());
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
        let bit = number.get() as usize % WORD;
        self.word(number).is_some_and(|word| word.load(Ordering::Relaxed) >> bit & 1 == 1)
    }

    pub(crate) fn set(&self, number: BlockNumber) {
        if let Some(word) = self.word(number) {
            word.fetch_or(1 << (number.get() as usize % WORD), Ordering::Relaxed);
        }
    }

    fn word(&self, number: BlockNumber) -> Option<&AtomicU64> {
        let number = number.get() as usize;
        self.chunks.get(number / CHUNK)?.get(number % CHUNK / WORD)
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
