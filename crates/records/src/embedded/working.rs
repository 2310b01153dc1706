//! The records as the rules see them: the overlay of the open group, over the group that is being
//! written, over the index and the log.

mod further;

use std::sync::Arc;

use varve_io::{Error, FormatError, GlobalOffset, Result};
use varve_types::{DecodeError, Height, Outpoint, Reader, Txid};

use super::base::Base;
use super::body;
use super::chunk::{CHUNK, Chunk, chunks};
use super::entry::{Before, ENTRY_HEAD_LEN, EntryKind};
use super::fetch::Fetched;
use super::index::{Index, Row};
use super::intent;
use super::key::{Key, KeyHash, Part};
use super::log::Entry;
use super::overlay::{BodyPlace, Further, HeldId, HeldRecord, Overlay, Value};
use super::state::State;
use crate::freeze_window::FreezeWindow;
use crate::intent::{Intent, IntentId};
use crate::operation::NewRecord;
use crate::record::Reassignment;
use crate::rules::{Head, Working};
use crate::slot::Slot;
use crate::spending_data::SpendingData;

/// What the operations of one caller work on.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) open: &'a mut Overlay,
    pub(super) flying: Option<&'a Overlay>,
    pub(super) index: &'a Index,
    pub(super) base: &'a Base,
    /// What was read beforehand.
    pub(super) fetched: &'a Fetched,
}

/// A slot of a held record or chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotAt {
    held: HeldId,
    vout: u32,
}

impl Work<'_> {
    /// Holds the newest version of a key.
    pub(super) fn hold(&mut self, key: Key) -> Result<HeldId> {
        let hash = self.base.hasher.hash(&key);
        if let Some(id) = self.open.find(&key, hash) {
            return Ok(id);
        }
        if let Some(flying) = self.flying
            && let Some(id) = flying.find(&key, hash)
        {
            return Ok(self.open.insert(flying.get(id).fly_on()));
        }
        let found = self.base.locate(self.index, &key, hash, self.fetched)?;
        let (before, value) = match found {
            None => (None, Value::Gone),
            Some((version, entry)) => (Some(version), self.base.decode(version.at, &entry)?),
        };
        Ok(self.open.hold(key, hash, before, value))
    }

    /// Which held thing has the slot of an output; `None` when the record has no such output.
    fn hold_place(&mut self, record: HeldId, vout: u32) -> Result<Option<HeldId>> {
        if vout >= self.open.record(record).state.head.total_utxos {
            return Ok(None);
        }
        match vout / CHUNK {
            0 => Ok(Some(record)),
            number => self.hold_chunk(record, number).map(Some),
        }
    }

    /// Marks the newest version of a key to be written once more, if it lies before `boundary`.
    pub(super) fn touch(&mut self, key: Key, boundary: GlobalOffset) -> Result<()> {
        let id = self.hold(key)?;
        let held = self.open.get(id);
        let moved = match held.value() {
            Value::Gone => return Ok(()),
            Value::Record(record) => match record.body {
                BodyPlace::At(body) if body.at < boundary => {
                    Some(self.base.body(body.at, self.fetched)?)
                }
                _ => None,
            },
            _ => None,
        };
        let stays = held.before.is_some_and(|before| before.at >= boundary);
        if let Some(bytes) = moved {
            self.open.record_mut(id).body = BodyPlace::Moved(bytes);
        } else if !stays {
            self.open.change(id);
        }
        Ok(())
    }
}

impl Base {
    /// The entry at `at`, from what was read beforehand or from the log.
    pub(super) fn entry(&self, at: GlobalOffset, fetched: &Fetched) -> Result<Entry> {
        fetched.get(at).map_or_else(|| self.log.entry(at), Ok)
    }

    /// The newest version of a key, and its entry. What the runs of the index have should be among
    /// the facts; if it is not, it is looked up here and now.
    pub(super) fn locate(
        &self,
        index: &Index,
        key: &Key,
        hash: KeyHash,
        fetched: &Fetched,
    ) -> Result<Option<(Before, Entry)>> {
        if let Some(rows) = fetched.facts.get(hash) {
            return self.locate_among(index.versions(hash, rows), key, fetched);
        }
        let found = self.locate_among(index.in_memory(hash), key, fetched)?;
        if found.is_some() || index.cold().is_empty() {
            return Ok(found);
        }
        let rows: Vec<Row> = index.cold().find(vec![hash.place()])?.at(hash.place()).collect();
        self.locate_among(index.versions(hash, &rows), key, fetched)
    }

    /// Which of some versions is of a key, and its entry.
    pub(super) fn locate_among(
        &self,
        mut versions: impl Iterator<Item = Before>,
        key: &Key,
        fetched: &Fetched,
    ) -> Result<Option<(Before, Entry)>> {
        versions
            .find_map(|version| match self.entry(version.at, fetched) {
                Ok(entry) if entry.head.key == *key => Some(Ok((version, entry))),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            })
            .transpose()
    }

    /// What an entry holds.
    pub(super) fn decode(&self, at: GlobalOffset, entry: &Entry) -> Result<Value> {
        let payload = entry.payload();
        Ok(match entry.head.kind {
            EntryKind::Whole | EntryKind::State => {
                let (state, body, _) = self.check(at, State::decode(payload, at))?;
                let body = BodyPlace::At(body);
                Value::Record(Box::new(HeldRecord {
                    state,
                    body,
                    body_flies: false,
                    further: None,
                }))
            }
            EntryKind::Chunk => {
                let mut reader = Reader::new(payload);
                let chunk = Chunk::read(&mut reader);
                let chunk = chunk.and_then(|chunk| reader.end().map(|()| chunk));
                Value::Chunk(Box::new(self.check(at, chunk)?))
            }
            EntryKind::Intent => Value::Intent(Box::new(self.check(at, intent::decode(payload))?)),
            EntryKind::Gone => Value::Gone,
        })
    }

    /// The bytes of the body in the whole entry at `at`.
    pub(super) fn body(&self, at: GlobalOffset, fetched: &Fetched) -> Result<Vec<u8>> {
        let entry = self.entry(at, fetched)?;
        let (_, _, body) = self.check(at, State::decode(entry.payload(), at))?;
        Ok(body.to_vec())
    }

    /// Says that slots of the record at `at` are not there.
    pub(super) fn missing(&self, at: GlobalOffset) -> Error {
        let what = "slots of this record are missing";
        self.log.damage(at, FormatError::Damaged { at: 0, what })
    }

    /// Turns what a decoder found wrong with the payload at `at` into an error that says where.
    pub(super) fn check<T>(&self, at: GlobalOffset, decoded: Result<T, DecodeError>) -> Result<T> {
        decoded.map_err(|error| {
            let what = "the entry does not decode";
            let offset = usize::try_from(error.offset).unwrap_or(usize::MAX);
            let byte = ENTRY_HEAD_LEN.saturating_add(offset);
            self.log.damage(at, FormatError::Damaged { at: byte, what })
        })
    }
}

impl Working for Work<'_> {
    type Error = Error;
    type Record = HeldId;
    type Slot = SlotAt;

    fn find(&mut self, txid: &Txid) -> Result<Option<HeldId>> {
        let id = self.hold(Key::record(*txid))?;
        Ok(matches!(self.open.get(id).value(), Value::Record(_)).then_some(id))
    }

    fn slot(&mut self, at: HeldId, vout: u32) -> Result<Option<SlotAt>> {
        let Some(held) = self.hold_place(at, vout)? else { return Ok(None) };
        let slot = self.open.chunk(held).slots.get((vout % CHUNK) as usize);
        Ok(slot.is_some_and(Option::is_some).then_some(SlotAt { held, vout }))
    }

    fn bring_place(&mut self, at: HeldId, vout: u32) -> Result<()> {
        self.hold_place(at, vout).map(drop)
    }

    fn inputs(&mut self, at: HeldId) -> Result<Vec<Outpoint>> {
        match &self.open.record(at).body {
            BodyPlace::New { inputs, .. } => Ok(inputs.clone()),
            BodyPlace::Moved(bytes) => {
                let before = self.open.get(at).before;
                let place = before.map_or(GlobalOffset::ZERO, |before| before.at);
                self.base.check(place, body::inputs(bytes))
            }
            BodyPlace::At(body) => {
                let place = body.at;
                let bytes = self.base.body(place, self.fetched)?;
                self.base.check(place, body::inputs(&bytes))
            }
        }
    }

    fn is_unmined(&mut self, txid: &Txid) -> Result<bool> {
        let key = Key::record(*txid);
        let hash = self.base.hasher.hash(&key);
        let overlays = [Some(&*self.open), self.flying];
        let find = |overlay: &Overlay| overlay.find(&key, hash);
        let mut held = overlays.into_iter().flatten().filter_map(|o| Some(o.get(find(o)?)));
        if let Some(held) = held.next() {
            let Value::Record(record) = held.value() else { return Ok(false) };
            return Ok(record.state.head.unmined_since.is_some());
        }
        let found = self.base.locate(self.index, &key, hash, self.fetched)?;
        Ok(found.is_some_and(|(_, entry)| entry.head.marks.unmined > 0))
    }

    fn each_slot(&mut self, at: HeldId, show: &mut dyn FnMut(&Slot)) -> Result<()> {
        self.open.chunk(at).slots.iter().flatten().for_each(&mut *show);
        let chunks = chunks(self.open.record(at).state.head.total_utxos);
        (1..chunks).try_for_each(|number| self.show_chunk(at, number, show))
    }

    fn remove(&mut self, at: HeldId) -> Result<()> {
        self.remove_chunks(at)?;
        *self.open.change(at) = Value::Gone;
        Ok(())
    }

    fn create(&mut self, txid: &Txid, new: &NewRecord, head: Head) -> Result<()> {
        let key = Key::record(*txid);
        let id = self.hold(key)?;
        let removed_here = self.open.get(id).is_dirty();
        let spending = new.frozen.then_some(SpendingData::FROZEN);
        let first = new.utxos.get(..CHUNK as usize).unwrap_or(&new.utxos);
        let hashes = || Arc::clone(&new.utxos);
        let further = (new.utxos.len() > first.len()).then(|| Further { all: hashes(), spending });
        let state = State { head, first: Chunk::new(first, spending) };
        let body = BodyPlace::New { inputs: new.inputs.clone(), body: new.body.clone() };
        let record = HeldRecord { state, body, body_flies: false, further };
        *self.open.change(id) = Value::Record(Box::new(record));
        if removed_here {
            self.renew_chunks(id, key, new.utxos.len());
        }
        Ok(())
    }

    fn begin_intent(&mut self, intent: &Intent) -> Result<()> {
        let id = self.hold(intent_key(&intent.id()))?;
        if matches!(self.open.get(id).value(), Value::Gone) {
            *self.open.change(id) = Value::Intent(Box::new(intent.clone()));
        }
        Ok(())
    }

    fn complete_intent(&mut self, id: &IntentId) -> Result<()> {
        let id = self.hold(intent_key(id))?;
        if matches!(self.open.get(id).value(), Value::Intent(_)) {
            *self.open.change(id) = Value::Gone;
        }
        Ok(())
    }

    fn head(&self, at: HeldId) -> &Head {
        &self.open.record(at).state.head
    }

    fn head_mut(&mut self, at: HeldId) -> &mut Head {
        &mut self.open.record_mut(at).state.head
    }

    fn get(&self, at: SlotAt) -> &Slot {
        let slot = self.open.chunk(at.held).slots.get((at.vout % CHUNK) as usize);
        slot.and_then(Option::as_ref).expect("the slot was found")
    }

    fn get_mut(&mut self, at: SlotAt) -> &mut Slot {
        let slot = self.open.chunk_mut(at.held).slots.get_mut((at.vout % CHUNK) as usize);
        slot.and_then(Option::as_mut).expect("the slot was found")
    }

    fn spendable_in(&self, at: SlotAt) -> Option<Height> {
        self.open.chunk(at.held).resting(at.vout)
    }

    fn window(&self, at: SlotAt) -> Option<FreezeWindow> {
        self.open.chunk(at.held).window(at.vout)
    }

    fn set_window(&mut self, at: SlotAt, window: Option<FreezeWindow>) {
        let notes = self.open.chunk_mut(at.held).notes_mut();
        notes.windows.retain(|(vout, _)| *vout != at.vout);
        notes.windows.extend(window.map(|window| (at.vout, window)));
    }

    fn reassigned(&mut self, at: SlotAt, reassignment: Reassignment, spendable: Height) {
        let owner = Key::record(self.open.get(at.held).key.txid);
        let owner = self.open.find(&owner, self.base.hasher.hash(&owner));
        let order = owner.map_or(0, |owner| self.head(owner).reassignments);
        let notes = self.open.chunk_mut(at.held).notes_mut();
        notes.resting.retain(|(vout, _)| *vout != at.vout);
        notes.resting.push((at.vout, spendable));
        notes.reassignments.push((order, reassignment));
    }

    fn is_pruned_child(&self, at: SlotAt, child: &Txid) -> bool {
        let notes = self.open.chunk(at.held).notes.as_ref();
        notes.is_some_and(|notes| notes.pruned.contains(child))
    }

    fn add_pruned_child(&mut self, at: HeldId, vout: u32, child: Txid) {
        let outputs = self.head(at).total_utxos;
        let number = if vout < outputs { vout / CHUNK } else { 0 };
        let key = Key { part: Part::new(number), ..self.open.get(at).key };
        let held = self.open.find(&key, self.base.hasher.hash(&key));
        let held = held.expect("the place was brought");
        if !self.open.chunk(held).notes.as_ref().is_some_and(|n| n.pruned.contains(&child)) {
            self.open.chunk_mut(held).notes_mut().pruned.push(child);
        }
    }
}

pub(super) fn intent_key(id: &IntentId) -> Key {
    Key { txid: Txid::from_bytes(id.0), part: Part::INTENT }
}
