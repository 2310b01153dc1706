//! What an entry of the log is found by, and where the index looks for it.
//!
//! A key is 32 bytes and a part. Part 0 of a txid is its record, part `n` is the `n`-th chunk of
//! its slots, and the last part is kept for conflict intents, whose 32 bytes are their id.
//!
//! Txids can be ground: whoever makes transactions may try until many of them share their first
//! bytes. So a key is placed by its keyed hash ([`KeyedHasher`]), never by its own bytes. The index
//! keeps the upper 40 bits, the *place* of a key: 8 choose the shard, 32 are the tag in it. Among a
//! billion keys one in a thousand shares its place with another. Answers never depend on that,
//! because the entry of the log holds the whole key and decides. The feature `weak-hash` leaves two
//! bits of the shard and four of the tag, and the tests run with it as well.

#![expect(clippy::cast_possible_truncation, reason = "halves and low bits are what is wanted")]

use varve_types::{KeyedHasher, Txid};

/// The bits of a place: those of the shard, then those of the tag.
pub(super) const PLACE_BITS: u32 = 40;
const TAG_BITS: u32 = 32;
/// The number of shards.
pub(super) const SHARDS: usize = 1 << (PLACE_BITS - TAG_BITS);
const _: () = assert!(SHARDS == 256);
/// What a place gets of a hash: everything, or six bits in the tests' weak build.
const KEPT: u64 = if cfg!(feature = "weak-hash") { 0xc0_f000_0000 } else { (1 << PLACE_BITS) - 1 };

/// Which part of what belongs to a txid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Part(u32);

impl Part {
    /// The record: its state, its first slots and, as long as they lie together, its body.
    pub(super) const RECORD: Self = Self(0);
    /// A conflict intent; the key's 32 bytes are the intent's id.
    pub(super) const INTENT: Self = Self(u32::MAX);

    /// The part with this number.
    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }

    pub(super) const fn get(self) -> u32 {
        self.0
    }
}

/// What an entry is found by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Key {
    pub(super) txid: Txid,
    pub(super) part: Part,
}

impl Key {
    pub(super) const fn record(txid: Txid) -> Self {
        Self { txid, part: Part::RECORD }
    }
}

/// The hash of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    /// What the index keeps of the hash.
    pub(super) const fn place(self) -> Place {
        Place(self.0 >> (u64::BITS - PLACE_BITS) & KEPT)
    }

    /// All bits, for tables in memory.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }
}

/// Where the index looks for a key: the upper bits of its hash. Keys may share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place(u64);

impl Place {
    /// The place of a tag in a shard.
    pub(super) const fn new(shard: usize, tag: u32) -> Self {
        Self((shard as u64) << TAG_BITS | tag as u64)
    }

    /// The place with these bits; higher ones are left out.
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << PLACE_BITS) - 1))
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// The shard, below [`SHARDS`].
    pub(super) const fn shard(self) -> usize {
        (self.0 >> TAG_BITS) as usize
    }

    /// The tag in the shard.
    pub(super) const fn tag(self) -> u32 {
        self.0 as u32
    }
}

/// Hashes keys under the secret of one store.
#[derive(Clone, Debug)]
pub(super) struct KeyHasher(KeyedHasher);

impl KeyHasher {
    pub(super) fn new(secret: &[u8; 16]) -> Self {
        Self(KeyedHasher::new(b"varve/records-hasher/", secret))
    }

    #[inline]
    pub(super) fn hash(&self, key: &Key) -> KeyHash {
        KeyHash(self.0.hash(key.txid.as_bytes(), key.part.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_key_and_of_the_secret_counts() {
        let key = Key { txid: Txid::from_bytes([7; 32]), part: Part::new(1) };
        let hasher = KeyHasher::new(&[1; 16]);
        let hash = hasher.hash(&key);
        assert_eq!(hash, KeyHasher::new(&[1; 16]).hash(&key), "it is a function");
        assert_ne!(hash, KeyHasher::new(&[2; 16]).hash(&key));
        assert_ne!(hash, hasher.hash(&Key { part: Part::new(2), ..key }));
        for byte in 0..32 {
            let mut txid = [7; 32];
            txid[byte] = 8;
            assert_ne!(hash, hasher.hash(&Key { txid: Txid::from_bytes(txid), ..key }));
        }
    }

    #[test]
    fn a_place_is_its_shard_and_its_tag() {
        let place = Place::new(0xa5, 0xdead_beef);
        assert_eq!((place.shard(), place.tag()), (0xa5, 0xdead_beef));
        assert_eq!(place.bits(), 0xa5_dead_beef);
        let hash = KeyHash(0xa5de_adbe_ef12_3456);
        if cfg!(not(feature = "weak-hash")) {
            assert_eq!(hash.place(), place);
        }
    }

    /// Places are part of the format: the files of the index hold them.
    #[test]
    fn the_hash_never_changes() {
        let key = Key { txid: Txid::from_bytes([7; 32]), part: Part::new(1) };
        assert_eq!(KeyHasher::new(&[1; 16]).hash(&key).bits(), 13_914_636_708_969_611_464);
    }
}
