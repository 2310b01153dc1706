//! Bit-packed numbers of any width, read without a loop over bits.
//!
//! A number is read by one unaligned load of 8 bytes, a shift and a mask, so it may have up to
//! [`WIDTH_MAX`] bits: 64 less the 7 bits by which the load may start early. Within the last 8
//! bytes of the slice the missing bytes are zero.

/// Bits that one load is guaranteed to contain.
pub(super) const WIDTH_MAX: u32 = u64::BITS - 7;

/// The lowest `width` bits set.
#[inline]
pub(super) const fn mask(width: u32) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (u64::BITS - width) }
}

/// The 64 bits from byte `at` on.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => last_word(bytes.get(at..).unwrap_or_default()),
    }
}

#[cold]
fn last_word(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The number of `width` bits, at most [`WIDTH_MAX`], from bit `at` on.
#[inline]
pub(super) fn read(bytes: &[u8], at: usize, width: u32) -> u64 {
    debug_assert!(width <= WIDTH_MAX, "one load has no more");
    (word(bytes, at / 8) >> (at % 8)) & mask(width)
}

/// Whether bit `at` is set.
#[inline]
pub(super) fn is_set(bytes: &[u8], at: usize) -> bool {
    bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// The place of the `n`-th set bit (from zero) among the first `len`; `None` when there are fewer.
pub(super) fn select_one(bytes: &[u8], len: usize, n: usize) -> Option<usize> {
    select(bytes, len, n, |word| word)
}

/// The place of the `n`-th clear bit (from zero) among the first `len`.
pub(super) fn select_zero(bytes: &[u8], len: usize, n: usize) -> Option<usize> {
    select(bytes, len, n, |word| !word)
}

#[inline]
fn select(bytes: &[u8], len: usize, mut n: usize, of: impl Fn(u64) -> u64) -> Option<usize> {
    for start in (0..len).step_by(64) {
        let mut found = of(word(bytes, start / 8));
        let ones = found.count_ones() as usize;
        if n >= ones {
            n -= ones;
            continue;
        }
        for _ in 0..n {
            found &= found - 1;
        }
        let place = start + found.trailing_zeros() as usize;
        return (place < len).then_some(place);
    }
    None
}

/// Packs numbers one after another.
#[derive(Debug)]
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    pending: u64,
    filled: u32,
}

impl<'a> BitWriter<'a> {
    /// Begins at the end of `out`.
    pub(super) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, pending: 0, filled: 0 }
    }

    /// Appends a number of `width` bits, at most [`WIDTH_MAX`].
    #[inline]
    pub(super) fn push(&mut self, value: u64, width: u32) {
        debug_assert!(width <= WIDTH_MAX && value & !mask(width) == 0, "it has its width");
        self.pending |= value << self.filled;
        self.filled += width;
        if self.filled >= u64::BITS {
            self.out.extend_from_slice(&self.pending.to_le_bytes());
            self.filled -= u64::BITS;
            self.pending = if self.filled == 0 { 0 } else { value >> (width - self.filled) };
        }
    }

    /// Appends what is left, up to a whole byte.
    pub(super) fn finish(self) {
        let bytes = self.pending.to_le_bytes();
        let left = self.filled.div_ceil(8) as usize;
        self.out.extend_from_slice(bytes.get(..left).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(
            numbers in prop::collection::vec((any::<u64>(), 0..=WIDTH_MAX), 0..200),
        ) {
            let mut bytes = vec![7];
            let mut writer = BitWriter::new(&mut bytes);
            for (value, width) in &numbers {
                writer.push(value & mask(*width), *width);
            }
            writer.finish();
            let mut at = 8;
            for (value, width) in &numbers {
                prop_assert_eq!(read(&bytes, at, *width), value & mask(*width));
                at += *width as usize;
            }
            prop_assert_eq!(bytes.len(), at.div_ceil(8));
        }

        #[test]
        fn bits_are_found_by_their_number(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            for len in [bytes.len() * 8, (bytes.len() * 8).saturating_sub(5)] {
                let (mut ones, mut zeroes) = (0, 0);
                for at in 0..len {
                    if is_set(&bytes, at) {
                        prop_assert_eq!(select_one(&bytes, len, ones), Some(at));
                        ones += 1;
                    } else {
                        prop_assert_eq!(select_zero(&bytes, len, zeroes), Some(at));
                        zeroes += 1;
                    }
                }
                prop_assert_eq!(select_one(&bytes, len, ones), None);
                prop_assert_eq!(select_zero(&bytes, len, zeroes), None);
            }
        }
    }
}
