//! One bit for each stored thing: "its checksum was compared since the file was opened".
//!
//! Any number of threads set bits. Two that race both verify and both set, which is harmless.
//! Relaxed ordering is enough, because the bytes that a bit speaks about never change.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits that threads set without a lock and that are never cleared.
#[derive(Debug)]
pub struct Bitmap(Box<[AtomicU64]>);

impl Bitmap {
    /// `bits` bits, rounded up to whole words, all clear.
    #[must_use]
    pub fn new(bits: u64) -> Self {
        Self((0..bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// True when the bit is set; false as well for a bit outside.
    #[must_use]
    pub fn get(&self, bit: u64) -> bool {
        self.word(bit).is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
    }

    /// Sets the bit. A bit outside is ignored: it counts as not verified, which is always safe.
    pub fn set(&self, bit: u64) {
        if let Some(word) = self.word(bit) {
            word.fetch_or(1 << (bit % 64), Ordering::Relaxed);
        }
    }

    fn word(&self, bit: u64) -> Option<&AtomicU64> {
        self.0.get(usize::try_from(bit / 64).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_independent() {
        let bitmap = Bitmap::new(130);
        for bit in [0, 63, 64, 129] {
            assert!(!bitmap.get(bit));
            bitmap.set(bit);
        }
        let set: Vec<u64> = (0..200).filter(|&bit| bitmap.get(bit)).collect();
        assert_eq!(set, [0, 63, 64, 129]);
    }
}
