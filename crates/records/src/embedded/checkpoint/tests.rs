//! Rounds of checkpoints, cut and damaged.

use varve_io::faulty::{Crash, FaultyStorage};
use varve_types::Txid;

use super::*;
use crate::embedded::entry::{EntryKind, Marks};
use crate::embedded::index::Version;
use crate::embedded::key::{Key, KeyHasher, Part};

const NEW: Manifest = Manifest::new(StoreId([3; 16]), [4; 16], 4);

fn put(index: &mut Index, number: u8, at: u64) {
    let key = Key::record(Txid::from_bytes([number; 32]));
    let marks = Marks { unmined: 5, ..Marks::default() };
    let at = GlobalOffset::new(at);
    let version = Version { at, marks, kind: EntryKind::State, weight: 100 };
    assert!(index.put(KeyHasher::new(&NEW.secret).hash(&key), Part::RECORD, None, &version));
}

fn content(index: &Index) -> Vec<(GlobalOffset, Marks)> {
    let mut found: Vec<_> = index.slots().map(|slot| (slot.at(), slot.marks())).collect();
    found.sort_by_key(|(at, _)| *at);
    found
}

fn round(checkpointer: &mut Checkpointer, index: &Index, at: u64) -> Result<()> {
    while !checkpointer.step(index, GlobalOffset::new(at), at)? {}
    Ok(())
}

#[test]
fn a_cut_leaves_this_round_or_the_one_before() {
    let storage = Arc::new(FaultyStorage::new(1));
    NEW.save(storage.as_ref()).unwrap();
    let begun = storage.operations();
    let (mut checkpointer, loaded) = Checkpointer::open(storage.clone(), NEW).unwrap();
    let mut index = loaded.index;
    let mut states = vec![(storage.operations(), 0, content(&index))];
    for step in 1..6_u8 {
        (0..10).for_each(|n| put(&mut index, 20 * step + n, 100 * u64::from(step) + u64::from(n)));
        round(&mut checkpointer, &index, u64::from(step) * 1000).unwrap();
        states.push((storage.operations(), u64::from(step) * 1000, content(&index)));
    }
    drop(checkpointer);
    for operation in begun..=storage.operations() {
        for crash in Crash::ways(4) {
            let left = Arc::new(storage.crash(operation, crash));
            let manifest = Manifest::load(left.as_ref()).unwrap().unwrap();
            let (mut checkpointer, loaded) = Checkpointer::open(left, manifest).unwrap();
            let replay = manifest.replay_from.get();
            let (_, _, expected) = states.iter().find(|(_, at, _)| *at == replay).unwrap();
            assert_eq!(content(&loaded.index), *expected, "after {operation}, {crash:?}");
            assert_eq!(loaded.index.live(), 100 * expected.len() as u64);
            let promised = states.iter().rfind(|(by, ..)| *by <= operation);
            assert!(replay >= promised.map_or(0, |(_, at, _)| *at), "after {operation}");
            round(&mut checkpointer, &loaded.index, 9000).unwrap();
            assert_eq!(checkpointer.manifest().replay_from.get(), 9000);
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_file() {
    let storage = Arc::new(FaultyStorage::new(1));
    NEW.save(storage.as_ref()).unwrap();
    let (mut checkpointer, loaded) = Checkpointer::open(storage.clone(), NEW).unwrap();
    let mut index = loaded.index;
    (0..10).for_each(|n| put(&mut index, n, u64::from(n)));
    round(&mut checkpointer, &index, 50).unwrap();
    drop(checkpointer);
    for name in ["manifest", "index-000000000000"] {
        let file = storage.open(name, varve_io::Access::Read, varve_io::Caching::Buffered);
        for at in 0..file.unwrap().size().unwrap() {
            let left = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
            assert!(left.flip_bit(name, FileOffset::new(at), 3));
            let opened = Manifest::load(left.as_ref())
                .and_then(|found| Checkpointer::open(left.clone(), found.unwrap()));
            assert!(opened.unwrap_err().to_string().contains(name), "{name} at {at}");
        }
    }
}

#[test]
fn a_manifest_survives_its_bytes() {
    let at = |bytes| GlobalOffset::new(bytes);
    let (frames, durable) = ((at(1), at(2)), at(4));
    let manifest = Manifest { round: 9, frames, replay_from: at(3), durable, group: 5, ..NEW };
    assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    let bytes = manifest.encode();
    (0..bytes.len()).for_each(|len| assert!(Manifest::decode(&bytes[..len]).is_err()));
}
