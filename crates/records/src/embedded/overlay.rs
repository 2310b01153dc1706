//! The working set of a group of operations: everything it looked up, and what it changed.
//!
//! Entries of the log are decoded once into the overlay and changed there. When the group is
//! written, each key that changed gets one new version, however often it changed. A key that was
//! looked for and not found is held as well, as gone.

use std::sync::Arc;

use hashbrown::HashTable;
use varve_io::GlobalOffset;
use varve_types::Outpoint;

use super::chunk::{CHUNK, Chunk};
use super::entry::Before;
use super::key::{Key, KeyHash};
use super::state::{BodyAt, State};
use crate::intent::Intent;
use crate::record::Body;
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

/// The number of something held.
pub(super) type HeldId = u32;

/// The working set of a group.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    table: HashTable<HeldId>,
    held: Vec<Held>,
    /// How many of them changed.
    dirty: usize,
    /// All before this has been moved when the group is durable.
    pub(super) cleaned_to: Option<GlobalOffset>,
}

/// One key of the working set.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) key: Key,
    pub(super) hash: KeyHash,
    /// Its newest durable version.
    pub(super) before: Option<Before>,
    /// It is of the group that is being written: `before` is known when that is done.
    pub(super) flying: bool,
    dirty: bool,
    value: Value,
}

/// What is held.
#[derive(Debug)]
pub(super) enum Value {
    Record(Box<HeldRecord>),
    Chunk(Box<Chunk>),
    Intent(Box<Intent>),
    Gone,
}

/// A record of the working set.
#[derive(Debug)]
pub(super) struct HeldRecord {
    pub(super) state: State,
    pub(super) body: BodyPlace,
    /// The group that is being written holds this body: its place is known when that is done. A
    /// body that the open group itself brought, or moves, is never taken for that one.
    pub(super) body_flies: bool,
    /// The slots behind the first chunk, when the record is new.
    pub(super) further: Option<Further>,
}

/// Where the body of a record is.
#[derive(Clone, Debug)]
pub(super) enum BodyPlace {
    /// In the log.
    At(BodyAt),
    /// Nowhere yet.
    New { inputs: Vec<Outpoint>, body: Body },
    /// In the log, and to be written once more: these are its bytes.
    Moved(Vec<u8>),
}

/// Slots of a new record that no operation has touched.
#[derive(Debug)]
pub(super) struct Further {
    /// The hashes of all outputs, those of the first chunk included.
    pub(super) all: Arc<Vec<Option<UtxoHash>>>,
    pub(super) spending: Option<SpendingData>,
}

impl Further {
    /// The hashes by chunks, without the first.
    pub(super) fn chunks(&self) -> impl ExactSizeIterator<Item = &[Option<UtxoHash>]> {
        self.all.chunks(CHUNK as usize).skip(1)
    }
}

impl Held {
    pub(super) const fn value(&self) -> &Value {
        &self.value
    }

    pub(super) const fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// The same for the next group, as long as this one is being written.
    pub(super) fn fly_on(&self) -> Self {
        let value = match &self.value {
            Value::Record(record) => {
                let HeldRecord { state, body, .. } = &**record;
                let (state, body) = (state.clone(), body.clone());
                let body_flies = self.dirty && !matches!(body, BodyPlace::At(_));
                Value::Record(Box::new(HeldRecord { state, body, body_flies, further: None }))
            }
            Value::Chunk(chunk) => Value::Chunk(chunk.clone()),
            Value::Intent(intent) => Value::Intent(intent.clone()),
            Value::Gone => Value::Gone,
        };
        let Self { key, hash, before, .. } = *self;
        Self { key, hash, before, flying: self.dirty, dirty: false, value }
    }
}

impl Overlay {
    /// How many keys changed.
    pub(super) const fn dirty(&self) -> usize {
        self.dirty
    }

    /// Reserves room for `count` more keys.
    pub(super) fn reserve(&mut self, count: usize) {
        let Self { table, held, .. } = self;
        held.reserve(count);
        table.reserve(count, |id| held.get(*id as usize).expect("ids are indexes").hash.bits());
    }

    pub(super) fn find(&self, key: &Key, hash: KeyHash) -> Option<HeldId> {
        let same = |id: &HeldId| self.get(*id).key == *key;
        self.table.find(hash.bits(), same).copied()
    }

    /// Holds something that was looked up, which must not be held.
    pub(super) fn hold(
        &mut self,
        key: Key,
        hash: KeyHash,
        before: Option<Before>,
        value: Value,
    ) -> HeldId {
        self.insert(Held { key, hash, before, flying: false, dirty: false, value })
    }

    pub(super) fn insert(&mut self, held: Held) -> HeldId {
        let id = HeldId::try_from(self.held.len()).expect("a group touches fewer than 2^32 keys");
        let hash = held.hash;
        self.held.push(held);
        let Self { table, held, .. } = self;
        table.insert_unique(hash.bits(), id, |id| {
            held.get(*id as usize).expect("ids are indexes").hash.bits()
        });
        id
    }

    pub(super) fn get(&self, id: HeldId) -> &Held {
        self.held.get(id as usize).expect("ids are indexes")
    }

    /// The value, to be changed: it will be written.
    pub(super) fn change(&mut self, id: HeldId) -> &mut Value {
        let held = self.held.get_mut(id as usize).expect("ids are indexes");
        self.dirty += usize::from(!held.dirty);
        held.dirty = true;
        &mut held.value
    }

    /// Notes that something is of the group that is being written.
    pub(super) fn fly(&mut self, id: HeldId) {
        self.held.get_mut(id as usize).expect("ids are indexes").flying = true;
    }

    /// The place and the body of something, which become known without its being changed.
    pub(super) fn settle(&mut self, id: HeldId, before: Option<Before>, body: Option<BodyAt>) {
        let held = self.held.get_mut(id as usize).expect("ids are indexes");
        held.before = before;
        held.flying = false;
        if let (Value::Record(record), Some(body)) = (&mut held.value, body)
            && record.body_flies
        {
            record.body = BodyPlace::At(body);
            record.body_flies = false;
        }
    }

    /// All that is held.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HeldId, &Held)> {
        (0..).zip(&self.held)
    }

    pub(super) fn record(&self, id: HeldId) -> &HeldRecord {
        match self.get(id).value() {
            Value::Record(record) => record,
            _ => panic!("the caller found a record here"),
        }
    }

    pub(super) fn record_mut(&mut self, id: HeldId) -> &mut HeldRecord {
        match self.change(id) {
            Value::Record(record) => record,
            _ => panic!("the caller found a record here"),
        }
    }

    /// The chunk that something is or has.
    pub(super) fn chunk(&self, id: HeldId) -> &Chunk {
        match self.get(id).value() {
            Value::Record(record) => &record.state.first,
            Value::Chunk(chunk) => chunk,
            _ => panic!("the caller found slots here"),
        }
    }

    pub(super) fn chunk_mut(&mut self, id: HeldId) -> &mut Chunk {
        match self.change(id) {
            Value::Record(record) => &mut record.state.first,
            Value::Chunk(chunk) => chunk,
            _ => panic!("the caller found slots here"),
        }
    }
}
