//! A frame: one payload in a log, with a header that says where it belongs.
//!
//! ```text
//!  0        8        12       16
//!  ┌────────┬────────┬────────┬─────────────────┐
//!  │ length │ payload│ header │ payload         │
//!  │ u64    │ crc u32│ crc u32│ `length` bytes  │
//!  └────────┴────────┴────────┴─────────────────┘
//! ```
//!
//! - payload crc = CRC32C(payload). It has no salt, so it can be computed before the frame's
//!   position is known.
//! - header crc = CRC32C(store id 16 ‖ global offset of the frame u64 ‖ length ‖ payload crc).
//!
//! The header crc binds the frame to its store and its place: a frame of another store, of an
//! earlier life of the file, or written to the wrong place does not verify. It also covers the
//! length, so a length is used only after its header has verified, and even then it is compared
//! with the file's size before anything is allocated.

use crate::checksum::{Checksum, StoreId};
use crate::error::FormatError;
use crate::fields::{array, put, u32_at, u64_at};
use crate::offset::GlobalOffset;

const LENGTH_AT: usize = 0;
const PAYLOAD_CRC_AT: usize = LENGTH_AT + size_of::<u64>();
const HEADER_CRC_AT: usize = PAYLOAD_CRC_AT + size_of::<u32>();
/// The length of a frame's header.
pub const FRAME_HEADER_LEN: usize = HEADER_CRC_AT + size_of::<u32>();
const _: () = assert!(FRAME_HEADER_LEN == 16);

/// [`FRAME_HEADER_LEN`] as a file length.
pub(crate) const HEADER_BYTES: u64 = FRAME_HEADER_LEN as u64;

/// A frame's header: verified when it was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of payload after the header.
    pub length: u64,
    /// The payload's checksum.
    pub payload_crc: u32,
}

impl FrameHeader {
    /// The header of `payload`.
    #[must_use]
    pub fn of(payload: &[u8]) -> Self {
        let payload_crc = Checksum::new().with(payload).get();
        Self { length: payload.len() as u64, payload_crc }
    }

    /// The bytes of this header at place `at` of store `store`.
    #[must_use]
    pub fn encode(self, store: StoreId, at: GlobalOffset) -> [u8; FRAME_HEADER_LEN] {
        let mut bytes = [0; FRAME_HEADER_LEN];
        put(&mut bytes, LENGTH_AT, &self.length.to_le_bytes());
        put(&mut bytes, PAYLOAD_CRC_AT, &self.payload_crc.to_le_bytes());
        let crc = header_crc(&bytes, store, at);
        put(&mut bytes, HEADER_CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads and verifies the header at the start of `bytes`, found at place `at` of `store`.
    pub fn decode(bytes: &[u8], store: StoreId, at: GlobalOffset) -> Result<Self, FormatError> {
        if bytes.len() < FRAME_HEADER_LEN {
            return Err(FormatError::damaged(bytes.len(), "the frame header is cut short"));
        }
        if u32_at(bytes, HEADER_CRC_AT) != header_crc(bytes, store, at) {
            return Err(FormatError::damaged(LENGTH_AT, "the frame header's checksum is wrong"));
        }
        Ok(Self { length: u64_at(bytes, LENGTH_AT), payload_crc: u32_at(bytes, PAYLOAD_CRC_AT) })
    }

    /// The length of the whole frame.
    #[must_use]
    pub const fn frame_len(self) -> u64 {
        self.length.saturating_add(HEADER_BYTES)
    }

    /// Verifies the payload's bytes.
    pub fn check(self, payload: &[u8]) -> Result<(), FormatError> {
        if payload.len() as u64 != self.length {
            return Err(FormatError::damaged(payload.len(), "the frame's payload is cut short"));
        }
        self.check_crc(Checksum::new().with(payload))
    }

    /// Verifies a payload's checksum that was added up in pieces.
    pub(crate) fn check_crc(self, crc: Checksum) -> Result<(), FormatError> {
        if crc.get() == self.payload_crc {
            return Ok(());
        }
        Err(FormatError::damaged(FRAME_HEADER_LEN, "the frame's payload has a wrong checksum"))
    }
}

/// Reads the frame at the start of `bytes` and returns its verified payload.
///
/// ```
/// use varve_io::{FrameHeader, GlobalOffset, StoreId, decode_frame};
/// let (store, at) = (StoreId([7; 16]), GlobalOffset::new(4096));
/// let mut bytes = FrameHeader::of(b"payload").encode(store, at).to_vec();
/// bytes.extend_from_slice(b"payload");
/// assert_eq!(decode_frame(&bytes, store, at), Ok(&b"payload"[..]));
/// assert!(decode_frame(&bytes, store, at.plus(1)).is_err(), "it belongs elsewhere");
/// ```
pub fn decode_frame(bytes: &[u8], store: StoreId, at: GlobalOffset) -> Result<&[u8], FormatError> {
    let header = FrameHeader::decode(bytes, store, at)?;
    let end = usize::try_from(header.frame_len()).ok();
    let payload = end.and_then(|end| bytes.get(FRAME_HEADER_LEN..end));
    let payload =
        payload.ok_or(FormatError::damaged(bytes.len(), "the frame's payload is cut short"))?;
    header.check(payload)?;
    Ok(payload)
}

fn header_crc(bytes: &[u8], store: StoreId, at: GlobalOffset) -> u32 {
    let covered: [u8; HEADER_CRC_AT] = array(bytes, LENGTH_AT);
    Checksum::new().with(&store.0).with_u64(at.get()).with(&covered).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId(*b"store-0123456789");
    const AT: GlobalOffset = GlobalOffset::new(12_345);

    fn frame(payload: &[u8]) -> Vec<u8> {
        [&FrameHeader::of(payload).encode(STORE, AT)[..], payload].concat()
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = frame(b"some payload of a frame");
        assert_eq!(decode_frame(&bytes, STORE, AT), Ok(&b"some payload of a frame"[..]));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_frame(&bytes, STORE, AT).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(decode_frame(&bytes[..len], STORE, AT).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn a_frame_of_another_place_or_store_does_not_verify() {
        let bytes = frame(b"payload");
        assert!(decode_frame(&bytes, STORE, GlobalOffset::new(0)).is_err());
        assert!(decode_frame(&bytes, StoreId([0; 16]), AT).is_err());
    }

    #[test]
    fn zeroes_are_not_a_frame_and_a_huge_length_is_only_an_error() {
        assert!(decode_frame(&[0; 64], STORE, AT).is_err());
        let header = FrameHeader { length: u64::MAX, payload_crc: 0 };
        assert!(decode_frame(&header.encode(STORE, AT), STORE, AT).is_err());
    }
}
