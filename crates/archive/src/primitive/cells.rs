//! Cells of eight bytes in memory, saved by pages: what heads and arrays are made of.
//!
//! ```text
//!  memory   shelves of pages; a page is there once it was touched
//!
//!  NAME.head       page 0        page 1 + n holds cells 510·n to 510·n + 509
//!                  ┌──────────┬──────────────────────────────┬──────┬─────┬──
//!                  │ header   │ cell u64 × 510               │ zero │ crc │ …
//!                  │ (`io`)   │ 4080 bytes                   │ 12   │ u32 │
//!                  └──────────┴──────────────────────────────┴──────┴─────┴──
//!
//!  NAME.redo-EPOCH page 0        page 1 …
//!                  ┌──────────┬────────┬─────────────────────┬──────┬─────┬──
//!                  │ header   │ n u64  │ cell u64 × 510      │ zero │ crc │ …
//!                  │ (`io`)   │        │ the page n of cells │ 4    │ u32 │
//!                  └──────────┴────────┴─────────────────────┴──────┴─────┴──
//! ```
//!
//! All cells begin as [`EMPTY`], which is all ones. They are atomic: any thread may load, store and
//! exchange them; a page that was changed is dirty until it is saved.
//!
//! **Loading.** A page that was saved is read, and its checksum verified, when it is first
//! touched. So opening is fast however large a head is, and a flipped bit is an error, naming file
//! and offset, at its first use.
//!
//! **Saving** costs a write for each dirty page, and is all or nothing, together with the owner's
//! manifest:
//!
//! 1. *Prepare*, at a new epoch. Dirty pages that the last saved state contains are written to a
//!    redo file, because a torn page in place would be lost. Pages after the last saved state are
//!    written in place: nothing depends on what is there. Both are synced.
//! 2. The owner makes its manifest durable, with the [`CellsMark`] in it. This is the commit.
//! 3. *Confirm*: the pages of the redo file are copied to their places and synced, and the file is
//!    removed. After a crash opening repeats this: the mark says that there was a redo file, and if
//!    the file exists it is applied.
//!
//! A crash before 2 leaves the old state untouched, and a redo file of an epoch that no mark names.

mod save;

use std::sync::Arc;

use varve_io::{
    Access, Caching, Checksum, File, FileId, FileOffset, Kind, PAGE_LEN, PageNumber, Storage,
    StoreId, verify_header_page, verify_page,
};

use super::error::{Error, Result};
use super::shelves::Shelves;
use super::sync::{AtomicBool, AtomicU64, OnceLock, Ordering};

pub(crate) use save::CellSaver;

/// The value of a cell that was never written.
pub(crate) const EMPTY: u64 = u64::MAX;

/// The cells in a page. (A model of loom has small ones, because it looks at every cell.)
pub(crate) const CELLS: usize = if cfg!(loom) { 2 } else { 510 };
const CELL_LEN: usize = size_of::<u64>();
const _: () = assert!(cfg!(loom) || 8 + CELLS * CELL_LEN <= varve_io::PAGE_PAYLOAD_LEN);

/// Pages per read when all pages are read.
const READ_PAGES: usize = 64;

/// Pages in the first shelf.
const FIRST_SHELF: u64 = 16;

/// Whose cells these are: the start of every file's name and checksum.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) table: String,
    pub(crate) kind: Kind,
    pub(crate) store: StoreId,
}

impl Identity {
    fn head_name(&self) -> String {
        head_name(&self.table)
    }

    fn redo_name(&self, epoch: u64) -> String {
        redo_name(&self.table, epoch)
    }

    /// The id of the head file (epoch 0) or of a redo file: different for every table, epoch and
    /// store.
    fn file_id(&self, epoch: u64) -> FileId {
        let name = Checksum::new().with(self.table.as_bytes()).with(&self.kind.0).get();
        let salt = epoch.to_le_bytes().into_iter().zip(name.to_le_bytes().into_iter().cycle());
        let mut id = self.store.0;
        for (byte, (epoch, name)) in id.iter_mut().zip(salt.cycle()) {
            *byte = byte.wrapping_mul(3) ^ epoch ^ name;
        }
        FileId(id)
    }
}

/// The file of a table's cells.
pub(super) fn head_name(table: &str) -> String {
    format!("{table}.head")
}

/// The redo file of a table at an epoch.
pub(super) fn redo_name(table: &str, epoch: u64) -> String {
    format!("{table}.redo-{epoch:016}")
}

/// The epoch of a table's redo file, by its name.
pub(super) fn redo_epoch(table: &str, name: &str) -> Option<u64> {
    let epoch = name.strip_prefix(table)?.strip_prefix(".redo-")?.parse().ok()?;
    (redo_name(table, epoch) == name).then_some(epoch)
}

/// The owner's record of saved cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CellsMark {
    /// When they were saved: counts the owner's checkpoints.
    pub(crate) epoch: u64,
    /// How many pages were saved, from the first on.
    pub(crate) pages: u64,
    /// How many of them went through a redo file.
    pub(crate) redo: u64,
}

/// A page of cells in memory.
#[derive(Debug)]
pub(crate) struct Page {
    cells: [AtomicU64; CELLS],
    dirty: AtomicBool,
}

impl Page {
    fn of(mut value: impl FnMut(usize) -> u64) -> Box<Self> {
        let cells = std::array::from_fn(|place| AtomicU64::new(value(place)));
        Box::new(Self { cells, dirty: AtomicBool::new(false) })
    }

    fn decode(payload: &[u8]) -> Box<Self> {
        let (cells, _) = payload.as_chunks::<CELL_LEN>();
        Self::of(|place| cells.get(place).map_or(EMPTY, |cell| u64::from_le_bytes(*cell)))
    }

    /// Puts the cells at the start of `payload`, which is long enough.
    fn encode(&self, payload: &mut [u8]) {
        let (places, _) = payload.as_chunks_mut::<CELL_LEN>();
        for (place, cell) in places.iter_mut().zip(&self.cells) {
            *place = cell.load(Ordering::Acquire).to_le_bytes();
        }
    }

    fn set_dirty(&self) {
        if !self.dirty.load(Ordering::Relaxed) {
            self.dirty.store(true, Ordering::Relaxed);
        }
    }
}

/// Bytes of memory for this number of cells when all of them have been touched.
pub(crate) fn memory_of(cells: u64) -> usize {
    let slot = size_of::<OnceLock<Box<Page>>>();
    let pages = usize::try_from(cells.div_ceil(CELLS as u64)).unwrap_or(usize::MAX);
    pages.saturating_mul(size_of::<Page>() + slot)
}

/// One cell, in memory and ready to be changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    page: &'a Page,
    cell: &'a AtomicU64,
}

impl Cell<'_> {
    pub(crate) fn load(self) -> u64 {
        self.cell.load(Ordering::Acquire)
    }

    pub(crate) fn store(self, value: u64) {
        self.cell.store(value, Ordering::Release);
        self.page.set_dirty();
    }

    /// Replaces `old` by `new`, or returns the value found instead.
    pub(crate) fn exchange(self, old: u64, new: u64) -> Result<(), u64> {
        self.cell.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)?;
        self.page.set_dirty();
        Ok(())
    }
}

/// A growing array of cells.
#[derive(Debug)]
pub(crate) struct Cells {
    storage: Arc<dyn Storage>,
    identity: Identity,
    /// The head file, once there is one.
    file: std::sync::OnceLock<Arc<dyn File>>,
    /// How many pages of it count.
    saved: std::sync::atomic::AtomicU64,
    pages: Shelves<OnceLock<Box<Page>>>,
}

impl Cells {
    /// Opens cells as they were saved at `mark`, finishing what a crash may have cut short.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        identity: Identity,
        mark: CellsMark,
    ) -> Result<(Arc<Self>, CellSaver)> {
        let cells = Arc::new(Self::open_saved(storage, identity, mark, Access::Write)?);
        let saver = CellSaver::recover(Arc::clone(&cells), mark)?;
        Ok((cells, saver))
    }

    fn open_saved(
        storage: Arc<dyn Storage>,
        identity: Identity,
        mark: CellsMark,
        access: Access,
    ) -> Result<Self> {
        let cells = Self {
            storage,
            identity,
            file: std::sync::OnceLock::new(),
            saved: mark.pages.into(),
            pages: Shelves::new(FIRST_SHELF),
        };
        if mark.pages > 0 {
            let name = cells.identity.head_name();
            let file = cells.storage.open(&name, access, Caching::Buffered)?;
            cells.check_head(file.as_ref(), mark)?;
            let _ = cells.file.set(file);
        }
        Ok(cells)
    }

    /// Opens cells read-only, as they were saved at `mark`. The caller has checked that the redo
    /// file of the mark is applied.
    pub(crate) fn at_rest(
        storage: Arc<dyn Storage>,
        identity: Identity,
        mark: CellsMark,
    ) -> Result<Arc<Self>> {
        Self::open_saved(storage, identity, mark, Access::Read).map(Arc::new)
    }

    /// The first `len` cells as they were saved, in order, without keeping their pages.
    pub(crate) fn for_each<E: From<Error>>(
        &self,
        len: u64,
        mut each: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(file) = self.file.get().filter(|_| len > 0) else { return Ok(()) };
        let (pages, mut left) = (len.div_ceil(CELLS as u64), len);
        let mut buffer = vec![0; READ_PAGES * PAGE_LEN];
        for first in (0..pages).step_by(READ_PAGES) {
            let count = usize::try_from(pages - first).map_or(READ_PAGES, |n| n.min(READ_PAGES));
            let bytes = buffer.get_mut(..count * PAGE_LEN).unwrap_or_default();
            file.read_at(PageNumber(first + 1).offset(), bytes).map_err(Error::from)?;
            for (number, page) in (first..).zip(bytes.chunks_exact(PAGE_LEN)) {
                let payload = self.payload(file.as_ref(), number, page)?;
                let here = usize::try_from(left).map_or(CELLS, |left| left.min(CELLS));
                let (cells, _) = payload.as_chunks::<CELL_LEN>();
                cells.iter().take(here).try_for_each(|cell| each(u64::from_le_bytes(*cell)))?;
                left -= here as u64;
            }
        }
        Ok(())
    }

    /// The value of a cell, without creating its page.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Result<u64> {
        let page = self.page(index / CELLS as u64)?;
        Ok(page.map_or(EMPTY, |page| Cell::of(page, index).load()))
    }

    /// A cell to be changed; creates its page when it is missing.
    #[inline]
    pub(crate) fn touch(&self, index: u64) -> Result<Cell<'_>> {
        let number = index / CELLS as u64;
        let page = match self.page(number)? {
            Some(page) => page,
            None => self.put(number, Page::of(|_| EMPTY)),
        };
        Ok(Cell::of(page, index))
    }

    /// A page: from memory, else from the file if it was saved, else none.
    #[inline]
    fn page(&self, number: u64) -> Result<Option<&Page>> {
        match self.present(number) {
            Some(page) => Ok(Some(page)),
            None if number < self.saved.load(std::sync::atomic::Ordering::Acquire) => {
                self.load(number).map(Some)
            }
            None => Ok(None),
        }
    }

    #[inline]
    fn present(&self, number: u64) -> Option<&Page> {
        self.pages.get(number)?.get().map(|page| &**page)
    }

    /// Publishes page `number`, unless another thread was first.
    fn put(&self, number: u64, page: Box<Page>) -> &Page {
        let slot = self.pages.grow(number);
        let _ = slot.set(page);
        slot.get().expect("set above, by us or by another")
    }

    fn load(&self, number: u64) -> Result<&Page> {
        match self.read(number) {
            Ok(page) => Ok(self.put(number, page)),
            // Somebody else loaded, changed and saved it while we read.
            Err(error) => self.present(number).ok_or(error),
        }
    }

    fn read(&self, number: u64) -> Result<Box<Page>> {
        let file = self.file.get().expect("pages are saved in a file");
        let at = PageNumber(number + 1);
        let mut bytes = [0; PAGE_LEN];
        file.read_at(at.offset(), &mut bytes)?;
        Ok(Page::decode(self.payload(file.as_ref(), number, &bytes)?))
    }

    /// The verified payload of page `number`, whose bytes were read.
    fn payload<'a>(&self, file: &dyn File, number: u64, page: &'a [u8]) -> Result<&'a [u8]> {
        let at = PageNumber(number + 1);
        let payload = verify_page(page, self.identity.file_id(0), at);
        Ok(payload.map_err(|error| error.in_file(file.path(), at.offset()))?)
    }

    /// Verifies the checksum of every saved page.
    pub(crate) fn verify(&self) -> Result<()> {
        let saved = self.saved.load(std::sync::atomic::Ordering::Acquire);
        (0..saved).try_for_each(|number| self.read(number).map(drop))
    }

    fn check_head(&self, file: &dyn File, mark: CellsMark) -> Result<()> {
        let (len, wanted) = (FileOffset::new(file.size()?), PageNumber(mark.pages + 1).offset());
        if len < wanted {
            let path = file.path().to_path_buf();
            return Err(varve_io::Error::UnexpectedEnd { path, len, wanted }.into());
        }
        let mut header = [0; PAGE_LEN];
        file.read_at(FileOffset::ZERO, &mut header)?;
        let checked = verify_header_page(&header, self.identity.kind, self.identity.file_id(0));
        checked.map_err(|error| Error::Io(error.in_file(file.path(), FileOffset::ZERO)))
    }
}

impl<'a> Cell<'a> {
    #[inline]
    fn of(page: &'a Page, index: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "below the cells of a page")]
        let place = (index % CELLS as u64) as usize;
        let cell = page.cells.get(place).expect("below the cells of a page");
        Self { page, cell }
    }
}
