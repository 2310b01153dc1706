//! Numbers in as few bytes as they need, seven bits in each, low ones first.
//!
//! Every byte but the last has its top bit set. A reader never goes past its bytes, and refuses a
//! number that has more than 64 bits.

use varve_io::FormatError;

/// Appends a number.
#[inline]
pub(super) fn push(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(low(value) | 0x80);
        value >>= 7;
    }
    out.push(low(value));
}

#[inline]
const fn low(value: u64) -> u8 {
    (value & 0x7f) as u8
}

/// The bytes that a number takes.
#[inline]
pub(super) const fn len(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// A signed number as an unsigned one that is small when it is near zero.
#[inline]
pub(super) const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// The signed number of a [`zigzag`].
#[inline]
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// Bytes that are taken from front to back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// How many bytes are left.
    pub(super) const fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Damage at this place.
    pub(super) const fn damaged(&self, what: &'static str) -> FormatError {
        FormatError::Damaged { at: self.at, what }
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, FormatError> {
        let byte = self.bytes.get(self.at).copied();
        let byte = byte.ok_or(self.damaged("a row is cut short"))?;
        self.at += 1;
        Ok(byte)
    }

    /// The next number.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, FormatError> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.damaged("a number has more than 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(self.damaged("a number has more than 64 bits"));
            }
        }
    }

    /// The next number of `width` bytes, at most eight.
    #[inline]
    pub(super) fn fixed(&mut self, width: usize) -> Result<u64, FormatError> {
        let field = self.take(width)?;
        Ok(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let field = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        let field = field.ok_or(self.damaged("a row is cut short"))?;
        self.at += len;
        Ok(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_read_as_it_was_written(value: u64, shift in 0..64_u32, signed: i64) {
            let mut bytes = vec![9];
            push(value >> shift, &mut bytes);
            prop_assert_eq!(bytes.len() - 1, len(value >> shift));
            prop_assert_eq!(Reader::new(&bytes, 1).varint().unwrap(), value >> shift);
            prop_assert!(Reader::new(&bytes[..bytes.len() - 1], 1).varint().is_err());
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        let mut bytes = [0xff; 10];
        bytes[9] = 1;
        assert_eq!(Reader::new(&bytes, 0).varint().unwrap(), u64::MAX);
        bytes[9] = 2;
        assert!(Reader::new(&bytes, 0).varint().is_err());
        assert!(Reader::new(&[0xff; 11], 0).varint().is_err());
    }
}
