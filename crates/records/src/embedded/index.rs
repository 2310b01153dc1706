//! The index: where in the log the newest version of each key lies.
//!
//! It is in memory, 24 bytes a slot, in shards by the key's hash. A shard (`shard`) is a table with
//! linear probing that grows by itself, so no growth moves more than a shard; it is also the unit
//! of a checkpoint (`checkpoint`). Beside each table are lists of the records that scans look for
//! (`wanted`).
//!
//! Keys are not stored here. A slot has 32 bits of the key's hash, the tag, and whoever looks a key
//! up gets the positions of all slots with its tag, nearly always one or none, and reads the
//! entries to see which has the key. Whoever changes a slot therefore knows the position it held
//! and names it, and so does every entry of the log: replaying it reads nothing but itself.

mod shard;
mod wanted;

use std::collections::BTreeSet;

use varve_io::GlobalOffset;

use super::entry::{EntryKind, Marks};
use super::key::{KeyHash, Part};
pub(super) use shard::{Listed, SLOT_LEN, Shard, Slot};
pub(super) use wanted::List;

/// The newest versions of all keys.
#[derive(Debug)]
pub(super) struct Index {
    shards: Vec<Shard>,
    /// Keys held.
    len: usize,
    /// Bytes of the log that are needed, as the slots say.
    live: u64,
    /// Where intents lie.
    intents: BTreeSet<GlobalOffset>,
}

/// What the index notes for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) at: GlobalOffset,
    pub(super) marks: Marks,
    /// What is found there; [`EntryKind::Gone`] for nothing.
    pub(super) kind: EntryKind,
    /// Bytes of the log that the key needs: the entry and, if it lies elsewhere, its body.
    pub(super) weight: u32,
}

impl Index {
    /// An empty index of `shards` shards, a power of two.
    pub(super) fn new(shards: usize) -> Self {
        let shards = vec![Shard::default(); shards.next_power_of_two()];
        Self { shards, len: 0, live: 0, intents: BTreeSet::new() }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.shards.iter().map(Shard::memory).sum()
    }

    /// Bytes of the log that are needed.
    pub(super) const fn live(&self) -> u64 {
        self.live
    }

    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Puts a shard of a checkpoint in place of an empty one.
    pub(super) fn set_shard(&mut self, number: usize, shard: Shard) {
        if let Some(place) = self.shards.get_mut(number) {
            self.len += shard.len();
            self.live += shard.slots().map(|slot| u64::from(slot.weight)).sum::<u64>();
            let intents = shard.slots().filter(|slot| slot.is_intent());
            self.intents.extend(intents.map(|slot| slot.at()));
            *place = shard;
        }
    }

    pub(super) fn shard_of(&self, hash: KeyHash) -> usize {
        hash.shard(self.shards.len())
    }

    /// The slots that may be of a key with this hash.
    pub(super) fn candidates(&self, hash: KeyHash) -> impl Iterator<Item = &Slot> {
        let shard = self.shards.get(self.shard_of(hash));
        shard.into_iter().flat_map(move |shard| shard.candidates(hash.tag()))
    }

    /// Notes a new version of a key whose version was at `before`. False when there is no such
    /// slot: the index and the log do not belong together.
    pub(super) fn put(
        &mut self,
        hash: KeyHash,
        part: Part,
        before: Option<GlobalOffset>,
        version: &Version,
    ) -> bool {
        let number = self.shard_of(hash);
        let Some(shard) = self.shards.get_mut(number) else { return false };
        let gone = version.kind == EntryKind::Gone;
        if version.kind == EntryKind::Intent {
            self.intents.insert(version.at);
        }
        let old = match before {
            None if gone => return true,
            None => {
                shard.insert(Slot::new(hash.tag(), part, version));
                self.len += 1;
                self.live += u64::from(version.weight);
                return true;
            }
            Some(before) if gone => {
                let old = shard.remove(hash.tag(), before);
                self.len -= usize::from(old.is_some());
                old
            }
            Some(before) => shard.replace(before, Slot::new(hash.tag(), part, version)),
        };
        let Some(old) = old else { return false };
        if old.is_intent() {
            self.intents.remove(&old.at());
        }
        let weight = if gone { 0 } else { u64::from(version.weight) };
        self.live = (self.live + weight).saturating_sub(u64::from(old.weight));
        true
    }

    /// Where intents lie.
    pub(super) fn intents(&self) -> impl Iterator<Item = GlobalOffset> {
        self.intents.iter().copied()
    }

    /// All slots.
    #[cfg(test)]
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.shards.iter().flat_map(Shard::slots)
    }
}

#[cfg(test)]
mod tests;
