//! Opening a log: what is there, what is kept, what is removed.
//!
//! 1. List the files by number. Numbers follow one another; a hole is damage, unless it lies
//!    beyond the durable position.
//! 2. Each file must have a sound header that starts where the file before it ends. Beyond the
//!    durable position, the first file whose header is not so, and all after it, are junk.
//! 3. A file before the last ends where the next begins. In the last file, and in any that the
//!    durable position does not cover, frames are verified one by one from the durable position
//!    on; the first that fails is where the log ends.
//! 4. Later files are removed and the directory synced; then the last file is cut and synced. In
//!    that order no crash in between leaves a file that starts where another ends by accident. Both
//!    are synced even when there is nothing to remove or cut: an earlier process may have done so
//!    and died before its sync.
//! 5. What was kept beyond the durable position is about to be served, so it is made durable: the
//!    process that wrote it may have died before its sync, or its sync may have failed. After a
//!    failed sync the kernel calls the pages clean and a new sync would do nothing, so they are
//!    written again, the same bytes, and then synced.
//!
//! Where every append was synced before the next, one frame at most can be torn. So before anything
//! is cut, what lies after the cut is searched for the header of another frame, at every byte: one
//! that is found proves that the frame at the cut was synced (`synced`), and damage is reported
//! instead.

use std::sync::Arc;

use super::series::Segment;
use super::{SegmentsConfig, Unsynced};
use crate::checksum::{Checksum, StoreId};
use crate::error::{Error, Result};
use crate::frame::{self, FRAME_HEADER_LEN, FrameHeader};
use crate::offset::{FileOffset, GlobalOffset};
use crate::origin::{is_far, remove_unnamed};
use crate::segment::{self, SegmentHeader};
use crate::storage::{Access, Caching, File, Storage};
use crate::synced::was_synced;

/// Payloads are verified in pieces of this size, whatever length a header claims.
const PIECE: usize = 1 << 20;

/// The segments of the log, cut to what verifies.
pub(super) fn recover(
    storage: &dyn Storage,
    config: &SegmentsConfig,
    durable: GlobalOffset,
    unsynced: Unsynced,
) -> Result<Vec<Arc<Segment>>> {
    let numbers = segment::numbers(&config.prefix, &storage.list()?);
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    let mut junk = numbers.as_slice();
    while let Some((&number, later)) = junk.split_first() {
        let before = segments.last();
        let Some(segment) = open_next(storage, config, number, before, durable)? else {
            break;
        };
        segments.push(Arc::new(segment));
        junk = later;
        let last = segments.last().expect("pushed above");
        if last.file_end().get() < last.file.size()? {
            break;
        }
    }
    let end = segments.last().map_or(GlobalOffset::ZERO, |segment| segment.end());
    if end < durable {
        return Err(missing(storage, config, &segments, durable));
    }
    if unsynced == Unsynced::One {
        check_cut(storage, config, segments.last(), junk)?;
    }
    let next = segments.last().map_or(0, |last| last.number.saturating_add(1));
    remove_junk(storage, config, junk, next)?;
    if let Some(last) = segments.last() {
        if last.file_end().get() < last.file.size()? {
            last.file.truncate(last.file_end())?;
        }
        last.file.sync()?;
    }
    // A segment that begins at the durable position or later may have an unproven header.
    let is_unproven = |s: &&Arc<Segment>| s.end() > durable || s.start >= durable;
    segments.iter().filter(is_unproven).try_for_each(|segment| rewrite(segment, durable))?;
    Ok(segments)
}

/// The segments of a log that is at rest: whole files that follow one another and end at `end`.
/// `None` when they do not, and opening for writing would have something to do or to refuse.
/// Frames are not looked at.
pub(super) fn at_rest(
    storage: &dyn Storage,
    config: &SegmentsConfig,
    end: GlobalOffset,
) -> Result<Option<Vec<Arc<Segment>>>> {
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    for number in segment::numbers(&config.prefix, &storage.list()?) {
        let file = storage.open(
            &segment::file_name(&config.prefix, number),
            Access::Read,
            Caching::Buffered,
        )?;
        let header = SegmentHeader::read(file.as_ref())?;
        let follows =
            segments.last().map_or(number > 0 || header.start == GlobalOffset::ZERO, |before| {
                before.number.checked_add(1) == Some(number) && before.end() == header.start
            });
        if !follows || header.check_is(&config.header(number, header.start)).is_err() {
            return Ok(None);
        }
        let body = file.size()?.saturating_sub(segment::HEADER_BYTES);
        segments.push(Arc::new(Segment::new(number, header.start, file, body)));
    }
    let found = segments.last().map_or(GlobalOffset::ZERO, |segment| segment.end());
    Ok((found == end).then_some(segments))
}

/// Rewrites what a segment holds beyond `durable`, including the header when the whole segment lies
/// beyond it, and syncs.
fn rewrite(segment: &Segment, durable: GlobalOffset) -> Result<()> {
    let place = segment.place(durable).filter(|_| durable > segment.start);
    let mut at = place.unwrap_or(FileOffset::ZERO);
    let mut piece = vec![0; PIECE];
    while at < segment.file_end() {
        let left = segment.file_end().get() - at.get();
        let count = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let part = piece.get_mut(..count).unwrap_or_default();
        segment.file.read_at(at, part)?;
        segment.file.write_at(at, part)?;
        at = at.plus(count as u64);
    }
    segment.file.sync()
}

/// Opens the segment `number` after `before`; `None` when the log ends before it.
fn open_next(
    storage: &dyn Storage,
    config: &SegmentsConfig,
    number: u64,
    before: Option<&Arc<Segment>>,
    durable: GlobalOffset,
) -> Result<Option<Segment>> {
    let begin = before.map(|before| before.end());
    let name = segment::file_name(&config.prefix, number);
    if before.is_some_and(|before| before.number.checked_add(1) != Some(number)) {
        return Ok(None);
    }
    let file = storage.open(&name, Access::Write, Caching::Buffered)?;
    // A file that was begun and never synced, unless the durable position says otherwise.
    let may_be_junk = begin.unwrap_or_default() >= durable;
    let header = match SegmentHeader::read(file.as_ref()) {
        Ok(header) => header,
        Err(error) if error.is_damage() && may_be_junk => return Ok(None),
        Err(error) => return Err(error),
    };
    // A first file other than number 0 is what pruning left: its header says where it starts.
    let begin = begin.or((number == 0).then_some(GlobalOffset::ZERO)).unwrap_or(header.start);
    if header.start != begin && may_be_junk {
        return Ok(None);
    }
    // A sound header that does not match is never junk: the file is foreign, or the caller is
    // wrong.
    let checked = header.check_is(&config.header(number, begin));
    checked.map_err(|error| error.in_file(file.path(), FileOffset::ZERO))?;
    let body = file.size()?.saturating_sub(segment::HEADER_BYTES);
    let end = header.start.plus(body);
    let segment = Segment::new(number, header.start, file, body);
    if end > durable {
        let from = durable.max(header.start);
        segment.publish(scan(&segment, config, from, end)?);
    }
    Ok(Some(segment))
}

/// Verifies frames from `from` on and returns where the last good one ends.
fn scan(
    segment: &Segment,
    config: &SegmentsConfig,
    from: GlobalOffset,
    end: GlobalOffset,
) -> Result<GlobalOffset> {
    let mut at = from;
    let mut piece = vec![0; PIECE.min(usize::try_from(end.get() - from.get()).unwrap_or(PIECE))];
    while let Some(place) = segment.place(at)
        && at.plus(frame::HEADER_BYTES) <= end
    {
        let mut header = [0; FRAME_HEADER_LEN];
        segment.file.read_at(place, &mut header)?;
        let Ok(header) = FrameHeader::decode(&header, config.store, at) else { break };
        let next = at.plus(header.frame_len());
        if next > end {
            break;
        }
        let mut crc = Checksum::new();
        let (mut from, mut left) = (place.plus(frame::HEADER_BYTES), header.length);
        while left > 0 {
            let count = usize::try_from(left).map_or(PIECE, |left| left.min(piece.len()));
            let part = piece.get_mut(..count).unwrap_or_default();
            segment.file.read_at(from, part)?;
            crc = crc.with(part);
            from = from.plus(count as u64);
            left -= count as u64;
        }
        if header.check_crc(crc).is_err() {
            break;
        }
        at = next;
    }
    Ok(at)
}

/// Fails when more than one frame follows the end of `last`.
fn check_cut(
    storage: &dyn Storage,
    config: &SegmentsConfig,
    last: Option<&Arc<Segment>>,
    junk: &[u64],
) -> Result<()> {
    let end = last.map_or(GlobalOffset::ZERO, |last| last.end());
    let cut = last.filter(|last| last.file.size().is_ok_and(|size| size > last.file_end().get()));
    let (file, place) = match (cut, junk) {
        (None, []) => return Ok(()),
        (Some(last), _) => (Arc::clone(&last.file), last.file_end()),
        (None, [number, ..]) => {
            let name = segment::file_name(&config.prefix, *number);
            let file = storage.open(&name, Access::Read, Caching::Buffered)?;
            (file, FileOffset::new(segment::HEADER_BYTES))
        }
    };
    // A file is begun only after the one before it was synced whole.
    let later_files = if cut.is_some() { junk } else { junk.get(1..).unwrap_or_default() };
    let behind = frames_behind(file.as_ref(), config.store, place, end)?;
    if later_files.is_empty() && !was_synced(end, GlobalOffset::ZERO, behind) {
        return Ok(());
    }
    let (path, what) = (file.path().to_path_buf(), "a frame that was synced does not verify");
    Err(Error::Corrupt { path, offset: place, what })
}

/// The positions of frames in the bytes after `place`, which is position `at` of the log. A frame
/// may begin at any byte.
fn frames_behind(
    file: &dyn File,
    store: StoreId,
    place: FileOffset,
    at: GlobalOffset,
) -> Result<Vec<GlobalOffset>> {
    let length = usize::try_from(file.size()?.saturating_sub(place.get())).unwrap_or(usize::MAX);
    let mut rest = vec![0; length];
    file.read_at(place, &mut rest)?;
    let heads = rest.windows(FRAME_HEADER_LEN).zip(0_u64..).skip(1);
    let found = heads.map(|(head, skipped)| (head, at.plus(skipped)));
    let found = found.filter(|(head, at)| FrameHeader::decode(head, store, *at).is_ok());
    Ok(found.map(|(_, at)| at).collect())
}

fn remove_junk(
    storage: &dyn Storage,
    config: &SegmentsConfig,
    junk: &[u64],
    next: u64,
) -> Result<()> {
    for number in junk {
        let name = segment::file_name(&config.prefix, *number);
        remove_unnamed(storage, &name, (config.store, 0), is_far(*number, next))?;
    }
    storage.sync_dir()
}

/// The error for a log that ends before the durable position.
fn missing(
    storage: &dyn Storage,
    config: &SegmentsConfig,
    segments: &[Arc<Segment>],
    durable: GlobalOffset,
) -> Error {
    match segments.last() {
        Some(last) => Error::UnexpectedEnd {
            path: last.file.path().to_path_buf(),
            len: last.file_end(),
            wanted: last.place(durable).unwrap_or_default(),
        },
        None => {
            Error::NotFound { path: storage.path().join(segment::file_name(&config.prefix, 0)) }
        }
    }
}
