//! Which frames of a file have verified since it was opened: a cache of bounded size.
//!
//! ```text
//!  slot   │ 0: empty │ position + 1 of a frame that verified │      512 slots of one word
//! ```
//!
//! A position has one slot, by a hash of it. Remembering a frame overwrites its slot, so another
//! frame that shares the slot is forgotten, and verified again when it is next read: that costs
//! time, and never gives a wrong answer. A slot is one atomic word, so there is no lock; the bytes
//! of a frame never change, so relaxed ordering is enough.
//!
//! The table is allocated when the first frame is remembered: 4 KiB for each file that is read by
//! frames, however many frames it has.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::offset::GlobalOffset;

/// Slots of a file. A file of a gibibyte has some hundred frames of megabytes, whose checks are
/// worth remembering; checking a short frame again costs little.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 9;

const _: () = assert!(SLOTS * size_of::<AtomicU64>() == 4096);

/// The frames of one file that have verified, as far as they are remembered.
#[derive(Debug, Default)]
pub(super) struct VerifiedFrames(OnceLock<Box<[AtomicU64]>>);

impl VerifiedFrames {
    /// Whether the frame at `at` is known to have verified.
    pub(super) fn contains(&self, at: GlobalOffset) -> bool {
        let slot = self.0.get().and_then(|slots| slots.get(index(at)));
        slot.is_some_and(|slot| slot.load(Ordering::Relaxed) == word(at))
    }

    /// Remembers that the frame at `at` has verified.
    pub(super) fn insert(&self, at: GlobalOffset) {
        let slots = self.0.get_or_init(|| (0..SLOTS).map(|_| AtomicU64::new(0)).collect());
        if let Some(slot) = slots.get(index(at)) {
            slot.store(word(at), Ordering::Relaxed);
        }
    }
}

/// What a slot holds for a position. No file ends at the end of the scale, so it is never 0.
const fn word(at: GlobalOffset) -> u64 {
    at.get().wrapping_add(1)
}

/// The slot of a position: the upper bits of a product with the golden ratio, which spreads the
/// even distances of equal frames.
fn index(at: GlobalOffset) -> usize {
    let hash = at.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS);
    usize::try_from(hash).expect("nine bits are an index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_remembered_is_not_known() {
        let frames = VerifiedFrames::default();
        assert!(!frames.contains(GlobalOffset::ZERO), "an empty table knows nothing");
        frames.insert(GlobalOffset::ZERO);
        assert!(frames.contains(GlobalOffset::ZERO));
        assert!((1..100_000).all(|at| !frames.contains(GlobalOffset::new(at))));
    }

    /// Regression: a log remembered every frame that it had verified, without a bound.
    #[test]
    fn the_memory_does_not_grow_with_the_frames() {
        let frames = VerifiedFrames::default();
        let at = |frame: u64| GlobalOffset::new(frame * 1_016);
        for frame in 0..100_000 {
            frames.insert(at(frame));
            assert!(frames.contains(at(frame)), "the last one is known");
        }
        let known = (0..100_000).filter(|frame| frames.contains(at(*frame))).count();
        assert!((SLOTS / 2..=SLOTS).contains(&known), "{known} of {SLOTS} slots are used");
    }
}
