//! One table of the index in memory: open addressing, linear probing.
//!
//! The home of a slot is `tag · capacity / 2^32`, so the tag alone says where it belongs: tables
//! grow, and checkpoints are loaded, without asking for keys, and in the order of the memory. A
//! slot lies at its home or behind it with no empty slot between. Removing one moves those behind
//! it up, so there are no marks of removed ones that would make the table slow.
//!
//! A shard also counts its keys and the bytes of the log that they need, in memory or not.

use varve_io::GlobalOffset;

use super::slot::{SLOT_LEN, Slot};
use super::wanted::{List, Wanted};

/// A table is at most this full.
const FULLEST: (usize, usize) = (3, 4);
/// It grows by a part of itself, not to twice its size: so a key takes 32 to 40 bytes, and moving
/// each slot four times in its life costs less than reading one entry.
const GROWTH: usize = 4;
const SMALLEST: usize = 16;

/// A table of slots.
#[derive(Clone, Debug, Default)]
pub(in crate::embedded) struct Shard {
    slots: Vec<Slot>,
    len: usize,
    /// Slots that the next checkpoint moves to a run.
    leaving: usize,
    wanted: Wanted,
    pub(in crate::embedded) totals: Totals,
}

/// What a shard holds, in memory and in runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(in crate::embedded) struct Totals {
    pub(in crate::embedded) keys: u64,
    /// Bytes of the log that are needed.
    pub(in crate::embedded) live: u64,
}

/// A record that a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Listed {
    /// Its height in the list; 0 in a scan of everything.
    pub(in crate::embedded) height: u32,
    pub(in crate::embedded) tag: u32,
    pub(in crate::embedded) at: GlobalOffset,
}

impl Shard {
    /// An empty table that takes `len` slots before it grows.
    pub(in crate::embedded) fn with_capacity(len: usize) -> Self {
        let (taken, of) = FULLEST;
        let capacity = (len * of / taken + 1).max(SMALLEST);
        Self { slots: vec![Slot::default(); capacity], ..Self::default() }
    }

    /// Slots in memory.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Slots that the next checkpoint moves to a run.
    pub(super) const fn leaving(&self) -> usize {
        self.leaving
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * SLOT_LEN + self.wanted.memory()
    }

    /// All slots, in the order of their homes.
    pub(in crate::embedded) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.is_used())
    }

    /// The live slots with this tag.
    #[inline]
    pub(super) fn candidates(&self, tag: u32) -> impl Iterator<Item = &Slot> + Clone {
        self.tagged(tag).filter(|slot| !slot.is_dead())
    }

    /// Whether the live version at `at` is in memory.
    pub(super) fn holds(&self, tag: u32, at: GlobalOffset) -> bool {
        self.find(tag, at).is_some()
    }

    /// Whether the version at `at` is one that runs have and that counts no more.
    pub(super) fn is_dead(&self, tag: u32, at: GlobalOffset) -> bool {
        self.tagged(tag).any(|slot| slot.is_dead() && slot.at() == at)
    }

    /// All slots with this tag.
    #[inline]
    pub(super) fn tagged(&self, tag: u32) -> impl Iterator<Item = &Slot> + Clone {
        let home = self.home(tag);
        let (before, from) = self.slots.split_at_checked(home).unwrap_or_default();
        let chain = from.iter().chain(before).take_while(|slot| slot.is_used());
        chain.filter(move |slot| slot.tag() == tag)
    }

    /// Adds a slot, which must not be there.
    pub(in crate::embedded) fn insert(&mut self, slot: Slot) {
        debug_assert!(slot.is_used(), "an empty slot marks the end of a chain");
        let (taken, of) = FULLEST;
        if (self.len + 1) * of > self.slots.len() * taken {
            self.grow();
        }
        self.place(slot);
        self.wanted.add(&slot);
        self.len += 1;
        self.leaving += usize::from(slot.leaves());
    }

    /// Puts `slot` in place of the live one at `before`, which may lie in a run. Returns what was
    /// in memory.
    pub(super) fn replace(&mut self, before: GlobalOffset, slot: Slot) -> Option<Slot> {
        let Some(index) = self.find(slot.tag(), before) else {
            self.insert(Slot::dead(slot.tag(), before));
            self.insert(slot);
            return None;
        };
        let old = self.slots.get(index).copied()?;
        if old.is_taken() {
            self.set(index, old.killed());
            self.insert(slot);
            return Some(old);
        }
        self.set(index, slot);
        self.leaving = self.leaving + usize::from(slot.leaves()) - usize::from(old.leaves());
        if old.marks() != slot.marks() || old.is_record() != slot.is_record() {
            self.wanted.add(&slot);
            self.forget(&old);
        }
        Some(old)
    }

    /// Takes a slot that is no longer in the table from the lists.
    fn forget(&mut self, old: &Slot) {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.remove(old, self.candidates(old.tag()));
        self.wanted = wanted;
    }

    /// Whether a list has any records.
    pub(in crate::embedded) fn lists(&self, list: List) -> bool {
        !self.wanted.is_empty(list)
    }

    /// The records of a list from a height and a tag on, up to a height: `room` of them behind
    /// those of the very first height and tag, and all of the last.
    pub(in crate::embedded) fn listed(
        &self,
        list: List,
        from: (u32, u32),
        to: u32,
        room: usize,
    ) -> Vec<Listed> {
        let mut found = Vec::new();
        let mut passed = 0;
        for (height, tag) in self.wanted.range(list, from, to) {
            if found.len() - passed >= room {
                break;
            }
            let slots = self.candidates(tag).filter(|slot| list.height(slot) == Some(height));
            found.extend(slots.map(|slot| Listed { height, tag, at: slot.at() }));
            if (height, tag) == from {
                passed = found.len();
            }
        }
        found
    }

    /// All records from a tag on: `room` of them behind those of this tag, and some more. Tags are
    /// in the order of their homes, and whatever lies before an empty slot belongs before it.
    pub(in crate::embedded) fn all_from(&self, from: u32, room: usize) -> Vec<Listed> {
        let mut found: Vec<Listed> = Vec::new();
        let mut passed = 0;
        let mut take = |slot: &Slot| {
            if slot.is_record() && slot.tag() >= from {
                found.push(Listed { height: 0, tag: slot.tag(), at: slot.at() });
                passed += usize::from(slot.tag() == from);
            }
            found.len() - passed
        };
        let home = self.home(from);
        let table = self.slots.get(home..).unwrap_or_default();
        let mut enough = false;
        for (index, slot) in (home..).zip(table) {
            if !slot.is_used() {
                if enough {
                    return found;
                }
            } else if self.home(slot.tag()) <= index {
                enough = take(slot) >= room;
            }
        }
        // Those that found no room before the end lie at the beginning.
        let front = self.slots.iter().take_while(|slot| slot.is_used()).enumerate();
        for (_, slot) in front.filter(|(index, slot)| self.home(slot.tag()) > *index) {
            take(slot);
        }
        found
    }

    /// Takes the live slot at `before` away, which may lie in a run. Returns what was in memory.
    pub(super) fn remove(&mut self, tag: u32, before: GlobalOffset) -> Option<Slot> {
        let Some(index) = self.find(tag, before) else {
            self.insert(Slot::dead(tag, before));
            return None;
        };
        let removed = self.slots.get(index).copied()?;
        if removed.is_taken() {
            self.set(index, removed.killed());
        } else {
            self.close_gap(index);
            self.len -= 1;
            self.leaving -= usize::from(removed.leaves());
            self.forget(&removed);
        }
        Some(removed)
    }

    /// Empties a slot and moves those behind it up.
    fn close_gap(&mut self, mut empty: usize) {
        let mut index = empty;
        loop {
            index = self.after(index);
            let Some(slot) = self.slots.get(index).copied().filter(Slot::is_used) else { break };
            // It may move up to the gap unless its home lies behind the gap.
            let home = self.home(slot.tag());
            if self.distance(home, index) >= self.distance(empty, index) {
                self.set(empty, slot);
                empty = index;
            }
        }
        self.set(empty, Slot::default());
    }

    /// Takes what leaves memory; shows it and what stays.
    pub(super) fn take(&mut self, mut leaves: impl FnMut(&Slot), mut stays: impl FnMut(&Slot)) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_used()) {
            if slot.leaves() {
                slot.take();
                leaves(slot);
            } else {
                stays(slot);
            }
        }
    }

    /// Keeps what `keep` leaves of each slot. What goes was in no list.
    pub(super) fn retain(&mut self, keep: impl Fn(Slot) -> Option<Slot>) {
        let kept: Vec<Slot> = self.slots().filter_map(|slot| keep(*slot)).collect();
        let table = Self::with_capacity(kept.len() + kept.len() / GROWTH);
        self.slots = table.slots;
        self.len = kept.len();
        self.leaving = kept.iter().filter(|slot| slot.leaves()).count();
        kept.into_iter().for_each(|slot| self.place(slot));
    }

    /// Where the live slot of the version at `at` is.
    fn find(&self, tag: u32, at: GlobalOffset) -> Option<usize> {
        let mut index = self.home(tag);
        loop {
            let slot = self.slots.get(index).filter(|slot| slot.is_used())?;
            if slot.tag() == tag && slot.at() == at && !slot.is_dead() {
                return Some(index);
            }
            index = self.after(index);
        }
    }

    fn place(&mut self, slot: Slot) {
        let mut index = self.home(slot.tag());
        while self.slots.get(index).is_some_and(Slot::is_used) {
            index = self.after(index);
        }
        self.set(index, slot);
    }

    fn grow(&mut self) {
        let grown = Self::with_capacity((self.len + self.len / GROWTH).max(SMALLEST));
        let old = std::mem::replace(&mut self.slots, grown.slots);
        for slot in old.into_iter().filter(Slot::is_used) {
            self.place(slot);
        }
    }

    fn set(&mut self, index: usize, slot: Slot) {
        if let Some(place) = self.slots.get_mut(index) {
            *place = slot;
        }
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.slots.len() as u64) >> 32) as usize
    }

    fn after(&self, index: usize) -> usize {
        if index + 1 < self.slots.len() { index + 1 } else { 0 }
    }

    /// How many places `to` lies behind `from`, round the end.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }
}
