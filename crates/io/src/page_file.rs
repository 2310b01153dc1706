//! A sealed file of pages: written once from front to back, then only read.
//!
//! ```text
//!  page 0            page 1 … n
//!  ┌───────────────┬───────────────┬──
//!  │ header page   │ the owner's   │ …     all sealed as `page` says, with the file's id
//!  └───────────────┴───────────────┴──
//!
//!  header page
//!  0        8        12       16       24              40                4092  4096
//!  ┌────────┬────────┬────────┬────────┬───────────────┬─────────────────┬─────┐
//!  │ magic  │ version│ zero   │ kind   │ file id       │ zero            │ crc │
//!  │VARVEPAG│ u32 = 1│ u32    │ 8 bytes│ 16 bytes      │                 │     │
//!  └────────┴────────┴────────┴────────┴───────────────┴─────────────────┴─────┘
//! ```
//!
//! The writer gathers 1 MiB and writes it past the page cache: bulk data would evict hot pages.
//! [`PageFileWriter::finish`] syncs; the file is part of the store once its name is durable and a
//! manifest lists it with its number of pages, which is up to the owner.
//!
//! A reader has two ways to a page, and both verify it. [`PageFile::resident`] lends it from a
//! map, checked on first touch (one bit per page remembers). [`PageFile::request`] makes a read
//! for a [`BatchReader`](crate::BatchReader), so that the pages of many files go to the disk in
//! one submission, and [`PageFile::verify`] checks what comes back, every time.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::bitmap::Bitmap;
use crate::buffer::AlignedBuffer;
use crate::checksum::Kind;
use crate::error::{Error, FormatError, Result};
use crate::fields::{array, put, u32_at};
use crate::map::Map;
use crate::offset::FileOffset;
use crate::page::{FileId, PAGE_LEN, PAGE_PAYLOAD_LEN, PageNumber, seal_page, verify_page};
use crate::reader::ReadRequest;
use crate::storage::{Access, Caching, File, Storage};

const MAGIC: [u8; 8] = *b"VARVEPAG";
const VERSION: u32 = 1;

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = MAGIC_AT + size_of::<[u8; 8]>();
const ZERO_AT: usize = VERSION_AT + size_of::<u32>();
const KIND_AT: usize = ZERO_AT + size_of::<u32>();
const FILE_ID_AT: usize = KIND_AT + size_of::<Kind>();
const HEADER_END: usize = FILE_ID_AT + size_of::<FileId>();
const _: () = assert!(HEADER_END == 40 && HEADER_END <= PAGE_PAYLOAD_LEN);

/// Pages are gathered up to this much before they are written.
const GATHER: usize = 1 << 20;
const _: () = assert!(GATHER.is_multiple_of(PAGE_LEN));

/// Builds the header page.
fn header_page(kind: Kind, file: FileId) -> [u8; PAGE_LEN] {
    let mut page = [0; PAGE_LEN];
    put(&mut page, MAGIC_AT, &MAGIC);
    put(&mut page, VERSION_AT, &VERSION.to_le_bytes());
    put(&mut page, KIND_AT, &kind.0);
    put(&mut page, FILE_ID_AT, &file.0);
    seal_page(&mut page, file, PageNumber(0));
    page
}

/// Verifies the header page of a file that must hold `kind` and be `file`.
pub fn verify_header_page(bytes: &[u8], kind: Kind, file: FileId) -> Result<(), FormatError> {
    if array(bytes, MAGIC_AT) != MAGIC {
        return Err(FormatError::damaged(MAGIC_AT, "this is not a page file"));
    }
    if array(bytes, FILE_ID_AT) != file.0 {
        return Err(FormatError::damaged(FILE_ID_AT, "this is another file"));
    }
    verify_page(bytes, file, PageNumber(0))?;
    let version = u32_at(bytes, VERSION_AT);
    if version != VERSION {
        return Err(FormatError::Version { found: version, supported: VERSION });
    }
    if u32_at(bytes, ZERO_AT) != 0 {
        return Err(FormatError::damaged(ZERO_AT, "the reserved bytes are not zero"));
    }
    if array(bytes, KIND_AT) != kind.0 {
        return Err(FormatError::damaged(KIND_AT, "the file holds another kind of data"));
    }
    Ok(())
}

/// Writes a page file from front to back.
///
/// ```
/// use std::sync::Arc;
/// use varve_io::{Disk, FileId, Kind, PageFileWriter, Storage};
/// # fn main() -> varve_io::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage = Disk::open(dir.path())?;
/// let (kind, id) = (Kind(*b"EXAMPLE\0"), FileId([1; 16]));
/// let mut writer = PageFileWriter::create(&storage, "run-1", kind, id)?;
/// let page = writer.push(b"first page")?;
/// let file = writer.finish()?; // data synced
/// storage.sync_dir()?; // name synced: now a manifest may name it
/// assert_eq!(&file.resident(page)?[..10], b"first page");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PageFileWriter {
    file: Arc<dyn File>,
    id: FileId,
    gather: AlignedBuffer,
    gathered: usize,
    written: FileOffset,
}

impl PageFileWriter {
    /// Begins the file `name`, replacing what an unfinished attempt may have left there.
    pub fn create(storage: &dyn Storage, name: &str, kind: Kind, id: FileId) -> Result<Self> {
        let file = storage.open(name, Access::Replace, Caching::Direct)?;
        let gather = AlignedBuffer::zeroed(GATHER);
        let mut writer = Self { file, id, gather, gathered: 0, written: FileOffset::ZERO };
        put(&mut writer.gather, 0, &header_page(kind, id));
        writer.gathered = PAGE_LEN;
        Ok(writer)
    }

    /// Adds a page with `payload`, padded with zeroes, and returns its number.
    pub fn push(&mut self, payload: &[u8]) -> Result<PageNumber> {
        if payload.len() > PAGE_PAYLOAD_LEN {
            let path = self.file.path().to_path_buf();
            let (len, limit) = (payload.len() as u64, PAGE_PAYLOAD_LEN as u64);
            return Err(Error::TooLarge { path, len, limit });
        }
        if self.gathered == GATHER {
            self.flush()?;
        }
        let at = self.written.get() + self.gathered as u64;
        let number = PageNumber(at / PAGE_LEN as u64);
        let page = self.gather.get_mut(self.gathered..).and_then(|rest| rest.first_chunk_mut());
        let page: &mut [u8; PAGE_LEN] = page.expect("flushed above when full");
        page.fill(0);
        put(page, 0, payload);
        seal_page(page, self.id, number);
        self.gathered += PAGE_LEN;
        Ok(number)
    }

    fn flush(&mut self) -> Result<()> {
        let bytes = self.gather.get(..self.gathered).unwrap_or_default();
        self.file.write_at(self.written, bytes)?;
        self.written = self.written.plus(self.gathered as u64);
        self.gathered = 0;
        Ok(())
    }

    /// Writes the rest and syncs the data. The name is the caller's to sync.
    pub fn finish(mut self) -> Result<PageFile> {
        self.flush()?;
        self.file.sync()?;
        let pages = self.written.get() / PAGE_LEN as u64;
        Ok(PageFile::new(self.file, self.id, pages))
    }
}

/// A sealed page file.
pub struct PageFile {
    file: Arc<dyn File>,
    id: FileId,
    pages: u64,
    map: OnceLock<Map>,
    verified: OnceLock<Bitmap>,
}

impl PageFile {
    fn new(file: Arc<dyn File>, id: FileId, pages: u64) -> Self {
        Self { file, id, pages, map: OnceLock::new(), verified: OnceLock::new() }
    }

    /// Opens the file `name`, which must be `id`, hold `kind` and have exactly `pages` pages, its
    /// header page included.
    pub fn open(
        storage: &dyn Storage,
        name: &str,
        (kind, id): (Kind, FileId),
        pages: u64,
    ) -> Result<Self> {
        let file = storage.open(name, Access::Read, Caching::Direct)?;
        let (len, wanted) = (file.size()?, PageNumber(pages).offset());
        let path = || file.path().to_path_buf();
        if len < wanted.get() {
            return Err(Error::UnexpectedEnd { path: path(), len: FileOffset::new(len), wanted });
        }
        if len > wanted.get() {
            let what = "the file is longer than it was written";
            return Err(Error::Corrupt { path: path(), offset: wanted, what });
        }
        let mut header = AlignedBuffer::zeroed(PAGE_LEN);
        file.read_at(FileOffset::ZERO, &mut header)?;
        let checked = verify_header_page(&header, kind, id);
        checked.map_err(|error| error.in_file(file.path(), FileOffset::ZERO))?;
        Ok(Self::new(file, id, pages))
    }

    /// The number of pages, header page included.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// The payload of a page, lent from the file's map and verified on first touch.
    pub fn resident(&self, number: PageNumber) -> Result<&[u8]> {
        let map = self.map()?;
        let start = usize::try_from(number.offset().get()).ok();
        let page = start.and_then(|start| map.get(start..)?.first_chunk::<PAGE_LEN>());
        let page = page.ok_or_else(|| self.outside(number))?;
        let verified = self.verified.get_or_init(|| Bitmap::new(self.pages));
        if verified.get(number.0) {
            return Ok(page.get(..PAGE_PAYLOAD_LEN).unwrap_or_default());
        }
        let payload = self.verify(number, page)?;
        verified.set(number.0);
        Ok(payload)
    }

    /// Whether the page is in memory now, so that [`PageFile::resident`] does not wait for the
    /// disk. Costs a system call.
    pub fn is_cached(&self, number: PageNumber) -> Result<bool> {
        let start = usize::try_from(number.offset().get()).unwrap_or(usize::MAX);
        Ok(self.map()?.is_cached(start..start.saturating_add(PAGE_LEN)))
    }

    /// Advises the system that resident pages will be read in no order: a page that is not in
    /// memory is then read alone, not with megabytes around it.
    pub fn expect_random_access(&self) -> Result<()> {
        self.map()?.expect_random_access();
        Ok(())
    }

    /// Advises the system that all pages are about to be read in order.
    pub fn expect_sequential_access(&self) -> Result<()> {
        self.map()?.expect_sequential_access();
        Ok(())
    }

    /// A read of one page into `buffer`, which must be [`PAGE_LEN`] long.
    pub fn request(
        &self,
        number: PageNumber,
        tag: u64,
        buffer: AlignedBuffer,
    ) -> Result<ReadRequest> {
        if number.0 >= self.pages {
            return Err(self.outside(number));
        }
        debug_assert_eq!(buffer.len(), PAGE_LEN, "a page is read whole");
        Ok(ReadRequest { tag, file: Arc::clone(&self.file), offset: number.offset(), buffer })
    }

    /// The payload of page `number`, whose bytes were read.
    pub fn verify<'a>(&self, number: PageNumber, page: &'a [u8]) -> Result<&'a [u8]> {
        let payload = verify_page(page, self.id, number);
        payload.map_err(|error| error.in_file(self.file.path(), number.offset()))
    }

    fn map(&self) -> Result<&Map> {
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        let map = self.file.map(FileOffset::ZERO, PageNumber(self.pages).offset().get())?;
        Ok(self.map.get_or_init(|| map))
    }

    fn outside(&self, number: PageNumber) -> Error {
        Error::UnexpectedEnd {
            path: self.file.path().to_path_buf(),
            len: PageNumber(self.pages).offset(),
            wanted: number.offset().plus(PAGE_LEN as u64),
        }
    }
}

impl fmt::Debug for PageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, pages, .. } = self;
        f.debug_struct("PageFile").field("path", &file.path()).field("pages", pages).finish()
    }
}

#[cfg(test)]
mod tests;
