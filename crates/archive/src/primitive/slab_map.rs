//! The slab hash map: values of any length, found by key or by position.
//!
//! The bytes are those of `slabs`, the head that of `head` with links of 40 bits and a filter of
//! 24. Slabs are few and large compared with records, so the head is saved at every checkpoint and
//! opening relinks nothing.

use std::ops::ControlFlow;
use std::sync::Arc;

use varve_io::Storage;

use super::cells::{Cell, CellSaver, Cells, memory_of};
use super::error::{Error, Result};
use super::hasher::{KeyHasher, Keyed};
use super::head::{Geometry, Head};
use super::mark::Mark;
use super::slabs::{Front, Measure, SlabLink, Slabs, SlabsOwner, TERMINAL, ones};
use super::stage::UNLINKED;
use super::table::{Epoch, Heads, Table, TableConfig, TableMemory};

/// The bits of a link in a cell.
pub(crate) const LINK_BITS: u32 = 40;
type SlabHead<'a> = Head<'a, LINK_BITS>;

/// The owner of a table of slabs with keys of `K` bytes and stored links of `L` bytes.
#[derive(Debug)]
pub struct SlabMap<M, const K: usize, const L: usize = 5, H = Keyed> {
    slabs: SlabsOwner,
    saver: CellSaver,
    reader: SlabReader<M, K, L, H>,
}

/// Reads a [`SlabMap`] concurrently with its owner and other readers; clone it into other threads.
#[derive(Debug)]
pub struct SlabReader<M, const K: usize, const L: usize = 5, H = Keyed> {
    slabs: Arc<Slabs>,
    cells: Arc<Cells>,
    geometry: Geometry,
    hasher: Arc<H>,
    measure: std::marker::PhantomData<fn() -> M>,
}

impl<M, const K: usize, const L: usize, H> Clone for SlabReader<M, K, L, H> {
    fn clone(&self) -> Self {
        let (slabs, cells) = (Arc::clone(&self.slabs), Arc::clone(&self.cells));
        let (geometry, hasher) = (self.geometry, Arc::clone(&self.hasher));
        Self { slabs, cells, geometry, hasher, measure: std::marker::PhantomData }
    }
}

/// A slab that has its position and bytes but is not found by search yet. Committing cannot fail;
/// dropping it instead leaves an unreachable slab.
#[derive(Debug)]
#[must_use = "a slab is found only after it is committed"]
pub struct PendingSlab<'a> {
    slabs: &'a Slabs,
    number: u64,
    link: SlabLink,
    cell: Cell<'a>,
    hash: u64,
}

impl PendingSlab<'_> {
    /// Makes the slab reachable.
    pub fn commit(self) -> SlabLink {
        let state = self.slabs.state.load();
        let slot = state.stage.slot(self.number).expect("set; settling needs the owner");
        SlabHead::push(self.cell, self.hash, self.link.0, |next| slot.set_next(next));
        self.link
    }
}

impl<M: Measure, const K: usize, const L: usize, H: KeyHasher> SlabMap<M, K, L, H> {
    const FRONT: Front = Front { key: K, link: L };

    /// Opens the table as it was at `mark`; later slabs are cut off.
    pub fn open(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        hasher: H,
        mark: Mark,
    ) -> Result<Self> {
        const { assert!(L > 0 && L <= 5, "links have one to five bytes") };
        let geometry = geometry(config, mark)?;
        let slabs = SlabsOwner::open(Arc::clone(&storage), config, Self::FRONT, mark)?;
        let (cells, saver) = Cells::open(storage, config.identity(), mark.cells)?;
        let shared = Arc::clone(&slabs.shared);
        let hasher = Arc::new(hasher);
        let measure = std::marker::PhantomData;
        let reader = SlabReader { slabs: shared, cells, geometry, hasher, measure };
        Ok(Self { slabs, saver, reader })
    }

    /// The reader of this table.
    #[must_use]
    pub const fn reader(&self) -> &SlabReader<M, K, L, H> {
        &self.reader
    }

    /// Writes a slab, not reachable yet, from any thread.
    pub fn set(&self, key: &[u8; K], value: &[u8]) -> Result<PendingSlab<'_>> {
        let slabs = &*self.slabs.shared;
        let hash = self.reader.hasher.hash(key);
        let limit = ones(L).min(TERMINAL) - 1;
        let (number, link) = slabs.set::<M>(key, value, limit)?;
        let cell = self.reader.head().cell(number, hash)?;
        Ok(PendingSlab { slabs, number, link, cell, hash })
    }

    /// Sets and commits one slab.
    #[cfg(feature = "test-suite")]
    pub fn insert(&self, key: &[u8; K], value: &[u8]) -> Result<SlabLink> {
        self.set(key, value).map(PendingSlab::commit)
    }
}

impl<M: Measure, const K: usize, const L: usize, H: KeyHasher> SlabReader<M, K, L, H> {
    /// Opens a table at rest, as it was at `mark`, and changes nothing.
    pub(crate) fn at_rest(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        hasher: H,
        mark: Mark,
    ) -> Result<Self> {
        let geometry = geometry(config, mark)?;
        let front = Front { key: K, link: L };
        let slabs = Slabs::at_rest(Arc::clone(&storage), config, front, mark);
        let cells = Cells::at_rest(storage, config.identity(), mark.cells)?;
        let (slabs, hasher) = (Arc::new(slabs), Arc::new(hasher));
        Ok(Self { slabs, cells, geometry, hasher, measure: std::marker::PhantomData })
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> TableMemory {
        let stage = &self.slabs.state.load().stage;
        let coming = stage.end() + (stage.end() - stage.base());
        let heads = memory_of(self.geometry.cells(coming));
        TableMemory { heads, stage: self.slabs.memory() }
    }

    fn head(&self) -> SlabHead<'_> {
        Head { cells: &self.cells, geometry: self.geometry }
    }

    /// The number of slabs given out.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.slabs.state.load().stage.end()
    }

    /// Lends the key and the value at a position to `read`.
    #[cfg(feature = "test-suite")]
    pub fn get<R>(&self, link: SlabLink, read: impl FnOnce(&[u8; K], &[u8]) -> R) -> Result<R> {
        let state = self.slabs.state.load();
        let found = self.slabs.get::<M>(&state, link)?;
        let (key, value) = self.split(link, found.bytes)?;
        Ok(read(key, value))
    }

    /// The slab below `link` in its chain, of whatever key; `None` at the end.
    #[cfg(feature = "test-suite")]
    pub fn next(&self, link: SlabLink) -> Result<Option<SlabLink>> {
        let state = self.slabs.state.load();
        let found = self.slabs.get::<M>(&state, link)?;
        let next = found.staged_next.unwrap_or_else(|| self.slabs.stored_next(found.bytes));
        Ok(Some(SlabLink(next)).filter(|link| link.0 < TERMINAL))
    }

    /// The top of the chain in a bucket; buckets of all generations are counted in one row.
    #[cfg(feature = "test-suite")]
    pub fn top(&self, bucket: u64) -> Result<Option<SlabLink>> {
        let link = SlabHead::link(self.cells.get(bucket)?);
        Ok(Some(SlabLink(link)).filter(|link| link.0 < TERMINAL))
    }

    /// Lends the newest value of a key to `read`; returns its position and what `read` made of it.
    pub fn find<R>(
        &self,
        key: &[u8; K],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<(SlabLink, R)>> {
        let (mut read, mut found) = (Some(read), None);
        self.search(key, |link, value| {
            found = read.take().map(|read| (link, read(value)));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Visits the values of a key, newest first, until `visit` breaks.
    pub fn search(
        &self,
        key: &[u8; K],
        mut visit: impl FnMut(SlabLink, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let hash = self.hasher.hash(key);
        for top in self.head().tops(hash, self.rows()) {
            let mut link = top?;
            let state = self.slabs.state.load();
            let mut left = state.stage.end();
            while link != TERMINAL {
                let found = self.slabs.get::<M>(&state, SlabLink(link))?;
                let next = found.staged_next.unwrap_or_else(|| self.slabs.stored_next(found.bytes));
                if next == UNLINKED || left == 0 {
                    return Err(Error::BrokenChain { table: self.slabs.name.clone(), link });
                }
                left -= 1;
                let (stored, value) = self.split(SlabLink(link), found.bytes)?;
                if stored == key && visit(SlabLink(link), value).is_break() {
                    return Ok(());
                }
                link = next;
            }
        }
        Ok(())
    }

    fn split<'a>(&self, link: SlabLink, bytes: &'a [u8]) -> Result<(&'a [u8; K], &'a [u8])> {
        let key = bytes.first_chunk();
        let parts = key.and_then(|key| Some((key, bytes.get(K + L..)?)));
        parts.ok_or_else(|| self.slabs.no_row(link, 0))
    }
}

/// The geometry of the table, when its mark can be used.
fn geometry(config: &TableConfig, mark: Mark) -> Result<Geometry> {
    let geometry = mark.geometry(config.geometry);
    if !geometry.is_sound() {
        let what = "a head needs a bucket, and a bucket a row";
        return Err(Error::BadMark { table: config.name.clone(), what });
    }
    Ok(geometry)
}

impl<M: Measure, const K: usize, const L: usize, H: KeyHasher> Table for SlabMap<M, K, L, H> {
    fn name(&self) -> &str {
        &self.slabs.shared.name
    }

    fn prepare(&mut self, epoch: Epoch, _: Heads) -> Result<Mark> {
        let (log, len) = self.slabs.settle()?;
        let geometry = self.reader.geometry;
        let cells = self.saver.prepare(epoch.0, geometry.cells(len))?;
        Ok(Mark { log, len, linked: len, geometry, cells })
    }

    fn confirm(&mut self) -> Result<()> {
        self.saver.confirm()
    }

    fn verify(&self) -> Result<()> {
        self.slabs.verify()?;
        self.reader.cells.verify()
    }
}
