//! Many reads at once, over many files, by one thread.
//!
//! 1. The caller moves a buffer, as long as the read, into a [`ReadRequest`] with the file and
//!    offset.
//! 2. [`BatchReader::submit`] hands all of them to the kernel in one system call, up to the
//!    reader's depth; the rest follow as places become free.
//! 3. [`BatchReader::next`] gives completions back in the order the disk finishes them, each with
//!    the caller's tag. A buffer comes back only inside a `Result` that says the read filled it to
//!    the last byte: unchecked bytes cannot be accessed.
//!
//! A short read is continued. The end of the file is an error naming file and offset. A reader has
//! its own ring and no lock; every thread makes its own. Where the kernel has no `io_uring` (or a
//! sandbox forbids it), and for files without a descriptor (the test storage), the reads are plain
//! `pread` calls made inside `next`, with the same results.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::buffer::AlignedBuffer;
use crate::error::Result;
use crate::offset::FileOffset;
use crate::storage::File;
use crate::uring::Ring;

/// One read to be made: the buffer's length says how much.
#[derive(Debug)]
pub struct ReadRequest {
    /// Returned with the completion; its meaning is the caller's.
    pub tag: u64,
    /// The file to read.
    pub file: Arc<dyn File>,
    /// Where to start.
    pub offset: FileOffset,
    /// Where to put the bytes, all of it.
    pub buffer: AlignedBuffer,
}

/// One read made.
#[derive(Debug)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u64,
    /// The filled buffer, or why it could not be filled.
    pub result: Result<AlignedBuffer>,
}

/// How a reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `io_uring`: all reads of a batch are under way at once.
    Ring,
    /// `pread`: one after the other.
    Pread,
}

/// Reads in batches. Make one per thread.
///
/// ```
/// use varve_io::{Access, AlignedBuffer, BatchReader, Caching, Disk};
/// use varve_io::{FileOffset, ReadRequest, Storage};
///
/// # fn main() -> varve_io::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage = Disk::open(dir.path())?;
/// let file = storage.open("pages", Access::Create, Caching::Direct)?;
/// file.write_at(FileOffset::ZERO, &[7; 8192])?;
///
/// let mut reader = BatchReader::new(64);
/// reader.submit((0..2).map(|page| ReadRequest {
///     tag: page,
///     file: file.clone(),
///     offset: FileOffset::new(page * 4096),
///     buffer: AlignedBuffer::zeroed(4096),
/// }));
/// while let Some(done) = reader.next() {
///     assert_eq!(done.result?[0], 7, "page {}", done.tag);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BatchReader {
    ring: Option<Ring>,
    waiting: VecDeque<ReadRequest>,
    done: VecDeque<Completion>,
}

impl BatchReader {
    /// A reader with up to `depth` reads under way at once, by the best method the kernel offers.
    /// More than 256 at once gain nothing on the disks measured.
    #[must_use]
    pub fn new(depth: u16) -> Self {
        Self::with_method(Method::Ring, depth)
    }

    /// A reader that uses `method`, or `pread` where a ring cannot be had.
    #[must_use]
    pub fn with_method(method: Method, depth: u16) -> Self {
        let ring = match method {
            Method::Ring => Ring::new(depth.max(1)),
            Method::Pread => None,
        };
        Self { ring, waiting: VecDeque::new(), done: VecDeque::new() }
    }

    /// How this reader reads.
    #[must_use]
    pub fn method(&self) -> Method {
        if self.ring.is_some() { Method::Ring } else { Method::Pread }
    }

    /// The number of reads submitted and not yet returned.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.waiting.len() + self.done.len() + self.ring.as_ref().map_or(0, Ring::in_flight)
    }

    /// Starts `requests`, in one submission as far as the depth allows. Does not wait.
    pub fn submit(&mut self, requests: impl IntoIterator<Item = ReadRequest>) {
        self.waiting.extend(requests);
        self.start_waiting();
    }

    /// The next finished read, waiting for it; `None` when nothing is pending.
    #[expect(clippy::should_implement_trait, reason = "`None` is not the end: submit, and go on")]
    pub fn next(&mut self) -> Option<Completion> {
        loop {
            if let Some(completion) = self.try_next() {
                return Some(completion);
            }
            let ring = self.ring.as_mut().filter(|ring| ring.in_flight() > 0)?;
            if let Err(error) = ring.wait() {
                self.give_up_ring(&error);
            }
        }
    }

    /// The next finished read, or `None` when none has finished. Never waits on a ring; without
    /// one it makes the next read itself.
    pub fn try_next(&mut self) -> Option<Completion> {
        if let Some(ring) = &mut self.ring
            && self.done.is_empty()
        {
            ring.reap(&mut self.done);
            if ring.room() >= ring.batch().min(self.waiting.len()) {
                self.start_waiting();
            }
        }
        if self.done.is_empty() && self.ring.is_none() {
            let request = self.waiting.pop_front()?;
            self.done.push_back(read_now(request));
        }
        self.done.pop_front()
    }

    /// Performs all `requests` and returns the results in their order, whatever their tags.
    ///
    /// # Panics
    ///
    /// When other reads are pending: their completions would be mixed in.
    pub fn read_all(&mut self, requests: Vec<ReadRequest>) -> Vec<Result<AlignedBuffer>> {
        assert_eq!(self.pending(), 0, "take the completions of earlier reads first");
        let mut results: Vec<Option<Result<AlignedBuffer>>> = Vec::new();
        results.resize_with(requests.len(), || None);
        self.submit((0..).zip(requests).map(|(tag, request)| ReadRequest { tag, ..request }));
        while let Some(Completion { tag, result }) = self.next() {
            let place = usize::try_from(tag).ok().and_then(|index| results.get_mut(index));
            *place.expect("tags are the indexes given above") = Some(result);
        }
        let results = results.into_iter();
        results.map(|result| result.expect("every request completes exactly once")).collect()
    }

    /// Moves waiting requests into the ring until it is full or none is left.
    fn start_waiting(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        while ring.room() > 0
            && let Some(request) = self.waiting.pop_front()
        {
            if request.buffer.is_empty() || request.file.descriptor(false).is_none() {
                self.done.push_back(read_now(request));
            } else {
                ring.push(request);
            }
        }
        if let Err(error) = ring.submit() {
            self.give_up_ring(&error);
        }
    }

    /// The ring itself failed: its reads fail with it, later ones go by `pread`.
    fn give_up_ring(&mut self, error: &std::io::Error) {
        if let Some(ring) = self.ring.take() {
            ring.abandon(error, &mut self.done);
        }
    }
}

fn read_now(request: ReadRequest) -> Completion {
    let ReadRequest { tag, file, offset, mut buffer } = request;
    let result = file.read_at(offset, &mut buffer);
    Completion { tag, result: result.map(|()| buffer) }
}
