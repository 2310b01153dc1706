//! One bit per block of a sealed file: "verified since the file was opened".
//!
//! Set by any number of threads. Two that race both verify and both set, which is harmless, so
//! relaxed ordering is enough: the bytes the bit speaks about never change.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Bitmap(Box<[AtomicU64]>);

impl Bitmap {
    /// `bits` bits, all clear.
    pub(crate) fn new(bits: u64) -> Self {
        Self((0..bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// True when the bit is set; false as well for a bit outside.
    pub(crate) fn get(&self, bit: u64) -> bool {
        self.word(bit).is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
    }

    pub(crate) fn set(&self, bit: u64) {
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
