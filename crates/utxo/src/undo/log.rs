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
//! Every record leads to that of the block below, so the chain's records are a stack for which the
//! position of the tip's is enough: connecting pushes, disconnecting goes to the parent, and
//! nothing has to be indexed or scanned. The records of disconnected blocks stay where they
//! are until their segment goes.
//!
//! - **Checkpoint.** [`UndoLog::sync`] makes the log durable and returns an [`UndoCheckpoint`], to
//!   be kept with the set's manifest. Opening takes it back.
//! - **Recovery.** Records behind the checkpoint that survived a crash are not part of the chain
//!   yet, but the replay can ask for the next of them ([`UndoLog::survivor`]) and need not fetch
//!   spent coins from disk. A push that equals it adopts it; any other cuts the log there.
//! - **Pruning.** The checkpoint marks the position of every 64th block, so the log knows where the
//!   last 4,096 blocks begin and gives whole segments before that away.

use std::collections::VecDeque;
use std::sync::Arc;

use memchr::memmem;
use varve_io::{GlobalOffset, Kind, PendingSync, Segments, SegmentsConfig, Storage, StoreId};
use varve_types::{DecodeError, Height, Outpoint, Reader, Txid, varint};

use super::{UndoHead, UndoRecord};
use crate::entry_list::{EntryError, plausible, read_u32};
use crate::sequence::Sequence;

const KIND: Kind = Kind(*b"UTXOUND1");
/// A block of so many has a mark.
const MARK_EVERY: u32 = 64;
/// Bytes of a record for each coin spent, with as many made, as a rule.
const USUAL_LEN: usize = 96;
const PARENT_LEN: usize = size_of::<u64>();

/// How the log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoConfig {
    /// Blocks whose records are kept at least.
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

/// Why a record cannot be had or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] varve_io::Error),
    /// A record that verified does not decode.
    #[error("the undo record at position {at} is damaged: {error}; build the store anew")]
    Damaged {
        /// Where it is in the log.
        at: GlobalOffset,
        /// What is wrong.
        error: EntryError,
    },
    /// The block below the last record that is kept cannot be disconnected from here.
    #[error("no undo record is kept for this block; pass a source of spent coins")]
    TooDeep,
}

/// What has to be remembered to open the log again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoCheckpoint {
    durable: GlobalOffset,
    tip: Option<GlobalOffset>,
    /// Heights that are multiples of [`MARK_EVERY`], ascending, and where their records are.
    marks: Vec<(Height, GlobalOffset)>,
}

impl UndoCheckpoint {
    /// Appends the bytes, all numbers as VARINT.
    ///
    /// ```text
    /// │ durable │ tip + 1, 0 = none │ count │ height, position │ height, position │ …
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::write(self.durable.get(), out);
        varint::write(self.tip.map_or(0, |tip| tip.get() + 1), out);
        varint::write(self.marks.len() as u64, out);
        for (height, position) in &self.marks {
            varint::write(u64::from(height.to_u32()), out);
            varint::write(position.get(), out);
        }
    }

    /// Decodes the bytes at the front of `reader`.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, EntryError> {
        let position = |reader: &mut Reader<'_>| -> Result<GlobalOffset, DecodeError> {
            varint::read(reader, "a position").map(GlobalOffset::new)
        };
        let durable = position(reader)?;
        let tip = varint::read(reader, "a position")?.checked_sub(1).map(GlobalOffset::new);
        let count = varint::read(reader, "a number of marks")?;
        let mut marks = Vec::with_capacity(plausible(reader, count, 2, "marks")?);
        for _ in 0..count {
            let height = Height::new(read_u32(reader, "a height")?);
            marks.push((height, position(reader)?));
        }
        Ok(Self { durable, tip, marks })
    }
}

/// Which block the log stands at.
#[derive(Clone, Debug)]
pub struct UndoPosition {
    tip: Option<GlobalOffset>,
    marks: Vec<(Height, GlobalOffset)>,
}

/// The writer of the log.
#[derive(Debug)]
pub struct UndoLog {
    log: Segments,
    config: UndoConfig,
    tip: Option<GlobalOffset>,
    marks: Vec<(Height, GlobalOffset)>,
    /// Payloads of the last records, oldest first.
    recent: VecDeque<(GlobalOffset, Arc<Vec<u8>>)>,
    recent_bytes: usize,
    /// Records behind the checkpoint that nobody has pushed again yet.
    survivors: VecDeque<(Sequence, GlobalOffset)>,
    /// Bytes appended since it was opened.
    written: u64,
}

impl UndoLog {
    /// Opens the log as it was at `checkpoint`, a new one with `UndoCheckpoint::default()`.
    pub fn open(
        storage: Arc<dyn Storage>,
        store: StoreId,
        config: UndoConfig,
        checkpoint: &UndoCheckpoint,
    ) -> Result<Self, UndoError> {
        let segments = SegmentsConfig {
            prefix: "undo".to_owned(),
            kind: KIND,
            store,
            segment_size: config.segment_size,
        };
        let log = Segments::open(storage, segments, checkpoint.durable)?;
        let mut survivors = VecDeque::new();
        for frame in log.reader().frames(checkpoint.durable) {
            let frame = frame?;
            let sequence = frame.get(PARENT_LEN..).unwrap_or_default();
            let sequence = Reader::new(sequence).u32("a sequence");
            let sequence = sequence.map_err(|error| damaged(frame.at(), error.into()))?;
            survivors.push_back((Sequence::new(sequence), frame.at()));
        }
        let UndoCheckpoint { tip, mut marks, .. } = checkpoint.clone();
        // Pruning comes after the checkpoint that allows it, so some marks may be of what is gone.
        marks.retain(|(_, position)| *position >= log.start());
        let recent = VecDeque::new();
        Ok(Self { log, config, tip, marks, recent, recent_bytes: 0, survivors, written: 0 })
    }

    /// Adds the record of a block that was connected on the tip.
    pub fn push(&mut self, record: &UndoRecord) -> Result<(), UndoError> {
        self.push_encoded(&record.head(), record.spent.len(), |payload| record.encode(payload))
    }

    /// Adds the record of a block that is being connected, from the coins it takes, so many, which
    /// are appended by a function, and the bytes of its transactions.
    pub(crate) fn push_parts(
        &mut self,
        head: &UndoHead,
        spent: (usize, impl FnOnce(&mut Vec<u8>)),
        txs: &[u8],
    ) -> Result<(), UndoError> {
        self.push_encoded(head, spent.0, |payload| head.encode(spent, txs, payload))
    }

    fn push_encoded(
        &mut self,
        record: &UndoHead,
        coins: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), UndoError> {
        let parent = self.tip.map_or(0, |tip| tip.get() + 1);
        let mut payload = Vec::with_capacity(USUAL_LEN * (coins + 4));
        payload.extend_from_slice(&parent.to_le_bytes());
        encode(&mut payload);
        let at = match self.adopt(record.sequence, &payload)? {
            Some(at) => at,
            None => {
                let end = self.log.end();
                let places = self.log.append(&[&payload])?;
                self.written += self.log.end().since(end).unwrap_or(0);
                places.first().copied().expect("one payload has one place")
            }
        };
        if record.height.to_u32().is_multiple_of(MARK_EVERY) {
            self.marks.retain(|(height, _)| *height < record.height);
            self.marks.push((record.height, at));
        }
        self.tip = Some(at);
        self.remember(at, Arc::new(payload));
        Ok(())
    }

    /// The record of the tip; `None` when no block was connected yet.
    pub fn tip(&self) -> Result<Option<UndoRecord>, UndoError> {
        let Some(at) = self.tip else { return Ok(None) };
        let payload = self.payload(at)?;
        let (_, record) = split(at, &payload)?;
        let record = UndoRecord::decode(record);
        record.map(Some).map_err(|error| damaged(at, error))
    }

    /// Goes to the block below: the tip was disconnected.
    pub fn pop(&mut self) -> Result<(), UndoError> {
        let Some(at) = self.tip else { return Ok(()) };
        let payload = self.payload(at)?;
        self.tip = split(at, &payload)?.0;
        self.marks.pop_if(|(_, mark)| *mark == at);
        Ok(())
    }

    /// Where the log stands, to come back to when the step of a push or a pop is refused.
    #[must_use]
    pub fn position(&self) -> UndoPosition {
        UndoPosition { tip: self.tip, marks: self.marks.clone() }
    }

    /// Comes back. A record pushed since stays where it is, as those of disconnected blocks do.
    pub fn return_to(&mut self, position: UndoPosition) {
        UndoPosition { tip: self.tip, marks: self.marks } = position;
    }

    /// The record that survived a crash and that the next push adopts, if it is the same.
    pub fn survivor(&self) -> Result<Option<UndoRecord>, UndoError> {
        let Some((_, at)) = self.survivors.front() else { return Ok(None) };
        let payload = self.payload(*at)?;
        let (parent, record) = split(*at, &payload)?;
        if parent != self.tip {
            return Ok(None);
        }
        UndoRecord::decode(record).map(Some).map_err(|error| damaged(*at, error))
    }

    /// The transaction that spent this coin in a block of the chain whose record is kept. Goes
    /// through all of them, the youngest first: for errors, not for the way of every block.
    pub fn spender(&self, outpoint: &Outpoint) -> Result<Option<Txid>, UndoError> {
        let finder = memmem::Finder::new(outpoint.txid.as_bytes());
        let mut next = self.tip;
        while let Some(at) = next.filter(|at| *at >= self.log.start()) {
            let payload = self.payload(at)?;
            let (parent, bytes) = split(at, &payload)?;
            if finder.find(bytes).is_some() {
                let record = UndoRecord::decode(bytes).map_err(|error| damaged(at, error))?;
                if let Some(spender) = record.spender(outpoint) {
                    return Ok(Some(spender));
                }
            }
            next = parent;
        }
        Ok(None)
    }

    /// Reads every record in the log, also those of disconnected blocks, and follows the chain's.
    /// Gives how many there are.
    pub fn verify(&self) -> Result<u64, UndoError> {
        let (mut next, mut records) = (self.tip, 0);
        for frame in self.log.reader().frames(self.log.start()) {
            let frame = frame?;
            let (_, bytes) = split(frame.at(), &frame)?;
            UndoRecord::decode(bytes).map_err(|error| damaged(frame.at(), error))?;
            records += 1;
        }
        while let Some(at) = next.filter(|at| *at >= self.log.start()) {
            (next, _) = split(at, &self.payload(at)?)?;
        }
        Ok(records)
    }

    /// A height from which on every block of the chain has a record; `None` when that is not known.
    #[must_use]
    pub fn kept_from(&self) -> Option<Height> {
        self.marks.first().map(|(height, _)| *height)
    }

    /// Stands at a block without a record: the tip was disconnected by other means.
    pub fn forget_chain(&mut self) {
        self.tip = None;
        self.marks.clear();
    }

    /// Makes all records durable. The checkpoint counts once the owner has made it durable as well.
    pub fn sync(&mut self) -> Result<UndoCheckpoint, UndoError> {
        let (checkpoint, pending) = self.begin_sync()?;
        pending.finish()?;
        Ok(checkpoint)
    }

    /// The checkpoint of this moment, and what it takes to make its records durable, in another
    /// thread if the owner likes: only then the checkpoint counts.
    pub fn begin_sync(&mut self) -> Result<(UndoCheckpoint, PendingSync), UndoError> {
        let (end, pending) = self.log.begin_sync()?;
        // Survivors are not part of the chain: whoever opens next meets them again.
        let durable = self.survivors.front().map_or(end, |(_, at)| *at);
        Ok((UndoCheckpoint { durable, tip: self.tip, marks: self.marks.clone() }, pending))
    }

    /// Gives away segments that hold no record of the last blocks below `tip`. To be called when
    /// the checkpoint that [`UndoLog::sync`] returned is durable.
    pub fn prune(&mut self, tip: Height) -> Result<(), UndoError> {
        let Some(oldest) = tip.checked_sub(self.config.blocks) else { return Ok(()) };
        let passed = self.marks.partition_point(|(height, _)| *height <= oldest);
        let Some(kept) = passed.checked_sub(1) else { return Ok(()) };
        self.marks.drain(..kept);
        if let Some((_, position)) = self.marks.first() {
            self.log.prune(*position)?;
        }
        Ok(())
    }

    /// The bytes that the log holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.log.end().since(self.log.start()).unwrap_or(0)
    }

    /// The bytes that were written since the log was opened.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// The position of the next survivor, when it is this very record; otherwise no survivor is
    /// left.
    fn adopt(
        &mut self,
        sequence: Sequence,
        payload: &[u8],
    ) -> Result<Option<GlobalOffset>, UndoError> {
        let Some((survivor, at)) = self.survivors.front().copied() else { return Ok(None) };
        if survivor == sequence && *self.payload(at)? == *payload {
            self.survivors.pop_front();
            return Ok(Some(at));
        }
        self.log.truncate(at)?;
        self.survivors.clear();
        Ok(None)
    }

    fn payload(&self, at: GlobalOffset) -> Result<Arc<Vec<u8>>, UndoError> {
        if let Some((_, payload)) = self.recent.iter().rev().find(|(place, _)| *place == at) {
            return Ok(Arc::clone(payload));
        }
        if at < self.log.start() {
            return Err(UndoError::TooDeep);
        }
        Ok(Arc::new(self.log.reader().frame(at)?[..].to_vec()))
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

/// The parent's position and the record of a frame.
fn split(at: GlobalOffset, payload: &[u8]) -> Result<(Option<GlobalOffset>, &[u8]), UndoError> {
    let mut reader = Reader::new(payload);
    let parent = reader.u64("a position").map_err(|error| damaged(at, error.into()))?;
    // A parent lies before its child, so a walk ends whatever the bytes say.
    let parent = parent.checked_sub(1).map(GlobalOffset::new);
    if parent.is_some_and(|parent| parent >= at) {
        let error = EntryError::OutOfRange { what: "the position of an earlier record", offset: 0 };
        return Err(damaged(at, error));
    }
    Ok((parent, reader.rest()))
}

const fn damaged(at: GlobalOffset, error: EntryError) -> UndoError {
    UndoError::Damaged { at, error }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
