//! Writing to the log: one group after the other, each durable when it is finished.
//!
//! A group's entries are gathered in a frame, which is written when it is big enough or the group
//! is finished, so a group of any size needs little memory. When a frame would make the file longer
//! than it should be, the file is synced and the next one begun.
//!
//! A group that fails leaves the log as it was before it: what it wrote is taken away, durably,
//! before the next group begins. After a full disk, free some space and retry.

use std::sync::Arc;

use varve_io::{Access, AlignedBuffer, Caching, Error, FileOffset, GlobalOffset, Result, Storage};

use super::segment::{Segment, first_block};
use super::{Log, LogConfig, file_name};
use crate::embedded::entry::EntryHead;
use crate::embedded::group::FrameBuilder;

/// A frame is written when it reaches this length, or half a file.
const FRAME: usize = 4 << 20;

/// The log's one writer.
#[derive(Debug)]
pub(in crate::embedded) struct LogWriter {
    storage: Arc<dyn Storage>,
    config: LogConfig,
    log: Arc<Log>,
    /// The end of the last finished group.
    end: GlobalOffset,
    /// The number of the next group.
    group: u64,
    /// A file was created since the directory was last synced.
    names_changed: bool,
    /// A group was begun and not finished.
    torn: bool,
    /// Number and length of the last file before the current group.
    tail: Option<(u64, u64)>,
    /// Moving average of frame lengths; sizes the next buffer.
    usual: usize,
    buffer: AlignedBuffer,
}

impl LogWriter {
    /// A writer of the log that ends at whole, durable groups.
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        config: LogConfig,
        log: Arc<Log>,
        group: u64,
    ) -> Self {
        let (end, names_changed, torn) = (log.end(), false, false);
        let (tail, usual, buffer) = (None, 0, AlignedBuffer::zeroed(0));
        Self { storage, config, log, end, group, names_changed, torn, tail, usual, buffer }
    }

    /// The position behind the last finished group: all before it is durable.
    pub(in crate::embedded) const fn end(&self) -> GlobalOffset {
        self.end
    }

    /// The number of the next group.
    pub(in crate::embedded) const fn group(&self) -> u64 {
        self.group
    }

    fn frame_len(&self) -> usize {
        usize::try_from(self.config.segment_size / 2).map_or(FRAME, |half| half.min(FRAME))
    }

    /// Begins a group.
    pub(in crate::embedded) fn begin(&mut self) -> Result<Group<'_>> {
        self.mend()?;
        let tail = self.log.segments.load();
        self.tail = tail.last().map(|tail| (tail.number, tail.len()));
        self.torn = true;
        let frame = FrameBuilder::new(self.end, self.usual + self.usual / 8);
        Ok(Group { written: self.end, frame, full: Vec::new(), writer: self })
    }

    /// Takes away what an unfinished group wrote: first later files, then bytes of the tail, in the
    /// order that recovery keeps.
    fn mend(&mut self) -> Result<()> {
        if !self.torn {
            return Ok(());
        }
        let (kept, len) = self.tail.map_or((None, 0), |(number, len)| (Some(number), len));
        let segments = self.log.segments.load_full();
        for segment in segments.iter().filter(|segment| Some(segment.number) > kept) {
            self.remove(segment.number)?;
            self.log.change(|list| list.retain(|other| other.number != segment.number));
        }
        let next = segments.last().map_or(0, |last| last.number + 1);
        self.remove(next)?;
        self.sync_names()?;
        if let Some(tail) = self.log.segments.load().last() {
            tail.cut(len);
            tail.file.truncate(tail.file_end())?;
            tail.file.sync()?;
        }
        self.torn = false;
        Ok(())
    }

    /// Takes a file's name away, if it has one.
    fn remove(&mut self, number: u64) -> Result<()> {
        match self.storage.remove(&file_name(number)) {
            Ok(()) => self.names_changed = true,
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn sync_names(&mut self) -> Result<()> {
        if self.names_changed {
            self.storage.sync_dir()?;
            self.names_changed = false;
        }
        Ok(())
    }

    /// The file that takes a frame of `len` bytes, a new one if need be. The one that is full goes
    /// to `full`.
    fn segment(&mut self, len: u64, full: &mut Vec<Arc<Segment>>) -> Result<Arc<Segment>> {
        let tail = self.log.segments.load().last().map(Arc::clone);
        let number = match &tail {
            None => 0,
            Some(tail) => {
                let grown = tail.file_end().plus(len).get();
                if tail.len() == 0 || grown <= self.config.segment_size {
                    return Ok(Arc::clone(tail));
                }
                // Full files are durable, bytes and name, before the next one exists: recovery
                // finds torn frames in the last file only.
                tail.file.sync()?;
                self.sync_names()?;
                tail.number + 1
            }
        };
        self.names_changed = true;
        let file = self.storage.open(&file_name(number), Access::Replace, Caching::Direct)?;
        let start = self.log.end();
        file.write_at(FileOffset::ZERO, &first_block(&self.config.header(number, start)))?;
        let segment = Arc::new(Segment::new(number, start, file, 0));
        self.log.change(|list| list.push(Arc::clone(&segment)));
        full.extend(tail);
        Ok(segment)
    }

    /// Puts a full file's read-only form in its place. Where the system refuses, the file stays as
    /// it is and is read without a map.
    fn seal(&self, full: &Segment) {
        if let Ok(sealed) = full.sealed(self.storage.as_ref()) {
            let sealed = Arc::new(sealed);
            self.log.change(|list| {
                list.iter_mut().filter(|segment| segment.number == full.number).for_each(|place| {
                    *place = Arc::clone(&sealed);
                });
            });
        }
    }

    /// Gives back the memory of the oldest frames, as far as there is too much of it.
    fn forget_oldest(&self) {
        let segments = self.log.segments.load();
        let mut room = self.config.cache;
        for (index, segment) in segments.iter().rev().enumerate() {
            let len = segment.in_memory_len();
            if index > 0 && len > room {
                segment.forget();
            }
            room = room.saturating_sub(len);
        }
    }

    /// Removes the files that lie wholly before `before`, oldest first. The last one stays.
    pub(in crate::embedded) fn prune(&mut self, before: GlobalOffset) -> Result<()> {
        loop {
            let segments = self.log.segments.load_full();
            let [first, _, ..] = segments.as_slice() else { return Ok(()) };
            if first.end() > before {
                return Ok(());
            }
            self.remove(first.number)?;
            // One by one, so that no crash leaves a hole in the series.
            self.sync_names()?;
            self.log.change(|list| _ = list.drain(..1));
        }
    }
}

/// A group being written.
#[derive(Debug)]
pub(in crate::embedded) struct Group<'a> {
    writer: &'a mut LogWriter,
    frame: FrameBuilder,
    /// The end of the frames that are written.
    written: GlobalOffset,
    /// Files that became full.
    full: Vec<Arc<Segment>>,
}

impl Group<'_> {
    /// Adds an entry whose payload `fill` appends; returns where it lies and how long it is.
    pub(in crate::embedded) fn push(
        &mut self,
        head: &EntryHead,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(GlobalOffset, usize)> {
        if self.frame.len() >= self.writer.frame_len() {
            self.flush(true)?;
        }
        Ok(self.frame.push(self.writer.config.store, head, fill))
    }

    /// Writes the last frame and makes all of the group durable.
    pub(in crate::embedded) fn finish(mut self) -> Result<GlobalOffset> {
        if self.frame.is_empty() && self.written == self.writer.end {
            self.writer.torn = false;
            return Ok(self.written);
        }
        self.flush(false)?;
        if let Some(tail) = self.writer.log.segments.load().last() {
            tail.file.sync()?;
        }
        self.writer.sync_names()?;
        for full in self.full {
            // The group is durable whether the system has a map to give or not.
            self.writer.seal(&full);
        }
        self.writer.forget_oldest();
        self.writer.end = self.written;
        self.writer.group += 1;
        self.writer.torn = false;
        Ok(self.written)
    }

    fn flush(&mut self, more: bool) -> Result<()> {
        let next = FrameBuilder::new(GlobalOffset::ZERO, 0);
        let frame = std::mem::replace(&mut self.frame, next);
        let writer = &mut *self.writer;
        let bytes = frame.finish(writer.config.store, writer.group, writer.end, more);
        let len = bytes.len();
        let known = self.full.len();
        let segment = writer.segment(len as u64, &mut self.full)?;
        if self.full.len() > known {
            writer.forget_oldest();
        }
        segment.append(bytes, &mut writer.buffer)?;
        writer.usual = len;
        self.written = self.written.plus(len as u64);
        self.frame = FrameBuilder::new(self.written, if more { len + len / 8 } else { 0 });
        Ok(())
    }
}
