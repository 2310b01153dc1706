//! Read-only maps of bytes that will never change again.
//!
//! A [`Map`] is a reference-counted view: cloning it and cutting a part out of it copy nothing, and
//! the file stays mapped until the last of them is dropped. The bytes are lent for as long as the
//! `Map` is borrowed, so a slice cannot outlive its map:
//!
//! ```compile_fail
//! # fn f(file: &dyn varve_io::File) -> varve_io::Result<()> {
//! let slice: &[u8] = {
//!     let map = file.map(varve_io::FileOffset::ZERO, 100)?;
//!     &map[..10]
//! }; // the map is dropped here, the slice does not compile
//! # let _ = slice; Ok(())
//! # }
//! ```
//!
//! Three things keep mapped bytes from changing: the seam refuses writes and truncation under a
//! live map (`held`), the directory lock keeps other processes of ours out, and nothing is ever
//! mapped for writing. If the file is nevertheless truncated from outside, or its disk fails, the
//! access faults and `fault` ends the process with a message.

#![expect(unsafe_code, reason = "asks the system for a memory map")]

use std::fmt;
use std::fs;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use memmap2::{Advice, Mmap, MmapOptions};

use crate::buffer::BLOCK;
use crate::error::{Error, Result};
use crate::fault;
use crate::held::{HeldRanges, Hold};
use crate::offset::FileOffset;

/// Bytes of a file, in memory, immutable and shared.
///
/// ```
/// use varve_io::{Access, Caching, Disk, FileOffset, Storage};
///
/// # fn main() -> varve_io::Result<()> {
/// let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage = Disk::open(dir.path())?;
/// let file = storage.open("sealed", Access::Create, Caching::Buffered)?;
/// file.write_at(FileOffset::ZERO, b"one two three")?;
///
/// let map = file.map(FileOffset::ZERO, 13)?;
/// let word = map.slice(4..7).expect("the range lies inside");
/// drop(map); // the word keeps the file mapped
/// assert_eq!(&word[..], b"two");
/// assert!(file.truncate(FileOffset::ZERO).is_err(), "and the file as it is");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Map {
    backing: Arc<Backing>,
    part: Range<usize>,
}

/// Who owns the bytes. Fields are dropped in this order: a range must leave the fault registry
/// while it is still mapped; and the hold must go while the mapping keeps the file alive, for
/// after that a new file may have its inode, by which holds are found.
enum Backing {
    File { _registration: fault::Registration, _hold: Hold, bytes: Mmap },
    Memory { bytes: Vec<u8>, _hold: Option<Hold> },
}

impl Backing {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::File { bytes, .. } => bytes,
            Self::Memory { bytes, .. } => bytes,
        }
    }
}

impl Map {
    /// Maps `len` bytes of `file` from `offset` on. `held` are the file's held ranges, `path` is
    /// for messages.
    pub(crate) fn of_file(
        file: &fs::File,
        path: &Path,
        held: &Arc<HeldRanges>,
        offset: FileOffset,
        len: u64,
    ) -> Result<Self> {
        let end = offset.plus(len);
        let size = usize::try_from(len).map_err(|_| Error::TooLarge {
            path: path.to_path_buf(),
            len,
            limit: u64::MAX,
        })?;
        if size == 0 {
            return Ok(Self::of_memory(Vec::new(), None));
        }
        let (bytes, hold) = held.hold(offset.get()..end.get(), || {
            let metadata = file.metadata().map_err(|e| Error::from_io("measure", path, e))?;
            if metadata.len() < end.get() {
                let len = FileOffset::new(metadata.len());
                return Err(Error::UnexpectedEnd { path: path.to_path_buf(), len, wanted: end });
            }
            // SAFETY: the mapped bytes must not change while the map lives. `held` refuses every
            // change of this range through the seam, on this and every other opening of the file,
            // until the hold made here is dropped, which happens when the last `Map` is dropped;
            // all writes of the process go through the seam; other processes are kept out by the
            // directory lock. The range lies inside the file, checked above under the same lock
            // that cuts take.
            unsafe { MmapOptions::new().offset(offset.get()).len(size).map(file) }
                .map_err(|e| Error::from_io("map", path, e))
        })?;
        let registration = fault::register(&bytes, path, offset);
        let part = 0..bytes.len();
        let backing = Backing::File { _registration: registration, _hold: hold, bytes };
        Ok(Self { backing: Arc::new(backing), part })
    }

    /// A map of bytes that are in memory already.
    pub(crate) fn of_memory(bytes: Vec<u8>, hold: Option<Hold>) -> Self {
        let part = 0..bytes.len();
        Self { backing: Arc::new(Backing::Memory { bytes, _hold: hold }), part }
    }

    /// Whether all of `range` is in memory now, so that reading it does not wait for the disk.
    /// False when it reaches outside, or when the system does not say.
    #[must_use]
    pub fn is_cached(&self, range: Range<usize>) -> bool {
        let Some(bytes) = self.get(range).filter(|bytes| !bytes.is_empty()) else { return false };
        if matches!(*self.backing, Backing::Memory { .. }) {
            return true;
        }
        // Maps begin on a page of the system, so the page of the first byte lies in the map.
        let start = bytes.as_ptr().map_addr(|address| address & !(BLOCK - 1));
        let len = bytes.len() + (bytes.as_ptr().addr() - start.addr());
        let mut pages = vec![0_u8; len.div_ceil(BLOCK)];
        // SAFETY: `start` is page-aligned and `len` bytes from there on are mapped for as long as
        // `self` is borrowed; `pages` has one byte for each page that they touch. Nothing else is
        // written.
        let answer = unsafe { libc::mincore(start.cast_mut().cast(), len, pages.as_mut_ptr()) };
        answer == 0 && pages.iter().all(|page| page & 1 == 1)
    }

    /// Advises the system that reads will be random. Without that it reads megabytes around every
    /// page that is not in memory.
    pub fn expect_random_access(&self) {
        if let Backing::File { bytes, .. } = &*self.backing {
            // A hint: nothing depends on it.
            let _ = bytes.advise(Advice::Random);
        }
    }

    /// Advises the system that the whole map is about to be read from front to back.
    pub fn expect_sequential_access(&self) {
        if let Backing::File { bytes, .. } = &*self.backing {
            // A hint, as above.
            let _ = bytes.advise(Advice::Sequential);
        }
    }

    /// A part of this map, sharing its memory; `None` when `range` reaches outside.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.part.len() {
            return None;
        }
        let start = self.part.start + range.start;
        let part = start..start + range.len();
        Some(Self { backing: Arc::clone(&self.backing), part })
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.backing.bytes().get(self.part.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("len", &self.part.len()).finish_non_exhaustive()
    }
}
