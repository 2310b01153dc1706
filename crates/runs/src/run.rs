//! An immutable sorted file of rows, open for reading.
//!
//! In memory a run has its directory and its filter. A lookup asks the filter, then the directory,
//! which names the page; reading that page, through the map or in a batch, is a separate step
//! (`query`, [`Access`]). `run_writer` draws the file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use varve_io::{AlignedBuffer, Checksum, FormatError, PageFile, PageNumber, ReadRequest, Storage};

use crate::codec::Codec;
use crate::cursor::Cursor;
use crate::directory::{Directory, LeafNumber};
use crate::filter::Filter;
use crate::footer::{Footer, RunInfo, section_pages};
use crate::leaf_place::LeafPlace;
use crate::page_stream::{AHEAD, PageStream};
use crate::pages::Finished;
use crate::residence::Residence;
use crate::run_error::RunError;
use crate::store_key::StoreKey;

/// Pages read ahead by a cursor that may stop soon.
const AHEAD_OF_SCAN: u64 = 8;

/// How lookups read a run's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "test-suite"), expect(unreachable_pub, reason = "suites choose it"))]
pub enum Access {
    /// Through the map: for pages in the page cache, where it is five times faster.
    Mapped,
    /// By reads past the cache, all of a query in one batch: for pages that are not cached.
    Direct,
}

/// An open run: the file, its directory and its filter.
#[derive(Debug)]
pub struct Run<C: Codec> {
    file: Arc<PageFile>,
    path: PathBuf,
    footer: Footer,
    directory: Directory<C>,
    filter: Filter<C>,
    residence: Residence,
}

impl<C: Codec> Run<C> {
    pub(crate) fn assemble(finished: Finished<C>) -> Self {
        let Finished { file, path, footer, directory, filter } = finished;
        let residence = Residence::of(&file);
        let file = Arc::new(file);
        Self { file, path, footer, directory, filter, residence }
    }

    /// Opens the run that the manifest describes. Reads the directory and the filter.
    pub fn open(storage: &dyn Storage, key: &StoreKey, info: &RunInfo) -> Result<Self, C::Error> {
        let run = Self::load(storage, key, info)?;
        let own = PageNumber(run.own_page());
        if run.footer.store != key.id || run.info() != *info {
            return Err(run.damage(own, 0, "this is not the run of the manifest"));
        }
        let leaves = run.footer.directory.leaves;
        let end = leaves.checked_sub(1).map_or(0, |last| run.directory.page(LeafNumber(last)).0);
        if end != run.footer.data_pages {
            let page = PageNumber(run.footer.directory_page());
            return Err(run.damage(page, 0, "the directory does not end with the last leaf"));
        }
        Ok(run)
    }

    /// Loads directory and filter. The caller checks that it is the right run.
    fn load(storage: &dyn Storage, key: &StoreKey, info: &RunInfo) -> Result<Self, RunError> {
        let name = info.number.file_name();
        let path = storage.path().join(&name);
        let id = key.file_id(info.number);
        let file = Arc::new(PageFile::open(storage, &name, (C::KIND, id), info.pages)?);
        let own = info.pages.saturating_sub(1);
        let at = |page: u64| PageNumber(page).offset();
        let mut last = PageStream::new(Arc::clone(&file), own..info.pages, AHEAD);
        let footer = match last.next()? {
            Some((_, payload)) => Footer::decode(payload, own, C::KEY_LEN),
            None => Err(FormatError::Damaged { at: 0, what: "a run has no page" }),
        };
        let footer = footer.map_err(|error| error.in_file(&path, at(own)))?;
        let section = |first: u64, len: u64| read_section(&file, first, len);
        let len = footer.directory.encoded_len(C::KEY_LEN);
        let bytes = section(footer.directory_page(), len)?;
        let directory = Directory::decode(&bytes, footer.directory);
        let directory =
            directory.map_err(|error| error.in_file(&path, at(footer.directory_page())))?;
        let first = footer.filter_page(C::KEY_LEN);
        let bytes = section(first, footer.filter_len)?;
        let filter = Filter::decode(bytes, footer.chunks, footer.width);
        let filter = filter.map_err(|error| error.in_file(&path, at(first)))?;
        let residence = Residence::of(&file);
        Ok(Self { file, path, footer, directory, filter, residence })
    }

    const fn own_page(&self) -> u64 {
        self.footer.own_page(C::KEY_LEN)
    }

    /// What a manifest says about this run.
    #[must_use]
    pub fn info(&self) -> RunInfo {
        let Footer { number, span, adds, deletes, digest, .. } = self.footer;
        RunInfo { number, span, adds, deletes, pages: self.file.pages(), digest }
    }

    /// The path of the file, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of memory of directory and filter.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.directory.memory() + self.filter.memory()
    }

    /// How lookups currently read this run's pages.
    pub(crate) fn access(&self) -> Access {
        self.residence.access()
    }

    /// Fixes how lookups read this run's pages from now on, instead of measuring it (`residence`).
    /// Both ways give the same answers.
    #[cfg(feature = "test-suite")]
    pub fn set_access(&self, access: Access) {
        self.residence.fix(access);
    }

    /// Samples whether a page that is about to be read is in memory.
    pub(crate) fn probe(&self, page: PageNumber) {
        if self.residence.wants_probe() {
            // If the file cannot be mapped, reading it reports the error.
            self.residence.note(self.file.is_cached(page).unwrap_or(false));
        }
    }

    /// All rows in order, read once from the disk, in bounded memory.
    pub fn cursor(self: &Arc<Self>) -> Result<Cursor<C>, C::Error> {
        Cursor::new(Arc::clone(self), AHEAD)
    }

    /// The rows from this key on, in order. Reads little ahead, for scans that stop soon.
    pub(crate) fn cursor_from(self: &Arc<Self>, key: &C::Key) -> Result<Cursor<C>, C::Error> {
        Cursor::from(Arc::clone(self), key, AHEAD_OF_SCAN)
    }

    /// Reads the whole file and verifies every checksum.
    pub fn verify(&self) -> Result<(), C::Error> {
        let own = self.own_page();
        let mut stream = PageStream::new(Arc::clone(&self.file), 1..own, AHEAD);
        let mut digest = Checksum::new();
        while let Some((_, payload)) = stream.next().map_err(RunError::from)? {
            digest = digest.with(payload);
        }
        if digest.get() == self.footer.digest {
            return Ok(());
        }
        Err(self.damage(PageNumber(own), 96, "the run's digest is wrong"))
    }

    /// Brings the run's pages into the page cache if all of `parts`, the runs it was merged from,
    /// were cached: a merge must not make cached pages cold.
    pub(crate) fn warm_after(&self, parts: &[Arc<Self>]) -> Result<(), C::Error> {
        match parts.iter().all(|part| part.access() == Access::Mapped) {
            true => self.warm(),
            false => Ok(()),
        }
    }

    /// Brings the run's pages into the page cache by reading the map from front to back.
    pub fn warm(&self) -> Result<(), C::Error> {
        self.file.expect_sequential_access().map_err(RunError::from)?;
        for page in 1..=self.footer.data_pages {
            self.resident(PageNumber(page))?;
        }
        self.file.expect_random_access().map_err(RunError::from)?;
        Ok(())
    }

    /// The numbers of the leaves that may have rows of a key, where keys repeat. Empty when there
    /// is no such row.
    #[must_use]
    pub fn leaves(&self, key: &C::Key) -> Range<u32> {
        let last = self.directory.leaf(key, self.directory.bounds(key));
        last.map_or(0..0, |last| self.directory.leaves(key, last))
    }

    /// The payload of a leaf, from the map.
    pub fn leaf(&self, number: u32) -> Result<(&[u8], LeafPlace<'_, C>), C::Error> {
        let page = self.directory.page(LeafNumber(number));
        Ok((self.resident(page)?, LeafPlace::new(self, page)))
    }

    pub(crate) const fn directory(&self) -> &Directory<C> {
        &self.directory
    }

    pub(crate) const fn filter(&self) -> &Filter<C> {
        &self.filter
    }

    /// The pages from this leaf on: leaves and spilled bytes.
    pub(crate) fn data_stream(&self, from: LeafNumber, ahead: u64) -> PageStream {
        let first = if from.0 == 0 { 1 } else { self.directory.page(from).0 };
        PageStream::new(Arc::clone(&self.file), first..self.footer.directory_page(), ahead)
    }

    /// The payload of a page, from the map.
    #[inline]
    pub(crate) fn resident(&self, page: PageNumber) -> Result<&[u8], C::Error> {
        Ok(self.file.resident(page).map_err(RunError::from)?)
    }

    /// The payload of a page that was read.
    pub(crate) fn verified<'a>(
        &self,
        page: PageNumber,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], C::Error> {
        Ok(self.file.verify(page, bytes).map_err(RunError::from)?)
    }

    pub(crate) fn request(
        &self,
        page: PageNumber,
        tag: u64,
        buffer: AlignedBuffer,
    ) -> Result<ReadRequest, C::Error> {
        Ok(self.file.request(page, tag, buffer).map_err(RunError::from)?)
    }

    /// A decoder's error in a page, as an error that names this file.
    pub(crate) fn in_page(&self, page: PageNumber, error: FormatError) -> C::Error {
        RunError::from(error.in_file(&self.path, page.offset())).into()
    }

    pub(crate) fn damage(&self, page: PageNumber, at: usize, what: &'static str) -> C::Error {
        self.in_page(page, FormatError::Damaged { at, what })
    }
}

/// Reads a section of `len` bytes from page `first` on. The footer's parts fill the file exactly,
/// so `len` is below the file's length.
fn read_section(file: &Arc<PageFile>, first: u64, len: u64) -> Result<Vec<u8>, RunError> {
    let pages = first..first.saturating_add(section_pages(len));
    let mut stream = PageStream::new(Arc::clone(file), pages, AHEAD);
    let mut bytes = Vec::new();
    while let Some((_, payload)) = stream.next()? {
        bytes.extend_from_slice(payload);
    }
    bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    Ok(bytes)
}

#[cfg(test)]
mod tests;
