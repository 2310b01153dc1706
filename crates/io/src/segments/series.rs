//! The list of a log's segments, changed by one writer and read by many without a lock.
//!
//! The list is immutable and replaced whole; readers take a reference to the current one. The only
//! thing that changes inside is the length of the tail, which the writer stores (release) after
//! the bytes are written and readers load (acquire) before they read.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::verified::VerifiedFrames;
use crate::checksum::StoreId;
use crate::error::{Error, Result};
use crate::map::Map;
use crate::offset::{FileOffset, GlobalOffset};
use crate::segment;
use crate::storage::File;

/// One file of a log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) start: GlobalOffset,
    pub(super) file: Arc<dyn File>,
    len: AtomicU64,
    /// A map of the frames, up to the length at the time it was made.
    map: ArcSwapOption<Map>,
    /// Frames of the mapped file that have verified and need not be checked again.
    pub(super) verified: VerifiedFrames,
}

impl Segment {
    pub(super) fn new(number: u64, start: GlobalOffset, file: Arc<dyn File>, len: u64) -> Self {
        Self {
            number,
            start,
            file,
            len: AtomicU64::new(len),
            map: ArcSwapOption::empty(),
            verified: VerifiedFrames::default(),
        }
    }

    /// The bytes of whole frames in this file.
    pub(super) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) -> GlobalOffset {
        self.start.plus(self.len())
    }

    /// Where the last frame ends in the file.
    pub(super) fn file_end(&self) -> FileOffset {
        file_offset(self.len())
    }

    /// Where position `at` lies in the file; `None` when it lies before the segment.
    pub(super) fn place(&self, at: GlobalOffset) -> Option<FileOffset> {
        at.since(self.start).map(file_offset)
    }

    /// Makes the frames up to `end`, which are written, visible to readers.
    pub(super) fn publish(&self, end: GlobalOffset) {
        let len = end.since(self.start).expect("the end of a segment lies after its start");
        self.len.store(len, Ordering::Release);
    }

    /// The same file with another length, without a map.
    pub(super) fn with_len(&self, len: u64) -> Self {
        Self::new(self.number, self.start, Arc::clone(&self.file), len)
    }

    /// The bytes of `range`, counted from the first frame, without copying; `None` when it reaches
    /// past the last frame. The file is mapped on first use, and again when it has grown past what
    /// is mapped.
    pub(super) fn map(&self, range: Range<u64>) -> Result<Option<Map>> {
        let len = self.len();
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end))
        else {
            return Ok(None);
        };
        if range.end > len {
            return Ok(None);
        }
        if let Some(map) = self.map.load().as_ref().filter(|map| end <= map.len()) {
            return Ok(map.slice(start..end));
        }
        let map = self.file.map(file_offset(0), len)?;
        let found = map.slice(start..end);
        self.map.store(Some(Arc::new(map)));
        Ok(found)
    }
}

const fn file_offset(len: u64) -> FileOffset {
    FileOffset::new(segment::HEADER_BYTES).plus(len)
}

/// All segments of a log.
#[derive(Debug)]
pub(super) struct Series {
    /// The directory with the prefix, for messages.
    path: PathBuf,
    pub(super) store: StoreId,
    list: ArcSwap<Vec<Arc<Segment>>>,
}

impl Series {
    pub(super) fn new(path: PathBuf, store: StoreId, segments: Vec<Arc<Segment>>) -> Self {
        Self { path, store, list: ArcSwap::from_pointee(segments) }
    }

    pub(super) fn list(&self) -> Arc<Vec<Arc<Segment>>> {
        self.list.load_full()
    }

    pub(super) fn tail(&self) -> Option<Arc<Segment>> {
        self.list.load().last().map(Arc::clone)
    }

    pub(super) fn start(&self) -> GlobalOffset {
        self.list.load().first().map_or(GlobalOffset::ZERO, |segment| segment.start)
    }

    pub(super) fn end(&self) -> GlobalOffset {
        self.list.load().last().map_or(GlobalOffset::ZERO, |segment| segment.end())
    }

    pub(super) fn out_of_range(&self, at: GlobalOffset) -> Error {
        let path = self.path.clone();
        Error::OutOfRange { path, at, start: self.start(), end: self.end() }
    }

    /// The first segment when it is not the last and all of it lies before `position`.
    pub(super) fn first_if_ends_by(&self, position: GlobalOffset) -> Option<Arc<Segment>> {
        let list = self.list.load();
        let [first, _, ..] = list.as_slice() else { return None };
        (first.end() <= position).then(|| Arc::clone(first))
    }

    pub(super) fn push(&self, segment: Arc<Segment>) {
        let follows =
            |tail: Arc<Segment>| tail.number + 1 == segment.number && tail.end() == segment.start;
        assert!(self.tail().is_none_or(follows), "segments follow one another without gaps");
        self.change(|list| list.push(segment));
    }

    pub(super) fn pop(&self) {
        self.change(|list| _ = list.pop());
    }

    pub(super) fn shift(&self) {
        self.change(|list| _ = list.drain(..1));
    }

    pub(super) fn replace_tail(&self, segment: Segment) {
        self.change(|list| {
            list.pop();
            list.push(Arc::new(segment));
        });
    }

    /// Publishes a changed copy of the list. Only the one writer calls this.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Segment>>)) {
        let mut list = self.list.load().as_ref().clone();
        change(&mut list);
        self.list.store(Arc::new(list));
    }
}
