//! The index, in memory and in runs, against a map: while checkpoints take, fail and publish.

use std::collections::BTreeMap;

use varve_io::StoreId;
use varve_io::faulty::{Fault, FaultRule, FaultyStorage, Operation, When};
use varve_runs::{Secret, StoreKey};
use varve_types::Txid;

use super::*;
use crate::embedded::entry::{Before, EntryKind, Marks};
use crate::embedded::index::{Cold, Totals, Version};
use crate::embedded::key::{Key, KeyHash, KeyHasher, Part};

const KEYS: u64 = 400;
const STORE: StoreKey = StoreKey { id: StoreId([3; 16]), secret: Secret::new([4; 16]) };

struct World {
    storage: Arc<FaultyStorage>,
    keeper: Keeper,
    hasher: KeyHasher,
    /// The newest version of each key.
    map: BTreeMap<u64, Version>,
    state: u64,
    next: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let storage = Arc::new(FaultyStorage::new(1));
        let cold = Cold::open(&*storage, STORE, &[]).unwrap();
        let mut index = Index::new(cold);
        let checkpoint = Checkpoint::default();
        let (runs, owner) = (Vec::new(), checkpoint.encode());
        let manifest = Manifest { key: STORE, next: RunNumber(1), runs, owner };
        manifest.store(&*storage, MANIFEST).unwrap();
        let (log, _) = IndexLog::open(storage.clone(), STORE.id, &checkpoint, &mut index).unwrap();
        let index = Arc::new(RwLock::new(index));
        let keeper =
            Keeper::new(storage.clone(), index, State { manifest, checkpoint }, log, 1 << 20);
        let (map, hasher) = (BTreeMap::new(), KeyHasher::new(&[4; 16]));
        Self { storage, keeper, hasher, map, state: seed, next: 1 }
    }

    fn chance(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.state >> 33) % below
    }

    fn hash(&self, number: u64) -> (Part, KeyHash) {
        let mut txid = [0; 32];
        txid[..8].copy_from_slice(&number.to_le_bytes());
        let part = Part::new(u32::from(number.is_multiple_of(5)));
        (part, self.hasher.hash(&Key { txid: Txid::from_bytes(txid), part }))
    }

    /// Changes some keys: most are in no list afterwards.
    fn change(&mut self, count: u64) {
        for _ in 0..self.chance(count) {
            let number = self.chance(KEYS);
            let before = self.map.get(&number);
            let before = before.map(|old| Before { at: old.at, weight: old.weight });
            let unmined = u32::from(self.chance(5) == 0);
            let kind = if self.chance(3) == 0 { EntryKind::Gone } else { EntryKind::State };
            let marks = Marks { unmined, ..Marks::default() };
            let weight = u32::try_from(self.chance(1_000)).unwrap();
            let version = Version { at: GlobalOffset::new(self.next), marks, kind, weight };
            self.next += 1;
            let (part, hash) = self.hash(number);
            assert!(self.keeper.index_mut().unwrap().put(hash, part, before, &version));
            match kind {
                EntryKind::Gone => drop(self.map.remove(&number)),
                _ => drop(self.map.insert(number, version)),
            }
        }
    }

    /// Memory and runs together hold what the map holds.
    fn check(&self) {
        let index = self.keeper.index().unwrap();
        let live = self.map.values().map(|version| u64::from(version.weight)).sum();
        assert_eq!(index.totals(), Totals { keys: self.map.len() as u64, live });
        let places = (0..KEYS).map(|number| self.hash(number).1.place()).collect();
        let found = index.cold().find(places).unwrap();
        for number in 0..KEYS {
            let (_, hash) = self.hash(number);
            let rows: Vec<Row> = found.at(hash.place()).collect();
            let versions: Vec<Before> = index.versions(hash, &rows).collect();
            match self.map.get(&number) {
                Some(known) => {
                    let known = Before { at: known.at, weight: known.weight };
                    assert!(versions.contains(&known), "{number}");
                }
                None if cfg!(feature = "weak-hash") => {}
                None => assert_eq!(versions, [], "{number}"),
            }
        }
    }

    /// A checkpoint with changes at every stage of it, which may fail.
    fn checkpoint(&mut self) {
        let fails = self.chance(3) == 0;
        let written = {
            let mut log = self.keeper.log.lock().unwrap();
            self.keeper.write_round(&mut log).unwrap()
        };
        self.change(60);
        self.check();
        if fails {
            self.storage.inject(FaultRule::new(Operation::Rename, When::OneIn(1), Fault::Io));
        }
        assert_eq!(self.keeper.install(written).is_err(), fails);
        self.storage.clear_faults();
        self.change(60);
        self.check();
        for number in 0..SHARDS {
            let mut index = self.keeper.index_mut().unwrap();
            if fails {
                index.keep_taken(number)
            } else {
                index.drop_taken(number)
            }
            drop(index);
            self.change(2);
        }
        self.check();
    }
}

#[test]
fn memory_and_runs_agree_with_a_map() {
    for seed in 0..6 {
        let mut world = World::new(seed);
        for _ in 0..40 {
            world.change(300);
            world.checkpoint();
            if world.chance(2) == 0 {
                world.keeper.merge().unwrap();
                world.check();
            }
        }
        let runs = world.keeper.index().unwrap().cold().runs().infos();
        assert!((1..20).contains(&runs.len()), "they were merged: {}", runs.len());
        let files = world.storage.list().unwrap();
        let files = files.iter().filter(|name| name.ends_with(".run")).count();
        assert_eq!(files, runs.len(), "failed and merged ones are gone");
    }
}

#[test]
fn what_leaves_memory_is_what_no_list_has() {
    let mut world = World::new(9);
    world.change(5_000);
    world.keeper.checkpoint().unwrap();
    let index = world.keeper.index().unwrap();
    let listed = world
        .map
        .values()
        .zip(world.map.keys())
        .filter(|(version, number)| version.marks.unmined > 0 && !number.is_multiple_of(5));
    let in_memory = index.shards().iter().map(|shard| shard.slots().count()).sum::<usize>();
    assert_eq!(in_memory, listed.count());
    assert_eq!(index.leaving(), 0);
    assert!(in_memory > 10 && world.map.len() > 3 * in_memory);
}

#[test]
fn the_oldest_run_is_rewritten_when_a_third_of_it_is_dead() {
    let run = |adds, deletes, pages| {
        let step = Sequence::new(1);
        let (number, span) = (RunNumber(1), Span { first: step, last: step });
        RunInfo { number, span, adds, deletes, pages, digest: 0 }
    };
    assert_eq!(choose(&[run(10, 90, 1), run(300, 0, 40)]), Choice::Nothing);
    assert_eq!(choose(&[run(10, 100, 1), run(300, 0, 40)]), Choice::Merge(0..2));
    assert_eq!(choose(&[run(300, 0, 40)]), Choice::Nothing);
    assert_eq!(choose(&[run(9, 0, 2); 4]), Choice::Merge(0..4));
}

#[test]
fn filters_are_as_precise_as_the_memory_allows() {
    let world = World::new(1);
    let widths = [1_000, 1 << 20, 1_700_000, 2_000_000].map(|rows| world.keeper.width(rows));
    assert_eq!(widths, [Some(Width::Two), Some(Width::Half), Some(Width::Half), None]);
}
