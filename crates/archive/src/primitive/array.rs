//! The array: cells of eight bytes by index, the one table that can be cut.
//!
//! Made for heights: the block at a height changes when the chain reorganises. Whole arrays are in
//! memory as `cells` and saved by dirty pages, so a checkpoint after a reorganisation writes the
//! pages of the changed heights. There is no body, so a crash leaves nothing half-written: opening
//! gives the array of the last checkpoint, and the owner replays the chain from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use varve_io::Storage;

use super::cells::{CellSaver, Cells, memory_of};
use super::error::{Error, Result};
use super::mark::Mark;
use super::table::{Epoch, Heads, Table, TableConfig, TableMemory};

/// The owner of an array.
#[derive(Debug)]
pub struct Array {
    reader: ArrayReader,
    saver: CellSaver,
}

/// Reads an [`Array`] concurrently with its owner and other readers; clone it into other threads.
#[derive(Debug, Clone)]
pub struct ArrayReader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: String,
    cells: Arc<Cells>,
    len: AtomicU64,
}

impl Array {
    /// Opens the array as it was at `mark`.
    pub fn open(storage: Arc<dyn Storage>, config: &TableConfig, mark: Mark) -> Result<Self> {
        let (cells, saver) = Cells::open(storage, config.identity(), mark.cells)?;
        let shared = Shared { name: config.name.clone(), cells, len: mark.len.into() };
        Ok(Self { reader: ArrayReader(Arc::new(shared)), saver })
    }

    /// Visits every value of an array at rest in order, as it was at `mark`, without keeping pages
    /// in memory.
    pub(crate) fn read_at_rest<E: From<Error>>(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        mark: Mark,
        each: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        Cells::at_rest(storage, config.identity(), mark.cells)?.for_each(mark.len, each)
    }

    /// The reader of this array.
    #[must_use]
    pub const fn reader(&self) -> &ArrayReader {
        &self.reader
    }

    /// Adds a value at the end and returns its index.
    pub fn push(&mut self, value: u64) -> Result<u64> {
        let Shared { cells, len, .. } = &*self.reader.0;
        let index = len.load(Ordering::Relaxed);
        cells.touch(index)?.store(value);
        len.store(index + 1, Ordering::Release);
        Ok(index)
    }

    /// Replaces the value at an index.
    pub fn set(&mut self, index: u64, value: u64) -> Result<()> {
        self.reader.check(index)?;
        self.reader.0.cells.touch(index)?.store(value);
        Ok(())
    }

    /// Truncates the array to `len` values; a shorter one is unchanged. Truncated values stay in
    /// their cells, out of reach, until a push replaces them.
    pub fn truncate(&mut self, len: u64) {
        self.reader.0.len.fetch_min(len, Ordering::AcqRel);
    }
}

impl ArrayReader {
    /// Opens an array at rest, as it was at `mark`, and changes nothing.
    pub(crate) fn at_rest(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        mark: Mark,
    ) -> Result<Self> {
        let cells = Cells::at_rest(storage, config.identity(), mark.cells)?;
        let shared = Shared { name: config.name.clone(), cells, len: mark.len.into() };
        Ok(Self(Arc::new(shared)))
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len.load(Ordering::Acquire)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> TableMemory {
        TableMemory { heads: memory_of(self.len()), stage: 0 }
    }

    /// True when there is no value.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at an index.
    pub fn get(&self, index: u64) -> Result<u64> {
        self.check(index)?;
        self.0.cells.get(index)
    }

    fn check(&self, index: u64) -> Result<()> {
        let len = self.len();
        if index < len {
            return Ok(());
        }
        Err(Error::NoIndex { table: self.0.name.clone(), index, len })
    }
}

impl Table for Array {
    fn name(&self) -> &str {
        &self.reader.0.name
    }

    fn prepare(&mut self, epoch: Epoch, _: Heads) -> Result<Mark> {
        let len = self.reader.len();
        let cells = self.saver.prepare(epoch.0, len)?;
        Ok(Mark { len, cells, ..Mark::NEW })
    }

    fn confirm(&mut self) -> Result<()> {
        self.saver.confirm()
    }

    fn verify(&self) -> Result<()> {
        self.reader.0.cells.verify()
    }
}
