//! Blobs as files of a directory, written through `varve_io`.
//!
//! `object_store` has a local file system too, but it does not sync by default and our crash tests
//! cannot reach it. So files go through the same seam as all others: written under a temporary
//! name, synced, renamed, and their directory synced. What a crash leaves under temporary names is
//! removed when the bucket is opened.
//!
//! Directories are made when the bucket is opened: one for each beginning that names can have.
//! So listing needs no search, and a file never waits for its directory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use varve_io::{Access, Caching, Error, File, FileOffset, Storage};

use super::bucket::{Bucket, BucketError, Result, Upload};
use super::name::{BlobName, Fanout};

/// The ending of files that are not complete.
const TEMPORARY: &str = ".part";

/// Files in a directory and its subdirectories.
#[derive(Debug)]
pub struct DiskBucket {
    root: Arc<dyn Storage>,
    directories: BTreeMap<String, Arc<dyn Storage>>,
    /// Numbers temporary files.
    next: AtomicU64,
}

impl DiskBucket {
    /// Opens the bucket in this directory, which belongs to it alone.
    pub fn open(root: Arc<dyn Storage>, fanout: Fanout) -> Result<Self> {
        let mut directories = BTreeMap::new();
        for name in fanout.directories() {
            let directory = root.directory(&name).map_err(|e| BucketError::new(&name, e))?;
            directories.insert(name, directory);
        }
        let bucket = Self { root, directories, next: AtomicU64::new(0) };
        for (_, storage) in bucket.storages() {
            bucket.remove_parts(storage).map_err(|e| BucketError::new("the directory", e))?;
        }
        Ok(bucket)
    }

    fn remove_parts(&self, storage: &Arc<dyn Storage>) -> varve_io::Result<()> {
        // What an earlier process left is built upon only after this.
        storage.sync_dir()?;
        for name in storage.list()?.iter().filter(|name| is_part(name)) {
            storage.remove(name)?;
        }
        Ok(())
    }

    fn storages(&self) -> impl Iterator<Item = (&str, &Arc<dyn Storage>)> {
        let below = self.directories.iter().map(|(name, storage)| (name.as_str(), storage));
        [("", &self.root)].into_iter().chain(below)
    }

    /// The directory of a key, and the name of its file there.
    fn locate<'a>(&self, key: &'a str) -> Result<(&Arc<dyn Storage>, &'a str)> {
        let Some((directory, file)) = key.split_once('/') else { return Ok((&self.root, key)) };
        let storage = self.directories.get(directory);
        let path = || self.root.path().join(directory);
        let missing = || BucketError::new(key, Error::NotFound { path: path() });
        Ok((storage.ok_or_else(missing)?, file))
    }

    fn begin(&self, key: &str) -> Result<DiskUpload> {
        let (storage, name) = self.locate(key)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let part = format!("{name}.{number}{TEMPORARY}");
        let file = storage.open(&part, Access::Replace, Caching::Buffered);
        let file = file.map_err(|e| BucketError::new(key, e))?;
        let (storage, name) = (Arc::clone(storage), name.to_owned());
        Ok(DiskUpload { storage, file, part, name, len: 0, done: false })
    }
}

impl Bucket for DiskBucket {
    fn upload(&self, key: &str) -> Result<Box<dyn Upload + '_>> {
        Ok(Box::new(self.begin(key)?))
    }

    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        let (storage, name) = self.locate(key)?;
        let read = || {
            let file = storage.open(name, Access::Read, Caching::Buffered)?;
            let len = usize::try_from(file.size()?).expect("a length of 64 bits");
            let mut bytes = vec![0; len];
            file.read_at(FileOffset::ZERO, &mut bytes)?;
            Ok(Bytes::from(bytes))
        };
        absent(read()).map_err(|e| BucketError::new(key, e))
    }

    fn contains(&self, key: &str) -> Result<bool> {
        let (storage, name) = self.locate(key)?;
        let opened = absent(storage.open(name, Access::Read, Caching::Buffered));
        Ok(opened.map_err(|e| BucketError::new(key, e))?.is_some())
    }

    fn write_hint(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let mut upload = self.begin(key)?;
        upload.append(bytes).and_then(|()| upload.publish()).map_err(|e| BucketError::new(key, e))
    }

    fn remove(&self, key: &str) -> Result<bool> {
        let (storage, name) = self.locate(key)?;
        let removed = absent(storage.remove(name));
        Ok(removed.map_err(|e| BucketError::new(key, e))?.is_some())
    }

    /// The order is that of the directories, the root first, and of the names in each. The names of
    /// one directory are in memory at once.
    fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let after = after.map(|key| key.split_once('/').unwrap_or(("", key)));
        let first = after.map_or("", |(directory, _)| directory);
        let mut found = Vec::new();
        for (directory, storage) in self.storages().filter(|(directory, _)| *directory >= first) {
            let mut names = storage.list().map_err(|e| BucketError::new(directory, e))?;
            names.retain(|name| {
                !name.ends_with(TEMPORARY) && after < Some((directory, name.as_str()))
            });
            names.sort_unstable();
            let key = |name: String| match directory {
                "" => name,
                _ => format!("{directory}/{name}"),
            };
            found.extend(names.into_iter().take(limit - found.len()).map(key));
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }
}

/// Whether a file of this name is an upload of a blob that was not completed.
fn is_part(name: &str) -> bool {
    let (blob, number) =
        name.strip_suffix(TEMPORARY).unwrap_or("").rsplit_once('.').unwrap_or_default();
    BlobName::txid_of(blob).is_some() && number.parse::<u64>().is_ok()
}

/// A file under its temporary name.
struct DiskUpload {
    storage: Arc<dyn Storage>,
    file: Arc<dyn File>,
    part: String,
    name: String,
    len: u64,
    done: bool,
}

impl DiskUpload {
    fn append(&mut self, bytes: &[u8]) -> varve_io::Result<()> {
        self.file.write_at(FileOffset::new(self.len), bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn publish(&mut self) -> varve_io::Result<()> {
        self.storage.rename(&self.part, &self.name)?;
        self.done = true;
        Ok(())
    }
}

impl Upload for DiskUpload {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.append(&bytes).map_err(|e| BucketError::new(&self.name, e))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let synced = self.file.sync().and_then(|()| self.publish());
        let synced = synced.and_then(|()| self.storage.sync_dir());
        synced.map_err(|e| BucketError::new(&self.name, e))
    }
}

impl Drop for DiskUpload {
    fn drop(&mut self) {
        if !self.done {
            // When this fails too, the next opening removes it.
            let _removed = self.storage.remove(&self.part);
        }
    }
}

/// `None` for a file that is not there.
fn absent<T>(result: varve_io::Result<T>) -> varve_io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
