//! The real storage: a directory of the operating system.
//!
//! A file opened with [`Caching::Direct`] has two descriptors: one that goes past the page cache,
//! taken for transfers aligned to [`BLOCK`](crate::BLOCK), and a plain one for the rest. A
//! filesystem that refuses the direct one leaves only the plain one. `fdatasync` works on the
//! file, not on the descriptor, so one sync covers both.
//!
//! The ranges of a file that are under maps are kept per inode, for the whole process, so that a
//! second opening of the same file knows them. An inode number cannot be reused while its ranges
//! are in the table: the open file or the map that keeps them there keeps the inode alive too.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::buffer::is_aligned;
use crate::descriptors;
use crate::error::{Error, Result};
use crate::held::HeldRanges;
use crate::lock::{self, LockGuard};
use crate::map::Map;
use crate::offset::FileOffset;
use crate::poison::Poison;
use crate::storage::{Access, Caching, File, Storage, check_name};
use crate::transfer::{read_full, write_full};

/// A directory on a disk.
///
/// ```
/// use varve_io::{Disk, Storage};
/// # fn main() -> varve_io::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage = Disk::open(&dir.path().join("store"))?; // created when missing
/// let lock = storage.lock()?; // one opener at a time
/// assert!(storage.lock().is_err());
/// # drop(lock);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    poison: Poison,
}

impl Disk {
    /// Opens the directory `path`, creating it, and the ones above it, when missing.
    pub fn open(path: &Path) -> Result<Self> {
        descriptors::raise_limit();
        create_directory(path)?;
        Ok(Self { path: path.to_path_buf(), poison: Poison::default() })
    }

    fn join(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        Ok(self.path.join(name))
    }

    /// The names that `select` returns for the entries, sorted. A symbolic link is not a file.
    fn entries(&self, select: impl Fn(bool, OsString) -> Option<String>) -> Result<Vec<String>> {
        let failed = |e| Error::from_io("list", &self.path, e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_file = entry.file_type().map_err(failed)?.is_file();
            names.extend(select(is_file, entry.file_name()));
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Storage for Disk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str, access: Access, caching: Caching) -> Result<Arc<dyn File>> {
        if access.writes() {
            self.poison.check()?;
        }
        let path = self.join(name)?;
        let mut options = fs::OpenOptions::new();
        options.read(true).write(access.writes());
        match access {
            Access::Read | Access::Write => {}
            Access::Create => _ = options.create_new(true),
            // What a link points to is not ours to overwrite.
            Access::Replace => _ = options.create(true).custom_flags(libc::O_NOFOLLOW),
        }
        let file = options.open(&path).map_err(|e| Error::from_io("open", &path, e))?;
        let held = held_ranges(&file).map_err(|e| Error::from_io("measure", &path, e))?;
        let direct = match caching {
            Caching::Buffered => None,
            Caching::Direct => open_direct(&path, access)?,
        };
        let poison = self.poison.clone();
        let file = DiskFile { path, access, file, direct, held, poison };
        if access == Access::Replace {
            // Not with `O_TRUNC`: a live map of the old bytes must be able to refuse.
            file.truncate(FileOffset::ZERO)?;
        }
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.poison.check()?;
        let (from, to) = (self.join(from)?, self.join(to)?);
        fs::rename(&from, &to).map_err(|e| Error::from_io("rename", &from, e))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.poison.check()?;
        let path = self.join(name)?;
        fs::remove_file(&path).map_err(|e| Error::from_io("remove", &path, e))
    }

    fn list(&self) -> Result<Vec<String>> {
        // A name that is not text is not one of ours.
        self.entries(|is_file, name| name.into_string().ok().filter(|_| is_file))
    }

    fn list_others(&self) -> Result<Vec<String>> {
        self.entries(|is_file, name| {
            let is_listed = is_file && name.to_str().is_some();
            (!is_listed).then(|| name.to_string_lossy().into_owned())
        })
    }

    fn sync_dir(&self) -> Result<()> {
        self.poison.check()?;
        self.poison.after_sync(sync_directory(&self.path))
    }

    fn directory(&self, name: &str) -> Result<Arc<dyn Storage>> {
        let path = self.join(name)?;
        if !path.is_dir() {
            self.poison.check()?;
            fs::create_dir(&path).map_err(|e| Error::from_io("create", &path, e))?;
            self.sync_dir()?;
        }
        Ok(Arc::new(Self { path, poison: self.poison.clone() }))
    }

    fn lock(&self) -> Result<LockGuard> {
        lock::acquire(&self.path)
    }
}

#[derive(Debug)]
struct DiskFile {
    path: PathBuf,
    access: Access,
    file: fs::File,
    direct: Option<fs::File>,
    held: Arc<HeldRanges>,
    poison: Poison,
}

impl DiskFile {
    /// Refuses changes when poisoned, or when the file was opened for reading.
    fn check_writable(&self) -> Result<()> {
        self.poison.check()?;
        if self.access.writes() {
            return Ok(());
        }
        let error = io::Error::from_raw_os_error(libc::EBADF);
        Err(Error::from_io("write to", &self.path, error))
    }

    /// The descriptor for a transfer of `bytes` at `offset`.
    fn descriptor_for(&self, offset: FileOffset, bytes: &[u8]) -> &fs::File {
        match &self.direct {
            Some(direct) if is_aligned(offset.get(), bytes.as_ptr(), bytes.len()) => direct,
            _ => &self.file,
        }
    }
}

impl File for DiskFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> Result<u64> {
        let metadata = self.file.metadata();
        Ok(metadata.map_err(|e| Error::from_io("measure", &self.path, e))?.len())
    }

    fn read_at(&self, offset: FileOffset, bytes: &mut [u8]) -> Result<()> {
        read_full(&self.path, offset, bytes, |at, rest| {
            match self.descriptor_for(at, rest).read_at(rest, at.get()) {
                Err(error) if is_refusal(&error) => self.file.read_at(rest, at.get()),
                result => result,
            }
        })
    }

    fn write_at(&self, offset: FileOffset, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let changed = offset.get()..offset.plus(bytes.len() as u64).get();
        self.held.change("write to", &self.path, changed, || {
            let result = write_full(&self.path, offset, bytes, |at, rest| {
                match self.descriptor_for(at, rest).write_at(rest, at.get()) {
                    Err(error) if is_refusal(&error) => self.file.write_at(rest, at.get()),
                    result => result,
                }
            });
            self.poison.after_write(result)
        })
    }

    fn truncate(&self, len: FileOffset) -> Result<()> {
        self.check_writable()?;
        self.held.change("cut", &self.path, len.get()..u64::MAX, || {
            let result = self.file.set_len(len.get());
            self.poison.after_write(result.map_err(|e| Error::from_io("cut", &self.path, e)))
        })
    }

    fn sync(&self) -> Result<()> {
        self.poison.check()?;
        let result = self.file.sync_data();
        self.poison.after_sync(result.map_err(|e| Error::from_io("sync", &self.path, e)))
    }

    fn map(&self, offset: FileOffset, len: u64) -> Result<Map> {
        Map::of_file(&self.file, &self.path, &self.held, offset, len)
    }

    fn descriptor(&self, aligned: bool) -> Option<BorrowedFd<'_>> {
        let direct = self.direct.as_ref().filter(|_| aligned);
        Some(direct.unwrap_or(&self.file).as_fd())
    }
}

/// Whether the error means that the filesystem does not support this transfer with `O_DIRECT`.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

/// The `O_DIRECT` descriptor, or `None` when the filesystem does not support it.
fn open_direct(path: &Path, access: Access) -> Result<Option<fs::File>> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(access.writes()).custom_flags(libc::O_DIRECT);
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_refusal(&error) => Ok(None),
        Err(error) => Err(Error::from_io("open", path, error)),
    }
}

/// Creates `path` and its missing parents, each made durable in its parent directory.
fn create_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_directory(parent)?;
    }
    match fs::create_dir(path) {
        Ok(()) => sync_directory(parent.unwrap_or(Path::new("."))),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(Error::from_io("create", path, error)),
    }
}

fn sync_directory(path: &Path) -> Result<()> {
    let result = fs::File::open(path).and_then(|directory| directory.sync_all());
    result.map_err(|e| Error::from_io("sync", path, e))
}

/// The mapped ranges of the file behind `file`, shared by all its openings.
fn held_ranges(file: &fs::File) -> io::Result<Arc<HeldRanges>> {
    static TABLE: Mutex<BTreeMap<(u64, u64), Weak<HeldRanges>>> = Mutex::new(BTreeMap::new());
    let metadata = file.metadata()?;
    let inode = (metadata.dev(), metadata.ino());
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ranges) = table.get(&inode).and_then(Weak::upgrade) {
        return Ok(ranges);
    }
    // Closed files leave dead entries. They are dropped whenever the table has doubled, so that its
    // size stays proportional to the number of open files.
    if table.len().is_power_of_two() && table.len() >= 64 {
        table.retain(|_, ranges| ranges.strong_count() > 0);
    }
    let ranges = Arc::new(HeldRanges::default());
    table.insert(inode, Arc::downgrade(&ranges));
    Ok(ranges)
}

#[cfg(test)]
mod tests;
