//! Frames and the owner's part of the manifest, whole and damaged.

use varve_io::faulty::FaultyStorage;
use varve_runs::{Secret, StoreKey};

use super::*;
use crate::embedded::entry::{EntryKind, Marks};
use crate::embedded::index::{Cold, Moment, Version};
use crate::embedded::key::{Key, KeyHasher, Part};

const ID: StoreId = StoreId([3; 16]);

fn empty() -> Index {
    let key = StoreKey { id: ID, secret: Secret::new([4; 16]) };
    Index::new(Cold::open(&FaultyStorage::new(1), key, &[]).unwrap())
}

/// An index of records in a list, with one intent.
fn filled() -> Index {
    let mut index = empty();
    for number in 0..100_u8 {
        let key = Key::record(varve_types::Txid::from_bytes([number; 32]));
        let kind = if number == 7 { EntryKind::Intent } else { EntryKind::State };
        let marks = Marks { unmined: 1 + u32::from(number), ..Marks::default() };
        let version = Version { at: GlobalOffset::new(number.into()), marks, kind, weight: 100 };
        assert!(index.put(KeyHasher::new(&[4; 16]).hash(&key), Part::RECORD, None, &version));
    }
    index.set_moment(Moment { end: GlobalOffset::new(5_000), group: 9 });
    index
}

fn content(index: &Index) -> Vec<Slot> {
    let slots = index.shards().iter().flat_map(Shard::slots);
    let mut slots: Vec<Slot> = slots.copied().collect();
    slots.sort_by_key(Slot::at);
    slots
}

/// Writes a round in two frames; returns where it is.
fn write(storage: &Arc<FaultyStorage>, index: &mut Index) -> Checkpoint {
    let (mut log, _) =
        IndexLog::open(storage.clone(), ID, &Checkpoint::default(), &mut empty()).unwrap();
    let mut round = log.begin(1);
    let mut next = 0;
    while next < SHARDS {
        let taken = index.take(next, 60);
        round.push(&taken).unwrap();
        next += taken.stays.len();
    }
    let frames = round.finish().unwrap();
    Checkpoint { round: 1, frames, ..Checkpoint::default() }
}

#[test]
fn what_stays_in_memory_comes_back() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut index = filled();
    let checkpoint = write(&storage, &mut index);
    let mut loaded = empty();
    let left = Arc::new(storage.reopen());
    let (_, positions) = IndexLog::open(left, ID, &checkpoint, &mut loaded).unwrap();
    assert_eq!(positions, vec![GlobalOffset::new(5_000); SHARDS]);
    assert!(content(&loaded) == content(&index));
    assert_eq!(loaded.totals(), Totals { keys: 100, live: 10_000 });
    assert_eq!(loaded.intents().collect::<Vec<_>>(), [GlobalOffset::new(7)]);
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_file() {
    let storage = Arc::new(FaultyStorage::new(1));
    let checkpoint = write(&storage, &mut filled());
    let name = "index-000000000000";
    let file = storage.open(name, varve_io::Access::Read, varve_io::Caching::Buffered).unwrap();
    for at in (0..file.size().unwrap()).step_by(7) {
        let left = Arc::new(storage.reopen());
        assert!(left.flip_bit(name, varve_io::FileOffset::new(at), 3));
        let opened = IndexLog::open(left, ID, &checkpoint, &mut empty());
        assert!(opened.unwrap_err().to_string().contains(name), "at {at}");
    }
}

#[test]
fn a_frame_of_another_round_or_length_is_damage() {
    let taken = filled().take(0, usize::MAX);
    let bytes = encode(&taken, 1);
    let load =
        |bytes: &[u8], round| load(bytes, round, &mut empty(), &mut [GlobalOffset::ZERO; SHARDS]);
    assert_eq!(load(&bytes, 1), Ok(()));
    assert!(load(&bytes, 2).is_err());
    for len in (0..bytes.len()).step_by(11) {
        assert!(load(&bytes[..len], 1).is_err(), "cut at {len}");
    }
    assert!(load(&[&bytes[..], &[0]].concat(), 1).is_err());
    assert!(load(&encode(&Taken { first: 1, ..taken }, 1), 1).is_err(), "too many shards");
}

#[test]
fn the_owners_part_survives_its_bytes() {
    let at = GlobalOffset::new;
    let frames = (at(1), at(2));
    let checkpoint = Checkpoint { round: 9, frames, replay_from: at(3), durable: at(4), group: 5 };
    let bytes = checkpoint.encode();
    assert_eq!(Checkpoint::decode(&bytes), Ok(checkpoint));
    (0..bytes.len()).for_each(|len| assert!(Checkpoint::decode(&bytes[..len]).is_err()));
    assert!(Checkpoint::decode(&[&bytes[..], &[0]].concat()).is_err());
}
