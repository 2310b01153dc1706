//! A segment file: its name and its header.
//!
//! ```text
//!  0        8        12       16       24              40       48       56       60      64
//!  ┌────────┬────────┬────────┬────────┬───────────────┬────────┬────────┬────────┬───────┬──
//!  │ magic  │ version│ layout │ kind   │ store id      │ number │ start  │ zero   │ crc   │ body
//!  │VARVESEG│ u32 = 1│ u32    │ 8 bytes│ 16 bytes      │ u64    │ u64    │ u32    │ u32   │
//!  └────────┴────────┴────────┴────────┴───────────────┴────────┴────────┴────────┴───────┴──
//! ```
//!
//! `layout` says how the body is built: 1 = frames (`frame`), 2 = plain bytes (`mapped_log`).
//! `number` counts the segments of a log from 0 and is part of the file's name, `PREFIX-NUMBER`
//! with twelve digits. `start` is the log position of the body's first byte. The crc is CRC32C of
//! bytes 0 to 60.

use crate::checksum::{Checksum, Kind, StoreId};
use crate::error::{FormatError, Result};
use crate::fields::{array, put, u32_at, u64_at};
use crate::offset::{FileOffset, GlobalOffset};
use crate::storage::File;

const MAGIC: [u8; 8] = *b"VARVESEG";
const VERSION: u32 = 1;

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = MAGIC_AT + size_of::<[u8; 8]>();
const LAYOUT_AT: usize = VERSION_AT + size_of::<u32>();
const KIND_AT: usize = LAYOUT_AT + size_of::<u32>();
const STORE_AT: usize = KIND_AT + size_of::<Kind>();
const NUMBER_AT: usize = STORE_AT + size_of::<StoreId>();
const START_AT: usize = NUMBER_AT + size_of::<u64>();
const ZERO_AT: usize = START_AT + size_of::<u64>();
const CRC_AT: usize = ZERO_AT + size_of::<u32>();
/// The length of a segment file's header.
pub const SEGMENT_HEADER_LEN: usize = CRC_AT + size_of::<u32>();
const _: () = assert!(SEGMENT_HEADER_LEN == 64);

/// [`SEGMENT_HEADER_LEN`] as a file length.
pub(crate) const HEADER_BYTES: u64 = SEGMENT_HEADER_LEN as u64;

/// How the body of a segment file is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Checksummed frames of any length.
    Frames,
    /// Plain bytes, with a table of checksums once sealed.
    Plain,
}

impl Layout {
    const fn code(self) -> u32 {
        match self {
            Self::Frames => 1,
            Self::Plain => 2,
        }
    }
}

/// The header of a segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// How the body is built.
    pub layout: Layout,
    /// What the log holds.
    pub kind: Kind,
    /// The store the log belongs to.
    pub store: StoreId,
    /// Which segment of the log this is.
    pub number: u64,
    /// The log position of the body's first byte.
    pub start: GlobalOffset,
}

impl SegmentHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        put(&mut bytes, MAGIC_AT, &MAGIC);
        put(&mut bytes, VERSION_AT, &VERSION.to_le_bytes());
        put(&mut bytes, LAYOUT_AT, &self.layout.code().to_le_bytes());
        put(&mut bytes, KIND_AT, &self.kind.0);
        put(&mut bytes, STORE_AT, &self.store.0);
        put(&mut bytes, NUMBER_AT, &self.number.to_le_bytes());
        put(&mut bytes, START_AT, &self.start.get().to_le_bytes());
        let crc = crc(&bytes);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads and verifies a header at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() < SEGMENT_HEADER_LEN {
            return Err(FormatError::damaged(bytes.len(), "the segment header is cut short"));
        }
        if array(bytes, MAGIC_AT) != MAGIC {
            return Err(FormatError::damaged(MAGIC_AT, "this is not a segment file"));
        }
        if u32_at(bytes, CRC_AT) != crc(bytes) {
            return Err(FormatError::damaged(CRC_AT, "the segment header's checksum is wrong"));
        }
        let version = u32_at(bytes, VERSION_AT);
        if version != VERSION {
            return Err(FormatError::Version { found: version, supported: VERSION });
        }
        if u32_at(bytes, ZERO_AT) != 0 {
            return Err(FormatError::damaged(ZERO_AT, "the reserved bytes are not zero"));
        }
        let layout = [Layout::Frames, Layout::Plain];
        let layout = layout.into_iter().find(|known| known.code() == u32_at(bytes, LAYOUT_AT));
        let layout =
            layout.ok_or(FormatError::damaged(LAYOUT_AT, "the segment has an unknown layout"))?;
        Ok(Self {
            layout,
            kind: Kind(array(bytes, KIND_AT)),
            store: StoreId(array(bytes, STORE_AT)),
            number: u64_at(bytes, NUMBER_AT),
            start: GlobalOffset::new(u64_at(bytes, START_AT)),
        })
    }

    /// Reads and verifies the header of a file.
    pub fn read(file: &dyn File) -> Result<Self> {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        file.read_at(FileOffset::ZERO, &mut bytes)?;
        Self::decode(&bytes).map_err(|error| error.in_file(file.path(), FileOffset::ZERO))
    }

    /// Compares with the header a file must have, field by field.
    pub fn check_is(&self, expected: &Self) -> Result<(), FormatError> {
        let fields = [
            (self.layout == expected.layout, LAYOUT_AT, "the segment has another layout"),
            (self.kind == expected.kind, KIND_AT, "the segment holds another kind of data"),
            (self.store == expected.store, STORE_AT, "the segment belongs to another store"),
            (self.number == expected.number, NUMBER_AT, "the segment has another number"),
            (self.start == expected.start, START_AT, "the segment starts at another position"),
        ];
        match fields.into_iter().find(|(same, ..)| !same) {
            None => Ok(()),
            Some((_, at, what)) => Err(FormatError::damaged(at, what)),
        }
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let covered: [u8; CRC_AT] = array(bytes, 0);
    Checksum::new().with(&covered).get()
}

/// The name of segment `number` of the log `prefix`.
#[must_use]
pub fn file_name(prefix: &str, number: u64) -> String {
    format!("{prefix}-{number:012}")
}

/// The number in a segment's name; `None` when the file is something else.
pub(crate) fn file_number(prefix: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_prefix('-')?;
    let number = digits.parse().ok()?;
    (file_name(prefix, number) == name).then_some(number)
}

/// Whether a file of this name is a segment of the log `prefix`.
#[must_use]
pub fn is_segment(prefix: &str, name: &str) -> bool {
    file_number(prefix, name).is_some()
}

/// The numbers of the segments of the log `prefix` among `names`, ascending.
#[must_use]
pub fn numbers(prefix: &str, names: &[String]) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| file_number(prefix, n)).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            layout: Layout::Frames,
            kind: Kind(*b"TESTKIND"),
            store: StoreId([9; 16]),
            number: 3,
            start: GlobalOffset::new(1 << 33),
        }
    }

    #[test]
    fn a_header_survives_and_every_flipped_bit_is_noticed() {
        let bytes = header().encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header()));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bytes).is_err(), "bit {bit}");
        }
        assert!(SegmentHeader::decode(&bytes[..63]).is_err());
    }

    /// Found by a fuzzer: reserved bytes that were not zero, with a valid checksum, were accepted
    /// and then lost. A header that decodes must encode to the same bytes, or a later version
    /// cannot give them a meaning.
    #[test]
    fn reserved_bytes_must_be_zero() {
        let mut bytes = header().encode();
        put(&mut bytes, ZERO_AT, &[1]);
        let crc = crc(&bytes);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        let damaged = FormatError::damaged(ZERO_AT, "the reserved bytes are not zero");
        assert_eq!(SegmentHeader::decode(&bytes), Err(damaged));
    }

    #[test]
    fn a_later_version_is_not_reported_as_damage() {
        let mut bytes = header().encode();
        put(&mut bytes, VERSION_AT, &2_u32.to_le_bytes());
        let sum = crc(&bytes);
        put(&mut bytes, CRC_AT, &sum.to_le_bytes());
        let expected = FormatError::Version { found: 2, supported: 1 };
        assert_eq!(SegmentHeader::decode(&bytes), Err(expected));
    }

    #[test]
    fn names_are_exact() {
        assert_eq!(file_name("blocks", 7), "blocks-000000000007");
        assert_eq!(file_number("blocks", "blocks-000000000007"), Some(7));
        for other in ["blocks-7", "block-000000000007", "blocks-000000000007.tmp", "blocks"] {
            assert_eq!(file_number("blocks", other), None, "{other}");
        }
    }
}
