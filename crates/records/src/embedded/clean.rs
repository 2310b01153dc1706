//! Cleaning the log from its front.
//!
//! When the log is longer than twice what is live and two files, the caller that wrote a group
//! walks some frames at the front, in proportion to what was written since the last walk. An entry
//! that is still the newest of its key, or has the body of one that is, is touched: it joins the
//! open group and so moves to the end. A file is dropped when all of it was walked, what it held
//! was written again durably, and no recovery needs it. Since the log is twice as long as what
//! lives in it, a walk over all of it copies at most as much as was written meanwhile: cleaning at
//! most doubles what is written.
//!
//! Whether entries are still the newest is asked of the index for all of a walk together.
//!
//! The front is the coldest part of the log. It is read while neither the lock of the groups nor
//! the disk is held, so other callers keep executing and writing; the lock is taken only to put
//! what was read into the open group.
//!
//! A process may end before it has walked far, and the next one begins at the front again. So
//! opening a store does what is overdue ([`Commit::tend`]): a checkpoint when the log behind the
//! last one is as long as one process would let it grow, and up to two files of cleaning. Many
//! short processes therefore leave the same log as one long one.

use varve_io::{GlobalOffset, Result};

use super::commit::{Commit, panicked, storage};
use super::entry::{Before, EntryHead, EntryKind};
use super::fetch::Fetched;
use super::group::GroupFrame;
use super::key::{Key, Part};
use super::log::Log;
use super::maintain::Disk;
use super::read::{Miss, retry};
use crate::engine::EngineError;

/// Bytes that are walked at least, when anything is.
pub(super) const WALK: u64 = 256 << 10;
/// Bytes that are walked at once when a store is opened: what lives there is in memory meanwhile.
const STEP: u64 = 4 << 20;
/// Files that opening cleans at most.
const FILES: usize = 2;

/// How far the front was walked.
#[derive(Debug)]
pub(super) struct Cleaner {
    segment_size: u64,
    /// All before this was walked and touched.
    walked: GlobalOffset,
    /// The end of the log when cleaning was last considered.
    seen: GlobalOffset,
}

/// What the groups know about cleaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleaned {
    /// All before this was moved, durably.
    pub(super) to: GlobalOffset,
    /// Recovery needs all from here on.
    pub(super) replay_from: GlobalOffset,
    /// A group failed, and with it what was touched: the walk begins again at `to`.
    pub(super) again: bool,
}

/// How far a walk went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    /// Versions before this are moved: the end of the file that is walked.
    pub(super) boundary: GlobalOffset,
    /// All before this is moved when the group is durable.
    pub(super) end: GlobalOffset,
}

/// Entries of the front.
struct Front {
    entries: Vec<FrontEntry>,
    end: GlobalOffset,
}

#[derive(Clone, Copy)]
struct FrontEntry {
    key: Key,
    kind: EntryKind,
    at: GlobalOffset,
}

impl FrontEntry {
    /// Whether it is the newest of its key, or may have the body of the newest, when these versions
    /// may be of its key.
    fn is_needed(&self, versions: &[Before]) -> bool {
        match self.kind {
            EntryKind::Gone => false,
            // Touching looks at the record and moves the body only when it lies in the way.
            EntryKind::Whole => !versions.is_empty(),
            EntryKind::State | EntryKind::Chunk | EntryKind::Intent => {
                versions.iter().any(|version| version.at == self.at)
            }
        }
    }
}

impl Cleaner {
    pub(super) fn new(log: &Log, segment_size: u64) -> Self {
        Self { segment_size, walked: log.start(), seen: log.end() }
    }

    fn is_due(&self, log: &Log, live: u64) -> bool {
        let held = log.end().since(log.start()).unwrap_or(0);
        held > 2 * live + 2 * self.segment_size
    }

    /// The end of the file that is walked next; `None` when recovery needs it anyway.
    fn boundary(&self, log: &Log, replay_from: GlobalOffset) -> Option<GlobalOffset> {
        let boundary = log.full_ends().into_iter().find(|end| *end > self.walked)?;
        (boundary <= replay_from).then_some(boundary)
    }

    /// Reads frames up to a boundary, and stops after `bytes`.
    fn walk(&self, log: &Log, boundary: GlobalOffset, bytes: u64) -> Result<Front> {
        let from = self.walked.max(log.start());
        let frames = log.frames_from(from)?;
        let mut front = Front { entries: Vec::new(), end: from };
        while front.end < boundary && front.end.since(from).is_some_and(|done| done < bytes) {
            let at = front.end;
            let start = usize::try_from(at.since(from).unwrap_or(0)).unwrap_or(usize::MAX);
            let rest = frames.get(start..).unwrap_or_default();
            let damage = |error| log.damage(at, error);
            let frame = GroupFrame::decode(rest, log.store(), at).map_err(damage)?;
            for entry in frame.entries() {
                let (at, head, _) = entry.map_err(damage)?;
                let EntryHead { key, kind, .. } = head;
                if kind != EntryKind::Gone {
                    front.entries.push(FrontEntry { key, kind, at });
                }
            }
            front.end = at.plus(frame.len() as u64);
        }
        Ok(front)
    }
}

impl Commit {
    /// Walks some of the front, if it is time. True when something was walked.
    pub(super) fn clean(&self, at_least: u64) -> Result<bool, EngineError> {
        // One walk at a time; other callers skip it.
        let Ok(mut cleaner) = self.cleaner.try_lock() else { return Ok(false) };
        let Cleaned { to, replay_from, again } = self.begin_cleaning()?;
        if again {
            cleaner.walked = to;
        }
        let log = &self.base.log;
        // Also when nothing is walked now: a walk is never in debt for what was written long ago.
        let written = log.end().since(cleaner.seen).unwrap_or(0);
        cleaner.seen = log.end();
        let live = self.index()?.totals().live;
        if !cleaner.is_due(log, live) {
            return Ok(false);
        }
        let Some(boundary) = cleaner.boundary(log, replay_from) else { return Ok(false) };
        let front = cleaner.walk(log, boundary, at_least.max(2 * written)).map_err(storage)?;
        let (keys, fetched) = retry(|| self.fetch_front(&front, boundary))?;
        if self.move_to_end(&keys, Walked { boundary, end: front.end }, &fetched)? {
            cleaner.walked = front.end;
        }
        Ok(true)
    }

    /// Looks up which entries of the front are needed, all at once, and brings what is needed to
    /// move them.
    fn fetch_front(
        &self,
        front: &Front,
        boundary: GlobalOffset,
    ) -> Result<(Vec<Key>, Fetched), Miss> {
        let found = front.entries.iter().map(|entry| entry.key).collect::<Vec<_>>();
        let found = self.look_up(&found)?;
        let mut fetched = Fetched::default();
        found.add_to(&mut fetched.facts);
        let (mut keys, mut positions) = (Vec::new(), Vec::new());
        for (number, entry) in front.entries.iter().enumerate() {
            let versions = found.of(number);
            if entry.is_needed(versions) {
                keys.push(entry.key);
                positions.extend(versions.iter().map(|version| version.at));
            }
        }
        self.fetch_at(&positions, &mut fetched)?;
        for key in keys.iter().filter(|key| key.part == Part::RECORD) {
            self.fetch_body(key.txid, boundary, &mut fetched)?;
        }
        Ok((keys, fetched))
    }

    /// Does the upkeep that earlier processes left. That it fails is no reason not to open.
    pub(super) fn tend(&self) -> Result<(), EngineError> {
        let tended = self.try_tend();
        self.note_trouble(tended.err())
    }

    fn try_tend(&self) -> Result<(), EngineError> {
        self.with_disk(Disk::catch_up)?;
        // By the files that are there: the process that wrote them may have made larger ones.
        let ends = self.base.log.full_ends();
        let end = ends.get(FILES - 1).or(ends.last()).copied().unwrap_or_default();
        loop {
            let more = self.walked()? < end && self.clean(STEP)?;
            // Writes what was moved, also by the walk that followed the group before.
            self.run(|| Ok(Fetched::default()), |_| Ok(()))?;
            if !more {
                return self.prune_log();
            }
        }
    }

    /// How far the front was walked.
    pub(super) fn walked(&self) -> Result<GlobalOffset, EngineError> {
        Ok(self.cleaner.lock().map_err(|_| panicked())?.walked)
    }
}
