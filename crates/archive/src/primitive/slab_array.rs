//! The slab array: values of any length by index, such as the transactions of a block by the
//! number of its header.
//!
//! A cell an index holds the position of its value; the values lie in a body of `slabs` with
//! neither key nor link. An index that was never put is empty. Putting an index again makes the new
//! value the one that is found; the old one stays in the body.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use varve_io::Storage;

use super::cells::{Cell, CellSaver, Cells, EMPTY, memory_of};
use super::error::Result;
use super::mark::Mark;
use super::slabs::{Front, Measure, SlabLink, Slabs, SlabsOwner};
use super::table::{Epoch, Heads, Table, TableConfig, TableMemory};

/// Values have neither key nor link.
const FRONT: Front = Front { key: 0, link: 0 };

/// The owner of a slab array.
#[derive(Debug)]
pub struct SlabArray<M> {
    slabs: SlabsOwner,
    saver: CellSaver,
    reader: SlabArrayReader<M>,
}

/// Reads a [`SlabArray`] beside its owner and other readers; to be cloned into other threads.
#[derive(Debug)]
pub struct SlabArrayReader<M> {
    slabs: Arc<Slabs>,
    cells: Arc<Cells>,
    /// One more than the greatest index that was put.
    len: Arc<AtomicU64>,
    measure: PhantomData<fn() -> M>,
}

impl<M> Clone for SlabArrayReader<M> {
    fn clone(&self) -> Self {
        let (slabs, cells) = (Arc::clone(&self.slabs), Arc::clone(&self.cells));
        Self { slabs, cells, len: Arc::clone(&self.len), measure: PhantomData }
    }
}

/// A value that is in the body and not yet at its index.
#[derive(Debug)]
#[must_use = "a value is found only after it is committed"]
pub struct PendingValue<'a> {
    cell: Cell<'a>,
    link: SlabLink,
    index: u64,
    len: &'a AtomicU64,
}

impl PendingValue<'_> {
    /// Puts the value at its index.
    pub fn commit(self) -> SlabLink {
        self.len.fetch_max(self.index + 1, Ordering::AcqRel);
        self.cell.store(self.link.0);
        self.link
    }
}

impl<M: Measure> SlabArray<M> {
    /// Opens the array as it was at `mark`; what came later is cut off.
    pub fn open(storage: Arc<dyn Storage>, config: &TableConfig, mark: Mark) -> Result<Self> {
        let slabs = SlabsOwner::open(Arc::clone(&storage), config, FRONT, (mark.log, 0))?;
        let (cells, saver) = Cells::open(storage, config.identity(), mark.cells)?;
        let shared = Arc::clone(&slabs.shared);
        let len = Arc::new(mark.len.into());
        let reader = SlabArrayReader { slabs: shared, cells, len, measure: PhantomData };
        Ok(Self { slabs, saver, reader })
    }

    /// The reader of this array.
    #[must_use]
    pub const fn reader(&self) -> &SlabArrayReader<M> {
        &self.reader
    }

    /// Writes a value for an index, not reachable yet. Any thread may.
    pub fn set(&self, index: u64, value: &[u8]) -> Result<PendingValue<'_>> {
        let cell = self.reader.cells.touch(index)?;
        let (_, link) = self.slabs.shared.set::<M>(&[], value, EMPTY)?;
        Ok(PendingValue { cell, link, index, len: &self.reader.len })
    }

    /// Sets and commits the value of an index.
    pub fn put(&self, index: u64, value: &[u8]) -> Result<SlabLink> {
        self.set(index, value).map(PendingValue::commit)
    }
}

impl<M: Measure> SlabArrayReader<M> {
    /// Opens an array that nobody writes to, as it was at `mark`. Nothing is changed.
    pub(crate) fn at_rest(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        mark: Mark,
    ) -> Result<Self> {
        let slabs = Slabs::at_rest(Arc::clone(&storage), config, FRONT, (mark.log, 0));
        let cells = Cells::at_rest(storage, config.identity(), mark.cells)?;
        let (slabs, len) = (Arc::new(slabs), Arc::new(mark.len.into()));
        Ok(Self { slabs, cells, len, measure: PhantomData })
    }

    /// One more than the greatest index that was put.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> TableMemory {
        TableMemory { heads: memory_of(self.len()), stage: self.slabs.memory() }
    }

    /// True when no index was put.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lends the value at an index to `read`; `None` when there is none.
    pub fn get<R>(&self, index: u64, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        if index >= self.len() {
            return Ok(None);
        }
        let link = self.cells.get(index)?;
        if link == EMPTY {
            return Ok(None);
        }
        let state = self.slabs.state.load();
        let found = self.slabs.get::<M>(&state, SlabLink(link))?;
        Ok(Some(read(found.bytes)))
    }
}

impl<M: Measure> Table for SlabArray<M> {
    fn name(&self) -> &str {
        &self.slabs.shared.name
    }

    fn prepare(&mut self, epoch: Epoch, _: Heads) -> Result<Mark> {
        let (log, _) = self.slabs.settle()?;
        let len = self.reader.len();
        let cells = self.saver.prepare(epoch.0, len)?;
        Ok(Mark { log, len, cells, ..Mark::NEW })
    }

    fn confirm(&mut self) -> Result<()> {
        self.saver.confirm()
    }

    fn verify(&self) -> Result<()> {
        self.slabs.verify()?;
        self.reader.cells.verify()
    }
}
