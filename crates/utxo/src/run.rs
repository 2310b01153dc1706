//! An immutable sorted file of entries, open for reading.
//!
//! In memory a run has its directory and its filter. A lookup asks the filter, then the directory,
//! which names one page; reading that page, by the map or by a batch of reads, is another step and
//! the caller's choice ([`Access`]). `run_writer` draws the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use varve_io::{
    AlignedBuffer, Checksum, FormatError, PAGE_PAYLOAD_LEN, PageFile, PageNumber, ReadRequest,
    Storage,
};
use varve_types::Outpoint;

use crate::cursor::Cursor;
use crate::directory::{Directory, LeafNumber};
use crate::filter::Filter;
use crate::footer::{Footer, RunNumber, Span, section_pages};
use crate::hasher::OutpointHasher;
use crate::packed::PackedCoin;
use crate::page::{Leaf, Spill};
use crate::page_stream::{AHEAD, PageStream};
use crate::residence::Residence;
use crate::run_error::RunError;
use crate::run_writer::{KIND, StoreKey};
use crate::sequence::Sequence;

/// An entry with its coin still packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The coin's place.
    pub outpoint: Outpoint,
    /// The step that created the coin.
    pub birth: Sequence,
    /// The coin that is added, or `None` when it is deleted.
    pub coin: Option<PackedCoin<'a>>,
}

/// How lookups read a run's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Through the map: right for what is in the page cache, five times faster there.
    Mapped,
    /// By a batch of reads past the cache: right for what is not, all of a block at once.
    Direct,
}

/// What the manifest and the compaction know about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// The number of the file.
    pub number: RunNumber,
    /// The steps whose changes it holds.
    pub span: Span,
    /// The number of coins added.
    pub adds: u64,
    /// The number of coins deleted from older runs.
    pub deletes: u64,
    /// The length of the file in pages.
    pub pages: u64,
    /// The checksum over the whole content.
    pub digest: u32,
}

/// A run.
#[derive(Debug)]
pub struct Run {
    file: Arc<PageFile>,
    path: PathBuf,
    hasher: OutpointHasher,
    footer: Footer,
    directory: Directory,
    filter: Filter,
    residence: Residence,
}

impl Run {
    pub(crate) fn assemble(
        (file, path): (PageFile, PathBuf),
        hasher: OutpointHasher,
        footer: Footer,
        (directory, filter): (Directory, Filter),
    ) -> Self {
        let (file, residence) = (Arc::new(file), Residence::new());
        Self { file, path, hasher, footer, directory, filter, residence }
    }

    /// Opens the run that the manifest describes. Reads the directory and the filter.
    pub fn open(storage: &dyn Storage, key: &StoreKey, info: &RunInfo) -> Result<Self, RunError> {
        let name = info.number.file_name();
        let path = storage.path().join(&name);
        let id = key.file_id(info.number);
        let file = Arc::new(PageFile::open(storage, &name, (KIND, id), info.pages)?);
        let own = info.pages.saturating_sub(1);
        let at = |page: u64| PageNumber(page).offset();
        let mut last = PageStream::new(Arc::clone(&file), own..info.pages, AHEAD);
        let footer = match last.next()? {
            Some((_, payload)) => Footer::decode(payload, own),
            None => Err(FormatError::Damaged { at: 0, what: "a run has no page" }),
        };
        let footer = footer.map_err(|error| error.in_file(&path, at(own)))?;
        let section = |first: u64, len: u64| read_section(&file, first, len);
        let bytes = section(footer.directory_page(), footer.directory.encoded_len())?;
        let directory = Directory::decode(&bytes, footer.directory);
        let directory =
            directory.map_err(|error| error.in_file(&path, at(footer.directory_page())))?;
        let bytes = section(footer.filter_page(), footer.filter_len)?;
        let filter = Filter::decode(bytes, footer.chunks, footer.width);
        let filter = filter.map_err(|error| error.in_file(&path, at(footer.filter_page())))?;
        let residence = Residence::new();
        let hasher = key.secret.hasher();
        let run = Self { file, path, hasher, footer, directory, filter, residence };
        if run.footer.store != key.id || run.info() != *info {
            return Err(run.damage(PageNumber(own), 0, "this is not the run of the manifest"));
        }
        let leaves = run.footer.directory.leaves;
        let end = leaves.checked_sub(1).map_or(0, |last| run.directory.page(LeafNumber(last)).0);
        if end != run.footer.data_pages {
            let page = PageNumber(run.footer.directory_page());
            return Err(run.damage(page, 0, "the directory does not end with the last leaf"));
        }
        Ok(run)
    }

    /// What the manifest keeps about this run.
    #[must_use]
    pub fn info(&self) -> RunInfo {
        let Footer { number, span, adds, deletes, digest, .. } = self.footer;
        RunInfo { number, span, adds, deletes, pages: self.file.pages(), digest }
    }

    /// The file, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of memory that directory and filter take.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.directory.memory() + self.filter.memory()
    }

    /// How lookups read this run's pages now.
    #[must_use]
    pub fn access(&self) -> Access {
        self.residence.access()
    }

    /// Decides how lookups from now on read this run's pages, where otherwise it is measured
    /// (`residence`); both ways give the same answers.
    pub fn set_access(&self, access: Access) {
        self.residence.fix(access);
    }

    /// Asks whether a page that is about to be looked at is in memory.
    pub(crate) fn probe(&self, page: PageNumber) {
        if self.residence.is_measured() {
            // A file that cannot be mapped will say so when it is read.
            self.residence.note(self.file.is_cached(page).unwrap_or(false));
        }
    }

    /// All entries in order, read once from the disk, in bounded memory.
    pub fn cursor(self: &Arc<Self>) -> Result<Cursor, RunError> {
        Cursor::new(Arc::clone(self), AHEAD)
    }

    /// Reads everything and compares it with all checksums.
    pub fn verify(&self) -> Result<(), RunError> {
        let own = self.footer.own_page();
        let mut stream = PageStream::new(Arc::clone(&self.file), 1..own, AHEAD);
        let mut digest = Checksum::new();
        while let Some((_, payload)) = stream.next()? {
            digest = digest.with(payload);
        }
        if digest.get() == self.footer.digest {
            return Ok(());
        }
        Err(self.damage(PageNumber(own), 96, "the run's digest is wrong"))
    }

    /// Brings the run's pages into the page cache, reading the map from front to back.
    pub fn warm(&self) -> Result<(), RunError> {
        for page in 1..=self.footer.data_pages {
            self.file.resident(PageNumber(page))?;
        }
        Ok(())
    }

    pub(crate) const fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(crate) const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The page that can hold `outpoint`, without reading it; `None` when it is surely not here.
    #[must_use]
    pub fn query(&self, outpoint: &Outpoint) -> Option<PageNumber> {
        let mut may = [false];
        let hash = self.hasher.hash(outpoint).bits();
        self.filter.ask(&mut 0, (std::slice::from_ref(outpoint), &[hash]), &mut may);
        if may == [false] {
            return None;
        }
        self.directory.locate(outpoint).map(|leaf| self.directory.page(leaf))
    }

    /// The pages that hold leaves and spilled coins.
    pub(crate) fn data_stream(&self, ahead: u64) -> PageStream {
        PageStream::new(Arc::clone(&self.file), 1..self.footer.directory_page(), ahead)
    }

    /// The payload of a page, from the map.
    #[inline]
    pub(crate) fn resident(&self, page: PageNumber) -> Result<&[u8], RunError> {
        Ok(self.file.resident(page)?)
    }

    /// The payload of a page that was read.
    pub(crate) fn verified<'a>(
        &self,
        page: PageNumber,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], RunError> {
        Ok(self.file.verify(page, bytes)?)
    }

    /// A payload of this run as a leaf.
    #[inline]
    pub(crate) fn leaf<'a>(
        &self,
        page: PageNumber,
        payload: &'a [u8],
    ) -> Result<Leaf<'a>, RunError> {
        Leaf::parse(payload).map_err(|error| self.in_page(page, error))
    }

    pub(crate) fn request(
        &self,
        page: PageNumber,
        tag: u64,
        buffer: AlignedBuffer,
    ) -> Result<ReadRequest, RunError> {
        Ok(self.file.request(page, tag, buffer)?)
    }

    /// Appends the packed bytes of a spilled coin, from the map. `page` is the leaf that refers to
    /// it.
    pub(crate) fn read_spill(
        &self,
        page: PageNumber,
        spill: Spill,
        out: &mut Vec<u8>,
    ) -> Result<(), RunError> {
        let end = spill.first.checked_add(section_pages(spill.len));
        let inside = end.filter(|end| spill.first > 0 && *end <= page.0);
        let Some(end) = inside else {
            return Err(self.damage(page, 0, "a spilled coin is outside the run"));
        };
        let mut left = spill.len;
        for number in spill.first..end {
            let payload = self.file.resident(PageNumber(number))?;
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(PAGE_PAYLOAD_LEN);
            out.extend_from_slice(payload.get(..part).unwrap_or_default());
            left -= part as u64;
        }
        Ok(())
    }

    /// What a decoder found in a page, as an error of this file.
    pub(crate) fn in_page(&self, page: PageNumber, error: FormatError) -> RunError {
        error.in_file(&self.path, page.offset()).into()
    }

    pub(crate) fn damage(&self, page: PageNumber, at: usize, what: &'static str) -> RunError {
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
