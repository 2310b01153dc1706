//! From block hash to block number: open addressing over atomics, read without a lock.
//!
//! ```text
//!  slot u64   │ 63 … 32: tag, the upper half of the keyed hash │ 31 … 0: number + 1 │
//!             │ 0: empty                                                            │
//! ```
//!
//! A number goes to the first empty slot from `tag mod slots` on. The tag is the upper half of
//! SipHash-1-3 of the block hash under the secret of the store, so an attacker cannot choose
//! blocks that collide. A tag only finds candidates: the caller compares the hash in the
//! row. The table is at most half full.
//!
//! One writer inserts; a slot is written once, in one store. Concurrent readers see the slot or do
//! not, and only use numbers that were inserted before their count was published. When the table is
//! full the writer fills a larger one from its slots and publishes it; readers of the old one are
//! not affected. At most 16 bytes a block.

use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip::SipHasher13;
use varve_types::BlockHash;

use crate::number::BlockNumber;

/// The slots of a new table.
const LEAST: usize = 1 << 10;

/// The part of a block hash's keyed hash that a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u32);

impl Tag {
    pub(crate) fn new(secret: &[u8; 16], hash: &BlockHash) -> Self {
        let hash = SipHasher13::new_with_key(secret).hash(hash.as_bytes());
        Self(u32::try_from(hash >> 32).expect("half of 64 bits"))
    }
}

#[derive(Debug)]
pub(crate) struct HashTable {
    slots: Box<[AtomicU64]>,
}

impl HashTable {
    /// A table with room for `blocks` blocks and as many again.
    pub(crate) fn with_room(blocks: u32) -> Self {
        let slots = (blocks as usize).saturating_mul(4).next_power_of_two().max(LEAST);
        Self { slots: (0..slots).map(|_| AtomicU64::new(0)).collect() }
    }

    /// How many blocks it can hold.
    pub(crate) fn room(&self) -> usize {
        self.slots.len() / 2
    }

    /// Adds a number that is not in the table. The caller respects [`HashTable::room`].
    pub(crate) fn insert(&self, tag: Tag, number: BlockNumber) {
        let value = u64::from(tag.0) << 32 | (u64::from(number.get()) + 1);
        let empty = self.probe(tag).find(|slot| slot.load(Ordering::Relaxed) == 0);
        // Release: a reader that finds the number also sees what was written before it.
        empty.expect("half of the slots are empty").store(value, Ordering::Release);
    }

    /// The numbers under this tag; there may be some of other hashes among them.
    pub(crate) fn candidates(&self, tag: Tag) -> impl Iterator<Item = BlockNumber> {
        let slots = self.probe(tag).map(|slot| slot.load(Ordering::Acquire));
        slots.take_while(|&value| value != 0).filter_map(move |value| {
            let (found, number) = split(value);
            (found == tag).then_some(number)
        })
    }

    /// A table with the numbers below `count` and room for as many again.
    pub(crate) fn copy_below(&self, count: u32) -> Self {
        let copy = Self::with_room(count);
        for value in self.slots.iter().map(|slot| slot.load(Ordering::Relaxed)) {
            let (tag, number) = split(value);
            if value != 0 && number.get() < count {
                copy.insert(tag, number);
            }
        }
        copy
    }

    /// The slots in the order in which a tag looks at them.
    fn probe(&self, tag: Tag) -> impl Iterator<Item = &AtomicU64> {
        let home = tag.0 as usize & (self.slots.len() - 1);
        let (before, from) = self.slots.split_at_checked(home).unwrap_or_default();
        from.iter().chain(before)
    }
}

/// Tag and number of a full slot.
fn split(value: u64) -> (Tag, BlockNumber) {
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).expect("masked to 32 bits");
    (Tag(half(value >> 32)), BlockNumber::new(half(value).wrapping_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(number: u32, tags: u32) -> Tag {
        Tag(number.wrapping_mul(0x9e37_79b9) % tags)
    }

    #[test]
    fn numbers_are_found_whatever_their_tags_share() {
        for tags in [1, 7, u32::MAX] {
            let mut table = HashTable::with_room(0);
            for number in 0..3_000 {
                if number as usize == table.room() {
                    table = table.copy_below(number);
                }
                table.insert(tag(number, tags), BlockNumber::new(number));
            }
            for number in (0..3_000).step_by(13) {
                let wanted = BlockNumber::new(number);
                let found = table.candidates(tag(number, tags)).any(|found| found == wanted);
                assert!(found, "{number} of {tags} tags");
            }
            let few = table.copy_below(10);
            let left = (0..3_000).filter(|&number| {
                let wanted = BlockNumber::new(number);
                few.candidates(tag(number, tags)).any(|found| found == wanted)
            });
            assert_eq!(left.count(), 10);
        }
    }

    #[test]
    fn the_secret_decides_the_place() {
        let hash = BlockHash::from_bytes([7; 32]);
        assert_eq!(Tag::new(&[1; 16], &hash), Tag::new(&[1; 16], &hash));
        assert_ne!(Tag::new(&[1; 16], &hash), Tag::new(&[2; 16], &hash));
    }
}
