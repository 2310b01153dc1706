//! The blob: bytes of any length, appended and found by position alone.
//!
//! ```text
//!  position  0          5                    28
//!            ┌──────────┬────────────────────┬──
//!            │ value    │ value              │ …       a log of plain bytes, `NAME-NUMBER`
//!            └──────────┴────────────────────┴──
//! ```
//!
//! Only the values are stored: the caller keeps positions and knows the lengths, or the value
//! encodes its length. An empty value would share its position with the next and is refused.

use std::sync::Arc;

use varve_io::{GlobalOffset, LogReader, MappedLog, Storage};

use super::error::{Error, Result};
use super::mark::Mark;
use super::slabs::SlabLink;
use super::table::{Epoch, Heads, Table, TableConfig};

/// The owner of a blob.
#[derive(Debug)]
pub struct Blob {
    name: String,
    log: MappedLog,
    most: u32,
}

/// Reads a [`Blob`] concurrently with its owner and other readers; clone it into other threads.
#[derive(Debug, Clone)]
pub struct BlobReader(LogReader);

impl Blob {
    /// Opens the blob as it was at `mark`; later values are cut off.
    pub fn open(storage: Arc<dyn Storage>, config: &TableConfig, mark: Mark) -> Result<Self> {
        let most = config.segment_len.max(1);
        let log = MappedLog::open(storage, config.log(most), mark.log)?;
        Ok(Self { name: config.name.clone(), log, most })
    }

    /// A reader of this blob.
    #[must_use]
    pub fn reader(&self) -> BlobReader {
        BlobReader(self.log.reader())
    }

    /// The position after the last value.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub fn end(&self) -> SlabLink {
        SlabLink(self.log.end().get())
    }

    /// Adds a value and returns its position. Readers see it at once.
    pub fn push(&mut self, value: &[u8]) -> Result<SlabLink> {
        let most = usize::try_from(self.most).expect("a u32 is an address");
        if value.is_empty() || value.len() > most {
            let (table, len) = (self.name.clone(), value.len());
            return Err(Error::SlabLength { table, len, least: 1, most });
        }
        Ok(SlabLink(self.log.append(value)?.get()))
    }
}

impl BlobReader {
    /// Opens a blob at rest, as it was at `mark`, and changes nothing.
    pub(crate) fn at_rest(storage: Arc<dyn Storage>, config: &TableConfig, mark: Mark) -> Self {
        Self(LogReader::at_rest(storage, config.log(config.segment_len.max(1)), mark.log))
    }

    /// Lends the `len` bytes at a position to `read`. They must be part of one value.
    pub fn get<R>(&self, at: SlabLink, len: usize, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        Ok(read(self.0.snapshot().get(GlobalOffset::new(at.0), len)?))
    }
}

impl Table for Blob {
    fn name(&self) -> &str {
        &self.name
    }

    fn prepare(&mut self, _: Epoch, _: Heads) -> Result<Mark> {
        Ok(Mark { log: self.log.sync()?, ..Mark::NEW })
    }

    fn confirm(&mut self) -> Result<()> {
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        Ok(self.log.reader().snapshot().verify()?)
    }
}
