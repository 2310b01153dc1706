//! The disk, as the one who writes has it, and the upkeep of the log.
//!
//! **Checkpoints.** A round begins when the log has grown by three times the size of the index, and
//! at least by `checkpoint_every`, since the last one. Then each group that is written copies one
//! shard. So checkpoints add at most a third to what is written, and recovery reads an amount of
//! log in proportion to the index.
//!
//! **Cleaning.** The log is cleaned from its front. When it is longer than twice what is live and
//! two files, each group walks some frames at the front; an entry that is still the newest of its
//! key, or has the body of one that is, is touched: it joins the open group and so moves to the
//! end. A file is dropped when all of it was walked, what it held was written again durably, and no
//! recovery needs it. Since the log is twice as long as what lives in it, a walk over all of it
//! copies at most as much as was written meanwhile: cleaning at most doubles what is written.

use std::sync::Arc;

use varve_io::{Error, GlobalOffset, Result};

use super::checkpoint::Checkpointer;
use super::entry::EntryKind;
use super::group::GroupFrame;
use super::index::{Index, SLOT_LEN};
use super::key::Key;
use super::log::{Log, LogWriter};
use super::working::Work;

/// So many bytes are walked at least, when anything is.
const WALK: u64 = 256 << 10;

/// What belongs to the one who writes.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) writer: LogWriter,
    checkpointer: Checkpointer,
    log: Arc<Log>,
    /// A round of checkpoints begins after so many bytes.
    checkpoint_every: u64,
    segment_size: u64,
    /// What the last group added to the log.
    added: u64,
    /// All before this was walked and touched.
    walked: GlobalOffset,
    /// All before this was moved, durably.
    cleaned: GlobalOffset,
}

/// How far to walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    bytes: u64,
}

impl Disk {
    pub(super) fn new(
        writer: LogWriter,
        checkpointer: Checkpointer,
        log: Arc<Log>,
        (checkpoint_every, segment_size): (u64, u64),
    ) -> Self {
        let start = log.start();
        Self {
            writer,
            checkpointer,
            log,
            checkpoint_every,
            segment_size,
            added: 0,
            walked: start,
            cleaned: start,
        }
    }

    /// A group that began at `begun` was published; all before `cleaned` was moved by it.
    pub(super) fn published(&mut self, cleaned: Option<GlobalOffset>, begun: GlobalOffset) {
        self.added = self.writer.end().since(begun).unwrap_or(0);
        self.cleaned = self.cleaned.max(cleaned.unwrap_or_default());
    }

    /// A group failed, and with it what was touched.
    pub(super) fn failed(&mut self) {
        self.added = 0;
        self.walked = self.cleaned;
    }

    /// Whether the next shard should be copied.
    pub(super) fn wants_checkpoint(&self, keys: usize) -> bool {
        let since = self.writer.end().since(self.checkpointer.manifest().durable).unwrap_or(0);
        let index = (keys * SLOT_LEN) as u64;
        self.checkpointer.is_busy() || since > self.checkpoint_every.max(3 * index)
    }

    /// Copies the next shard; true when that was the last of the round.
    pub(super) fn checkpoint(&mut self, index: &Index) -> Result<bool> {
        self.checkpointer.step(index, self.writer.end(), self.writer.group())
    }

    /// Whether the front of the log should be walked, and how far.
    pub(super) fn wants_cleaning(&self, log: &Log, live: u64) -> Option<Walk> {
        let held = self.writer.end().since(log.start()).unwrap_or(0);
        let slack = 2 * self.segment_size;
        let long = held > 2 * live + slack;
        long.then_some(Walk { bytes: WALK.max(2 * self.added) })
    }

    /// Walks frames at the front and touches what is needed of them.
    pub(super) fn clean(&mut self, work: &mut Work<'_>, walk: Walk) -> Result<()> {
        let full = self.log.full_ends();
        let Some(&boundary) = full.iter().find(|end| **end > self.walked) else { return Ok(()) };
        // What recovery needs is not dropped anyway.
        if boundary > self.checkpointer.manifest().replay_from {
            return Ok(());
        }
        let from = self.walked.max(self.log.start());
        let bytes = self.log.frames_from(from)?;
        let mut at = from;
        while at < boundary && at.since(from).is_some_and(|done| done < walk.bytes) {
            let start = usize::try_from(at.since(from).unwrap_or(0)).unwrap_or(usize::MAX);
            let rest = bytes.get(start..).unwrap_or_default();
            let damage = |error| self.log.damage(at, error);
            let frame = GroupFrame::decode(rest, self.log.store(), at).map_err(damage)?;
            for entry in frame.entries() {
                let (place, head, _) = entry.map_err(damage)?;
                if is_needed(work, head.key, place, head.kind)? {
                    work.touch(head.key, boundary)?;
                }
            }
            at = at.plus(frame.len() as u64);
        }
        self.walked = at;
        work.open.cleaned_to = Some(at);
        Ok(())
    }

    /// Drops files that nobody needs.
    pub(super) fn prune(&mut self) -> Result<()> {
        self.writer.prune(self.cleaned.min(self.checkpointer.manifest().replay_from))
    }
}

/// Whether the entry at `at` is the newest of its key, or may have the body of the newest.
fn is_needed(
    work: &mut Work<'_>,
    key: Key,
    at: GlobalOffset,
    kind: EntryKind,
) -> Result<bool, Error> {
    let hash = work.base.hasher.hash(&key);
    let mut slots = work.index.candidates(hash);
    Ok(match kind {
        EntryKind::Gone => false,
        // Touching looks at the record and moves the body only when it lies in the way.
        EntryKind::Whole => slots.next().is_some(),
        EntryKind::State | EntryKind::Chunk | EntryKind::Intent => {
            slots.any(|slot| slot.at() == at)
        }
    })
}
