//! A slot: what the index has in memory for one version of a key.
//!
//! ```text
//!  slot, 24 bytes
//!  ┌──────────────────────────┬───────────┬────────┬────────┬────────┬────────┐
//!  │ position in the log      │ flags     │ tag    │ unmined│ expiry │ weight │
//!  │ 56 bits                  │ 8 bits    │ u32    │ u32    │ u32    │ u32    │
//!  └──────────────────────────┴───────────┴────────┴────────┴────────┴────────┘
//!  flags    1 used   2 expiry is a preservation   4 conflicting   8 a record   16 an intent
//!          32 dead  64 taken  128 dead in flight
//! ```
//!
//! A slot is *live*, the newest version of its key, or *dead*: a version that a run still has and
//! that counts no more. `index` describes what a checkpoint does with both.

use varve_io::GlobalOffset;

use super::wanted::List;
use super::{Row, Version};
use crate::embedded::entry::{EntryKind, Marks};
use crate::embedded::key::{Part, Place};

/// The bytes of a slot in a checkpoint.
pub(in crate::embedded) const SLOT_LEN: usize = 24;
const _: () = assert!(size_of::<Slot>() == SLOT_LEN);

const POSITION_BITS: u32 = 56;
const POSITION: u64 = (1 << POSITION_BITS) - 1;
const USED: u64 = 1;
const RECORD: u64 = 8;
const INTENT: u64 = 16;
const DEAD: u64 = 32;
const TAKEN: u64 = 64;
const FLIGHT: u64 = 128;

/// A version of a key.
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
        let place = at.get() & POSITION | flags << POSITION_BITS;
        Self { place, tag, unmined: marks.unmined, expiry: marks.expiry, weight }
    }

    /// The version at `at`, which a run has, is no more.
    pub(super) const fn dead(tag: u32, at: GlobalOffset) -> Self {
        let place = at.get() & POSITION | (USED | DEAD) << POSITION_BITS;
        Self { place, tag, unmined: 0, expiry: 0, weight: 0 }
    }

    pub(super) const fn is_used(&self) -> bool {
        self.place != 0
    }

    const fn has(&self, flag: u64) -> bool {
        self.place >> POSITION_BITS & flag != 0
    }

    /// The lower bits of the key's place.
    pub(in crate::embedded) const fn tag(&self) -> u32 {
        self.tag
    }

    /// Where the version lies.
    pub(in crate::embedded) const fn at(&self) -> GlobalOffset {
        GlobalOffset::new(self.place & POSITION)
    }

    /// It is a record, not a chunk or an intent.
    pub(in crate::embedded) const fn is_record(&self) -> bool {
        self.has(RECORD)
    }

    pub(in crate::embedded) const fn is_intent(&self) -> bool {
        self.has(INTENT)
    }

    /// A run has the version, and it counts no more.
    pub(in crate::embedded) const fn is_dead(&self) -> bool {
        self.has(DEAD)
    }

    pub(super) const fn is_taken(&self) -> bool {
        self.has(TAKEN)
    }

    pub(in crate::embedded) const fn marks(&self) -> Marks {
        let bits = (self.place >> (POSITION_BITS + 1) & 3) as u8;
        Marks::new(self.unmined, self.expiry, bits)
    }

    /// Whether a checkpoint moves it to a run: all but intents and what scans look for.
    pub(super) fn leaves(&self) -> bool {
        !self.is_intent() && !List::ALL.iter().any(|list| list.height(self).is_some())
    }

    /// The run that is being written has it.
    pub(super) const fn take(&mut self) {
        self.place |= TAKEN << POSITION_BITS;
    }

    /// A taken version was replaced: once the run is published, it will have a dead one.
    pub(super) const fn killed(&self) -> Self {
        let mut dead = Self::dead(self.tag, self.at());
        dead.place |= FLIGHT << POSITION_BITS;
        dead
    }

    /// What remains of the slot when the run is published.
    pub(super) fn after_flush(mut self) -> Option<Self> {
        self.place &= !(FLIGHT << POSITION_BITS);
        (!self.is_taken()).then_some(self)
    }

    /// What remains of the slot when the run failed.
    pub(super) fn without_flush(mut self) -> Option<Self> {
        self.place &= !(TAKEN << POSITION_BITS);
        (!self.has(FLIGHT)).then_some(self)
    }

    /// The row that a run gets.
    pub(super) const fn row(&self, shard: usize) -> Row {
        let place = Place::new(shard, self.tag);
        if self.is_dead() {
            return Row::delete(place, self.at());
        }
        Row::add(place, self.at(), self.weight, self.is_record())
    }

    /// The slot as a checkpoint holds it.
    pub(in crate::embedded) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.place.to_le_bytes());
        for field in [self.tag, self.unmined, self.expiry, self.weight] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// The slot in these bytes of a checkpoint; `None` for one that is never written.
    pub(in crate::embedded) fn decode(bytes: &[u8; SLOT_LEN]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<4>();
        let [low, high, tag, unmined, expiry, weight] = words else { return None };
        let [tag, unmined, expiry, weight] =
            [tag, unmined, expiry, weight].map(|field| u32::from_le_bytes(*field));
        let [low, high] = [low, high].map(|half| u64::from(u32::from_le_bytes(*half)));
        let slot = Self { place: low | high << 32, tag, unmined, expiry, weight };
        (slot.has(USED) && !slot.leaves()).then_some(slot)
    }
}
