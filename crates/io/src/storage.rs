//! The seam: a directory of files, in two small traits.
//!
//! Everything above this crate holds an `Arc<dyn Storage>` and never a path, so a test can replace
//! the disk by the storage that crashes, fails and corrupts. Both keep this contract:
//!
//! 1. **Data** written with [`File::write_at`] is seen by every reader at once and survives a crash
//!    only after [`File::sync`] on that file returned. Before that, any subset of its 512-byte
//!    sectors may survive.
//! 2. **Names**: a created, renamed or removed file is seen at once and survives a crash only after
//!    [`Storage::sync_dir`] on its directory returned, even when its data was synced. A rename is
//!    atomic: after a crash the target is the old file or the new one.
//! 3. **Failure**: after a failed sync, or a failed write for another reason than a full disk, the
//!    content of the disk is unknown. The storage is *poisoned*: every later change returns
//!    [`Error::Poisoned`] with the first cause until the store is opened again. A sync is never
//!    tried twice, because the kernel may have dropped the dirty pages after the first failure and
//!    would answer "done". A full disk does not poison: what was written before stays valid.
//! 4. **Inheritance**: a process that finds files left by an earlier one sees what was written,
//!    synced or not. It calls [`Storage::sync_dir`] once before it builds on them, or a later power
//!    cut may take away what it has already acted on. ([`Segments`](crate::Segments) does so by
//!    itself.)
//! 5. **Maps**: bytes under a live [`Map`] do not change. Writing into them or cutting the file
//!    below their end is refused; removing or replacing the file is fine, the map keeps the old
//!    file.
//!
//! Poison is shared by a storage, all its files and all its subdirectories: they lie on one disk.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lock::LockGuard;
use crate::map::Map;
use crate::offset::FileOffset;

/// A directory.
///
/// ```
/// use std::sync::Arc;
/// use varve_io::{Access, Caching, Disk, FileOffset, Storage};
///
/// # fn main() -> varve_io::Result<()> {
/// let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path())?);
/// let file = storage.open("greeting", Access::Create, Caching::Buffered)?;
/// file.write_at(FileOffset::ZERO, b"hello")?;
/// file.sync()?; // the bytes will survive a crash
/// storage.sync_dir()?; // and so will the name
///
/// let mut bytes = [0; 5];
/// file.read_at(FileOffset::ZERO, &mut bytes)?;
/// assert_eq!(&bytes, b"hello");
/// # Ok(())
/// # }
/// ```
pub trait Storage: Debug + Send + Sync {
    /// Where this is, for messages.
    fn path(&self) -> &Path;

    /// Opens or creates one file.
    fn open(&self, name: &str, access: Access, caching: Caching) -> Result<Arc<dyn File>>;

    /// Renames the file `from` to `to`, atomically replacing a file of that name.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file's name. Open files and maps of it stay usable.
    fn remove(&self, name: &str) -> Result<()>;

    /// The names of all files (not directories), sorted.
    fn list(&self) -> Result<Vec<String>>;

    /// The names of all other entries, sorted: directories, symbolic links, and files whose names
    /// are not UTF-8 (shown with replacement characters).
    fn list_others(&self) -> Result<Vec<String>>;

    /// Makes all name changes so far durable.
    fn sync_dir(&self) -> Result<()>;

    /// A subdirectory, created durably when missing, sharing this storage's poison.
    fn directory(&self, name: &str) -> Result<Arc<dyn Storage>>;

    /// Locks the directory for this opener alone, until the guard is dropped.
    fn lock(&self) -> Result<LockGuard>;
}

/// An open file. All methods take `&self`; positions are explicit, there is no cursor.
pub trait File: Debug + Send + Sync {
    /// Where this is, for messages.
    fn path(&self) -> &Path;

    /// The length in bytes.
    fn size(&self) -> Result<u64>;

    /// Fills `bytes` from `offset` on. A file that ends before that is an error.
    fn read_at(&self, offset: FileOffset, bytes: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`, growing the file as needed. After an error any part of
    /// the range may hold old bytes, new bytes or zeroes.
    fn write_at(&self, offset: FileOffset, bytes: &[u8]) -> Result<()>;

    /// Cuts the file to `len` or extends it with zeroes.
    fn truncate(&self, len: FileOffset) -> Result<()>;

    /// Makes the data and the length durable.
    fn sync(&self) -> Result<()>;

    /// Maps `len` bytes from `offset` on, which must be written and will not change again.
    fn map(&self, offset: FileOffset, len: u64) -> Result<Map>;

    /// The descriptor a ring may read from; `None` when the bytes are not behind one. A read that
    /// is `aligned` (offset, length and memory, to [`BLOCK`](crate::BLOCK)) may go past the cache.
    fn descriptor(&self, aligned: bool) -> Option<BorrowedFd<'_>>;
}

/// How an opener uses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read an existing file.
    Read,
    /// Read and write an existing file.
    Write,
    /// Read and write a file that does not exist yet.
    Create,
    /// Read and write an empty file, cutting one that exists.
    Replace,
}

impl Access {
    /// True when the file may be changed through this opening.
    #[must_use]
    pub(crate) const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// Whether aligned reads and writes go through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Through the page cache.
    Buffered,
    /// Past the page cache (`O_DIRECT`), for cold reads and bulk writes. Unaligned transfers, and
    /// all transfers on a filesystem without `O_DIRECT`, go through the cache.
    Direct,
}

/// Refuses names that would leave the directory.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    if plain { Ok(()) } else { Err(Error::BadName { name: name.to_owned() }) }
}
