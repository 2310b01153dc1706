//! The index against a map.

use std::collections::BTreeMap;

use varve_types::Txid;

use super::*;
use crate::embedded::index::shard::SLOT_LEN;
use crate::embedded::key::{Key, KeyHasher};

fn key(number: u64) -> Key {
    let mut txid = [0; 32];
    txid[..8].copy_from_slice(&number.to_le_bytes());
    Key { txid: Txid::from_bytes(txid), part: Part::new(u32::from(number.is_multiple_of(5))) }
}

fn version(at: u64, weight: u32) -> Version {
    let (preserved, conflicting) = (at.is_multiple_of(2), at.is_multiple_of(3));
    let marks = Marks { unmined: 3, expiry: 4, preserved, conflicting };
    Version { at: GlobalOffset::new(at), marks, kind: EntryKind::State, weight }
}

const GONE: Version = Version {
    at: GlobalOffset::ZERO,
    marks: Marks { unmined: 0, expiry: 0, preserved: false, conflicting: false },
    kind: EntryKind::Gone,
    weight: 0,
};

/// Keys come, change and go by chance; after each step of many the index holds what the map holds.
#[test]
fn it_agrees_with_a_map() {
    let hasher = KeyHasher::new(&[9; 16]);
    let mut index = Index::new(4);
    let mut map: BTreeMap<u64, Version> = BTreeMap::new();
    let mut state = 1_u64;
    for step in 1..30_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let number = (state >> 33) % 700;
        let hash = hasher.hash(&key(number));
        let before = map.get(&number).map(|version| version.at);
        if state >> 20 & 3 == 0 {
            assert!(index.put(hash, key(number).part, before, &GONE));
            map.remove(&number);
        } else {
            let new = version(step, u32::try_from(state >> 50).unwrap());
            assert!(index.put(hash, key(number).part, before, &new));
            map.insert(number, new);
        }
        if step % 997 == 0 {
            check(&index, &map, &hasher);
        }
    }
    assert!(map.len() > 100);
}

fn check(index: &Index, map: &BTreeMap<u64, Version>, hasher: &KeyHasher) {
    assert_eq!(index.len(), map.len());
    assert_eq!(index.live(), map.values().map(|version| u64::from(version.weight)).sum::<u64>());
    assert_eq!(index.slots().count(), map.len());
    for number in 0..700 {
        let hash = hasher.hash(&key(number));
        let found = index.candidates(hash).map(|slot| (slot.at(), slot.marks()));
        let found: Vec<_> = found.collect();
        match map.get(&number) {
            Some(version) => assert!(found.contains(&(version.at, version.marks))),
            None if cfg!(feature = "weak-hash") => {}
            None => assert!(found.is_empty(), "32 bits of tag tell 700 keys apart"),
        }
    }
}

#[test]
fn a_version_that_is_not_there_cannot_be_replaced() {
    let hash = KeyHasher::new(&[9; 16]).hash(&key(1));
    let mut index = Index::new(1);
    let missing = Some(GlobalOffset::new(5));
    assert!(!index.put(hash, Part::RECORD, missing, &version(6, 1)));
    assert!(!index.put(hash, Part::RECORD, missing, &GONE));
    assert!(index.put(hash, Part::RECORD, None, &version(5, 1)));
    assert!(index.put(hash, Part::RECORD, missing, &version(6, 1)));
    assert!(!index.put(hash, Part::RECORD, missing, &version(7, 1)));
    assert_eq!(index.live(), 1);
}

#[test]
fn a_slot_survives_its_bytes() {
    let intent = Version { kind: EntryKind::Intent, ..version(1 << 50, 7) };
    for version in [version(6, 1), version(9, u32::MAX), intent] {
        let slot = Slot::new(0xdead_beef, Part::RECORD, &version);
        let mut bytes = Vec::new();
        slot.encode(&mut bytes);
        let bytes: &[u8; SLOT_LEN] = bytes.first_chunk().unwrap();
        assert_eq!(Slot::decode(bytes), Some(slot));
        assert_eq!((slot.at(), slot.marks()), (version.at, version.marks));
        assert_eq!(slot.is_intent(), version.kind == EntryKind::Intent);
    }
    assert_eq!(Slot::decode(&[0; SLOT_LEN]), None);
}

#[test]
fn a_key_takes_at_most_forty_bytes() {
    let hasher = KeyHasher::new(&[9; 16]);
    let mut index = Index::new(4);
    for number in 0..200_000 {
        let key = key(number);
        assert!(index.put(hasher.hash(&key), key.part, None, &version(number + 1, 5)));
        let keys = index.len();
        if keys > 10_000 {
            assert!(index.memory() <= 41 * keys, "{} bytes for {keys} keys", index.memory());
        }
    }
}
