//! The variable-length count of the wire format.
//!
//! ```text
//!  0 ..= 252            │ u8 │
//!  253 ..= 0xffff       │ fd │ u16le │
//!  .. ..= 0xffff_ffff   │ fe │ u32le │
//!  the rest             │ ff │ u64le │
//! ```
//!
//! As in Core, only the shortest form decodes, and a limit applies: 32 MiB for Bitcoin's formats,
//! none for BSV, where blocks of gigabytes are normal.

use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;

/// The largest count that Core accepts when decoding: 32 MiB.
pub const MAX_SIZE: u64 = 0x0200_0000;

/// The longest encoding.
pub const MAX_LEN: usize = 9;

/// Decodes a count of at most `limit`.
#[inline]
pub fn read(reader: &mut Reader<'_>, limit: u64, what: &'static str) -> Result<u64, DecodeError> {
    let start = reader.offset();
    let first = reader.u8(what)?;
    if first < 0xfd && u64::from(first) <= limit {
        return Ok(u64::from(first));
    }
    read_long(reader, start, first, limit, what)
}

#[cold]
fn read_long(
    reader: &mut Reader<'_>,
    start: usize,
    first: u8,
    limit: u64,
    what: &'static str,
) -> Result<u64, DecodeError> {
    let cut = |_| DecodeErrorKind::UnexpectedEnd { what }.at(start);
    let (size, least) = match first {
        0xfd => (u64::from(reader.u16(what).map_err(cut)?), 0xfd),
        0xfe => (u64::from(reader.u32(what).map_err(cut)?), 0x1_0000),
        0xff => (reader.u64(what).map_err(cut)?, 0x1_0000_0000),
        small => (u64::from(small), 0),
    };
    if size < least {
        return Err(DecodeErrorKind::NonCanonicalCompactSize.at(start));
    }
    if size > limit {
        return Err(DecodeErrorKind::CompactSizeTooLarge { size, limit }.at(start));
    }
    Ok(size)
}

/// Appends the encoding of `size`.
pub fn write(size: u64, out: &mut Vec<u8>) {
    let (prefix, width) = match size {
        0..=0xfc => (None, 1),
        0xfd..=0xffff => (Some(0xfd), 2),
        0x1_0000..=0xffff_ffff => (Some(0xfe), 4),
        _ => (Some(0xff), 8),
    };
    out.extend(prefix);
    out.extend(size.to_le_bytes().iter().take(width));
}

/// The length of the encoding of `size`.
#[must_use]
pub const fn len(size: u64) -> usize {
    match size {
        0..=0xfc => 1,
        0xfd..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8], limit: u64) -> Result<u64, DecodeError> {
        read(&mut Reader::new(bytes), limit, "a count")
    }

    #[test]
    fn boundaries() {
        let cases: [(u64, &[u8]); 8] = [
            (0, &[0]),
            (252, &[252]),
            (253, &[0xfd, 253, 0]),
            (0xffff, &[0xfd, 0xff, 0xff]),
            (0x1_0000, &[0xfe, 0, 0, 1, 0]),
            (0xffff_ffff, &[0xfe, 0xff, 0xff, 0xff, 0xff]),
            (0x1_0000_0000, &[0xff, 0, 0, 0, 0, 1, 0, 0, 0]),
            (u64::MAX, &[0xff; 9]),
        ];
        for (size, bytes) in cases {
            let mut out = Vec::new();
            write(size, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(len(size), bytes.len());
            assert_eq!(decode(bytes, u64::MAX), Ok(size));
        }
    }

    #[test]
    fn longer_forms_are_refused() {
        let cases: [&[u8]; 3] =
            [&[0xfd, 0xfc, 0], &[0xfe, 0xff, 0xff, 0, 0], &[0xff, 0, 0, 0, 0x80, 0, 0, 0, 0]];
        for bytes in cases {
            let error = decode(bytes, u64::MAX).unwrap_err();
            assert_eq!(error.kind, DecodeErrorKind::NonCanonicalCompactSize);
        }
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        assert_eq!(decode(&[0xfe, 0, 0, 0, 2], MAX_SIZE), Ok(MAX_SIZE));
        let error = decode(&[0xfe, 1, 0, 0, 2], MAX_SIZE).unwrap_err();
        let kind = DecodeErrorKind::CompactSizeTooLarge { size: MAX_SIZE + 1, limit: MAX_SIZE };
        assert_eq!(error, kind.at(0));
        assert!(decode(&[3], 2).is_err());
    }

    proptest! {
        #[test]
        fn round_trips_and_truncation_is_an_error(size: u64, shift in 0_u32..64) {
            let size = size >> shift;
            let mut out = Vec::new();
            write(size, &mut out);
            prop_assert_eq!(decode(&out, u64::MAX), Ok(size));
            for end in 0..out.len() {
                let error = decode(&out[..end], u64::MAX).unwrap_err();
                prop_assert!(error.is_incomplete() && error.offset <= end as u64);
            }
        }
    }
}
