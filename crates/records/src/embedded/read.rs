//! Reading records, each of one moment.
//!
//! Entries never change, so a set of positions that was taken under one hold of the index is a
//! snapshot of what it names. A record with more than eight slots is many entries: its state is
//! read first, to know how many; then the state's position and those of all chunks are taken
//! together. If the state has moved in between, all begins again. The same happens when a position
//! was dropped by cleaning before its entry was read.

use std::ops::Range;

use varve_io::{Error, GlobalOffset};
use varve_types::{Outpoint, Txid};

use super::body;
use super::chunk::{CHUNK, Chunk};
use super::commit::{Commit, storage};
use super::fetch::Fetched;
use super::index::Index;
use super::key::{Key, Part};
use super::overlay::{BodyPlace, HeldRecord, Value};
use super::working::chunks;
use crate::engine::{EngineError, SlotView};
use crate::fields::Fields;
use crate::record::{Reassignment, Record};

/// Fields that are kept with the slots.
const WITH_SLOTS: [Fields; 3] = [Fields::UTXOS, Fields::ALERTS, Fields::CHILDREN];

/// Chunks that are brought into memory together.
const WARM: usize = 4_096;

/// How often a record is looked up that moves meanwhile.
const TRIES: usize = 10_000;

/// Why a record has to be looked up again, or cannot be had.
pub(super) enum Miss {
    Moved,
    Failed(EngineError),
}

impl From<EngineError> for Miss {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

/// A position that is out of range was dropped by cleaning.
impl From<Error> for Miss {
    fn from(error: Error) -> Self {
        match error {
            Error::OutOfRange { .. } => Self::Moved,
            error => Self::Failed(storage(error)),
        }
    }
}

impl Commit {
    /// The records of these transactions.
    pub(super) fn read(
        &self,
        txids: &[Txid],
        fields: Fields,
    ) -> Result<Vec<Option<Record>>, EngineError> {
        self.warm(txids.iter().map(|txid| Key::record(*txid)))?;
        let read = |txid: &Txid| retry(|| self.read_one(*txid, fields));
        txids.iter().map(read).collect()
    }

    /// Single slots.
    pub(super) fn slots(
        &self,
        outpoints: &[Outpoint],
    ) -> Result<Vec<Option<SlotView>>, EngineError> {
        let keys = outpoints.iter().flat_map(|outpoint| {
            let further = outpoint.vout >= CHUNK;
            let chunk = Key { txid: outpoint.txid, part: Part::new(outpoint.vout / CHUNK) };
            [Some(Key::record(outpoint.txid)), further.then_some(chunk)].into_iter().flatten()
        });
        self.warm(keys)?;
        let read = |outpoint: &Outpoint| retry(|| self.slot_view(outpoint));
        outpoints.iter().map(read).collect()
    }

    /// Brings what these keys hold into memory, in one submission.
    pub(super) fn warm(&self, keys: impl Iterator<Item = Key>) -> Result<(), EngineError> {
        let index = self.index()?;
        let mut positions = Vec::new();
        for key in keys {
            let hash = self.base.hasher.hash(&key);
            positions.extend(index.candidates(hash).map(|slot| slot.at()));
        }
        drop(index);
        self.base.warmer.warm(&self.base.log, &positions);
        Ok(())
    }

    fn read_one(&self, txid: Txid, fields: Fields) -> Result<Option<Record>, Miss> {
        let Some((at, held)) = self.state_of(txid)? else { return Ok(None) };
        let head = &held.state.head;
        let mut record = head.to_record(txid);
        record.fields = fields.intersection(Fields::ALL);
        if fields.contains(Fields::TX) || fields.contains(Fields::INPOINTS) {
            let BodyPlace::At(place) = held.body else { return Err(Miss::Moved) };
            let bytes = self.base.body(place.at, &Fetched::default())?;
            let (inputs, body) = self.base.check(place.at, body::decode(&bytes, txid))?;
            record.body = fields.contains(Fields::TX).then_some(body);
            record.inputs = if fields.contains(Fields::INPOINTS) { inputs } else { Vec::new() };
        }
        if WITH_SLOTS.into_iter().any(|field| fields.contains(field)) {
            let mut slots = Slots { record: &mut record, reassignments: Vec::new() };
            slots.add(&held.state.first);
            self.each_chunk(txid, at, 1..chunks(head.total_utxos), |chunk| slots.add(chunk))?;
            slots.finish();
            if fields.contains(Fields::CHILDREN) {
                record.children.conflicting.clone_from(&head.conflicting_children);
            }
        }
        Ok(Some(record))
    }

    fn slot_view(&self, outpoint: &Outpoint) -> Result<Option<SlotView>, Miss> {
        let Some((at, held)) = self.state_of(outpoint.txid)? else { return Ok(None) };
        let vout = outpoint.vout;
        let head = &held.state.head;
        let mut further = None;
        let number = vout / CHUNK;
        if (CHUNK..head.total_utxos).contains(&vout) {
            let keep = |chunk: &Chunk| further = Some(chunk.clone());
            self.each_chunk(outpoint.txid, at, number..number + 1, keep)?;
        }
        let first = Some(&held.state.first).filter(|_| number == 0 && vout < head.total_utxos);
        let chunk = first.or(further.as_ref());
        let slot = chunk.and_then(|chunk| chunk.slots.get((vout % CHUNK) as usize));
        Ok(Some(SlotView {
            slot: slot.copied().flatten(),
            spendable_in: chunk.and_then(|chunk| chunk.resting(vout)),
            window: chunk.and_then(|chunk| chunk.window(vout)),
            spending_height: head.spending_height,
            lock_time: head.lock_time,
            conflicting: head.conflicting,
            locked: head.locked,
            creating: head.creating,
            blocks: head.blocks.clone(),
        }))
    }

    /// The newest state of a record, and where it lies.
    fn state_of(&self, txid: Txid) -> Result<Option<(GlobalOffset, Box<HeldRecord>)>, Miss> {
        let key = Key::record(txid);
        let Some((at, value)) = self.value_of(&self.positions(&key)?, &key)? else {
            return Ok(None);
        };
        let Value::Record(record) = value else { return Err(Miss::Moved) };
        Ok(Some((at, record)))
    }

    fn positions(&self, key: &Key) -> Result<Vec<GlobalOffset>, Miss> {
        Ok(self.candidates(&*self.index()?, key))
    }

    fn candidates(&self, index: &Index, key: &Key) -> Vec<GlobalOffset> {
        index.candidates(self.base.hasher.hash(key)).map(|slot| slot.at()).collect()
    }

    /// What the entry with this key among the positions holds.
    fn value_of(
        &self,
        positions: &[GlobalOffset],
        key: &Key,
    ) -> Result<Option<(GlobalOffset, Value)>, Miss> {
        for at in positions {
            let entry = self.base.log.entry(*at)?;
            if entry.head.key == *key {
                return Ok(Some((*at, self.base.decode(*at, &entry)?)));
            }
        }
        Ok(None)
    }

    /// Shows chunks of a record behind the first, in their order, of the moment in which its state
    /// is at `at`. One is decoded at a time: a record may have very many.
    fn each_chunk(
        &self,
        txid: Txid,
        at: GlobalOffset,
        numbers: Range<u32>,
        mut show: impl FnMut(&Chunk),
    ) -> Result<(), Miss> {
        if numbers.is_empty() {
            return Ok(());
        }
        let key = |number| Key { txid, part: Part::new(number) };
        let index = self.index()?;
        if !self.candidates(&index, &Key::record(txid)).contains(&at) {
            return Err(Miss::Moved);
        }
        let mut places = Vec::with_capacity(numbers.len());
        for number in numbers.clone() {
            let slots = index.candidates(self.base.hasher.hash(&key(number)));
            places.extend(slots.map(|slot| (number, slot.at())));
        }
        drop(index);
        let mut next = numbers.clone();
        for batch in places.chunks(WARM) {
            let positions: Vec<_> = batch.iter().map(|(_, place)| *place).collect();
            self.base.warmer.warm(&self.base.log, &positions);
            for (number, place) in batch {
                let entry = self.base.log.entry(*place)?;
                if entry.head.key != key(*number) {
                    continue;
                }
                match self.base.decode(*place, &entry)? {
                    Value::Chunk(chunk) if next.next() == Some(*number) => show(&chunk),
                    _ => return Err(Miss::Failed(storage(self.base.missing(at)))),
                }
            }
        }
        match next.next() {
            None => Ok(()),
            Some(_) => Err(Miss::Failed(storage(self.base.missing(at)))),
        }
    }
}

/// The fields that are kept with the slots, on their way into a record.
struct Slots<'a> {
    record: &'a mut Record,
    reassignments: Vec<(u32, Reassignment)>,
}

impl Slots<'_> {
    fn add(&mut self, chunk: &Chunk) {
        let Self { record, reassignments } = self;
        let fields = record.fields;
        if fields.contains(Fields::UTXOS) {
            record.utxos.extend_from_slice(&chunk.slots);
        }
        let Some(notes) = &chunk.notes else { return };
        if fields.contains(Fields::ALERTS) {
            record.alerts.spendable_in.extend(notes.resting.iter().copied());
            record.alerts.windows.extend(notes.windows.iter().copied());
            reassignments.extend_from_slice(&notes.reassignments);
        }
        if fields.contains(Fields::CHILDREN) {
            record.children.deleted.extend(notes.pruned.iter().copied());
        }
    }

    fn finish(mut self) {
        self.reassignments.sort_by_key(|(order, _)| *order);
        let reassignments = self.reassignments.into_iter().map(|(_, one)| one).collect();
        self.record.alerts.reassignments = reassignments;
    }
}

/// Looks again while what is looked at moves. It cannot move so often; what seems to is not there.
pub(super) fn retry<T>(mut look: impl FnMut() -> Result<T, Miss>) -> Result<T, EngineError> {
    for _ in 0..TRIES {
        match look() {
            Ok(found) => return Ok(found),
            Err(Miss::Failed(error)) => return Err(error),
            Err(Miss::Moved) => std::thread::yield_now(),
        }
    }
    Err(EngineError::Poisoned { cause: "an entry that the index names is not in the log".into() })
}
