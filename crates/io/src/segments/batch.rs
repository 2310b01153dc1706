//! An append under way.
//!
//! Frames of a batch may go into several files. They are written as they come and shown to readers
//! at the end, all together: a batch that fails halfway leaves the list of segments unchanged, and
//! bytes past the end that the writer cuts before the next append.

use std::sync::Arc;

use super::series::{Segment, Series};
use crate::error::Result;
use crate::offset::{FileOffset, GlobalOffset};

/// What is written but not yet visible to readers.
pub(super) struct Batch {
    /// The segment being written; the tail at first, `None` in an empty log.
    pub(super) segment: Option<Arc<Segment>>,
    /// Where gathered bytes go in its file.
    pub(super) written: FileOffset,
    /// The position after the last frame of the batch.
    pub(super) end: GlobalOffset,
    /// Segments finished or begun, with their ends.
    ends: Vec<(Arc<Segment>, GlobalOffset)>,
    /// How many of them readers know already: the tail.
    known: usize,
    pub(super) places: Vec<GlobalOffset>,
}

impl Batch {
    pub(super) fn new(tail: Option<Arc<Segment>>) -> Self {
        Self {
            written: tail.as_ref().map_or(FileOffset::ZERO, |tail| tail.file_end()),
            end: tail.as_ref().map_or(GlobalOffset::ZERO, |tail| tail.end()),
            known: usize::from(tail.is_some()),
            segment: tail,
            ends: Vec::new(),
            places: Vec::new(),
        }
    }

    /// True when a frame of `len` bytes may go into the current segment: an empty one takes any.
    pub(super) fn fits(&self, len: u64, segment_size: u64) -> bool {
        let Some(segment) = &self.segment else { return false };
        let place = segment.place(self.end).expect("the batch ends after its segment's start");
        self.end == segment.start || place.plus(len).get() <= segment_size
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(segment) = self.segment.as_ref().filter(|_| !bytes.is_empty()) {
            segment.file.write_at(self.written, bytes)?;
            self.written = self.written.plus(bytes.len() as u64);
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, segment: Arc<Segment>) {
        self.written = segment.file_end();
        let full = self.segment.replace(segment);
        self.ends.extend(full.map(|full| (full, self.end)));
    }

    /// Whether every byte up to the end is in the current file.
    pub(super) fn is_written(&self) -> bool {
        let place = self.segment.as_ref().map(|segment| segment.place(self.end));
        place.is_none_or(|place| place == Some(self.written))
    }

    /// Makes the whole batch visible to readers.
    pub(super) fn publish(&mut self, series: &Series) {
        assert!(self.is_written(), "frames are written before readers see them");
        self.ends.extend(self.segment.take().map(|segment| (segment, self.end)));
        for (index, (segment, end)) in self.ends.drain(..).enumerate() {
            assert!(segment.end() <= end, "a segment that readers see only grows");
            segment.publish(end);
            if index >= self.known {
                series.push(segment);
            }
        }
        assert_eq!(series.end(), self.end, "readers see the whole batch");
    }
}
