//! Opening the log: what is there, what counts, what goes.
//!
//! 1. The files follow one another by number; each header says where the file begins, and that is
//!    where the one before it ends. A file before the last that is too short or too long is damage.
//! 2. Frames are read and verified from `from`, the position that the checkpoint of the index
//!    includes, and the entries of every whole group are handed to the caller.
//! 3. The first frame that does not verify is the torn end of the last group, or damage:
//!    [`was_synced`] decides. Frames behind it are found again at multiples of 4 KiB.
//! 4. What a torn or unfinished group left is cut off, back to the group's first frame: first later
//!    files, then bytes of the last, each synced.
//! 5. What is kept and not known to be durable is written once more and synced: the process that
//!    wrote it may have died before its sync, or its sync may have failed, and then the system
//!    calls pages clean that never reached the disk.

use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_io::{
    Access, Caching, Error, FileOffset, FormatError, GlobalOffset, Result, SegmentHeader, Storage,
    StoreId, segment_numbers, was_synced,
};

use super::segment::{FRAMES_AT, Segment, first_block};
use super::writer::LogWriter;
use super::{Log, LogConfig, PREFIX, file_name};
use crate::embedded::group::{ALIGN, GroupFrame};

/// What is known before the log is opened, and what happens with what is found.
pub(in crate::embedded) struct Replay<'a> {
    /// Frames from here on are handed out.
    pub(in crate::embedded) from: GlobalOffset,
    /// All before this was synced.
    pub(in crate::embedded) durable: GlobalOffset,
    /// Gets every frame in order. A group counts when its last frame has come.
    pub(in crate::embedded) visit: &'a mut dyn FnMut(&GroupFrame<'_>) -> Result<(), FormatError>,
}

/// Opens the log, creating it with the first group when there is none. `group` is a number that no
/// group before the checkpoint had.
pub(in crate::embedded) fn open(
    storage: Arc<dyn Storage>,
    config: LogConfig,
    group: u64,
    replay: Replay<'_>,
) -> Result<(LogWriter, Arc<Log>)> {
    let mut segments = open_files(storage.as_ref(), &config, replay.durable)?;
    let (from, durable) = (replay.from, replay.durable);
    if let Some(first) = segments.first().filter(|first| first.start > from) {
        let what = "the files before this one are missing";
        return Err(first.damage(first.start, FormatError::Damaged { at: 0, what }));
    }
    let mut walk = Walk::new(config, group, replay);
    for (index, segment) in segments.iter().enumerate() {
        walk.segment(segment, index + 1 == segments.len())?;
    }
    let Walk { end, known, group, .. } = walk;
    let reached = segments.last().map_or(GlobalOffset::ZERO, |last| last.end().min(end));
    if reached < durable.max(from) {
        return Err(missing(storage.as_ref(), &segments, durable.max(from)));
    }
    let kept = segments.partition_point(|segment| segment.start < end).max(1);
    for segment in segments.drain(kept.min(segments.len())..).rev() {
        storage.remove(&file_name(segment.number))?;
    }
    storage.sync_dir()?;
    if let Some((tail, full)) = segments.split_last_mut() {
        for segment in full {
            *segment = Arc::new(segment.sealed(storage.as_ref())?);
        }
        settle(tail, &config, &Settled { from, end, known })?;
    }
    let path = storage.path().join(PREFIX);
    let log = Log { store: config.store, path, segments: ArcSwap::from_pointee(segments) };
    let log = Arc::new(log);
    Ok((LogWriter::new(storage, config, Arc::clone(&log), group), log))
}

/// The log ends before a position that was durable: says where.
fn missing(storage: &dyn Storage, segments: &[Arc<Segment>], wanted: GlobalOffset) -> Error {
    match segments.last() {
        Some(last) => Error::UnexpectedEnd {
            path: last.file.path().to_path_buf(),
            len: last.file_end(),
            wanted: last.place(wanted),
        },
        None => Error::NotFound { path: storage.path().join(file_name(0)) },
    }
}

/// Opens all files. The last may be one that was begun and never synced: it is removed.
fn open_files(
    storage: &dyn Storage,
    config: &LogConfig,
    durable: GlobalOffset,
) -> Result<Vec<Arc<Segment>>> {
    let numbers = segment_numbers(PREFIX, &storage.list()?);
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    for (index, &number) in numbers.iter().enumerate() {
        let before = segments.last();
        if let Some(missing) = before.map(|before| before.number + 1).filter(|n| *n != number) {
            return Err(Error::NotFound { path: storage.path().join(file_name(missing)) });
        }
        let last = index + 1 == numbers.len();
        let caching = if last { Caching::Direct } else { Caching::Buffered };
        let file = storage.open(&file_name(number), Access::Write, caching)?;
        let len = file.size()?.saturating_sub(FRAMES_AT);
        let header = match SegmentHeader::read(file.as_ref()) {
            Err(error) if error.is_damage() && last => {
                let start = before.map_or(GlobalOffset::ZERO, |before| before.end());
                let lost = Segment::new(number, start, file, len);
                if was_synced(start, durable, claims(&lost.rest(start)?, config.store, start)) {
                    return Err(error);
                }
                storage.remove(&file_name(number))?;
                break;
            }
            header => header?,
        };
        let checked = header.check_is(&config.header(number, header.start));
        checked.map_err(|error| error.in_file(file.path(), FileOffset::ZERO))?;
        if let Some(before) = before {
            check_full(before, header.start)?;
        }
        segments.push(Arc::new(Segment::new(number, header.start, file, len)));
    }
    Ok(segments)
}

/// The file before another is full: it ends where that begins.
fn check_full(segment: &Segment, end: GlobalOffset) -> Result<()> {
    let (wanted, found) = (segment.place(end), segment.file_end());
    if end.since(segment.start).is_none() || found > wanted {
        let what = "the file is longer than the next one says";
        return Err(segment.damage(end, FormatError::Damaged { at: 0, what }));
    }
    if found < wanted {
        let path = segment.file.path().to_path_buf();
        return Err(Error::UnexpectedEnd { path, len: found, wanted });
    }
    Ok(())
}

/// The way through the frames.
struct Walk<'a> {
    config: LogConfig,
    replay: Replay<'a>,
    /// Where the next frame is.
    at: GlobalOffset,
    /// The end of the last whole group.
    end: GlobalOffset,
    /// All before this is known to be durable.
    known: GlobalOffset,
    /// The number of the next group.
    group: u64,
    /// A frame did not verify: nothing counts from here on.
    torn: bool,
}

impl<'a> Walk<'a> {
    fn new(config: LogConfig, group: u64, replay: Replay<'a>) -> Self {
        let (at, known) = (replay.from, replay.durable);
        Self { config, replay, at, end: at, known, group, torn: false }
    }

    /// Reads the frames of a file.
    fn segment(&mut self, segment: &Arc<Segment>, last: bool) -> Result<()> {
        let from = self.at;
        if from >= segment.end() || self.torn {
            return Ok(());
        }
        let bytes = segment.rest(from)?;
        while self.at < segment.end() {
            let start = usize::try_from(self.at.since(from).unwrap_or(0)).unwrap_or(usize::MAX);
            let rest = bytes.get(start..).unwrap_or_default();
            let frame = match GroupFrame::decode(rest, self.config.store, self.at) {
                Ok(frame) => frame,
                Err(error) => {
                    let later = rest.get(ALIGN..).unwrap_or_default();
                    let claims = claims(later, self.config.store, self.at.plus(ALIGN as u64));
                    if !last || was_synced(self.at, self.known, claims) {
                        return Err(segment.damage(self.at, error));
                    }
                    self.torn = true;
                    return Ok(());
                }
            };
            (self.replay.visit)(&frame).map_err(|error| segment.damage(self.at, error))?;
            self.known = self.known.max(frame.head.durable);
            self.at = self.at.plus(frame.len() as u64);
            if !frame.head.more {
                self.end = self.at;
                self.group = frame.head.group + 1;
            }
        }
        Ok(())
    }
}

/// The positions that sound frames in `bytes`, which lie at `start`, say were durable.
fn claims(bytes: &[u8], store: StoreId, start: GlobalOffset) -> impl Iterator<Item = GlobalOffset> {
    (0..bytes.len()).step_by(ALIGN).filter_map(move |offset| {
        let rest = bytes.get(offset..).unwrap_or_default();
        let frame = GroupFrame::decode(rest, store, start.plus(offset as u64)).ok()?;
        Some(frame.head.durable)
    })
}

/// What reading the frames found out about the last file.
struct Settled {
    /// Frames were read from here on.
    from: GlobalOffset,
    /// The end of the last whole group.
    end: GlobalOffset,
    /// All before this is durable.
    known: GlobalOffset,
}

/// Cuts the last file to `end`, makes it durable, and keeps the frames that were read in memory.
fn settle(
    tail: &Segment,
    config: &LogConfig,
    &Settled { from, end, known }: &Settled,
) -> Result<()> {
    if tail.end() > end {
        tail.cut(end.since(tail.start).unwrap_or(0));
        tail.file.truncate(tail.file_end())?;
        tail.file.sync()?;
    }
    if known <= tail.start {
        let header = config.header(tail.number, tail.start);
        tail.file.write_at(FileOffset::ZERO, &first_block(&header))?;
    }
    // What lies before `from` was not read and so not verified.
    let from = from.max(tail.start).min(tail.end());
    let frames = tail.rest(from)?.into_vec();
    let proven = usize::try_from(known.since(from).unwrap_or(0)).unwrap_or(usize::MAX);
    let proven = proven.min(frames.len());
    let unproven = frames.get(proven..).unwrap_or_default();
    tail.file.write_at(tail.place(from.plus(proven as u64)), unproven)?;
    tail.file.sync()?;
    tail.keep(from.since(tail.start).unwrap_or(0), frames);
    Ok(())
}
