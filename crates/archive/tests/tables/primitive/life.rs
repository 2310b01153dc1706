//! Random lives of a store with all kinds of tables, against plain maps: every answer is compared
//! after every step, after reopening, after a crash at every operation, on a full disk, with a
//! failing disk, and with flipped bits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use varve_archive::primitive::{
    Array, Blob, Error, Geometry, Heads, Keyed, Link, Manifest, ManifestFile, Measure, RecordMap,
    Row, SlabLink, SlabMap, Table, TableConfig,
};
use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{FileOffset, Kind, Storage, StoreId};

const KIND: Kind = Kind(*b"TESTKIND");
const MANIFEST: &str = "manifest";
/// Small, so that a short life sees several generations and segments.
const GEOMETRY: Geometry = Geometry { buckets: 2, load: 2 };
const KEYS: u8 = 6;

/// The first byte of a value is its length.
#[derive(Debug)]
struct FirstByte;

impl Measure for FirstByte {
    const PREFIX: usize = 1;

    fn len(prefix: &[u8]) -> usize {
        usize::from(prefix[0])
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Rows of these keys, set and committed together.
    Insert(Vec<u8>),
    /// Set in this order, committed in the other.
    InsertReversed(u8, u8),
    /// Set and never committed.
    GiveUp(u8),
    Push(u64),
    Replace(u8, u64),
    Cut(u8),
    Slab(u8, u8),
    Blob(u8),
    Checkpoint(Heads),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS;
    prop_oneof![
        6 => prop::collection::vec(key.clone(), 1..4).prop_map(Step::Insert),
        2 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::InsertReversed(a, b)),
        1 => key.clone().prop_map(Step::GiveUp),
        2 => any::<u64>().prop_map(Step::Push),
        1 => (any::<u8>(), any::<u64>()).prop_map(|(index, value)| Step::Replace(index, value)),
        1 => any::<u8>().prop_map(Step::Cut),
        2 => (key.clone(), 1..60_u8).prop_map(|(key, len)| Step::Slab(key, len)),
        1 => (1..60_u8).prop_map(Step::Blob),
        3 => Just(Step::Checkpoint(Heads::Save)),
        3 => Just(Step::Checkpoint(Heads::Defer)),
        1 => Just(Step::Reopen),
    ]
}

/// A committed row: its number, its turn among commits, its value.
type Committed = (u32, u64, [u8; 8]);

/// What the store must hold.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    rows: BTreeMap<u8, Vec<Committed>>,
    commits: u64,
    array: Vec<u64>,
    slabs: BTreeMap<u8, Vec<(SlabLink, Vec<u8>)>>,
    blob: Vec<(SlabLink, Vec<u8>)>,
    checkpoint: u64,
}

impl Model {
    fn commit(&mut self, key: u8, link: Link, value: [u8; 8]) {
        self.commits += 1;
        self.rows.entry(key).or_default().push((link.0, self.commits, value));
    }

    /// The rows of a key in the order of a search: younger generation first, then the younger
    /// commit.
    fn found(&self, key: u8) -> Vec<(Link, [u8; 8])> {
        let generation = |link: u32| (u64::from(link) / 4 + 1).ilog2();
        let mut rows = self.rows.get(&key).cloned().unwrap_or_default();
        rows.sort_by_key(|(link, turn, _)| std::cmp::Reverse((generation(*link), *turn)));
        rows.into_iter().map(|(link, _, value)| (Link(link), value)).collect()
    }
}

fn key(number: u8) -> [u8; 4] {
    [number, 7, 7, number]
}

/// A value that names its key and is unique.
fn value(key: u8, serial: u64) -> [u8; 8] {
    let mut value = (serial << 8).to_le_bytes();
    value[0] = key;
    value
}

fn slab(len: u8, serial: u64) -> Vec<u8> {
    let mut bytes = vec![serial.to_le_bytes()[0]; usize::from(len)];
    bytes[0] = len;
    bytes
}

#[derive(Debug)]
struct Store {
    storage: Arc<FaultyStorage>,
    manifest: Manifest,
    map: RecordMap<4, 8>,
    array: Array,
    slabs: SlabMap<FirstByte, 4>,
    blob: Blob,
}

impl Store {
    fn open(storage: Arc<FaultyStorage>) -> Result<Self, Error> {
        let shared: Arc<dyn Storage> = storage.clone();
        let new = || Manifest::new(StoreId([5; 16]), [3; 16]);
        let manifest = Manifest::load(shared.as_ref(), MANIFEST, KIND)?.unwrap_or_else(new);
        let config = |name: &str| TableConfig {
            name: name.to_owned(),
            kind: KIND,
            store: manifest.store,
            segment_len: 100,
            geometry: GEOMETRY,
        };
        let hasher = Keyed::new(manifest.secret);
        let at = |name: &str| (Arc::clone(&shared), config(name), manifest.mark(name));
        let (storage_of, config_of, mark) = at("map");
        let map = RecordMap::open(storage_of, &config_of, hasher, mark)?;
        let (storage_of, config_of, mark) = at("array");
        let array = Array::open(storage_of, &config_of, mark)?;
        let (storage_of, config_of, mark) = at("slabs");
        let slabs = SlabMap::open(storage_of, &config_of, hasher, mark)?;
        let (storage_of, config_of, mark) = at("blob");
        let blob = Blob::open(storage_of, &config_of, mark)?;
        Ok(Self { storage, manifest, map, array, slabs, blob })
    }

    fn checkpoint(&mut self, heads: Heads, number: u64) -> Result<(), Error> {
        let Self { storage, manifest, map, array, slabs, blob } = self;
        let tables: &mut [&mut dyn Table] = &mut [map, array, slabs, blob];
        let place = ManifestFile { storage: storage.as_ref(), name: MANIFEST, kind: KIND };
        manifest.checkpoint(place, tables, heads, &number.to_le_bytes())
    }

    /// The number of the checkpoint it was opened at.
    fn number(&self) -> u64 {
        self.manifest.owner.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
    }

    fn insert(&self, keys: &[u8], model: &mut Model) -> Result<(), Error> {
        let first = model.commits * 100;
        let rows = (first..).zip(keys).map(|(n, k)| Row { key: key(*k), value: value(*k, n) });
        let rows: Vec<_> = rows.collect();
        let pending = self.map.set(&rows)?;
        let link = pending.first().0;
        pending.commit();
        for (row, number) in rows.iter().zip(link..) {
            model.commit(row.key[0], Link(number), row.value);
        }
        Ok(())
    }

    fn insert_reversed(&self, keys: [u8; 2], model: &mut Model) -> Result<(), Error> {
        let serial = model.commits * 100;
        let rows = keys.map(|k| Row { key: key(k), value: value(k, serial + u64::from(k)) });
        let pending = [self.map.set(&rows[..1])?, self.map.set(&rows[1..])?];
        for (row, pending) in rows.iter().zip(pending).rev() {
            model.commit(row.key[0], pending.first(), row.value);
            pending.commit();
        }
        Ok(())
    }

    /// Makes a step other than reopening in the store and in the model.
    fn live(&mut self, step: &Step, model: &mut Model) -> Result<(), Error> {
        model.commits += 1;
        match *step {
            Step::Insert(ref keys) => self.insert(keys, model)?,
            Step::InsertReversed(a, b) => self.insert_reversed([a, b], model)?,
            Step::GiveUp(k) => {
                let _ = self.map.set(&[Row { key: key(k), value: value(k, 0) }])?;
            }
            Step::Push(value) => {
                self.array.push(value)?;
                model.array.push(value);
            }
            Step::Replace(index, value) => {
                let Some(old) = model.array.get_mut(usize::from(index)) else { return Ok(()) };
                self.array.set(index.into(), value)?;
                *old = value;
            }
            Step::Cut(len) => {
                self.array.truncate(len.into());
                model.array.truncate(len.into());
            }
            Step::Slab(k, len) => {
                let bytes = slab(len, model.commits);
                let link = self.slabs.insert(&key(k), &bytes)?;
                model.slabs.entry(k).or_default().push((link, bytes));
            }
            Step::Blob(len) => {
                let bytes = slab(len, model.commits);
                model.blob.push((self.blob.push(&bytes)?, bytes));
            }
            Step::Checkpoint(heads) => {
                let number = model.checkpoint + 1;
                self.checkpoint(heads, number)?;
                model.checkpoint = number;
            }
            Step::Reopen => unreachable!("the caller's"),
        }
        Ok(())
    }

    /// Asks for all keys at once, more of them than go side by side.
    fn check_many(&self, model: &Model) -> Result<(), Error> {
        let keys: Vec<u8> = (0..50).map(|n| n % (KEYS + 2)).collect();
        let asked: Vec<[u8; 4]> = keys.iter().map(|number| key(*number)).collect();
        let expected = keys.iter().enumerate().flat_map(|(index, number)| {
            let found = model.found(*number).into_iter();
            found.map(move |(link, value)| (index, link, value))
        });
        let expected: Vec<_> = expected.collect();
        let mut found = Vec::new();
        self.map.reader().find_many(&asked, &mut found)?;
        assert_eq!(found, expected);
        Ok(())
    }

    /// Asks everything. A wrong answer panics, damage is an error.
    fn check(&self, model: &Model) -> Result<(), Error> {
        for number in 0..KEYS + 2 {
            let expected = model.found(number);
            let mut found = Vec::new();
            self.map.reader().find_all(&key(number), &mut found)?;
            assert_eq!(found, expected, "rows of key {number}");
            assert_eq!(self.map.reader().find(&key(number))?, expected.first().copied());
            for (link, value) in expected {
                assert_eq!(self.map.reader().get(link)?, Row { key: key(number), value });
            }
            let slabs = model.slabs.get(&number);
            let found = self.slabs.reader().find(&key(number), <[u8]>::to_vec)?;
            assert_eq!(found.as_ref(), slabs.and_then(|slabs| slabs.last()));
            for (link, bytes) in slabs.into_iter().flatten() {
                let read = |found: &[u8; 4], value: &[u8]| (*found, value.to_vec());
                let found = self.slabs.reader().get(*link, read)?;
                assert_eq!(found, (key(number), bytes.clone()));
            }
        }
        self.check_many(model)?;
        assert_eq!(self.array.reader().len(), model.array.len() as u64);
        for (index, value) in (0..).zip(&model.array) {
            assert_eq!(self.array.reader().get(index)?, *value);
        }
        for (at, bytes) in &model.blob {
            assert_eq!(self.blob.reader().get(*at, bytes.len(), <[u8]>::to_vec)?, *bytes);
        }
        Ok(())
    }
}

/// What was known after each number of operations: the last checkpoint that was acknowledged.
type Moment = (usize, u64);

/// Lives the steps; returns the model of every checkpoint and when it was acknowledged.
fn live(storage: &Arc<FaultyStorage>, steps: &[Step]) -> (Vec<Model>, Vec<Moment>) {
    let mut store = Store::open(Arc::clone(storage)).unwrap();
    let mut model = Model::default();
    let (mut saved, mut moments) = (vec![model.clone()], vec![(0, 0)]);
    for step in steps {
        if matches!(step, Step::Reopen) {
            drop(store);
            store = Store::open(Arc::clone(storage)).unwrap();
            model = saved.last().unwrap().clone();
        } else {
            let before = model.clone();
            store.live(step, &mut model).unwrap();
            if model.checkpoint > before.checkpoint {
                saved.push(model.clone());
                moments.push((storage.operations(), model.checkpoint));
            }
        }
        store.check(&model).unwrap();
    }
    (saved, moments)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_store_answers_as_plain_maps_do(steps in prop::collection::vec(step(), 1..60)) {
        live(&Arc::new(FaultyStorage::new(1)), &steps);
    }
}

proptest! {
    #![proptest_config(config(12))]

    /// After a power cut at any operation the store opens at a checkpoint, not before the last
    /// acknowledged one, and continues from there through another crash.
    #[test]
    fn a_crash_at_every_operation_leaves_a_checkpoint(
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let storage = Arc::new(FaultyStorage::new(1));
        let (saved, moments) = live(&storage, &steps);
        for n in 0..=storage.operations() {
            let known = moments.iter().rev().find(|(at, _)| *at <= n).unwrap().1;
            for crash in Crash::ways(4) {
                let after = Arc::new(storage.crash(n, crash));
                let mut store = Store::open(after.clone())
                    .unwrap_or_else(|error| panic!("operation {n}, {crash:?}: {error}"));
                prop_assert!(store.number() >= known, "operation {}, {:?}", n, crash);
                let mut model = saved[usize::try_from(store.number()).unwrap()].clone();
                store.check(&model).unwrap();
                for step in [Step::Insert(vec![0, 1, 2]), Step::Push(9), Step::Slab(1, 9)] {
                    store.live(&step, &mut model).unwrap();
                }
                store.checkpoint(Heads::Save, 99).unwrap();
                store.check(&model).unwrap();
                drop(store);
                let again = Arc::new(after.crash(after.operations(), crash));
                let store = Store::open(again).unwrap();
                prop_assert_eq!(store.number(), 99);
                store.check(&model).unwrap();
            }
        }
    }

    /// On a full disk a checkpoint fails, all answers stay, and with room it succeeds, also when
    /// heads are saved no more.
    #[test]
    fn a_full_disk_is_an_error_that_room_heals(steps in prop::collection::vec(step(), 5..40)) {
        let storage = Arc::new(FaultyStorage::new(1));
        let (mut store, mut model) = (Store::open(storage.clone()).unwrap(), Model::default());
        let mut free = 0;
        for step in steps.iter().filter(|step| !matches!(step, Step::Reopen)) {
            storage.set_capacity(Some(used(&storage) + free));
            free = (free * 7 + 613) % 40_000;
            let before = model.clone();
            if let Err(error) = store.live(step, &mut model) {
                prop_assert!(error.is_disk_full(), "{}", error);
                model = before;
                store.check(&model).unwrap();
                storage.set_capacity(None);
                let is_checkpoint = matches!(step, Step::Checkpoint(_));
                let defer = Step::Checkpoint(Heads::Defer);
                store.live(if is_checkpoint { &defer } else { step }, &mut model).unwrap();
                if is_checkpoint {
                    let cut = storage.crash(storage.operations(), Crash::LoseAll);
                    Store::open(Arc::new(cut)).unwrap().check(&model).unwrap();
                }
            }
            store.check(&model).unwrap();
        }
        storage.set_capacity(None);
        store.checkpoint(Heads::Defer, 77).unwrap();
        drop(store);
        Store::open(storage).unwrap().check(&model).unwrap();
    }

    /// The disk is full when saved pages go to their places, after the manifest: the checkpoint
    /// counts, the next one continues, and a crash at any operation finds one of them.
    #[test]
    fn a_full_disk_after_the_manifest_is_made_good(
        steps in prop::collection::vec(step(), 20..40),
        nth in 0..20_usize,
    ) {
        let storage = Arc::new(FaultyStorage::new(1));
        let (mut store, mut model) = (Store::open(storage.clone()).unwrap(), Model::default());
        let mut saved = vec![model.clone()];
        let rule = FaultRule::new(Operation::Write, When::Nth(nth), Fault::NoSpace);
        storage.inject(FaultRule { path_contains: ".head".to_owned(), ..rule });
        for step in steps.iter().filter(|step| !matches!(step, Step::Reopen)) {
            let before = model.checkpoint;
            if let Err(error) = store.live(step, &mut model) {
                prop_assert!(error.is_disk_full(), "{}", error);
                store.live(step, &mut model).unwrap();
            }
            if model.checkpoint > before {
                saved.push(model.clone());
            }
            store.check(&model).unwrap();
        }
        for n in 0..=storage.operations() {
            for crash in Crash::ways(2) {
                let store = Store::open(Arc::new(storage.crash(n, crash)))
                    .unwrap_or_else(|error| panic!("operation {n}, {crash:?}: {error}"));
                store.check(&saved[usize::try_from(store.number()).unwrap()]).unwrap();
            }
        }
    }

    /// A device that fails anywhere: no wrong answer, and a new process finds a checkpoint.
    #[test]
    fn a_failing_disk_loses_nothing_that_was_saved(steps in prop::collection::vec(step(), 5..25)) {
        let operations = [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Read];
        for (operation, nth) in operations.into_iter().flat_map(|o| (0..24).map(move |n| (o, n))) {
            let storage = Arc::new(FaultyStorage::new(1));
            let (mut store, mut model) = (Store::open(storage.clone()).unwrap(), Model::default());
            let mut saved = vec![model.clone()];
            storage.inject(FaultRule::new(operation, When::Nth(nth), Fault::Io));
            for step in steps.iter().filter(|step| !matches!(step, Step::Reopen)) {
                let mut next = model.clone();
                let done = store.live(step, &mut next);
                if matches!(step, Step::Checkpoint(_)) {
                    // The manifest may count although the call failed after it.
                    let number = model.checkpoint + 1;
                    saved.push(Model { checkpoint: number, ..model.clone() });
                }
                if done.is_err() {
                    break;
                }
                model = next;
            }
            store.check(&model).unwrap_or(());
            drop(store);
            storage.clear_faults();
            let again = Arc::new(storage.reopen());
            let store = Store::open(again.clone()).unwrap();
            prop_assert!(store.number() >= model.checkpoint);
            store.check(&saved[usize::try_from(store.number()).unwrap()]).unwrap();
            // And a power cut right after that, which the new process built on what it found.
            for crash in Crash::ways(3) {
                let store = Store::open(Arc::new(again.crash(again.operations(), crash))).unwrap();
                store.check(&saved[usize::try_from(store.number()).unwrap()]).unwrap();
            }
        }
    }
}

/// The bytes of all files.
fn used(storage: &FaultyStorage) -> u64 {
    use varve_io::{Access, Caching};
    let size = |name: &String| {
        storage.open(name, Access::Read, Caching::Buffered).unwrap().size().unwrap()
    };
    storage.list().unwrap().iter().map(size).sum()
}

/// Every bit of every file, one at a time: an error, never a wrong answer and never a panic.
#[test]
fn every_flipped_bit_is_an_error() {
    let storage = Arc::new(FaultyStorage::new(1));
    let steps: Vec<Step> = (0..24_u8)
        .flat_map(|n| {
            let mixed = [Step::Insert(vec![n % KEYS, n % 5]), Step::Push(n.into())];
            let slabs = [Step::Slab(n % KEYS, 40), Step::Blob(30)];
            mixed.into_iter().chain(slabs)
        })
        .chain([Step::Checkpoint(Heads::Save)])
        .collect();
    let (saved, _) = live(&storage, &steps);
    let model = saved.last().unwrap();
    let mut unnoticed = BTreeSet::new();
    for name in storage.list().unwrap() {
        let file = storage.open(&name, varve_io::Access::Read, varve_io::Caching::Buffered);
        let size = file.unwrap().size().unwrap();
        // Pages are long and alike: a prime distance visits every kind of place.
        let stride = if size > 2000 { 37 } else { 1 };
        for at in (0..size).step_by(stride) {
            let bit = u8::try_from(at % 8).unwrap();
            assert!(storage.flip_bit(&name, FileOffset::new(at), bit));
            let found = Store::open(Arc::new(storage.crash(usize::MAX, Crash::KeepAll)))
                .and_then(|store| store.check(model));
            if let Err(error) = found {
                assert!(!error.to_string().is_empty());
            } else {
                unnoticed.insert((name.clone(), at));
            }
            assert!(storage.flip_bit(&name, FileOffset::new(at), bit));
        }
    }
    assert!(unnoticed.is_empty(), "{} flips, the first {:?}", unnoticed.len(), unnoticed.first());
}
