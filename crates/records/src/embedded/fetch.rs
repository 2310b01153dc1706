//! Bringing what operations need into memory before the lock is taken.
//!
//! Operations are executed under one lock, so nothing there may wait for a disk. What they will
//! look at is known, or found out, beforehand, and looked up in the runs of the index, whose rows
//! are carried along as `facts`:
//!
//! 1. The keys that an operation names: its record, the records and chunks that it spends.
//! 2. For those that look further (marking a conflict, pruning, deleting) the record is read as it
//!    is published: its chunks, the body with its inputs, the parents, and for pruning the
//!    children.
//!
//! Each entry is touched where it lies: a file in memory costs nothing, a map gets its pages from
//! the disk here, outside of the lock. What lies in a file that has neither is read and *kept* for
//! the batch. What the cleaner moves while it is read here is looked up again, and so is everything
//! when a run is published meanwhile. Between this and the execution a record may change; then its
//! newest version is of the youngest groups, which are in memory, and the index in memory says so.

use std::collections::HashMap;
use std::sync::Arc;

use varve_io::GlobalOffset;
use varve_types::{Outpoint, Txid};

use super::body;
use super::chunk::{CHUNK, chunks};
use super::commit::Commit;
use super::entry::EntryHead;
use super::facts::Facts;
use super::key::{Key, Part};
use super::log::Entry;
use super::overlay::{BodyPlace, HeldRecord, Value};
use super::read::{Miss, retry};
use super::working::intent_key;
use crate::engine::EngineError;
use crate::operation::Operation;
use crate::slot::Slot;

/// Keys that are looked up together.
const TOGETHER: usize = 4_096;

/// What was looked up and read for a batch.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// Entries that neither memory nor a map has.
    kept: HashMap<GlobalOffset, (EntryHead, Arc<Vec<u8>>)>,
    /// What the runs of the index have of its keys.
    pub(super) facts: Facts,
}

impl Fetched {
    /// The entry at `at`, if it was kept.
    pub(super) fn get(&self, at: GlobalOffset) -> Option<Entry> {
        let (head, bytes) = self.kept.get(&at)?;
        Some(Entry::shared(*head, Arc::clone(bytes)))
    }
}

impl Commit {
    /// Brings what a batch of operations will look at into memory.
    pub(super) fn fetch_for(&self, operations: &[Operation]) -> Result<Fetched, EngineError> {
        retry(|| self.try_fetch_for(operations))
    }

    fn try_fetch_for(&self, operations: &[Operation]) -> Result<Fetched, Miss> {
        let mut fetched = Fetched::default();
        let mut keys = Vec::with_capacity(operations.len());
        operations.iter().for_each(|operation| add_keys(operation, &mut keys));
        self.fetch(&keys, &mut fetched)?;
        for operation in operations {
            let (txid, reach) = match operation {
                Operation::SetConflicting { txid, .. } => (txid, Reach::Parents),
                Operation::Prune { txid, .. } => (txid, Reach::Family),
                Operation::Delete { txid } => (txid, Reach::Own),
                Operation::Restore(record) => (&record.txid, Reach::Own),
                _ => continue,
            };
            self.fetch_record(*txid, reach, &mut fetched)?;
        }
        Ok(fetched)
    }

    /// Brings the newest versions of keys into memory.
    fn fetch(&self, keys: &[Key], fetched: &mut Fetched) -> Result<(), Miss> {
        let found = self.look_up(keys)?;
        if !found.add_to(&mut fetched.facts) {
            return Err(Miss::Moved);
        }
        self.fetch_at(&found.positions(), fetched)
    }

    /// Brings entries into memory.
    pub(super) fn fetch_at(
        &self,
        positions: &[GlobalOffset],
        fetched: &mut Fetched,
    ) -> Result<(), Miss> {
        self.base.warmer.warm(&self.base.log, positions);
        for at in positions {
            if self.base.log.touch(*at) || fetched.kept.contains_key(at) {
                continue;
            }
            let (head, bytes) = self.base.log.entry(*at)?.into_shared();
            fetched.kept.insert(*at, (head, bytes));
        }
        Ok(())
    }

    /// Brings a record with all that an operation on it looks at.
    fn fetch_record(&self, txid: Txid, reach: Reach, fetched: &mut Fetched) -> Result<(), Miss> {
        let Some(record) = self.published(txid, fetched)? else { return Ok(()) };
        let head = &record.state.head;
        let mut children = Children { all: Vec::new(), wanted: reach == Reach::Family };
        children.add(&record.state.first.slots);
        let count = chunks(head.total_utxos);
        let mut number = 1;
        while number < count {
            let upto = count.min(number.saturating_add(CHUNKS));
            let keys = (number..upto).map(|part| Key { txid, part: Part::new(part) });
            let keys: Vec<Key> = keys.collect();
            self.fetch(&keys, fetched)?;
            if children.wanted {
                self.each_published(&keys, fetched, |value| {
                    if let Value::Chunk(chunk) = value {
                        children.add(&chunk.slots);
                    }
                })?;
            }
            number = upto;
        }
        if reach == Reach::Own {
            return Ok(());
        }
        let mut keys: Vec<Key> = Vec::new();
        if let BodyPlace::At(body) = record.body {
            self.fetch_at(&[body.at], fetched)?;
            keys.extend(self.inputs(body.at, fetched)?.iter().flat_map(slot_keys));
        }
        if children.wanted {
            children.all.extend_from_slice(&head.conflicting_children);
            keys.extend(children.all.iter().map(|txid| Key::record(*txid)));
        }
        for some in keys.chunks(TOGETHER) {
            self.fetch(some, fetched)?;
        }
        Ok(())
    }

    /// Brings the body of a record, which was fetched, if it lies before `boundary`.
    pub(super) fn fetch_body(
        &self,
        txid: Txid,
        boundary: GlobalOffset,
        fetched: &mut Fetched,
    ) -> Result<(), Miss> {
        match self.published(txid, fetched)?.map(|record| record.body) {
            Some(BodyPlace::At(body)) if body.at < boundary => self.fetch_at(&[body.at], fetched),
            _ => Ok(()),
        }
    }

    /// The record of a transaction as it is published.
    fn published(&self, txid: Txid, fetched: &Fetched) -> Result<Option<Box<HeldRecord>>, Miss> {
        let mut found = None;
        self.each_published(&[Key::record(txid)], fetched, |value| {
            if let Value::Record(record) = value {
                found = Some(record);
            }
        })?;
        Ok(found)
    }

    /// Shows what keys, which were fetched, hold as it is published.
    fn each_published(
        &self,
        keys: &[Key],
        fetched: &Fetched,
        mut show: impl FnMut(Value),
    ) -> Result<(), Miss> {
        for key in keys {
            let hash = self.base.hasher.hash(key);
            let index = self.index()?;
            let rows = fetched.facts.get(hash);
            let rows = rows.filter(|_| fetched.facts.hold_in(index.cold().epoch()));
            let versions: Vec<_> = index.versions(hash, rows.ok_or(Miss::Moved)?).collect();
            drop(index);
            let found = self.base.locate_among(versions.into_iter(), key, fetched)?;
            if let Some((version, entry)) = found {
                show(self.base.decode(version.at, &entry)?);
            }
        }
        Ok(())
    }

    fn inputs(&self, at: GlobalOffset, fetched: &Fetched) -> Result<Vec<Outpoint>, Miss> {
        let bytes = self.base.body(at, fetched)?;
        Ok(self.base.check(at, body::inputs(&bytes))?)
    }
}

/// Chunks of a record that are brought together.
const CHUNKS: u32 = 4_096;

/// How far from its record an operation looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// At its own slots.
    Own,
    /// And at what it spends.
    Parents,
    /// And at those who spend it.
    Family,
}

/// The spenders of a record's outputs, when they are wanted.
struct Children {
    all: Vec<Txid>,
    wanted: bool,
}

impl Children {
    fn add(&mut self, slots: &[Option<Slot>]) {
        if !self.wanted {
            return;
        }
        for spender in slots.iter().flatten().filter_map(Slot::spender) {
            // Outputs side by side often have one spender.
            if self.all.last() != Some(&spender.txid) {
                self.all.push(spender.txid);
            }
        }
    }
}

/// The keys of an output: its record and, behind the first slots, its chunk.
fn slot_keys(outpoint: &Outpoint) -> impl Iterator<Item = Key> {
    let chunk = Key { txid: outpoint.txid, part: Part::new(outpoint.vout / CHUNK) };
    let further = (outpoint.vout >= CHUNK).then_some(chunk);
    std::iter::once(Key::record(outpoint.txid)).chain(further)
}

/// Adds the keys that an operation names.
fn add_keys(operation: &Operation, keys: &mut Vec<Key>) {
    let mut slot = |outpoint: &Outpoint| keys.extend(slot_keys(outpoint));
    match operation {
        Operation::Unit(unit) => {
            let spends = unit.spend.iter().flat_map(|part| &part.spends);
            spends.for_each(|spend| slot(&spend.outpoint));
            // One that lost a double spend is noted by its parents.
            let new = unit.create.iter().filter(|new| new.conflicting);
            new.flat_map(|new| &new.inputs).for_each(&mut slot);
            // Nothing is found for a new transaction; one that has a record is read.
            keys.push(Key::record(unit.txid));
        }
        Operation::Unspend { spends, .. } => {
            spends.iter().for_each(|spend| slot(&spend.slot.outpoint));
        }
        Operation::Freeze(named)
        | Operation::Unfreeze(named)
        | Operation::FreezeWindow { slot: named, .. }
        | Operation::Reassign { slot: named, .. } => slot(&named.outpoint),
        Operation::SetMined { txid, .. }
        | Operation::MarkOnLongestChain { txid, .. }
        | Operation::SetLocked { txid, .. }
        | Operation::SetConflicting { txid, .. }
        | Operation::RemoveConflictingChild { txid, .. }
        | Operation::RemoveBlocks { txid, .. }
        | Operation::Delete { txid }
        | Operation::PreserveUntil { txid, .. }
        | Operation::ExpirePreservation { txid, .. }
        | Operation::Prune { txid, .. } => keys.push(Key::record(*txid)),
        Operation::Restore(record) => keys.push(Key::record(record.txid)),
        Operation::BeginIntent(intent) => keys.push(intent_key(&intent.id())),
        Operation::CompleteIntent(id) => keys.push(intent_key(id)),
    }
}
