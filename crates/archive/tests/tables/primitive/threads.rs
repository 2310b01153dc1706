//! Many writers and readers on one table while it grows and is saved under them, and keys that
//! somebody chose to be bad.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use varve_archive::primitive::{
    Geometry, Heads, Keyed, Manifest, ManifestFile, Mark, RecordMap, Row, SlabMap, Table,
    TableConfig,
};
use varve_archive::primitive::{KeyHasher, Measure};
use varve_io::{Disk, Kind, Storage, StoreId};

const KIND: Kind = Kind(*b"TESTKIND");

fn config(name: &str, buckets: u32) -> TableConfig {
    TableConfig {
        name: name.to_owned(),
        kind: KIND,
        store: StoreId([5; 16]),
        segment_len: 10_000,
        geometry: Geometry { buckets, load: 4 },
    }
}

fn key(number: u64) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

/// Rounds of two writers, with a checkpoint between rounds; readers never stop. Every row that was
/// committed before a reader looks is found, with its value, and no other.
#[test]
fn readers_find_every_committed_row_while_the_table_grows_and_settles() {
    const WRITERS: u64 = 2;
    const ROUNDS: u64 = 30;
    const ROWS: u64 = 400;
    let dir = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path()).unwrap());
    let hasher = Keyed::new([1; 16]);
    let open = |mark| RecordMap::<32, 8>::open(storage.clone(), &config("t", 4), hasher, mark);
    let mut map = open(Mark::NEW).unwrap();
    let mut manifest = Manifest::new(StoreId([5; 16]), [1; 16]);
    // How many rows each writer has committed.
    let done = [AtomicU64::new(0), AtomicU64::new(0)];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..3_u64 {
            let (reader, done, stop) = (map.reader().clone(), &done, &stop);
            scope.spawn(move || {
                let mut pick = seed;
                while !stop.load(Ordering::Relaxed) {
                    pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let writer = (pick >> 40) % WRITERS;
                    let committed = done[usize::try_from(writer).unwrap()].load(Ordering::Acquire);
                    let Some(row) = (pick >> 20).checked_rem(committed) else { continue };
                    let number = row * WRITERS + writer;
                    let (link, value) = reader.find(&key(number)).unwrap().expect("committed");
                    assert_eq!(u64::from_le_bytes(value), number);
                    assert_eq!(reader.get(link).unwrap().key, key(number));
                    assert_eq!(reader.find(&key(number + (1 << 40))).unwrap(), None);
                }
            });
        }
        for round in 0..ROUNDS {
            std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let (map, done) = (&map, &done[usize::try_from(writer).unwrap()]);
                    scope.spawn(move || {
                        for row in round * ROWS..(round + 1) * ROWS {
                            let number = row * WRITERS + writer;
                            map.insert(&key(number), &number.to_le_bytes()).unwrap();
                            done.store(row + 1, Ordering::Release);
                        }
                    });
                }
            });
            let heads = if round % 3 == 0 { Heads::Save } else { Heads::Defer };
            let place = ManifestFile { storage: storage.as_ref(), name: "manifest", kind: KIND };
            let tables: &mut [&mut dyn Table] = &mut [&mut map];
            manifest.checkpoint(place, tables, heads, b"").unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(map);
    let map = open(manifest.mark("t")).unwrap();
    for number in 0..ROUNDS * ROWS * WRITERS {
        let (_, value) = map.reader().find(&key(number)).unwrap().expect("saved");
        assert_eq!(u64::from_le_bytes(value), number);
    }
}

/// All rows in one bucket, and a checkpoint after every few: a reader that takes the top of the
/// bucket must know the state which holds it, however often that changes between two looks.
#[test]
fn readers_follow_rows_from_the_stage_to_the_body() {
    const ROUNDS: u64 = 1500;
    let storage: Arc<dyn Storage> = Arc::new(varve_io::faulty::FaultyStorage::new(1));
    let one_bucket =
        TableConfig { geometry: Geometry { buckets: 1, load: u32::MAX }, ..config("t", 1) };
    let hasher = Keyed::new([1; 16]);
    let mut map =
        RecordMap::<32, 8>::open(Arc::clone(&storage), &one_bucket, hasher, Mark::NEW).unwrap();
    let mut manifest = Manifest::new(StoreId([5; 16]), [1; 16]);
    let newest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (reader, newest) = (map.reader().clone(), &newest);
            scope.spawn(move || {
                let mut last = 0;
                while last < 3 * ROUNDS {
                    last = newest.load(Ordering::Acquire);
                    if let Some(number) = last.checked_sub(1) {
                        assert!(reader.find(&key(number)).unwrap().is_some(), "row {number}");
                    }
                }
            });
        }
        for round in 0..ROUNDS {
            for number in 3 * round..3 * (round + 1) {
                map.insert(&key(number), &[0; 8]).unwrap();
                newest.store(number + 1, Ordering::Release);
            }
            let place = ManifestFile { storage: storage.as_ref(), name: "manifest", kind: KIND };
            manifest.checkpoint(place, &mut [&mut map], Heads::Defer, b"").unwrap();
        }
    });
}

/// The mean length of a chain, over all rows of the table.
fn rows_per_bucket(map: &RecordMap<32, 8>, buckets: u64) -> f64 {
    let (mut chains, mut rows) = (0.0, 0.0);
    for bucket in 0..buckets {
        let (mut length, mut link) = (0.0, map.reader().top(bucket).unwrap());
        while let Some(at) = link {
            length += 1.0;
            link = map.reader().next(at).unwrap();
        }
        chains += length * length;
        rows += length;
    }
    chains / rows
}

/// Keys that somebody ground against the bare bytes (all but the last four equal, and those in
/// sequence), and keys ground against the hash of another store, spread as random ones do.
#[test]
fn ground_keys_cost_what_random_keys_cost() {
    const ROWS: u64 = 8000;
    if cfg!(feature = "weak-hash") {
        return; // 256 hashes spread nothing
    }
    let theirs = Keyed::new([77; 16]);
    let mut number = 0;
    let mut ground_for_another = || loop {
        number += 1;
        let key = key(number);
        // All in one 64th of the buckets of a store whose secret they know.
        if theirs.hash(&key) >> 58 == 0 {
            return key;
        }
    };
    let ground: Vec<[u8; 32]> = (0..ROWS).map(|_| ground_for_another()).collect();
    let alike: Vec<[u8; 32]> = (0..ROWS).map(key).collect();
    let random: Vec<[u8; 32]> = (0..ROWS)
        .map(|n| {
            let mut key = [0; 32];
            for (index, part) in key.chunks_mut(8).enumerate() {
                let hash = Keyed::new([index.to_string().as_bytes()[0]; 16]).hash(&n.to_le_bytes());
                part.copy_from_slice(&hash.to_le_bytes());
            }
            key
        })
        .collect();
    let cost = |keys: &[[u8; 32]]| {
        let storage = Arc::new(varve_io::faulty::FaultyStorage::new(1));
        let hasher = Keyed::new([1; 16]);
        let map = RecordMap::open(storage, &config("t", 2000), hasher, Mark::NEW).unwrap();
        let rows: Vec<_> = keys.iter().map(|key| Row { key: *key, value: [0; 8] }).collect();
        map.set(&rows).unwrap().commit();
        rows_per_bucket(&map, 2000)
    };
    let normal = cost(&random);
    assert!((4.0..6.0).contains(&normal), "four a bucket, seen from a row five: {normal}");
    for keys in [ground, alike] {
        let found = cost(&keys);
        assert!(found < 2.0 * normal, "{found} rows a bucket against {normal}");
    }
}

/// The first byte of a value is its length.
#[derive(Debug)]
struct FirstByte;

impl Measure for FirstByte {
    const PREFIX: usize = 1;

    fn len(prefix: &[u8]) -> usize {
        usize::from(prefix[0])
    }
}

/// Writers of slabs take turns for a position; readers see whole values only.
#[test]
fn slabs_are_whole_for_readers_while_writers_put_them() {
    let dir = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path()).unwrap());
    let hasher = Keyed::new([1; 16]);
    let open = SlabMap::<FirstByte, 8>::open;
    let mut map = open(Arc::clone(&storage), &config("s", 64), hasher, Mark::NEW).unwrap();
    let mut manifest = Manifest::new(StoreId([5; 16]), [1; 16]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (reader, stop) = (SlabMap::reader(&map).clone(), &stop);
            scope.spawn(move || {
                let mut index = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    index = (index + 7) % 3000;
                    let whole = |value: &[u8]| value.iter().all(|byte| *byte == value[0]);
                    let found = reader.find(&index.to_le_bytes(), whole).unwrap();
                    assert!(found.is_none_or(|(_, whole)| whole));
                }
            });
        }
        for round in 0..10_u64 {
            std::thread::scope(|scope| {
                for writer in 0..2 {
                    let map = &map;
                    scope.spawn(move || {
                        for number in 0..150 {
                            let index = round * 300 + number * 2 + writer;
                            let len = u8::try_from(index % 200 + 1).unwrap();
                            let value = vec![len; usize::from(len)];
                            map.insert(&index.to_le_bytes(), &value).unwrap();
                        }
                    });
                }
            });
            let place = ManifestFile { storage: storage.as_ref(), name: "manifest", kind: KIND };
            manifest.checkpoint(place, &mut [&mut map], Heads::Save, b"").unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    for index in 0..3000_u64 {
        let found = map.reader().find(&index.to_le_bytes(), <[u8]>::len).unwrap();
        let len = usize::try_from(index % 200 + 1).unwrap();
        assert_eq!(found.map(|(_, len)| len), Some(len));
    }
}
