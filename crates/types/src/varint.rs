//! Core's VARINT: the variable-length integer of its databases, undo files and snapshots.
//!
//! Base 128, the highest digit first; every byte but the last has its top bit set. Each carry
//! subtracts one, so that every number has exactly one encoding:
//!
//! ```text
//! 0 ..= 127          │ 0xxxxxxx │
//! 128 ..= 16511      │ 1xxxxxxx │ 0xxxxxxx │        80 00 is 128, not 0
//! 16512 ..           │ 1xxxxxxx │ 1xxxxxxx │ 0xxxxxxx │
//! ```
//!
//! It is not the `CompactSize` of the wire.

use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;

/// The longest encoding of 64 bits.
pub const MAX_LEN: usize = 10;

/// Decodes a number.
#[inline]
pub fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<u64, DecodeError> {
    let start = reader.offset();
    let error = |kind: DecodeErrorKind| kind.at(start);
    let mut number = 0_u64;
    loop {
        let byte = reader.u8(what).map_err(|cut| error(cut.kind))?;
        if number > u64::MAX >> 7 {
            return Err(error(DecodeErrorKind::VarintTooLarge));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
        number = number.checked_add(1).ok_or(error(DecodeErrorKind::VarintTooLarge))?;
    }
}

/// Appends the encoding of `number`.
#[inline]
pub fn write(number: u64, out: &mut Vec<u8>) {
    match u8::try_from(number) {
        Ok(digit @ 0..=0x7f) => out.push(digit),
        _ => write_long(number, out),
    }
}

fn write_long(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; MAX_LEN];
    let mut first = MAX_LEN;
    let mut more = 0;
    for (place, digit) in digits.iter_mut().enumerate().rev() {
        *digit = (number & 0x7f) as u8 | more;
        first = place;
        if number <= 0x7f {
            break;
        }
        more = 0x80;
        number = (number >> 7) - 1;
    }
    out.extend_from_slice(digits.get(first..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write(number, &mut out);
        out
    }

    fn decode(bytes: &[u8]) -> Result<u64, DecodeError> {
        read(&mut Reader::new(bytes), "a number")
    }

    #[test]
    fn vectors_of_core() {
        // The table in Core's serialize.h.
        let cases: [(u64, &[u8]); 10] = [
            (0, &[0x00]),
            (1, &[0x01]),
            (127, &[0x7f]),
            (128, &[0x80, 0x00]),
            (255, &[0x80, 0x7f]),
            (256, &[0x81, 0x00]),
            (16383, &[0xfe, 0x7f]),
            (16384, &[0xff, 0x00]),
            (16511, &[0xff, 0x7f]),
            (65535, &[0x82, 0xfe, 0x7f]),
        ];
        for (number, bytes) in cases {
            assert_eq!(encode(number), bytes);
            assert_eq!(decode(bytes), Ok(number));
        }
        assert_eq!(encode(1 << 32), [0x8e, 0xfe, 0xfe, 0xff, 0x00]);
    }

    #[test]
    fn more_than_64_bits() {
        let largest = encode(u64::MAX);
        assert_eq!(largest, [0x80, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0x7f]);
        let mut next = largest.clone();
        // One more: ... fe ff 00 instead of ... fe fe 7f.
        next[8..].copy_from_slice(&[0xff, 0x00]);
        for bytes in [next, vec![0xff; 10], vec![0xff; 11], [vec![0xff; 20], vec![0]].concat()] {
            let error = decode(&bytes).unwrap_err();
            assert_eq!(error, DecodeErrorKind::VarintTooLarge.at(0), "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn round_trips_and_truncation_is_an_error(number: u64, shift in 0_u32..64) {
            let number = number >> shift;
            let bytes = encode(number);
            prop_assert!(bytes.len() <= MAX_LEN);
            prop_assert_eq!(decode(&bytes), Ok(number));
            for end in 0..bytes.len() {
                prop_assert!(decode(&bytes[..end]).unwrap_err().is_incomplete());
            }
        }

        #[test]
        fn hostile_bytes_have_one_encoding(bytes in prop::collection::vec(any::<u8>(), 0..13)) {
            let mut reader = Reader::new(&bytes);
            if let Ok(number) = read(&mut reader, "a number") {
                prop_assert_eq!(encode(number), &bytes[..reader.offset()]);
            }
        }
    }
}
