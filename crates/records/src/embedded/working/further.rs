//! Chunks of a record behind the first, wherever their newest versions are.
//!
//! A new record keeps the hashes of all its outputs, and a chunk of it exists only once it is
//! looked at. So a chunk is looked for in five places: in the open group by itself, in the open
//! group as a part of a new record, in the same two of the group that is being written, and in the
//! log. A record may have very many: what only looks at them, or removes them, holds none.

use varve_io::{Error, GlobalOffset, Result};

use super::Work;
use crate::embedded::chunk::{Chunk, chunks};
use crate::embedded::entry::Before;
use crate::embedded::key::{Key, Part};
use crate::embedded::log::Entry;
use crate::embedded::overlay::{Held, HeldId, Overlay, Value};
use crate::slot::Slot;

/// The newest version of a chunk.
enum ChunkAt<'a> {
    /// In the open group.
    Open(HeldId),
    /// As it was created, with a record of the open group.
    New(Chunk),
    /// Held by the group that is being written.
    Flying(&'a Held),
    /// As it was created, with a record of the group that is being written.
    NewFlying(Chunk),
    /// In the log.
    Logged(Before, Entry),
}

/// A chunk that is about to go.
enum Doomed {
    Held(HeldId),
    /// Not held: its number, where it lies, and whether it is being written.
    Elsewhere(u32, Option<Before>, bool),
}

impl<'a> Work<'a> {
    /// Where the newest version of a record's chunk is, behind the first.
    fn find_chunk(&self, record: HeldId, number: u32) -> Result<ChunkAt<'a>> {
        let key = Key { part: Part::new(number), ..self.open.get(record).key };
        let hash = self.base.hasher.hash(&key);
        if let Some(id) = self.open.find(&key, hash) {
            return Ok(ChunkAt::Open(id));
        }
        if let Some(chunk) = new_chunk(self.open, record, number) {
            return Ok(ChunkAt::New(chunk));
        }
        if let Some(flying) = self.flying {
            if let Some(id) = flying.find(&key, hash) {
                return Ok(ChunkAt::Flying(flying.get(id)));
            }
            // A chunk of a record that is being written is not held there unless it was changed.
            let owner = Key::record(key.txid);
            let owner = flying.find(&owner, self.base.hasher.hash(&owner));
            if let Some(chunk) = owner.and_then(|owner| new_chunk(flying, owner, number)) {
                return Ok(ChunkAt::NewFlying(chunk));
            }
        }
        match self.base.locate(self.index, &key, hash, self.fetched)? {
            Some((version, entry)) => Ok(ChunkAt::Logged(version, entry)),
            None => Err(self.missing(record)),
        }
    }

    /// Holds a chunk of a record, behind the first.
    pub(super) fn hold_chunk(&mut self, record: HeldId, number: u32) -> Result<HeldId> {
        let key = Key { part: Part::new(number), ..self.open.get(record).key };
        let hash = self.base.hasher.hash(&key);
        let id = match self.find_chunk(record, number)? {
            ChunkAt::Open(id) => id,
            ChunkAt::New(chunk) => {
                let id = self.open.hold(key, hash, None, Value::Chunk(Box::new(chunk)));
                // From here on it is written by itself and not with the others of the new record.
                self.open.change(id);
                id
            }
            ChunkAt::Flying(held) => self.open.insert(held.fly_on()),
            ChunkAt::NewFlying(chunk) => {
                let id = self.open.hold(key, hash, None, Value::Chunk(Box::new(chunk)));
                self.open.fly(id);
                id
            }
            ChunkAt::Logged(version, entry) => {
                let value = self.base.decode(version.at, &entry)?;
                self.open.hold(key, hash, Some(version), value)
            }
        };
        match self.open.get(id).value() {
            Value::Chunk(_) => Ok(id),
            _ => Err(self.missing(record)),
        }
    }

    /// Shows the slots of a chunk without holding it: a record may have very many.
    pub(super) fn show_chunk(
        &self,
        record: HeldId,
        number: u32,
        show: &mut dyn FnMut(&Slot),
    ) -> Result<()> {
        let logged;
        let value = match &self.find_chunk(record, number)? {
            ChunkAt::Open(id) => self.open.get(*id).value(),
            ChunkAt::Flying(held) => held.value(),
            ChunkAt::New(chunk) | ChunkAt::NewFlying(chunk) => {
                chunk.slots.iter().flatten().for_each(show);
                return Ok(());
            }
            ChunkAt::Logged(version, entry) => {
                logged = self.base.decode(version.at, entry)?;
                &logged
            }
        };
        let Value::Chunk(chunk) = value else { return Err(self.missing(record)) };
        chunk.slots.iter().flatten().for_each(show);
        Ok(())
    }

    /// The error for slots of a held record that are missing.
    fn missing(&self, record: HeldId) -> Error {
        let before = self.open.get(record).before;
        self.base.missing(before.map_or(GlobalOffset::ZERO, |before| before.at))
    }

    /// Removes the chunks of a record, all of them or, when one cannot be found, none.
    pub(super) fn remove_chunks(&mut self, at: HeldId) -> Result<()> {
        let mut doomed = Vec::new();
        for number in 1..chunks(self.open.record(at).state.head.total_utxos) {
            doomed.extend(match self.find_chunk(at, number)? {
                ChunkAt::Open(id) => Some(Doomed::Held(id)),
                ChunkAt::New(_) => None,
                ChunkAt::Flying(held) => {
                    Some(Doomed::Elsewhere(number, held.before, held.is_dirty()))
                }
                ChunkAt::NewFlying(_) => Some(Doomed::Elsewhere(number, None, true)),
                ChunkAt::Logged(place, _) => Some(Doomed::Elsewhere(number, Some(place), false)),
            });
        }
        let owner = self.open.get(at).key;
        for chunk in doomed {
            let id = match chunk {
                Doomed::Held(id) => id,
                Doomed::Elsewhere(number, before, flying) => {
                    let key = Key { part: Part::new(number), ..owner };
                    let hash = self.base.hasher.hash(&key);
                    let id = self.open.hold(key, hash, before, Value::Gone);
                    if flying {
                        self.open.fly(id);
                    }
                    id
                }
            };
            *self.open.change(id) = Value::Gone;
        }
        Ok(())
    }

    /// A record was removed and is created again in the same group: chunks that are held as gone
    /// become those of the new one.
    pub(super) fn renew_chunks(&mut self, record: HeldId, key: Key, outputs: usize) {
        for number in 1..chunks(u32::try_from(outputs).unwrap_or(u32::MAX)) {
            let key = Key { part: Part::new(number), ..key };
            let held = self.open.find(&key, self.base.hasher.hash(&key));
            if let (Some(held), Some(chunk)) = (held, new_chunk(self.open, record, number)) {
                *self.open.change(held) = Value::Chunk(Box::new(chunk));
            }
        }
    }
}

/// The chunk `number` of a new record, as it was created; `None` when the record is not new.
fn new_chunk(overlay: &Overlay, record: HeldId, number: u32) -> Option<Chunk> {
    let Value::Record(record) = overlay.get(record).value() else { return None };
    let further = record.further.as_ref()?;
    let hashes = further.chunks().nth(number as usize - 1)?;
    Some(Chunk::new(hashes, further.spending))
}
