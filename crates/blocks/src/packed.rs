//! A packed segment: a range of the log of blocks, compressed.
//!
//! ```text
//!  0        8        12       16              32       40       48
//!  ┌────────┬────────┬────────┬───────────────┬────────┬────────┬────────┬─────────┬───────┐
//!  │ magic  │ version│ zero   │ store id      │ start  │ end    │ chunks │ table   │ crc   │
//!  │VARVEPCK│ u32 = 1│ u32    │ 16 bytes      │ u64    │ u64    │        │ 12 each │ u32   │
//!  └────────┴────────┴────────┴───────────────┴────────┴────────┴────────┴─────────┴───────┘
//! ```
//!
//! The range of positions `start` to `end`, frames with their headers as they were, is cut every 64
//! KiB without regard to blocks; chunk `i` begins at position start + 65536 · i. So a chunk is
//! found by arithmetic, a transaction costs one or two chunks, and a block of gigabytes needs no
//! special treatment. A chunk is an LZ4 block, or the plain bytes when those are not longer: the
//! length says which.
//!
//! The table has an entry for each chunk: `end` u64, the file offset after it, and `crc` u32,
//! CRC32C(store id ‖ start u64 ‖ i u64 ‖ chunk as stored). The last crc of the file is CRC32C(bytes
//! 0 to 48 ‖ table). Both are compared before anything is decompressed: the table's once, a chunk's
//! every time, since that costs little compared with the decompression.
//!
//! 64 KiB is also how far LZ4 looks back, so bigger chunks would not compress better.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use varve_io::{
    Access, Caching, Checksum, Error as IoError, FileOffset, FormatError, GlobalOffset, Map,
    Storage, StoreId,
};

use crate::error::Result;

const MAGIC: [u8; 8] = *b"VARVEPCK";
const VERSION: u32 = 1;
const VERSION_AT: usize = size_of_val(&MAGIC);
const ZERO_AT: usize = VERSION_AT + size_of::<u32>();
const STORE_AT: usize = ZERO_AT + size_of::<u32>();
const START_AT: usize = STORE_AT + size_of::<StoreId>();
const END_AT: usize = START_AT + size_of::<u64>();
/// The length of a packed segment's header.
pub(crate) const PACKED_HEADER_LEN: usize = END_AT + size_of::<u64>();
pub(crate) const ENTRY_LEN: usize = size_of::<u64>() + size_of::<u32>();
pub(crate) const CRC_LEN: usize = size_of::<u32>();
/// The bytes of the log in a chunk.
pub(crate) const CHUNK: usize = 1 << 16;
const _: () = assert!(PACKED_HEADER_LEN == 48 && ENTRY_LEN == 12);

/// The header of a packed segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedHeader {
    /// The store it belongs to.
    pub store: StoreId,
    /// The positions of the log of blocks that it holds.
    pub range: Range<GlobalOffset>,
}

impl PackedHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; PACKED_HEADER_LEN] {
        let mut bytes = [0; PACKED_HEADER_LEN];
        let mut put = |at: usize, field: &[u8]| {
            let place = bytes.get_mut(at..at + field.len());
            place.expect("the fields lie within the header").copy_from_slice(field);
        };
        put(0, &MAGIC);
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(STORE_AT, &self.store.0);
        put(START_AT, &self.range.start.get().to_le_bytes());
        put(END_AT, &self.range.end.get().to_le_bytes());
        bytes
    }

    /// Reads a header. Its checksum is that of the table, at the end of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let damaged = |at, what| FormatError::Damaged { at, what };
        let head: &[u8; PACKED_HEADER_LEN] =
            bytes.first_chunk().ok_or(damaged(bytes.len(), "the packed segment is cut short"))?;
        if field::<8>(head, 0) != MAGIC {
            return Err(damaged(0, "this is not a packed segment"));
        }
        let version = u32::from_le_bytes(field(head, VERSION_AT));
        if version != VERSION {
            return Err(FormatError::Version { found: version, supported: VERSION });
        }
        if field::<4>(head, ZERO_AT) != [0; 4] {
            return Err(damaged(ZERO_AT, "the reserved bytes are not zero"));
        }
        let position = |at| GlobalOffset::new(u64::from_le_bytes(field(head, at)));
        let range = position(START_AT)..position(END_AT);
        if range.start >= range.end {
            return Err(damaged(START_AT, "the packed segment holds nothing"));
        }
        Ok(Self { store: StoreId(field(head, STORE_AT)), range })
    }

    /// The number of chunks.
    pub(crate) fn chunks(&self) -> u64 {
        self.range.end.since(self.range.start).unwrap_or_default().div_ceil(CHUNK as u64)
    }

    /// The positions that chunk `index` holds.
    pub(crate) fn chunk(&self, index: u64) -> Range<GlobalOffset> {
        let start = self.range.start.plus(index.saturating_mul(CHUNK as u64));
        start..start.plus(CHUNK as u64).min(self.range.end)
    }

    /// The checksum of a chunk as it is stored.
    pub(crate) fn chunk_crc(&self, index: u64, stored: &[u8]) -> u32 {
        let salt = Checksum::new().with(&self.store.0).with_u64(self.range.start.get());
        salt.with_u64(index).with(stored).get()
    }
}

/// A packed segment, open for reading.
#[derive(Debug)]
pub(crate) struct Packed {
    path: PathBuf,
    header: PackedHeader,
    map: Map,
    /// Where the table begins in the file.
    table_at: usize,
    table_verified: OnceLock<()>,
}

impl Packed {
    /// Opens the segment of `store` that holds `range`.
    pub(crate) fn open(
        storage: &dyn Storage,
        store: StoreId,
        range: &Range<GlobalOffset>,
    ) -> Result<Self> {
        let file = storage.open(&file_name(range.start), Access::Read, Caching::Buffered)?;
        let map = file.map(FileOffset::ZERO, file.size()?)?;
        let path = file.path().to_path_buf();
        let header = PackedHeader::decode(&map);
        let header = header.map_err(|error| error.in_file(&path, FileOffset::ZERO))?;
        if header != (PackedHeader { store, range: range.clone() }) {
            let what = "this is not the packed segment that the manifest lists";
            return Err(IoError::Corrupt { path, offset: FileOffset::ZERO, what }.into());
        }
        let table = usize::try_from(header.chunks()).ok().and_then(|n| n.checked_mul(ENTRY_LEN));
        let table_at = table.and_then(|len| map.len().checked_sub(len + CRC_LEN));
        let Some(table_at) = table_at.filter(|&at| at >= PACKED_HEADER_LEN) else {
            let what = "the packed segment is too short for its table";
            return Err(IoError::Corrupt { path, offset: FileOffset::ZERO, what }.into());
        };
        Ok(Self { path, header, map, table_at, table_verified: OnceLock::new() })
    }

    pub(crate) const fn range(&self) -> &Range<GlobalOffset> {
        &self.header.range
    }

    /// The bytes of `wanted`, which must lie in this segment.
    pub(crate) fn read(&self, wanted: Range<GlobalOffset>) -> Result<Vec<u8>> {
        let length = wanted.end.since(wanted.start).and_then(|len| usize::try_from(len).ok());
        let inside = self.header.range.start <= wanted.start && wanted.end <= self.header.range.end;
        let (Some(length), true) = (length, inside) else {
            let Range { start, end } = self.header.range;
            let path = self.path.clone();
            return Err(IoError::OutOfRange { path, at: wanted.start, start, end }.into());
        };
        let mut bytes = Vec::with_capacity(length);
        let mut chunk = Vec::new();
        let mut at = wanted.start;
        while at < wanted.end {
            let index = at.since(self.header.range.start).unwrap_or_default() / CHUNK as u64;
            let held = self.header.chunk(index);
            self.unpack(index, &mut chunk)?;
            let until = held.end.min(wanted.end);
            let part = |position: GlobalOffset| {
                usize::try_from(position.since(held.start).unwrap_or_default()).unwrap_or(CHUNK)
            };
            bytes.extend_from_slice(chunk.get(part(at)..part(until)).unwrap_or_default());
            at = until;
        }
        Ok(bytes)
    }

    /// The bytes of chunk `index`.
    fn unpack(&self, index: u64, chunk: &mut Vec<u8>) -> Result<()> {
        let held = self.header.chunk(index);
        let length = held.end.since(held.start).and_then(|len| usize::try_from(len).ok());
        let (from, (to, crc)) = match index.checked_sub(1) {
            None => (PACKED_HEADER_LEN, self.entry(index)?),
            Some(before) => (self.entry(before)?.0, self.entry(index)?),
        };
        let stored = self.map.get(from..to).filter(|_| to <= self.table_at);
        let stored = stored.ok_or_else(|| self.damage(from, "a chunk reaches outside the file"))?;
        if self.header.chunk_crc(index, stored) != crc {
            return Err(self.damage(from, "a chunk's checksum is wrong"));
        }
        unpack_chunk(stored, length.unwrap_or(CHUNK), chunk)
            .map_err(|error| error.in_file(&self.path, FileOffset::new(from as u64)).into())
    }

    /// Where chunk `index` ends in the file, and its checksum.
    fn entry(&self, index: u64) -> Result<(usize, u32)> {
        if self.table_verified.get().is_none() {
            self.verify_table()?;
            self.table_verified.get_or_init(|| ());
        }
        let at = usize::try_from(index).ok().and_then(|index| index.checked_mul(ENTRY_LEN));
        let entry = at.and_then(|at| self.map.get(self.table_at + at..));
        let entry = entry.and_then(<[u8]>::first_chunk::<ENTRY_LEN>);
        let entry = entry.ok_or_else(|| self.damage(self.table_at, "a chunk has no entry"))?;
        let end = usize::try_from(u64::from_le_bytes(field(entry, 0))).unwrap_or(usize::MAX);
        Ok((end, u32::from_le_bytes(field(entry, size_of::<u64>()))))
    }

    fn verify_table(&self) -> Result<()> {
        let end = self.map.len() - CRC_LEN;
        let head = self.map.get(..PACKED_HEADER_LEN).unwrap_or_default();
        let table = self.map.get(self.table_at..end).unwrap_or_default();
        let crc = self.map.get(end..).and_then(<[u8]>::first_chunk);
        if crc.map(|crc| u32::from_le_bytes(*crc)) == Some(table_crc(head, table)) {
            return Ok(());
        }
        Err(self.damage(end, "the table's checksum is wrong"))
    }

    fn damage(&self, at: usize, what: &'static str) -> crate::Error {
        let offset = FileOffset::new(at as u64);
        IoError::Corrupt { path: self.path.clone(), offset, what }.into()
    }
}

/// Decompresses a stored chunk into its original `length` bytes.
pub fn unpack_chunk(stored: &[u8], length: usize, chunk: &mut Vec<u8>) -> Result<(), FormatError> {
    if stored.len() == length {
        chunk.clear();
        chunk.extend_from_slice(stored);
        return Ok(());
    }
    chunk.resize(length, 0);
    let damaged = FormatError::Damaged { at: 0, what: "a chunk does not decompress" };
    match lz4_flex::block::decompress_into(stored, chunk) {
        Ok(found) if found == length => Ok(()),
        _ => Err(damaged),
    }
}

pub(crate) fn table_crc(header: &[u8], table: &[u8]) -> u32 {
    Checksum::new().with(header).with(table).get()
}

/// The name of the packed segment that begins at `start`.
pub(crate) fn file_name(start: GlobalOffset) -> String {
    format!("{FILE_PREFIX}{:020}", start.get())
}

/// Whether a file of this name is a packed segment.
pub(crate) fn is_file(name: &str) -> bool {
    let start = name.strip_prefix(FILE_PREFIX).and_then(|start| start.parse().ok());
    start.is_some_and(|start| file_name(GlobalOffset::new(start)) == name)
}

/// How the names of packed segments begin.
pub(crate) const FILE_PREFIX: &str = "packed-";

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes.get(at..).and_then(<[u8]>::first_chunk).expect("the fields lie within the header")
}
