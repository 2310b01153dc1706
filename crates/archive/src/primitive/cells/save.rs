//! Saving cells: prepare, confirm, and what opening does after a crash between them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

use varve_io::{
    Access, Caching, File, FileOffset, PAGE_LEN, PAGE_PAYLOAD_LEN, PageFile, PageFileWriter,
    PageNumber, is_far, remove_unnamed, seal_page,
};

use super::{CELL_LEN, CELLS, Cells, CellsMark, Ordering, redo_epoch};
use crate::primitive::error::{Error, Result};

/// New pages are gathered up to this many bytes before they are written.
const GATHER: usize = 1 << 20;
const NUMBER_LEN: usize = size_of::<u64>();
const CELLS_LEN: usize = CELLS * CELL_LEN;

/// The one who saves.
#[derive(Debug)]
pub(crate) struct CellSaver {
    cells: Arc<Cells>,
    /// What the owner's durable manifest names.
    current: CellsMark,
    /// The redo file of `current` may not be in its places yet.
    unapplied: bool,
    /// What was prepared and is neither confirmed nor given up.
    prepared: Option<Prepared>,
    /// A file was created since the directory was last synced.
    names_changed: bool,
}

#[derive(Debug)]
struct Prepared {
    mark: CellsMark,
    /// The pages in the redo file.
    pages: Vec<u64>,
}

impl CellSaver {
    /// The saver of cells that were opened at `mark`. Applies the mark's redo file when it is still
    /// there and removes those of other epochs.
    pub(super) fn recover(cells: Arc<Cells>, mark: CellsMark) -> Result<Self> {
        let mut unapplied = false;
        for name in cells.storage.list()? {
            let Some(epoch) = redo_epoch(&cells.identity.table, &name) else { continue };
            if mark.redo > 0 && epoch == mark.epoch {
                unapplied = true;
                continue;
            }
            let store = (cells.identity.store, 0);
            remove_unnamed(cells.storage.as_ref(), &name, store, is_far(epoch, mark.epoch))?;
        }
        let mut saver =
            Self { cells, current: mark, unapplied, prepared: None, names_changed: false };
        saver.apply()?;
        Ok(saver)
    }

    /// Leaves the cells as the durable manifest names them. What was prepared for one that did not
    /// come to be is given up.
    pub(crate) fn keep(&mut self) -> CellsMark {
        self.give_up();
        self.current
    }

    /// Writes what has changed, so that the first `cells` cells can be had as they are. Nothing of
    /// the state before is touched; after a failure it may be called again.
    pub(crate) fn prepare(&mut self, epoch: u64, cells: u64) -> Result<CellsMark> {
        self.give_up();
        self.apply()?;
        let pages = cells.div_ceil(CELLS as u64).max(self.current.pages);
        let mut dirty = Vec::new();
        let written = self.write(epoch, pages, &mut dirty);
        let mark = CellsMark { epoch, pages, redo: dirty.len() as u64 };
        self.prepared = Some(Prepared { mark, pages: dirty });
        if let Err(error) = written {
            self.give_up();
            return Err(error);
        }
        Ok(mark)
    }

    /// To be called when the manifest with the prepared mark is durable. After a failure the cells
    /// are as good as before: the next save tries again, and so does opening.
    pub(crate) fn confirm(&mut self) -> Result<()> {
        if let Some(Prepared { mark, .. }) = self.prepared.take() {
            self.current = mark;
            self.unapplied = mark.redo > 0;
            self.cells.saved.store(mark.pages, Release);
        }
        self.apply()
    }

    /// Makes the pages of a save that came to nothing dirty again.
    fn give_up(&mut self) {
        for number in self.prepared.take().into_iter().flat_map(|prepared| prepared.pages) {
            if let Some(page) = self.cells.present(number) {
                page.set_dirty();
            }
        }
    }

    fn write(&mut self, epoch: u64, pages: u64, dirty: &mut Vec<u64>) -> Result<()> {
        if self.current.pages < pages {
            self.write_new(pages)?;
        }
        for number in 0..self.current.pages.min(pages) {
            let page = self.cells.present(number);
            if page.is_some_and(|page| page.dirty.swap(false, Ordering::Relaxed)) {
                dirty.push(number);
            }
        }
        if !dirty.is_empty() {
            self.names_changed = true;
            self.write_redo(epoch, dirty)?;
        }
        if self.names_changed {
            self.cells.storage.sync_dir()?;
            self.names_changed = false;
        }
        Ok(())
    }

    /// Writes the pages behind the saved ones to their places.
    fn write_new(&mut self, pages: u64) -> Result<()> {
        let Cells { storage, identity, file, .. } = &*self.cells;
        if file.get().is_none() {
            self.names_changed = true;
            let (name, id) = (identity.head_name(), identity.file_id(0));
            PageFileWriter::create(storage.as_ref(), &name, identity.kind, id)?.finish()?;
            let _ = file.set(storage.open(&name, Access::Write, Caching::Buffered)?);
        }
        let file = file.get().expect("set above");
        let (mut gather, mut at) = (Vec::with_capacity(GATHER), self.current.pages);
        for number in self.current.pages..pages {
            let mut image = [0; PAGE_LEN];
            let cells = image.get_mut(..CELLS_LEN).expect("a page holds its cells");
            match self.cells.present(number) {
                Some(page) => {
                    page.dirty.store(false, Ordering::Relaxed);
                    page.encode(cells);
                }
                None => cells.fill(0xff),
            }
            seal_page(&mut image, identity.file_id(0), PageNumber(number + 1));
            gather.extend_from_slice(&image);
            if gather.len() >= GATHER || number + 1 == pages {
                file.write_at(PageNumber(at + 1).offset(), &gather)?;
                gather.clear();
                at = number + 1;
            }
        }
        Ok(file.sync()?)
    }

    fn write_redo(&self, epoch: u64, dirty: &[u64]) -> Result<()> {
        let Cells { storage, identity, .. } = &*self.cells;
        let (name, id) = (identity.redo_name(epoch), identity.file_id(epoch));
        let mut redo = PageFileWriter::create(storage.as_ref(), &name, identity.kind, id)?;
        for number in dirty {
            let mut payload = [0; PAGE_PAYLOAD_LEN];
            let (head, cells) = payload.split_at_mut(NUMBER_LEN);
            head.copy_from_slice(&number.to_le_bytes());
            if let Some(page) = self.cells.present(*number) {
                page.encode(cells.get_mut(..CELLS_LEN).expect("a page holds its cells"));
            }
            redo.push(&payload)?;
        }
        redo.finish()?;
        Ok(())
    }

    /// Copies the pages of the current redo file to their places and removes it. May be repeated.
    fn apply(&mut self) -> Result<()> {
        if !self.unapplied {
            return Ok(());
        }
        let Cells { storage, identity, file, .. } = &*self.cells;
        let CellsMark { epoch, pages, redo } = self.current;
        let name = identity.redo_name(epoch);
        let identified = (identity.kind, identity.file_id(epoch));
        let source = PageFile::open(storage.as_ref(), &name, identified, redo.saturating_add(1))?;
        let file = file
            .get()
            .ok_or_else(|| self.bad_mark("a redo file without a head file; restore it"))?;
        for index in 1..=redo {
            let payload = source.resident(PageNumber(index))?;
            let number = payload.first_chunk().map_or(u64::MAX, |n| u64::from_le_bytes(*n));
            if number >= pages {
                return Err(self.bad_mark(
                    "a page of the redo file is behind the end of the head; restore it",
                ));
            }
            self.apply_page(file.as_ref(), number, payload.get(NUMBER_LEN..).unwrap_or_default())?;
        }
        file.sync()?;
        drop(source);
        storage.remove(&name)?;
        self.unapplied = false;
        Ok(())
    }

    fn apply_page(&self, file: &dyn File, number: u64, cells: &[u8]) -> Result<()> {
        let mut image = [0; PAGE_LEN];
        for (to, from) in image.iter_mut().zip(cells.iter().take(CELLS_LEN)) {
            *to = *from;
        }
        let place = PageNumber(number + 1);
        seal_page(&mut image, self.cells.identity.file_id(0), place);
        let at: FileOffset = place.offset();
        Ok(file.write_at(at, &image)?)
    }

    fn bad_mark(&self, what: &'static str) -> Error {
        Error::BadMark { table: self.cells.identity.table.clone(), what }
    }
}
