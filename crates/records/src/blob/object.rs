//! Blobs in any store that `object_store` knows: memory here, a cloud by its features.
//!
//! `object_store` is asynchronous and this crate is not. The bridge is one function: it polls a
//! future on the calling thread and parks the thread until it is woken. No runtime is needed for
//! stores that answer by themselves; those that need a reactor bring a runtime along, and are
//! entered before they are called.
//!
//! Large files go up in parts of [`PART`] bytes, one after the other, so that a file of any size
//! takes the memory of one part beside the bytes that the caller holds.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload};

use super::bucket::{Bucket, BucketError, Result, Upload};

/// The length of a part of a large file. The clouds ask for 5 MiB at least, and for parts of the
/// same length; 10,000 parts of this make 80 GiB.
pub(super) const PART: usize = 8 << 20;

/// Files in an object store.
#[derive(Clone, Debug)]
pub struct ObjectBucket {
    store: Arc<dyn ObjectStore>,
}

impl ObjectBucket {
    /// The files in this store.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }

    /// An empty place in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self::new(Arc::new(object_store::memory::InMemory::new()))
    }
}

impl Bucket for ObjectBucket {
    fn upload(&self, key: &str) -> Result<Box<dyn Upload + '_>> {
        let path = Path::from(key);
        Ok(Box::new(ObjectUpload { bucket: self, path, waiting: Parts::default(), upload: None }))
    }

    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        let path = Path::from(key);
        let read = async { self.store.get(&path).await?.bytes().await };
        absent(block_on(read)).map_err(|e| BucketError::new(key, e))
    }

    fn contains(&self, key: &str) -> Result<bool> {
        let head = block_on(self.store.head(&Path::from(key)));
        Ok(absent(head).map_err(|e| BucketError::new(key, e))?.is_some())
    }

    fn write_hint(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let payload = PutPayload::from(Bytes::copy_from_slice(bytes));
        let put = block_on(self.store.put(&Path::from(key), payload));
        put.map(drop).map_err(|e| BucketError::new(key, e))
    }

    fn remove(&self, key: &str) -> Result<bool> {
        let was = self.contains(key)?;
        let deleted = block_on(self.store.delete(&Path::from(key)));
        absent(deleted).map_err(|e| BucketError::new(key, e))?;
        Ok(was)
    }

    fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let mut stream = match after {
            None => self.store.list(None),
            Some(after) => self.store.list_with_offset(None, &Path::from(after)),
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let next = block_on(poll_fn(|context| stream.as_mut().poll_next(context)));
            let Some(next) = next else { break };
            let next = next.map_err(|e| BucketError::new("the list", e))?;
            found.push(next.location.to_string());
        }
        Ok(found)
    }
}

/// A file that is sent in parts, or whole when it is short.
struct ObjectUpload<'a> {
    bucket: &'a ObjectBucket,
    path: Path,
    waiting: Parts,
    upload: Option<Box<dyn MultipartUpload>>,
}

/// Bytes that wait to be sent.
#[derive(Default)]
struct Parts {
    pieces: Vec<Bytes>,
    len: usize,
}

impl Parts {
    /// Takes bytes as far as a part goes, and gives back the rest.
    fn fill(&mut self, mut bytes: Bytes) -> Bytes {
        let piece = bytes.split_to(bytes.len().min(PART - self.len));
        self.len += piece.len();
        self.pieces.push(piece);
        bytes
    }

    fn take(&mut self) -> PutPayload {
        self.len = 0;
        std::mem::take(&mut self.pieces).into_iter().collect()
    }
}

impl ObjectUpload<'_> {
    fn send_part(&mut self) -> object_store::Result<()> {
        let upload = match &mut self.upload {
            Some(upload) => upload,
            none => none.insert(block_on(self.bucket.store.put_multipart(&self.path))?),
        };
        block_on(upload.put_part(self.waiting.take()))
    }

    fn send_rest(&mut self) -> object_store::Result<()> {
        if self.upload.is_none() {
            let payload = self.waiting.take();
            return block_on(self.bucket.store.put(&self.path, payload)).map(drop);
        }
        if self.waiting.len > 0 {
            self.send_part()?;
        }
        match &mut self.upload {
            Some(upload) => block_on(upload.complete()).map(drop),
            None => Ok(()),
        }
    }

    fn failed(&self, error: Error) -> BucketError {
        BucketError::new(self.path.as_ref(), error)
    }
}

impl Upload for ObjectUpload<'_> {
    fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            bytes = self.waiting.fill(bytes);
            if self.waiting.len == PART {
                self.send_part().map_err(|e| self.failed(e))?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.send_rest().map_err(|e| self.failed(e))?;
        self.upload = None;
        Ok(())
    }
}

impl Drop for ObjectUpload<'_> {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            // When this fails too, the rule of the store for unfinished parts removes them.
            let _aborted = block_on(upload.abort());
        }
    }
}

fn absent<T>(result: object_store::Result<T>) -> object_store::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Polls a future on this thread, which sleeps until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_several_parts_is_whole() {
        let bucket = ObjectBucket::memory();
        let bytes = Bytes::from((0..=250_u8).cycle().take(PART + PART / 2).collect::<Vec<_>>());
        for len in [0, 1, PART - 1, PART, PART + 1, bytes.len()] {
            let mut upload = bucket.upload("a/b").unwrap();
            for chunk in [bytes.slice(..len / 3), bytes.slice(len / 3..len)] {
                upload.write(chunk).unwrap();
            }
            upload.finish().unwrap();
            assert_eq!(bucket.read("a/b").unwrap().unwrap(), bytes.slice(..len));
        }
    }

    #[test]
    fn an_upload_that_is_dropped_leaves_nothing() {
        let bucket = ObjectBucket::memory();
        let mut upload = bucket.upload("a").unwrap();
        upload.write(Bytes::from(vec![1; PART + 1])).unwrap();
        drop(upload);
        assert!(!bucket.contains("a").unwrap());
        assert_eq!(bucket.read("a").unwrap(), None);
        assert!(!bucket.remove("a").unwrap());
    }
}
