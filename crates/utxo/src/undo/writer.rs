//! Writes the undo log in a lane: the set's writer hands records over and does not wait.
//!
//! ```text
//!  set's writer  ─ step ─ append ─ step ─ append ─ step ─ append ─ … ─ step ─ settle ─ step ─
//!                            │ at once, with its position    │            ▲ done, or failed
//!  lane                      └──── write ── write, seal, ────┴─── prune ──┘
//!                                           sync, new file
//! ```
//!
//! Positions count bytes of frames, so the writer knows a record's position before it is written,
//! and the next record can name it as its parent. Changes (append, cut, prune) are made in the
//! order in which they were handed over. The writer keeps a change until it has seen that it is
//! made: a record requested meanwhile is served from there.
//!
//! **Durability.** A checkpoint waits for the lane, in its own thread ([`PendingUndo`]): all
//! records up to its end are written, then the last file is synced.
//!
//! **When a change fails**, those after it are refused until the writer has noticed and starts a
//! new *round*. It notices before its next step, which fails with that error; before the step after
//! that, all changes that were not made are handed over again, in order. So the set survives a full
//! disk, and a step that was made is never undone.
//!
//! **Back-pressure.** [`UndoWriter::unwritten`] says how much is kept; the set's writer waits
//! ([`UndoWriter::next_end`]) while that is more than its share of the memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use varve_io::{FRAME_HEADER_LEN, GlobalOffset, PendingSync, Segments, SegmentsReader};
use varve_runs::{Compaction, Job, JobEnd, Lane};

use super::UndoError;

/// Memory that a change takes beside its record: the task, its answer and their places in queues.
const CHANGE_LEN: usize = 256;

/// Writes the log in a lane.
#[derive(Debug)]
pub(super) struct UndoWriter {
    /// Locked only by the lane's jobs, while they write.
    log: Arc<Mutex<Written>>,
    /// The number of the last round in which something has failed; 0 when nothing has.
    failed_round: Arc<AtomicU64>,
    reader: SegmentsReader,
    /// Changes not yet known to be made, in order.
    changes: VecDeque<Pending>,
    /// Bytes that they take.
    unwritten: usize,
    /// The position after the last record, written or not.
    end: GlobalOffset,
    /// Bytes of frames handed over since the log was opened.
    written: u64,
    /// Counted from 1.
    round: u64,
    lane: Lane,
}

/// What the lane works on.
#[derive(Debug)]
struct Written {
    segments: Segments,
    /// The last round in which something has failed, and why.
    failed: Option<(u64, Arc<str>)>,
}

impl Written {
    /// The log, unless something has failed in this round.
    fn in_round(&mut self, round: u64) -> Result<&mut Segments, UndoError> {
        match &self.failed {
            Some((failed, cause)) if *failed >= round => {
                Err(UndoError::Unwritten { at: self.segments.end(), cause: Arc::clone(cause) })
            }
            _ => Ok(&mut self.segments),
        }
    }
}

/// A change of the log.
#[derive(Clone, Debug)]
enum Change {
    Append { at: GlobalOffset, payload: Arc<Vec<u8>> },
    Cut(GlobalOffset),
    Prune(GlobalOffset),
}

#[derive(Debug)]
struct Pending {
    change: Change,
    /// `None` when it failed or one before it did: it is to be handed over again.
    job: Option<Job<Result<(), UndoError>>>,
}

/// The task that makes a checkpoint's records durable.
#[derive(Debug)]
#[must_use = "nothing is durable before it is finished"]
pub(crate) struct PendingUndo(Job<Result<PendingSync, UndoError>>);

impl PendingUndo {
    /// Waits until the records are written, and syncs them and the names of all files.
    pub(crate) fn finish(self) -> Result<(), UndoError> {
        Ok(self.0.wait()?.finish()?)
    }
}

impl UndoWriter {
    pub(super) fn new(log: Segments, compaction: Compaction) -> std::io::Result<Self> {
        Ok(Self {
            reader: log.reader(),
            end: log.end(),
            log: Arc::new(Mutex::new(Written { segments: log, failed: None })),
            changes: VecDeque::new(),
            unwritten: 0,
            written: 0,
            failed_round: Arc::default(),
            round: 1,
            lane: Lane::new(compaction, "utxo-undo")?,
        })
    }

    pub(super) const fn reader(&self) -> &SegmentsReader {
        &self.reader
    }

    /// Bytes of frames handed over since the log was opened.
    #[cfg(feature = "test-suite")]
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of memory of changes not yet known to be made.
    pub(super) const fn unwritten(&self) -> usize {
        self.unwritten
    }

    /// The record at `at`, if it is kept because it may not be written yet.
    pub(super) fn find(&self, at: GlobalOffset) -> Option<&Arc<Vec<u8>>> {
        self.changes.iter().rev().find_map(|pending| match &pending.change {
            Change::Append { at: place, payload } if *place == at => Some(payload),
            _ => None,
        })
    }

    /// All records that may not be written yet, oldest first.
    pub(super) fn kept(&self) -> impl Iterator<Item = (GlobalOffset, &Arc<Vec<u8>>)> {
        self.changes.iter().filter_map(|pending| match &pending.change {
            Change::Append { at, payload } => Some((*at, payload)),
            Change::Cut(_) | Change::Prune(_) => None,
        })
    }

    /// Appends a record and returns its position.
    pub(super) fn append(&mut self, payload: &Arc<Vec<u8>>) -> GlobalOffset {
        let (at, frame) = (self.end, FRAME_HEADER_LEN as u64 + payload.len() as u64);
        self.end = at.plus(frame);
        self.written += frame;
        self.hand_over(Change::Append { at, payload: Arc::clone(payload) });
        at
    }

    /// Removes all records from `to` on.
    pub(super) fn cut(&mut self, to: GlobalOffset) {
        self.end = to;
        self.hand_over(Change::Cut(to));
    }

    /// Removes whole files before this position.
    pub(super) fn prune(&mut self, before: GlobalOffset) {
        self.hand_over(Change::Prune(before));
    }

    /// Takes in what is done, and hands failed changes over again. An error means that a change has
    /// failed since the last call.
    pub(super) fn settle(&mut self) -> Result<(), UndoError> {
        self.hand_over_again();
        while self.take_first(false)? {}
        Ok(())
    }

    /// Hands failed changes over again, without an error: there may be space on the disk by now.
    pub(super) fn retry(&mut self) {
        if self.failed_round.load(Ordering::Acquire) >= self.round {
            // Changes after the failed one are refused at once, so this is quick.
            while let Ok(true) = self.take_first(true) {}
            self.hand_over_again();
        }
    }

    /// Waits until all is written.
    pub(super) fn wait(&mut self) -> Result<(), UndoError> {
        self.hand_over_again();
        while self.take_first(true)? {}
        Ok(())
    }

    /// A handle to wait for the first change not yet known to be made.
    pub(super) fn next_end(&self) -> Option<JobEnd> {
        self.changes.front().and_then(|first| first.job.as_ref()).map(Job::end)
    }

    /// Makes everything up to the current end durable, once the lane has reached it.
    pub(super) fn begin_sync(&mut self) -> (GlobalOffset, PendingUndo) {
        let (log, round) = (Arc::clone(&self.log), self.round);
        let job = self.lane.start(move || {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(log.in_round(round)?.begin_sync()?.1)
        });
        (self.end, PendingUndo(job))
    }

    fn hand_over(&mut self, change: Change) {
        self.unwritten += change.len();
        // After a failed one it waits for its turn.
        let waits = self.changes.back().is_some_and(|last| last.job.is_none());
        let job = (!waits).then(|| self.start(&change));
        self.changes.push_back(Pending { change, job });
    }

    fn hand_over_again(&mut self) {
        if self.changes.front().is_some_and(|first| first.job.is_none()) {
            self.round += 1;
            let changes = std::mem::take(&mut self.changes);
            for Pending { change, .. } in changes {
                let job = Some(self.start(&change));
                self.changes.push_back(Pending { change, job });
            }
        }
    }

    fn start(&self, change: &Change) -> Job<Result<(), UndoError>> {
        let (log, round, change) = (Arc::clone(&self.log), self.round, change.clone());
        let failed_round = Arc::clone(&self.failed_round);
        self.lane.start(move || {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let made = change.make(log.in_round(round)?);
            if let Err(error) = &made {
                log.failed = Some((round, error.to_string().into()));
                failed_round.store(round, Ordering::Release);
            }
            made
        })
    }

    /// Takes in the first change if it is made, or waits for it if `wait`. False when there is
    /// none.
    fn take_first(&mut self, wait: bool) -> Result<bool, UndoError> {
        let job = self.changes.front().and_then(|first| first.job.as_ref());
        let Some(result) = job.and_then(|job| job.take(wait)) else { return Ok(false) };
        if let Err(error) = result {
            self.changes.iter_mut().for_each(|pending| pending.job = None);
            return Err(error);
        }
        let made = self.changes.pop_front().map_or(0, |made| made.change.len());
        self.unwritten -= made;
        Ok(true)
    }
}

impl Change {
    /// Bytes of memory that it takes while it waits.
    fn len(&self) -> usize {
        CHANGE_LEN
            + match self {
                Self::Append { payload, .. } => payload.capacity(),
                Self::Cut(_) | Self::Prune(_) => 0,
            }
    }

    fn make(self, log: &mut Segments) -> Result<(), UndoError> {
        match self {
            Self::Append { at, payload } => {
                let end = log.end();
                if end != at {
                    return Err(UndoError::OutOfOrder { at, end });
                }
                log.append(&[&payload])?;
            }
            Self::Cut(to) => log.truncate(to)?,
            Self::Prune(before) => {
                log.prune(before)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use varve_io::faulty::FaultyStorage;
    use varve_io::{Kind, SegmentsConfig, StoreId};

    /// The record above it names the position, so a record elsewhere would never be found.
    #[test]
    fn a_record_is_written_where_it_belongs_or_not_at_all() {
        let config = SegmentsConfig {
            prefix: "undo".to_owned(),
            kind: Kind(*b"UTXOUND1"),
            store: StoreId([1; 16]),
            segment_size: 1 << 20,
        };
        let storage = Arc::new(FaultyStorage::new(1));
        let mut log = Segments::open(storage, config, GlobalOffset::ZERO).unwrap();
        let append = |at| Change::Append { at, payload: Arc::new(vec![7; 10]) };
        let elsewhere = append(GlobalOffset::ZERO.plus(1)).make(&mut log);
        assert!(matches!(elsewhere, Err(UndoError::OutOfOrder { .. })), "{elsewhere:?}");
        assert_eq!(log.end(), GlobalOffset::ZERO);
        append(GlobalOffset::ZERO).make(&mut log).unwrap();
        assert!(log.end() > GlobalOffset::ZERO);
    }
}
