//! Reading a log of frames.
//!
//! A frame in a sealed file is a slice of the file's map; a frame in the growing tail is read into
//! owned memory. Every frame is verified before it is returned. Frames of sealed files
//! that [`SegmentsReader::frame`] returns are remembered as verified, in a bounded cache
//! (`verified`), so that many reads inside a frame of megabytes cost one check.

use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::sync::Arc;

use super::series::{Segment, Series};
use super::{SegmentsConfig, recover};
use crate::error::{FormatError, Result};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader};
use crate::map::Map;
use crate::offset::{FileOffset, GlobalOffset};
use crate::storage::Storage;

/// Reads a log of frames, beside its writer and other readers.
#[derive(Debug, Clone)]
pub struct SegmentsReader {
    series: Arc<Series>,
}

/// A verified payload.
#[derive(Debug, Clone)]
pub struct Frame {
    at: GlobalOffset,
    bytes: Bytes,
}

#[derive(Debug, Clone)]
enum Bytes {
    Mapped(Map),
    Owned(Arc<Vec<u8>>),
}

impl Frame {
    /// The position of the frame.
    #[must_use]
    pub const fn at(&self) -> GlobalOffset {
        self.at
    }

    /// The position after the frame.
    #[must_use]
    pub fn next(&self) -> GlobalOffset {
        self.at.plus(FRAME_HEADER_LEN as u64).plus(self.len() as u64)
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl SegmentsReader {
    pub(super) fn new(series: Arc<Series>) -> Self {
        Self { series }
    }

    /// Opens a log that has no writer and was synced up to `end`. Changes nothing. `None`
    /// when the log does not end there: [`Segments::open`](crate::Segments::open) finds out why.
    pub fn at_rest(
        storage: &dyn Storage,
        config: &SegmentsConfig,
        end: GlobalOffset,
    ) -> Result<Option<Self>> {
        let segments = recover::at_rest(storage, config, end)?;
        let path = storage.path().join(&config.prefix);
        let series = segments.map(|segments| Series::new(path, config.store, segments));
        Ok(series.map(|series| Self::new(Arc::new(series))))
    }

    /// The first position that is held now.
    #[must_use]
    pub fn start(&self) -> GlobalOffset {
        self.series.start()
    }

    /// The position after the last frame that is held now.
    #[must_use]
    pub fn end(&self) -> GlobalOffset {
        self.series.end()
    }

    /// The frame at `at`, which must be the position of a frame: any other does not verify.
    pub fn frame(&self, at: GlobalOffset) -> Result<Frame> {
        self.read(at, true)
    }

    /// All frames from `from`, the position of a frame, up to what is the end now.
    #[must_use]
    pub fn frames(&self, from: GlobalOffset) -> Frames {
        Frames { reader: self.clone(), next: from, end: self.end() }
    }

    /// The `len` bytes of the log at `at` as they lie in one file, headers of frames included,
    /// without copying, also from the growing tail. Nothing is verified: the caller does that with
    /// [`decode_frame`](crate::decode_frame) once, and remembers it. While any of these bytes are
    /// held, [`Segments::truncate`](crate::Segments::truncate) refuses to cut their file.
    pub fn bytes(&self, at: GlobalOffset, len: u64) -> Result<Map> {
        let out_of_range = || self.series.out_of_range(at);
        let list = self.series.list();
        let segment = find(&list, at).ok_or_else(out_of_range)?;
        let start = at.since(segment.start).ok_or_else(out_of_range)?;
        segment.map(start..start.saturating_add(len))?.ok_or_else(out_of_range)
    }

    /// The file that holds position `at` and the offset there, for messages; `None` when no file
    /// does.
    #[must_use]
    pub fn place(&self, at: GlobalOffset) -> Option<(PathBuf, FileOffset)> {
        let list = self.series.list();
        let segment = find(&list, at)?;
        Some((segment.file.path().to_path_buf(), segment.place(at)?))
    }

    /// The positions that each file holds, in order. The last file is the growing tail.
    #[must_use]
    pub fn files(&self) -> Vec<Range<GlobalOffset>> {
        self.series.list().iter().map(|segment| segment.start..segment.end()).collect()
    }

    /// Reads a frame. A reader that races with a truncation sees bytes that do not verify; the list
    /// of segments has changed then, and the read is repeated with the new one.
    fn read(&self, at: GlobalOffset, remember: bool) -> Result<Frame> {
        loop {
            let list = self.series.list();
            match self.read_in(&list, at, remember) {
                Err(error) if error.is_damage() && !Arc::ptr_eq(&list, &self.series.list()) => {}
                result => return result,
            }
        }
    }

    fn read_in(&self, list: &[Arc<Segment>], at: GlobalOffset, remember: bool) -> Result<Frame> {
        let segment = find(list, at).ok_or_else(|| self.series.out_of_range(at))?;
        let sealed = !list.last().is_some_and(|tail| Arc::ptr_eq(tail, segment));
        let bytes = if sealed {
            Bytes::Mapped(self.mapped(segment, at, remember)?)
        } else {
            Bytes::Owned(self.owned(segment, at)?)
        };
        Ok(Frame { at, bytes })
    }

    /// The payload at `at` of a sealed segment, without copying.
    fn mapped(&self, segment: &Segment, at: GlobalOffset, remember: bool) -> Result<Map> {
        let failed = |error: FormatError| in_segment(segment, at, error);
        let out_of_range = || self.series.out_of_range(at);
        let start = at.since(segment.start).ok_or_else(out_of_range)?;
        let frame = segment.map(start..segment.len())?.ok_or_else(out_of_range)?;
        let header = FrameHeader::decode(&frame, self.series.store, at).map_err(failed)?;
        let end = usize::try_from(header.frame_len()).ok();
        let payload = end.and_then(|end| frame.slice(FRAME_HEADER_LEN..end));
        let payload = payload.ok_or_else(|| failed(too_long()))?;
        if !segment.verified.contains(at) {
            header.check(&payload).map_err(failed)?;
            if remember {
                segment.verified.insert(at);
            }
        }
        Ok(payload)
    }

    /// The payload at `at` of the growing segment, read into memory.
    fn owned(&self, segment: &Segment, at: GlobalOffset) -> Result<Arc<Vec<u8>>> {
        let failed = |error: FormatError| in_segment(segment, at, error);
        let place = segment.place(at).ok_or_else(|| self.series.out_of_range(at))?;
        let available = segment.file_end().get().saturating_sub(place.get());
        let mut header = [0; FRAME_HEADER_LEN];
        if available < header.len() as u64 {
            return Err(failed(too_long()));
        }
        segment.file.read_at(place, &mut header)?;
        let header = FrameHeader::decode(&header, self.series.store, at).map_err(failed)?;
        // Used only after the header has verified, and only within the file.
        let length = usize::try_from(header.length).ok();
        let length = length.filter(|_| header.frame_len() <= available);
        let mut payload = vec![0; length.ok_or_else(|| failed(too_long()))?];
        segment.file.read_at(place.plus(FRAME_HEADER_LEN as u64), &mut payload)?;
        header.check(&payload).map_err(failed)?;
        Ok(Arc::new(payload))
    }
}

/// The segment that holds position `at`.
fn find(list: &[Arc<Segment>], at: GlobalOffset) -> Option<&Arc<Segment>> {
    let behind = list.partition_point(|segment| segment.start <= at);
    let segment = behind.checked_sub(1).and_then(|index| list.get(index))?;
    (at < segment.end()).then_some(segment)
}

fn in_segment(segment: &Segment, at: GlobalOffset, error: FormatError) -> crate::Error {
    error.in_file(segment.file.path(), segment.place(at).unwrap_or_default())
}

fn too_long() -> FormatError {
    FormatError::damaged(0, "the frame reaches past the end of the segment")
}

/// The frames of a log in order. After an error it ends.
#[derive(Debug)]
pub struct Frames {
    reader: SegmentsReader,
    next: GlobalOffset,
    end: GlobalOffset,
}

impl Iterator for Frames {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let frame = self.reader.read(self.next, false);
        self.next = frame.as_ref().map_or(self.end, Frame::next);
        Some(frame)
    }
}
