//! Where blobs lie: files by key, in a few blocking calls.
//!
//! A bucket knows keys and bytes and nothing else. Keys are `file` or `directory/file`. Nothing
//! of a file is seen before it is complete.
//!
//! Everything above is blocking, as the rest of the crate is. `object_store` is asynchronous; the
//! bridge is in [`object`](super::object), in one place.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

/// What a bucket answers.
pub(super) type Result<T, E = BucketError> = std::result::Result<T, E>;

/// A place for files.
pub trait Bucket: Debug + Send + Sync {
    /// Begins a file. It is not there before [`Upload::finish`].
    fn upload(&self, key: &str) -> Result<Box<dyn Upload + '_>>;

    /// The whole file; `None` when there is none.
    fn read(&self, key: &str) -> Result<Option<Bytes>>;

    /// Whether there is such a file.
    fn contains(&self, key: &str) -> Result<bool>;

    /// Writes a small file, in place of one that is there. A crash may lose it or leave it
    /// damaged: it is for hints alone.
    fn write_hint(&self, key: &str, bytes: &[u8]) -> Result<()>;

    /// Takes a file away; false when there was none.
    fn remove(&self, key: &str) -> Result<bool>;

    /// Keys behind `after`, in an order that does not change, at most `limit` of them. A file that
    /// comes or goes meanwhile may be among them or not.
    fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>>;
}

/// A file on its way. Dropped before its end, it leaves nothing.
pub trait Upload {
    /// Appends bytes. Memory is taken for a bounded part of the file, not for all of it.
    fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Makes the file durable, in place of one that is there.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The place of the blobs failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{key}: {source}")]
pub struct BucketError {
    /// The file.
    pub key: String,
    /// What went wrong with it.
    pub source: Arc<dyn std::error::Error + Send + Sync>,
}

impl BucketError {
    /// A failure with this file.
    pub fn new(key: &str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { key: key.to_owned(), source: Arc::new(source) }
    }
}
