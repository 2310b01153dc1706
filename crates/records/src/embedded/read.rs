//! Reading records, each of one moment.
//!
//! Entries never change, so positions that were looked up together (`lookup`) are a snapshot of
//! what they name. A record with more than eight slots is many entries: its state is
//! read first, to know how many; then the state's position and those of all chunks are taken
//! together. If the state has moved in between, all begins again. The same happens when a position
//! was dropped by cleaning before its entry was read.

use std::ops::Range;

use varve_io::{Error, GlobalOffset};
use varve_types::{Outpoint, Txid};

use super::body;
use super::chunk::{CHUNK, Chunk, chunks};
use super::commit::{Commit, storage};
use super::entry::Before;
use super::fetch::Fetched;
use super::key::{Key, Part};
use super::lookup::Lookup;
use super::overlay::{BodyPlace, HeldRecord, Value};
use super::slots::{self, Slots, view};
use crate::engine::{EngineError, SlotView};
use crate::fields::Fields;
use crate::record::Record;

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
        let keys: Vec<Key> = txids.iter().map(|txid| Key::record(*txid)).collect();
        let found = self.warm(&keys)?;
        let read = |(number, txid): (usize, &Txid)| {
            let mut known = Some(found.of(number));
            retry(|| self.read_one(*txid, fields, known.take()))
        };
        txids.iter().enumerate().map(read).collect()
    }

    /// Single slots.
    pub(super) fn slots(
        &self,
        outpoints: &[Outpoint],
    ) -> Result<Vec<Option<SlotView>>, EngineError> {
        let keys: Vec<Key> = outpoints.iter().map(|one| Key::record(one.txid)).collect();
        let found = self.warm(&keys)?;
        let further = outpoints.iter().filter(|outpoint| outpoint.vout >= CHUNK);
        let further = further
            .map(|outpoint| Key { txid: outpoint.txid, part: Part::new(outpoint.vout / CHUNK) });
        self.warm(&further.collect::<Vec<_>>())?;
        let read = |(number, outpoint): (usize, &Outpoint)| {
            let mut known = Some(found.of(number));
            retry(|| self.slot_view(outpoint, known.take()))
        };
        outpoints.iter().enumerate().map(read).collect()
    }

    /// Looks keys up and brings what they hold into memory, in one submission.
    pub(super) fn warm(&self, keys: &[Key]) -> Result<Lookup, EngineError> {
        let found = self.look_up(keys)?;
        self.base.warmer.warm(&self.base.log, &found.positions());
        Ok(found)
    }

    /// A record whose versions are `known`, if they are.
    fn read_one(
        &self,
        txid: Txid,
        fields: Fields,
        known: Option<&[Before]>,
    ) -> Result<Option<Record>, Miss> {
        let Some((at, held)) = self.state_of(txid, known)? else { return Ok(None) };
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
        if slots::are_needed(fields) {
            let mut slots = Slots::of(&mut record);
            slots.add(&held.state.first);
            self.each_chunk(txid, at, 1..chunks(head.total_utxos), |chunk| slots.add(chunk))?;
            slots.finish();
            if fields.contains(Fields::CHILDREN) {
                record.children.conflicting.clone_from(&head.conflicting_children);
            }
        }
        Ok(Some(record))
    }

    /// A slot of a record whose versions are `known`, if they are.
    fn slot_view(
        &self,
        outpoint: &Outpoint,
        known: Option<&[Before]>,
    ) -> Result<Option<SlotView>, Miss> {
        let Some((at, held)) = self.state_of(outpoint.txid, known)? else { return Ok(None) };
        let vout = outpoint.vout;
        let head = &held.state.head;
        let mut further = None;
        let number = vout / CHUNK;
        if (CHUNK..head.total_utxos).contains(&vout) {
            let keep = |chunk: &Chunk| further = Some(chunk.clone());
            self.each_chunk(outpoint.txid, at, number..number + 1, keep)?;
        }
        Ok(Some(view(&held.state, further.as_ref(), vout)))
    }

    /// The newest state of a record, and where it lies. Its versions are looked up unless they are
    /// `known`.
    fn state_of(
        &self,
        txid: Txid,
        known: Option<&[Before]>,
    ) -> Result<Option<(GlobalOffset, Box<HeldRecord>)>, Miss> {
        let key = Key::record(txid);
        let versions = match known {
            Some(versions) => versions.to_vec(),
            None => self.look_up(&[key])?.of(0).to_vec(),
        };
        let found = self.base.locate_among(versions.into_iter(), &key, &Fetched::default())?;
        let Some((version, entry)) = found else { return Ok(None) };
        match self.base.decode(version.at, &entry)? {
            Value::Record(record) => Ok(Some((version.at, record))),
            _ => Err(Miss::Moved),
        }
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
        let chunks = numbers.clone().map(key);
        let keys: Vec<Key> = std::iter::once(Key::record(txid)).chain(chunks).collect();
        let found = self.look_up(&keys)?;
        if !found.of(0).iter().any(|version| version.at == at) {
            return Err(Miss::Moved);
        }
        let mut places = Vec::with_capacity(numbers.len());
        for (place, number) in (1..).zip(numbers.clone()) {
            places.extend(found.of(place).iter().map(|version| (number, version.at)));
        }
        drop((keys, found));
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
