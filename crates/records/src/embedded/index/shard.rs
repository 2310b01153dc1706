//! One table of the index: open addressing, linear probing.
//!
//! ```text
//!  slot, 24 bytes
//!  ┌──────────────────────────┬───────────┬────────┬────────┬────────┬────────┐
//!  │ position in the log      │ flags     │ tag    │ unmined│ expiry │ weight │
//!  │ 56 bits                  │ 8 bits    │ u32    │ u32    │ u32    │ u32    │
//!  └──────────────────────────┴───────────┴────────┴────────┴────────┴────────┘
//!  flags   1 used   2 expiry is a preservation   4 conflicting   8 a record   16 an intent
//! ```
//!
//! The home of a slot is `tag · capacity / 2^32`, so the tag alone says where it belongs: tables
//! grow, and checkpoints are loaded, without asking for keys, and in the order of the memory. A
//! slot lies at its home or behind it with no empty slot between. Removing one moves those behind
//! it up, so there are no marks of removed ones that would make the table slow.

use varve_io::GlobalOffset;

use super::Version;
use super::wanted::{List, Wanted};
use crate::embedded::entry::{EntryKind, Marks};
use crate::embedded::key::Part;

/// The bytes of a slot in a checkpoint.
pub(in crate::embedded) const SLOT_LEN: usize = 24;
const _: () = assert!(size_of::<Slot>() == SLOT_LEN);

const POSITION_BITS: u32 = 56;
const USED: u64 = 1;
const RECORD: u64 = 8;
const INTENT: u64 = 16;

/// A table is at most this full.
const FULLEST: (usize, usize) = (3, 4);
/// It grows by a part of itself, not to twice its size: so a key takes 32 to 40 bytes, and moving
/// each slot four times in its life costs less than reading one entry.
const GROWTH: usize = 4;
const SMALLEST: usize = 16;

/// A key's newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(in crate::embedded) struct Slot {
    /// Position and flags; 0 when the slot is empty.
    place: u64,
    tag: u32,
    unmined: u32,
    expiry: u32,
    pub(in crate::embedded) weight: u32,
}

impl Slot {
    pub(super) const fn new(tag: u32, part: Part, version: &Version) -> Self {
        let Version { at, marks, weight, kind } = *version;
        let record = if part.get() == Part::RECORD.get() { RECORD } else { 0 };
        let intent = if matches!(kind, EntryKind::Intent) { INTENT } else { 0 };
        let flags = USED | (marks.bits() as u64) << 1 | record | intent;
        let place = at.get() & ((1 << POSITION_BITS) - 1) | flags << POSITION_BITS;
        Self { place, tag, unmined: marks.unmined, expiry: marks.expiry, weight }
    }

    const fn is_used(&self) -> bool {
        self.place != 0
    }

    const fn has(&self, flag: u64) -> bool {
        self.place >> POSITION_BITS & flag != 0
    }

    /// The bits of the key's hash.
    pub(in crate::embedded) const fn tag(&self) -> u32 {
        self.tag
    }

    /// Where the version lies.
    pub(in crate::embedded) const fn at(&self) -> GlobalOffset {
        GlobalOffset::new(self.place & ((1 << POSITION_BITS) - 1))
    }

    /// It is a record, not a chunk or an intent.
    pub(in crate::embedded) const fn is_record(&self) -> bool {
        self.has(RECORD)
    }

    pub(in crate::embedded) const fn is_intent(&self) -> bool {
        self.has(INTENT)
    }

    pub(in crate::embedded) const fn marks(&self) -> Marks {
        let bits = (self.place >> (POSITION_BITS + 1) & 3) as u8;
        Marks::new(self.unmined, self.expiry, bits)
    }

    /// The slot as a checkpoint holds it.
    pub(in crate::embedded) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.place.to_le_bytes());
        for field in [self.tag, self.unmined, self.expiry, self.weight] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// The slot in these bytes of a checkpoint; `None` for an empty one, which is never written.
    pub(in crate::embedded) fn decode(bytes: &[u8; SLOT_LEN]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<4>();
        let [low, high, tag, unmined, expiry, weight] = words else { return None };
        let [tag, unmined, expiry, weight] =
            [tag, unmined, expiry, weight].map(|field| u32::from_le_bytes(*field));
        let [low, high] = [low, high].map(|half| u64::from(u32::from_le_bytes(*half)));
        let slot = Self { place: low | high << 32, tag, unmined, expiry, weight };
        slot.has(USED).then_some(slot)
    }
}

/// A table of slots.
#[derive(Clone, Debug, Default)]
pub(in crate::embedded) struct Shard {
    slots: Vec<Slot>,
    len: usize,
    wanted: Wanted,
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

    pub(in crate::embedded) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * SLOT_LEN + self.wanted.memory()
    }

    /// All slots, in the order of their homes.
    pub(in crate::embedded) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.is_used())
    }

    /// All slots with this tag.
    #[inline]
    pub(super) fn candidates(&self, tag: u32) -> impl Iterator<Item = &Slot> + Clone {
        let home = self.home(tag);
        let (before, from) = self.slots.split_at_checked(home).unwrap_or_default();
        let chain = from.iter().chain(before).take_while(|slot| slot.is_used());
        chain.filter(move |slot| slot.tag == tag)
    }

    /// Adds a slot, which must not be there.
    pub(in crate::embedded) fn insert(&mut self, slot: Slot) {
        let (taken, of) = FULLEST;
        if (self.len + 1) * of > self.slots.len() * taken {
            self.grow();
        }
        self.place(slot);
        self.wanted.add(&slot);
        self.len += 1;
    }

    /// Puts `slot` in place of the one at `before`, and returns that.
    pub(super) fn replace(&mut self, before: GlobalOffset, slot: Slot) -> Option<Slot> {
        let index = self.find(slot.tag, before)?;
        let place = self.slots.get_mut(index)?;
        let old = std::mem::replace(place, slot);
        if old.marks() != slot.marks() || old.is_record() != slot.is_record() {
            self.wanted.add(&slot);
            self.forget(&old);
        }
        Some(old)
    }

    /// Takes a slot that is no longer in the table from the lists.
    fn forget(&mut self, old: &Slot) {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.remove(old, self.candidates(old.tag));
        self.wanted = wanted;
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
            if slot.is_record() && slot.tag >= from {
                found.push(Listed { height: 0, tag: slot.tag, at: slot.at() });
                passed += usize::from(slot.tag == from);
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
            } else if self.home(slot.tag) <= index {
                enough = take(slot) >= room;
            }
        }
        // Those that found no room before the end lie at the beginning.
        let front = self.slots.iter().take_while(|slot| slot.is_used()).enumerate();
        for (_, slot) in front.filter(|(index, slot)| self.home(slot.tag) > *index) {
            take(slot);
        }
        found
    }

    /// Takes the slot at `before` away.
    pub(super) fn remove(&mut self, tag: u32, before: GlobalOffset) -> Option<Slot> {
        let mut empty = self.find(tag, before)?;
        let removed = self.slots.get(empty).copied();
        let mut index = empty;
        loop {
            index = self.after(index);
            let Some(slot) = self.slots.get(index).copied().filter(Slot::is_used) else { break };
            // It may move up to the gap unless its home lies behind the gap.
            let home = self.home(slot.tag);
            if self.distance(home, index) >= self.distance(empty, index) {
                self.set(empty, slot);
                empty = index;
            }
        }
        self.set(empty, Slot::default());
        self.len -= 1;
        if let Some(removed) = &removed {
            self.forget(removed);
        }
        removed
    }

    fn find(&self, tag: u32, at: GlobalOffset) -> Option<usize> {
        let mut index = self.home(tag);
        loop {
            let slot = self.slots.get(index).filter(|slot| slot.is_used())?;
            if slot.tag == tag && slot.at() == at {
                return Some(index);
            }
            index = self.after(index);
        }
    }

    fn place(&mut self, slot: Slot) {
        let mut index = self.home(slot.tag);
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
