//! The table of a shard: finds an entry by its hash, usually in one cache line.
//!
//! ```text
//!  slot  │ tag 24 bits │ batch + 1, 12 bits │ index in the batch, 28 bits │      0 = empty
//! ```
//!
//! Open addressing with linear probing, in slots of one atomic word each, at most seven tenths of
//! them taken. A search examines the slots from the hash's place on and ends at an empty one. It
//! returns the slots whose tag agrees: nearly always none or the right one, and the entry itself
//! decides.
//!
//! Slots are only ever filled, so readers need no lock: a reader sees a slot or does not see it
//! yet, and a slot of a later step leads to a batch that is not filled in yet or is too young for
//! it. A full table is replaced by a larger one; readers of older versions keep the old one, which
//! has all that they may see. (A refused step empties its own slots again, the last first. None of
//! them was visible to a reader, and in that order no search is cut short.)

#![expect(clippy::indexing_slicing, reason = "places are below the length by construction")]

use crate::hasher::OutpointHash;
use crate::sync::{AtomicU64, Ordering};

/// The largest number of batches a shard can have.
pub(crate) const BATCHES_MAX: usize = (1 << BATCH_BITS) - 1;
/// The largest number of entries in a batch.
pub(crate) const BATCH_ENTRIES_MAX: usize = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 28;
const BATCH_BITS: u32 = 12;
const TAG_SHIFT: u32 = INDEX_BITS + BATCH_BITS;
const _: () = assert!(64 - TAG_SHIFT == 24, "a tag is 24 bits");

/// Which entry of a shard: a batch and an index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) batch: u16,
    pub(crate) index: u32,
}

/// A filled slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u64);

impl Slot {
    #[inline]
    fn new(hash: OutpointHash, place: Place) -> Self {
        let batch = u64::from(place.batch) + 1;
        Self(hash.tag() << TAG_SHIFT | batch << INDEX_BITS | u64::from(place.index))
    }

    #[inline]
    const fn matches(self, hash: OutpointHash) -> bool {
        self.0 >> TAG_SHIFT == hash.tag()
    }

    #[inline]
    pub(crate) const fn place(self) -> Place {
        let batch = (self.0 >> INDEX_BITS) & ((1 << BATCH_BITS) - 1);
        // A `Slot` is never empty, so the number is at least one.
        let batch = batch.wrapping_sub(1) as u16;
        Place { batch, index: (self.0 & ((1 << INDEX_BITS) - 1)) as u32 }
    }
}

/// The slots.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Box<[AtomicU64]>,
}

impl Table {
    /// A table for `entries` entries and some more.
    pub(crate) fn for_entries(entries: usize) -> Self {
        let len = (entries + entries / 2).max(16);
        Self { slots: (0..len).map(|_| AtomicU64::new(0)).collect() }
    }

    /// How many entries it takes before it should be replaced by a larger one.
    pub(crate) fn room(&self) -> usize {
        self.slots.len() / 10 * 7
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The slot at the hash's place, loaded before it is needed: see `WindowVersion::lookup`.
    #[inline]
    pub(crate) fn first(&self, hash: OutpointHash) -> Probe {
        let at = hash.place(self.slots.len());
        Probe { at, slot: self.slots[at].load(Ordering::Relaxed) }
    }

    /// Loads the slots where these hashes will go, all at once instead of one after another.
    #[inline]
    pub(crate) fn touch(&self, hashes: impl Iterator<Item = OutpointHash>) {
        let sum = hashes.fold(0, |sum, hash| sum ^ self.first(hash).slot);
        std::hint::black_box(sum);
    }

    /// The next slot whose tag agrees, and the probe after it.
    #[inline]
    pub(crate) fn next(&self, hash: OutpointHash, probe: Probe) -> Option<(Slot, Probe)> {
        let Probe { mut at, mut slot } = probe;
        while slot != 0 {
            let found = Slot(slot);
            at = self.behind(at);
            slot = self.slots[at].load(Ordering::Relaxed);
            if found.matches(hash) {
                return Some((found, Probe { at, slot }));
            }
        }
        None
    }

    /// Fills the first free slot of the hash. Returns false, changing nothing, when `conflict`
    /// objects to a slot with the same tag on the way. Called by the writer, which respects
    /// [`Table::room`], so there is a free slot.
    #[inline]
    pub(crate) fn insert_unless(
        &self,
        hash: OutpointHash,
        place: Place,
        mut conflict: impl FnMut(Place) -> bool,
    ) -> bool {
        let mut at = hash.place(self.slots.len());
        loop {
            let slot = self.slots[at].load(Ordering::Relaxed);
            if slot == 0 {
                self.slots[at].store(Slot::new(hash, place).0, Ordering::Relaxed);
                return true;
            }
            if Slot(slot).matches(hash) && conflict(Slot(slot).place()) {
                return false;
            }
            at = self.behind(at);
        }
    }

    /// Empties the most recently filled slot of those still filled.
    pub(crate) fn take_back(&self, hash: OutpointHash, place: Place) {
        let slot = Slot::new(hash, place).0;
        let mut at = hash.place(self.slots.len());
        while self.slots[at].load(Ordering::Relaxed) != slot {
            at = self.behind(at);
        }
        self.slots[at].store(0, Ordering::Relaxed);
    }

    #[inline]
    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }
}

/// A search that has reached a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probe {
    at: usize,
    slot: u64,
}
