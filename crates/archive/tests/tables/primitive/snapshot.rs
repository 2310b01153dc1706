//! Snapshots and the way back to them, cut short at every operation.

use std::sync::Arc;

use varve_archive::primitive::{
    Array, Error, Geometry, Heads, Keyed, Manifest, ManifestFile, RecordMap, Table, TableConfig,
};
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Kind, Storage, StoreId};

const KIND: Kind = Kind(*b"TESTKIND");
const MANIFEST: &str = "manifest";
const SNAPSHOT: &str = "snapshot";

fn file_of(storage: &Arc<dyn Storage>) -> ManifestFile<'_> {
    ManifestFile { storage: storage.as_ref(), name: MANIFEST, kind: KIND }
}

struct Store {
    storage: Arc<dyn Storage>,
    manifest: Manifest,
    map: RecordMap<4, 4>,
    array: Array,
}

impl Store {
    fn open(storage: Arc<dyn Storage>, id: u8) -> Result<Self, Error> {
        let found = Manifest::load(storage.as_ref(), MANIFEST, KIND)?;
        let manifest = found.unwrap_or_else(|| Manifest::new(StoreId([id; 16]), [id; 16]));
        let config = |name: &str| TableConfig {
            name: name.to_owned(),
            kind: KIND,
            store: manifest.store,
            segment_len: 100,
            geometry: Geometry { buckets: 2, load: 2 },
        };
        let hasher = Keyed::new(manifest.secret);
        let mark = manifest.mark("map");
        let map = RecordMap::open(Arc::clone(&storage), &config("map"), hasher, mark)?;
        let array = Array::open(Arc::clone(&storage), &config("array"), manifest.mark("array"))?;
        Ok(Self { storage, manifest, map, array })
    }

    /// Rows `from` to `to`, each its own key and value, and a checkpoint.
    fn fill(&mut self, from: u32, to: u32) -> Result<(), Error> {
        for number in from..to {
            self.map.insert(&number.to_le_bytes(), &number.to_le_bytes())?;
            self.array.push(number.into())?;
        }
        let place = ManifestFile { storage: self.storage.as_ref(), name: MANIFEST, kind: KIND };
        let tables: &mut [&mut dyn Table] = &mut [&mut self.map, &mut self.array];
        self.manifest.checkpoint(place, tables, Heads::Save, b"")
    }

    /// It holds the rows below `rows` and no others.
    fn check(&self, rows: u32) {
        for number in 0..rows + 20 {
            let found = self.map.reader().find(&number.to_le_bytes()).unwrap();
            let expected = (number < rows).then_some(number.to_le_bytes());
            assert_eq!(found.map(|(_, value)| value), expected);
        }
        assert_eq!(self.map.reader().rows(), rows.into());
        assert_eq!(self.array.reader().len(), rows.into());
    }
}

#[test]
fn a_restore_that_is_cut_short_anywhere_is_done_again() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut store = Store::open(storage.clone(), 1).unwrap();
    store.fill(0, 30).unwrap();
    store.fill(30, 50).unwrap();
    let place = ManifestFile { storage: storage.as_ref(), name: MANIFEST, kind: KIND };
    let snapshot = storage.directory(SNAPSHOT).unwrap();
    store.manifest.snapshot(place, snapshot.as_ref()).unwrap();
    store.fill(50, 90).unwrap();
    store.check(90);
    drop(store);
    let before = storage.operations();
    let manifest = Manifest::restore(place, snapshot.as_ref()).unwrap();
    let mut store = Store::open(storage.clone(), 1).unwrap();
    assert_eq!(store.manifest, manifest);
    store.check(50);
    store.fill(50, 60).unwrap();
    store.check(60);
    drop(store);
    let restored = storage.operations();
    for n in before..restored {
        for crash in Crash::ways(4) {
            let after = Arc::new(storage.crash(n, crash));
            match Store::open(after.clone(), 1) {
                // Before it began, after it ended, or after the rows behind it.
                Ok(store) => store.check(u32::try_from(store.map.reader().rows()).unwrap()),
                Err(error) => assert!(error.to_string().contains("restore again"), "{error}"),
            }
            let snapshot = after.directory(SNAPSHOT).unwrap();
            let place = ManifestFile { storage: after.as_ref(), name: MANIFEST, kind: KIND };
            Manifest::restore(place, snapshot.as_ref()).unwrap();
            let mut store = Store::open(after, 1).unwrap();
            store.check(50);
            store.fill(50, 70).unwrap();
            store.check(70);
        }
    }
}

#[test]
fn a_snapshot_of_another_store_or_a_younger_one_is_refused() {
    let root = FaultyStorage::new(1);
    let [one, two] = ["one", "two"].map(|name| root.directory(name).unwrap());
    let mut first = Store::open(Arc::clone(&one), 1).unwrap();
    let mut second = Store::open(Arc::clone(&two), 2).unwrap();
    first.fill(0, 10).unwrap();
    second.fill(0, 20).unwrap();
    let early = root.operations();
    first.check(10);
    second.check(20);
    let snapshot = root.directory(SNAPSHOT).unwrap();
    first.fill(10, 30).unwrap();
    first.manifest.snapshot(file_of(&one), snapshot.as_ref()).unwrap();
    let refused = Manifest::restore(file_of(&two), snapshot.as_ref());
    assert!(refused.unwrap_err().to_string().contains("another store"));
    drop(second);
    Store::open(two, 2).unwrap().check(20);
    let early = root.crash(early, Crash::KeepAll).directory("one").unwrap();
    let refused = Manifest::restore(file_of(&early), snapshot.as_ref());
    assert!(refused.unwrap_err().to_string().contains("younger"));
    let empty = root.directory("empty").unwrap();
    let refused = Manifest::restore(file_of(&one), empty.as_ref());
    assert!(refused.unwrap_err().to_string().contains("no manifest"));
}
