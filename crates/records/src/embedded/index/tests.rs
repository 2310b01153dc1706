//! The index against a map.

use std::collections::BTreeMap;

use varve_types::Txid;

use super::*;
use crate::embedded::key::{Key, KeyHasher};

fn key(number: u64) -> Key {
    let mut txid = [0; 32];
    txid[..8].copy_from_slice(&number.to_le_bytes());
    Key { txid: Txid::from_bytes(txid), part: Part::new(u32::from(number.is_multiple_of(5))) }
}

/// An index without runs.
fn empty() -> Index {
    let key = varve_runs::StoreKey {
        id: varve_io::StoreId([1; 16]),
        secret: varve_runs::Secret::new([2; 16]),
    };
    Index::new(Cold::open(&varve_io::faulty::FaultyStorage::new(1), key, &[]).unwrap())
}

fn before(version: &Version) -> Before {
    Before { at: version.at, weight: version.weight }
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
    let mut index = empty();
    let mut map: BTreeMap<u64, Version> = BTreeMap::new();
    let mut state = 1_u64;
    for step in 1..30_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let number = (state >> 33) % 700;
        let hash = hasher.hash(&key(number));
        let before = map.get(&number).map(before);
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
    let live = map.values().map(|version| u64::from(version.weight)).sum();
    assert_eq!(index.totals(), Totals { keys: map.len() as u64, live });
    assert_eq!(index.shards().iter().map(|shard| shard.slots().count()).sum::<usize>(), map.len());
    for number in 0..700 {
        let hash = hasher.hash(&key(number));
        let found = index.slots_at(hash.place()).map(|slot| (slot.at(), slot.marks()));
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
    let mut index = empty();
    let missing = Some(Before { at: GlobalOffset::new(5), weight: 1 });
    assert!(!index.put(hash, Part::RECORD, missing, &version(6, 1)));
    assert!(!index.put(hash, Part::RECORD, missing, &GONE));
    assert!(index.put(hash, Part::RECORD, None, &version(5, 1)));
    assert!(index.put(hash, Part::RECORD, missing, &version(6, 1)));
    assert!(!index.put(hash, Part::RECORD, missing, &version(7, 1)));
    assert_eq!(index.totals(), Totals { keys: 1, live: 1 });
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
fn a_key_takes_at_most_forty_bytes_and_some_for_each_list() {
    let hasher = KeyHasher::new(&[9; 16]);
    let plain = Version { marks: GONE.marks, ..version(1, 5) };
    for (like, bound) in [(plain, 41), (version(6, 5), 41 + 3 * 18)] {
        let mut index = empty();
        for number in 0..200_000 {
            let key = key(number);
            let new = Version { at: GlobalOffset::new(number + 1), ..like };
            assert!(index.put(hasher.hash(&key), key.part, None, &new));
            let (keys, memory) = (number + 1, index.memory());
            assert!(keys <= 100_000 || memory <= bound * keys, "{memory} bytes for {keys} keys");
        }
    }
}

/// A list and a walk over everything find the same, whatever came and went.
#[test]
fn lists_hold_what_the_slots_say() {
    let hasher = KeyHasher::new(&[9; 16]);
    let mut index = empty();
    let mut map: BTreeMap<u64, Version> = BTreeMap::new();
    let mut state = 7_u64;
    for step in 1..6_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let number = (state >> 33) % 300;
        let before = map.get(&number).map(before);
        let [unmined, expiry] = [40, 45].map(|shift| u32::try_from(state >> shift & 3).unwrap());
        let (preserved, conflicting) = (state >> 50 & 1 == 0, state >> 51 & 1 == 0);
        let marks = Marks { unmined, expiry, preserved: preserved && expiry > 0, conflicting };
        let new = Version { marks, ..version(step, 1) };
        let new = if state >> 20 & 3 == 0 { GONE } else { new };
        let hash = hasher.hash(&key(number));
        assert!(index.put(hash, key(number).part, before, &new));
        match new.kind {
            EntryKind::Gone => drop(map.remove(&number)),
            _ => drop(map.insert(number, new)),
        }
        if step % 199 == 0 {
            check_lists(&index);
        }
    }
}

fn check_lists(index: &Index) {
    for shard in index.shards() {
        let all: Vec<u64> = shard.slots().filter(|s| s.is_record()).map(|s| s.at().get()).collect();
        for room in [1, 7, usize::MAX] {
            // Page by page, each from the last tag of the one before.
            let (mut found, mut from) = (Vec::new(), 0);
            loop {
                let page = shard.all_from(from, room);
                let last = page.iter().map(|listed| listed.tag).max().unwrap_or(from);
                found.extend(page.into_iter().map(|listed| listed.at.get()));
                if last == from {
                    break;
                }
                from = last;
            }
            found.sort_unstable();
            found.dedup();
            let mut expected = all.clone();
            expected.sort_unstable();
            assert_eq!(found, expected, "pages of {room}");
        }
        for list in [List::Unmined, List::Due, List::Preserved, List::Conflicting] {
            let listed = shard.listed(list, (0, 0), 2, usize::MAX);
            let mut listed: Vec<u64> = listed.iter().map(|found| found.at.get()).collect();
            let wanted = |slot: &&Slot| list.height(slot).is_some_and(|height| height <= 2);
            let mut expected: Vec<u64> =
                shard.slots().filter(wanted).map(|slot| slot.at().get()).collect();
            listed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(listed, expected, "{list:?}");
        }
    }
}
