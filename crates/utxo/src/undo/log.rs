//! The undo records of the last blocks, in a log that a reorganisation does not rewrite.
//!
//! ```text
//!  frame    │ parent u64: position + 1 of the record of the block below, 0 = none │ record │
//!
//!  log      ├─ 700 ─┬─ 701 ─┬─ 702 ─┬─ 701' ─┬─ 702' ─┤
//!                ▲──────┘▲──────┘       │ ▲──────┘          tip = 702'
//!                └──────────────────────┘
//! ```
//!
//! Every record leads to that of the block below, so the chain's records are a stack that the
//! position of the tip's record identifies: connecting pushes, disconnecting goes to the parent,
//! and nothing has to be indexed or scanned. The records of disconnected blocks stay until their
//! segment is removed.
//!
//! - **Only steps that were made have records.** A record is [staged](UndoLog::stage) before the
//!   step, which is what can fail, and [pushed](UndoLog::push) after it. So a refused attempt
//!   leaves nothing that a replay could mistake for a block of the chain.
//! - **No step waits for the disk**: a lane writes the records (`writer`), and
//!   [`UndoLog::settle`] reports errors before a later step.
//! - **Checkpoint.** [`UndoLog::begin_sync`] returns an [`UndoCheckpoint`], to be kept in the set's
//!   manifest, and the task that makes it durable. The log is opened from it.
//! - **Recovery.** Records after the checkpoint that survived a crash are not part of the chain
//!   yet, but the replay can take the next of them ([`UndoLog::survivor`]) and need not fetch spent
//!   coins from disk. A push that equals it adopts it; any other cuts the log there.
//! - **Pruning.** The checkpoint marks the position of every 64th block, so the log knows where the
//!   last 4,096 blocks begin, and removes whole segments before that.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use varve_io::{GlobalOffset, Kind, Segments, SegmentsConfig, SegmentsReader, Storage, StoreId};
use varve_runs::{Compaction, JobEnd, Sequence};
use varve_types::{Height, Reader};

use super::writer::{PendingUndo, UndoWriter};
use super::{Spenders, UndoCheckpoint, UndoError, UndoHead, UndoRecord};
use crate::entry_list::EntryError;

const KIND: Kind = Kind(*b"UTXOUND1");
/// Prefix of the names of its files.
pub(crate) const UNDO_PREFIX: &str = "undo";
/// Every block whose height is a multiple of this is marked with its record's position.
const MARK_INTERVAL: u32 = 64;
/// Typical bytes of a record per spent coin, with as many created.
const USUAL_LEN: usize = 96;
pub(super) const PARENT_LEN: usize = size_of::<u64>();

/// How the log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoConfig {
    /// The number of last blocks whose records are kept.
    pub blocks: u32,
    /// Bytes of a segment.
    pub segment_size: u64,
    /// Bytes of recent records kept in memory.
    pub cache: usize,
}

impl Default for UndoConfig {
    fn default() -> Self {
        Self { blocks: 4096, segment_size: 64 << 20, cache: 16 << 20 }
    }
}

/// A record whose push cannot fail.
#[derive(Debug)]
pub(crate) struct Staged {
    height: Height,
    payload: Vec<u8>,
    /// Its position, if it survived a crash.
    adopted: Option<GlobalOffset>,
}

/// Where the record of the block below is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Below(Option<GlobalOffset>);

/// The read of a record, for a thread that may wait for the disk. Afterwards the log has the record
/// in memory.
#[derive(Clone, Debug)]
pub(crate) struct RecordRead {
    reader: SegmentsReader,
    at: GlobalOffset,
    payload: Arc<OnceLock<Arc<Vec<u8>>>>,
}

impl RecordRead {
    /// Reads it.
    pub(crate) fn finish(&self) -> Result<(), UndoError> {
        let payload = Arc::new(self.reader.frame(self.at)?[..].to_vec());
        self.payload.get_or_init(|| payload);
        Ok(())
    }
}

/// The chain of records, and its writer.
#[derive(Debug)]
pub(crate) struct UndoLog {
    writer: UndoWriter,
    config: UndoConfig,
    tip: Option<GlobalOffset>,
    marks: Vec<(Height, GlobalOffset)>,
    /// Payloads of the last records, oldest first.
    recent: VecDeque<(GlobalOffset, Arc<Vec<u8>>)>,
    recent_bytes: usize,
    /// The read handed out last, whose result the log uses.
    asked: Option<RecordRead>,
    /// Records after the checkpoint that have not been pushed again yet.
    survivors: VecDeque<(Sequence, GlobalOffset)>,
}

impl UndoLog {
    /// Opens the log as it was at `checkpoint`, a new one with `UndoCheckpoint::default()`.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        store: StoreId,
        config: UndoConfig,
        compaction: Compaction,
        checkpoint: &UndoCheckpoint,
    ) -> Result<Self, crate::Error> {
        let segments = SegmentsConfig {
            prefix: UNDO_PREFIX.to_owned(),
            kind: KIND,
            store,
            segment_size: config.segment_size,
        };
        let log = Segments::open(storage, segments, checkpoint.durable)?;
        let survivors = survivors(&log, checkpoint)?;
        let UndoCheckpoint { tip, mut marks, .. } = checkpoint.clone();
        // Pruning follows the checkpoint that allows it, so some marks may refer to removed
        // records.
        marks.retain(|(_, position)| *position >= log.start());
        let writer = UndoWriter::new(log, compaction).map_err(crate::Error::Thread)?;
        let recent = VecDeque::new();
        Ok(Self { writer, config, tip, marks, recent, recent_bytes: 0, asked: None, survivors })
    }

    /// Prepares the record of a block that is to be connected on the tip. `encode` appends its
    /// bytes. The number of spent coins sizes the buffer.
    pub(crate) fn stage(
        &self,
        record: &UndoHead,
        coins: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Staged, UndoError> {
        let parent = self.tip.map_or(0, |tip| tip.get() + 1);
        let mut payload = Vec::with_capacity(USUAL_LEN * (coins + 4));
        payload.extend_from_slice(&parent.to_le_bytes());
        encode(&mut payload);
        let adopted = match self.survivors.front() {
            Some((sequence, at)) if *sequence == record.sequence => {
                (*self.payload(*at)? == *payload).then_some(*at)
            }
            _ => None,
        };
        Ok(Staged { height: record.height, payload, adopted })
    }

    /// Adds the record of the block that was connected on the tip since it was staged.
    pub(crate) fn push(&mut self, staged: Staged) {
        let Staged { height, mut payload, adopted } = staged;
        payload.shrink_to_fit();
        let payload = Arc::new(payload);
        let survivor = self.survivors.pop_front();
        let at = adopted.unwrap_or_else(|| {
            if let Some((_, at)) = survivor {
                self.writer.cut(at);
                self.survivors.clear();
            }
            self.writer.append(&payload)
        });
        assert!(self.tip < Some(at), "a record lies after that of the block below");
        if height.to_u32().is_multiple_of(MARK_INTERVAL) {
            self.marks.retain(|(other, _)| *other < height);
            self.marks.push((height, at));
        }
        (self.tip, self.asked) = (Some(at), None);
        self.remember(at, payload);
    }

    /// Takes in what the lane has done. An error means that a write has failed; the next call
    /// retries it.
    pub(crate) fn settle(&mut self) -> Result<(), UndoError> {
        self.writer.settle()
    }

    /// Retries failed writes.
    pub(crate) fn retry(&mut self) {
        self.writer.retry();
    }

    /// Waits for the lane until all records are written.
    pub(crate) fn wait(&mut self) -> Result<(), UndoError> {
        self.writer.wait()
    }

    /// A handle to wait for the lane's next change.
    pub(crate) fn next_end(&self) -> Option<JobEnd> {
        self.writer.next_end()
    }

    /// Bytes of memory of unwritten records.
    pub(crate) const fn unwritten(&self) -> usize {
        self.writer.unwritten()
    }

    /// Changes the limit of recent records kept in memory, in bytes.
    pub(crate) const fn set_cache(&mut self, bytes: usize) {
        self.config.cache = bytes;
    }

    /// Bytes of memory of records. Unwritten ones are mostly in the cache too.
    pub(crate) fn memory(&self) -> usize {
        self.recent_bytes.max(self.writer.unwritten())
    }

    /// The record of the tip, and where that of the block below is; `None` when no block was
    /// connected yet.
    pub(crate) fn tip(&self) -> Result<Option<(UndoRecord, Below)>, UndoError> {
        let Some(at) = self.tip else { return Ok(None) };
        let payload = self.payload(at)?;
        let (parent, record) = split(at, &payload)?;
        let record = UndoRecord::decode(record).map_err(|error| damaged(at, error))?;
        Ok(Some((record, Below(parent))))
    }

    /// The read needed before [`UndoLog::tip`] can answer without the disk, if any.
    pub(crate) fn tip_to_read(&mut self) -> Option<RecordRead> {
        self.read_of(self.tip?)
    }

    /// The read needed before [`UndoLog::stage`] can answer for this step without the disk, if any.
    pub(crate) fn survivor_to_read(&mut self, sequence: Sequence) -> Option<RecordRead> {
        let (_, at) = *self.survivors.front().filter(|(next, _)| *next == sequence)?;
        self.read_of(at)
    }

    /// The read of a record that is not in memory.
    fn read_of(&mut self, at: GlobalOffset) -> Option<RecordRead> {
        let reader = self.writer.reader();
        if at < reader.start() || self.in_memory(at).is_some() {
            return None;
        }
        let read = RecordRead { reader: reader.clone(), at, payload: Arc::default() };
        self.asked = Some(read.clone());
        Some(read)
    }

    /// Goes to the block below: the tip was disconnected.
    pub(crate) fn pop(&mut self, below: Below) {
        assert!(below.0 < self.tip, "the record of the block below lies before the tip's");
        let at = std::mem::replace(&mut self.tip, below.0);
        self.asked = None;
        self.marks.pop_if(|(_, mark)| Some(*mark) == at);
    }

    /// The record that survived a crash and that the next push adopts, if it is the same.
    pub(crate) fn survivor(&self) -> Result<Option<UndoRecord>, UndoError> {
        let Some((_, at)) = self.survivors.front() else { return Ok(None) };
        let payload = self.payload(*at)?;
        let (parent, record) = split(*at, &payload)?;
        if parent != self.tip {
            return Ok(None);
        }
        UndoRecord::decode(record).map(Some).map_err(|error| damaged(*at, error))
    }

    /// The state needed to find who spent a coin, independent of this log.
    pub(crate) fn spenders(&self) -> Spenders {
        let recent = self.recent.iter().map(|(at, payload)| (*at, Arc::clone(payload)));
        let kept = self.writer.kept().map(|(at, payload)| (at, Arc::clone(payload)));
        let (reader, tip) = (self.writer.reader().clone(), self.tip);
        Spenders { reader, tip, recent: recent.chain(kept).collect() }
    }

    /// Reads every record in the log, also those of disconnected blocks, and follows the chain from
    /// its tip down. Returns the number of records.
    pub(crate) fn verify(&self) -> Result<u64, UndoError> {
        let (reader, mut records) = (self.writer.reader(), 0);
        for frame in reader.frames(reader.start()) {
            let frame = frame?;
            let (_, bytes) = split(frame.at(), &frame)?;
            UndoRecord::decode(bytes).map_err(|error| damaged(frame.at(), error))?;
            records += 1;
        }
        let mut next = self.tip;
        while let Some(at) = next.filter(|at| *at >= reader.start()) {
            (next, _) = split(at, &self.payload(at)?)?;
        }
        Ok(records)
    }

    /// A height from which every block of the chain has a record; `None` when unknown.
    pub(crate) fn kept_from(&self) -> Option<Height> {
        self.marks.first().map(|(height, _)| *height)
    }

    /// Moves to a block without a record: the tip was disconnected by other means.
    pub(crate) fn forget_chain(&mut self) {
        self.tip = None;
        self.marks.clear();
    }

    /// A checkpoint of the current state, and the task that makes its records durable, possibly in
    /// another thread. The checkpoint is valid only after that.
    pub(crate) fn begin_sync(&mut self) -> (UndoCheckpoint, PendingUndo) {
        let (end, pending) = self.writer.begin_sync();
        // Survivors are not part of the chain: the next opening finds them again.
        let durable = self.survivors.front().map_or(end, |(_, at)| *at);
        (UndoCheckpoint { durable, tip: self.tip, marks: self.marks.clone() }, pending)
    }

    /// Removes segments that hold no record of the last blocks below `tip`. To be called when
    /// a checkpoint from [`UndoLog::begin_sync`] is durable.
    pub(crate) fn prune(&mut self, tip: Height) {
        let Some(oldest) = tip.checked_sub(self.config.blocks) else { return };
        let passed = self.marks.partition_point(|(height, _)| *height <= oldest);
        let Some(kept) = passed.checked_sub(1) else { return };
        self.marks.drain(..kept);
        if let Some((_, position)) = self.marks.first() {
            self.writer.prune(*position);
        }
    }

    /// The bytes that were handed to the disk since the log was opened.
    #[cfg(feature = "test-suite")]
    pub(crate) const fn written(&self) -> u64 {
        self.writer.written()
    }

    fn in_memory(&self, at: GlobalOffset) -> Option<&Arc<Vec<u8>>> {
        let recent = self.recent.iter().rev().find(|(place, _)| *place == at);
        let asked = self.asked.as_ref().filter(|asked| asked.at == at);
        recent
            .map(|(_, payload)| payload)
            .or_else(|| self.writer.find(at))
            .or_else(|| asked?.payload.get())
    }

    fn payload(&self, at: GlobalOffset) -> Result<Arc<Vec<u8>>, UndoError> {
        if let Some(payload) = self.in_memory(at) {
            return Ok(Arc::clone(payload));
        }
        let reader = self.writer.reader();
        if at < reader.start() {
            return Err(UndoError::TooDeep);
        }
        Ok(Arc::new(reader.frame(at)?[..].to_vec()))
    }

    fn remember(&mut self, at: GlobalOffset, payload: Arc<Vec<u8>>) {
        self.recent_bytes += payload.len();
        self.recent.push_back((at, payload));
        while self.recent_bytes > self.config.cache {
            let Some((_, oldest)) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.len();
        }
    }
}

/// The records after the checkpoint, in order.
fn survivors(
    log: &Segments,
    checkpoint: &UndoCheckpoint,
) -> Result<VecDeque<(Sequence, GlobalOffset)>, UndoError> {
    let mut survivors = VecDeque::new();
    for frame in log.reader().frames(checkpoint.durable) {
        let frame = frame?;
        let sequence = frame.get(PARENT_LEN..).unwrap_or_default();
        let sequence = Reader::new(sequence).u32("a sequence");
        let sequence = sequence.map_err(|error| damaged(frame.at(), error.into()))?;
        survivors.push_back((Sequence::new(sequence), frame.at()));
    }
    Ok(survivors)
}

/// The parent's position and the record of a frame.
pub(super) fn split(
    at: GlobalOffset,
    payload: &[u8],
) -> Result<(Option<GlobalOffset>, &[u8]), UndoError> {
    let mut reader = Reader::new(payload);
    let parent = reader.u64("a position").map_err(|error| damaged(at, error.into()))?;
    // A parent is before its child, so a walk ends whatever the bytes say.
    let parent = parent.checked_sub(1).map(GlobalOffset::new);
    if parent.is_some_and(|parent| parent >= at) {
        let error = EntryError::OutOfRange { what: "the position of an earlier record", offset: 0 };
        return Err(damaged(at, error));
    }
    Ok((parent, reader.rest()))
}

pub(super) const fn damaged(at: GlobalOffset, error: EntryError) -> UndoError {
    UndoError::Damaged { at, error }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
