//! A full segment: a map, and a table of checksums that is asked on first touch.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{MappedLogConfig, check_header};
use crate::bitmap::Bitmap;
use crate::buffer::BLOCK;
use crate::error::{Error, Result};
use crate::fields::u32_at;
use crate::map::Map;
use crate::offset::FileOffset;
use crate::segment;
use crate::storage::{Access, Caching, File, Storage};

const CRC_LEN: usize = size_of::<u32>();

/// The table that follows the bytes of segment `number`.
pub(super) fn seal_table(config: &MappedLogConfig, number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut table = Vec::with_capacity((bytes.len().div_ceil(BLOCK) + 1) * CRC_LEN);
    for (index, block) in (0..).zip(bytes.chunks(BLOCK)) {
        table.extend_from_slice(&block_crc(config, number, index, block).to_le_bytes());
    }
    let crc = config.salt(number).with(&table).get();
    table.extend_from_slice(&crc.to_le_bytes());
    table
}

fn block_crc(config: &MappedLogConfig, number: u64, index: u64, block: &[u8]) -> u32 {
    config.salt(number).with_u64(index).with(block).get()
}

/// A sealed segment.
#[derive(Debug)]
pub(super) struct Sealed {
    path: PathBuf,
    number: u64,
    /// The bytes and the table that follows them.
    map: Map,
    capacity: usize,
    table_verified: OnceLock<()>,
    verified: Bitmap,
}

impl Sealed {
    /// Opens segment `number`, which must be sealed.
    pub(super) fn open(
        storage: &dyn Storage,
        config: &MappedLogConfig,
        number: u64,
    ) -> Result<Self> {
        let name = config.file_name(number);
        let file = storage.open(&name, Access::Read, Caching::Buffered)?;
        check_header(file.as_ref(), config, number)?;
        Self::of_file(&file, config, number)
    }

    pub(super) fn of_file(
        file: &std::sync::Arc<dyn File>,
        config: &MappedLogConfig,
        number: u64,
    ) -> Result<Self> {
        let capacity = usize::try_from(config.capacity()).expect("a u32 is an address");
        let blocks = capacity.div_ceil(BLOCK);
        let len = (capacity + (blocks + 1) * CRC_LEN) as u64;
        Ok(Self {
            path: file.path().to_path_buf(),
            number,
            map: file.map(FileOffset::new(segment::HEADER_BYTES), len)?,
            capacity,
            table_verified: OnceLock::new(),
            verified: Bitmap::new(blocks as u64),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of `range`, verified; `None` inside when it reaches outside the segment.
    pub(super) fn get(
        &self,
        config: &MappedLogConfig,
        range: Range<usize>,
    ) -> Result<Option<&[u8]>> {
        let Some(found) = self.map.get(range.clone()).filter(|_| range.end <= self.capacity) else {
            return Ok(None);
        };
        if !found.is_empty() {
            for block in range.start / BLOCK..=(range.end - 1) / BLOCK {
                self.verify(config, block)?;
            }
        }
        Ok(Some(found))
    }

    fn verify(&self, config: &MappedLogConfig, block: usize) -> Result<()> {
        let index = block as u64;
        if self.verified.get(index) {
            return Ok(());
        }
        let table = self.table(config)?;
        let start = block * BLOCK;
        let end = (start + BLOCK).min(self.capacity);
        let bytes = self.map.get(start..end).unwrap_or_default();
        if u32_at(table, block * CRC_LEN) != block_crc(config, self.number, index, bytes) {
            return Err(self.damage(start, "a block's checksum is wrong"));
        }
        self.verified.set(index);
        Ok(())
    }

    /// The checksums of the blocks, themselves verified once.
    fn table(&self, config: &MappedLogConfig) -> Result<&[u8]> {
        let len = self.capacity.div_ceil(BLOCK) * CRC_LEN;
        let stored = self.map.get(self.capacity..).unwrap_or_default();
        let table = stored.get(..len).unwrap_or_default();
        if self.table_verified.get().is_none() {
            if u32_at(stored, len) != config.salt(self.number).with(table).get() {
                return Err(self.damage(self.capacity, "the checksums of the blocks are damaged"));
            }
            self.table_verified.get_or_init(|| ());
        }
        Ok(table)
    }

    fn damage(&self, at: usize, what: &'static str) -> Error {
        let offset = FileOffset::new(segment::HEADER_BYTES).plus(at as u64);
        Error::Corrupt { path: self.path.clone(), offset, what }
    }
}
