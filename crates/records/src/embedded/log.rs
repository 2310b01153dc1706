//! The log: every version of every key, in files that grow at one end and go away at the other.
//!
//! ```text
//!  position  start                    s1                       s2            end
//!            ├─ frame ─ frame ─┤      ├─ frame ─ frame ─┤      ├─ frame ─┤
//!  files     log-000000000007         log-000000000008         log-000000000009
//!            full, mapped             full, mapped             tail, in memory and on disk
//! ```
//!
//! A position ([`GlobalOffset`]) counts the bytes of all frames since the log began and names an
//! entry for ever. The log is journal and data at once:
//!
//! 1. A *group* of entries is written behind the end, in frames (`group`), and synced once
//!    (`writer`). Then it counts, and not before.
//! 2. The tail and as much before it as there is room for is kept in memory as it was written. A
//!    file that is full is mapped, and every read checks the entry's checksum, so a flipped bit is
//!    an error and never an answer.
//! 3. Opening (`recover`) reads the frames behind the last checkpoint of the index. What a crash
//!    left of an unfinished group is cut off; a hole anywhere else is damage.
//! 4. Files at the front go when nothing in them is needed (`clean`). Positions stay as they are.
//!
//! The file header is that of `varve_io`'s segments, of kind `RECLOG2`.

mod recover;
mod segment;
mod warm;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_io::{
    Error, FormatError, GlobalOffset, Kind, Layout, Result, SegmentHeader, StoreId, segment_name,
};

use super::entry::{self, EntryHead};
pub(super) use recover::{Replay, open};
pub(super) use segment::EntryBytes;
use segment::Segment;
pub(super) use warm::Warmer;
pub(super) use writer::{Group, LogWriter};

const PREFIX: &str = "log";
const KIND: Kind = Kind(*b"RECLOG2\0");

/// What the log is cut into, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogConfig {
    pub(super) store: StoreId,
    /// The length a file does not exceed, unless for a single frame.
    pub(super) segment_size: u64,
    /// Bytes of full files that are kept in memory.
    pub(super) cache: u64,
}

impl LogConfig {
    fn header(&self, number: u64, start: GlobalOffset) -> SegmentHeader {
        SegmentHeader { layout: Layout::Frames, kind: KIND, store: self.store, number, start }
    }
}

fn file_name(number: u64) -> String {
    segment_name(PREFIX, number)
}

/// The log as its readers see it.
#[derive(Debug)]
pub(super) struct Log {
    store: StoreId,
    /// The directory with the prefix, for messages.
    path: PathBuf,
    segments: ArcSwap<Vec<Arc<Segment>>>,
}

impl Log {
    /// The store that the log is of.
    pub(super) const fn store(&self) -> StoreId {
        self.store
    }

    /// The first position that is held.
    pub(super) fn start(&self) -> GlobalOffset {
        self.segments.load().first().map_or(GlobalOffset::ZERO, |segment| segment.start)
    }

    /// The position behind the last frame that was written, synced or not.
    pub(super) fn end(&self) -> GlobalOffset {
        self.segments.load().last().map_or(GlobalOffset::ZERO, |segment| segment.end())
    }

    /// The verified entry at `at`, which must be the position of one.
    pub(super) fn entry(&self, at: GlobalOffset) -> Result<Entry> {
        let segments = self.segments.load();
        let segment = find(&segments, at).ok_or_else(|| self.out_of_range(at))?;
        let bytes = segment.entry(at)?;
        // What is in memory was written from there, or was verified when it was read.
        let checked = if bytes.is_own() { Ok(()) } else { entry::verify(&bytes, self.store, at) };
        let decoded = checked.and_then(|()| EntryHead::decode(&bytes));
        let (head, _) = decoded.map_err(|error| segment.damage(at, error))?;
        Ok(Entry { head, bytes })
    }

    /// Brings the entry at `at` into memory where it lies. False when neither memory nor a map has
    /// it, so that it has to be read.
    pub(super) fn touch(&self, at: GlobalOffset) -> bool {
        let segments = self.segments.load();
        find(&segments, at).is_some_and(|segment| segment.touch(at))
    }

    /// The ends of the files that are full.
    pub(super) fn full_ends(&self) -> Vec<GlobalOffset> {
        let segments = self.segments.load();
        let full = segments.len().saturating_sub(1);
        segments.iter().take(full).map(|segment| segment.end()).collect()
    }

    /// The frames of the file that holds `at`, all bytes of it from `at` on.
    pub(super) fn frames_from(&self, at: GlobalOffset) -> Result<EntryBytes> {
        let segments = self.segments.load();
        let segment = find(&segments, at).ok_or_else(|| self.out_of_range(at))?;
        segment.rest(at)
    }

    /// Damage found at `at`, as an error that names file and offset.
    pub(super) fn damage(&self, at: GlobalOffset, error: FormatError) -> Error {
        let segments = self.segments.load();
        match find(&segments, at) {
            Some(segment) => segment.damage(at, error),
            None => self.out_of_range(at),
        }
    }

    fn out_of_range(&self, at: GlobalOffset) -> Error {
        Error::OutOfRange { path: self.path.clone(), at, start: self.start(), end: self.end() }
    }

    /// Publishes a changed copy of the list. Only the one writer calls this.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Segment>>)) {
        let mut segments = self.segments.load().as_ref().clone();
        change(&mut segments);
        self.segments.store(Arc::new(segments));
    }
}

/// A verified entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) head: EntryHead,
    bytes: EntryBytes,
}

impl Entry {
    /// An entry whose verified bytes are shared.
    pub(super) fn shared(head: EntryHead, bytes: Arc<Vec<u8>>) -> Self {
        Self { head, bytes: EntryBytes::shared(bytes) }
    }

    /// The head, and the bytes to be shared.
    pub(super) fn into_shared(self) -> (EntryHead, Arc<Vec<u8>>) {
        (self.head, Arc::new(self.bytes.into_vec()))
    }

    /// What comes after the head.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(entry::ENTRY_HEAD_LEN..).unwrap_or_default()
    }
}

fn find(segments: &[Arc<Segment>], at: GlobalOffset) -> Option<&Arc<Segment>> {
    let behind = segments.partition_point(|segment| segment.start <= at);
    let segment = behind.checked_sub(1).and_then(|index| segments.get(index))?;
    (at < segment.end()).then_some(segment)
}

#[cfg(test)]
mod tests;
