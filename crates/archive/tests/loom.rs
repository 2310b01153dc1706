//! The push and growth protocol under a model checker: the orders in which two writers, or
//! a writer and a reader, may run, and every value that the memory model may give them.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --release -p varve-archive --test loom
//! ```
//!
//! The head begins with one bucket for one row, so the second row begins a new generation, new
//! pages and new shelves, while the others look. In a build without `--cfg loom` this file is
//! empty.

#![cfg(loom)]

use std::sync::Arc;

use varve_archive::primitive::{Geometry, KeyHasher, Link, Mark, RecordMap, Row, TableConfig};
use varve_io::faulty::FaultyStorage;
use varve_io::{Kind, StoreId};

/// Every key in one bucket: pushes meet.
struct Constant;

impl KeyHasher for Constant {
    fn hash(&self, _: &[u8]) -> u64 {
        0
    }
}

/// Every order with at most three preemptions: every kind of trouble needs fewer, and without a
/// bound there are too many to try.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

type Map = RecordMap<1, 1, Constant>;

fn map(load: u32) -> Arc<Map> {
    let config = TableConfig {
        name: "map".to_owned(),
        kind: Kind(*b"TESTKIND"),
        store: StoreId([5; 16]),
        segment_len: 100,
        geometry: Geometry { buckets: 1, load },
    };
    let storage = Arc::new(FaultyStorage::new(1));
    Arc::new(Map::open(storage, &config, Constant, Mark::NEW).expect("an empty storage"))
}

fn row(number: u8) -> Row<1, 1> {
    Row { key: [number], value: [number + 100] }
}

fn insert(map: &Map, number: u8) -> Link {
    map.insert(&[number], &[number + 100]).expect("there is room")
}

/// The value of a row, if it is found.
fn find(map: &Map, number: u8) -> Option<u8> {
    map.reader().find(&[number]).expect("nothing is damaged").map(|(_, [value])| value)
}

/// Two writers push on one bucket: each finds its own row at once, and both are there in the end.
fn two_writers(load: u32) {
    model(move || {
        let map = map(load);
        let writer = {
            let map = Arc::clone(&map);
            loom::thread::spawn(move || insert(&map, 1))
        };
        let second = insert(&map, 2);
        assert_eq!(find(&map, 2), Some(102), "one's own row is there at once");
        let first = writer.join().expect("the writer wrote");
        assert_ne!(first, second);
        assert_eq!((find(&map, 1), find(&map, 2)), (Some(101), Some(102)));
    });
}

/// What a reader sees beside a writer is whole and stays.
fn a_writer_and_a_reader(load: u32) {
    model(move || {
        let map = map(load);
        let reader = {
            let map = Arc::clone(&map);
            loom::thread::spawn(move || {
                let first = find(&map, 2);
                assert!(first.is_none() || first == Some(102));
                let again = find(&map, 2);
                assert!(first.is_none() || again == first, "a row went away");
                assert!(again.is_none() || find(&map, 1) == Some(101), "an older row is missing");
            })
        };
        insert(&map, 1);
        insert(&map, 2);
        reader.join().expect("the reader saw what it should");
    });
}

/// Two writers and a reader at once.
fn three(load: u32) {
    model(move || {
        let map = map(load);
        let threads = [1, 2].map(|number| {
            let map = Arc::clone(&map);
            loom::thread::spawn(move || _ = insert(&map, number))
        });
        let first = [1, 2].map(|number| find(&map, number));
        let again = [1, 2].map(|number| find(&map, number));
        for (number, (first, again)) in (1..).zip(first.into_iter().zip(again)) {
            assert!(again.is_none() || again == Some(number + 100));
            assert!(first.is_none() || again == first, "a row went away");
        }
        threads.into_iter().for_each(|thread| thread.join().expect("the writer wrote"));
        assert_eq!((find(&map, 1), find(&map, 2)), (Some(101), Some(102)));
    });
}

#[test]
fn pushes_on_one_bucket_lose_nothing() {
    two_writers(8);
    a_writer_and_a_reader(8);
    three(8);
}

#[test]
fn pushes_while_the_head_grows_lose_nothing() {
    two_writers(1);
    a_writer_and_a_reader(1);
    three(1);
}

/// A row that is set is not found, however the reader runs; after the commit it is.
#[test]
fn a_row_is_invisible_until_it_is_committed() {
    model(|| {
        let map = map(1);
        insert(&map, 7);
        let reader = {
            let map = Arc::clone(&map);
            loom::thread::spawn(move || {
                assert_eq!(find(&map, 2), None, "given up below");
                assert_eq!(find(&map, 7), Some(107), "committed before");
            })
        };
        let given_up = map.set(&[row(2)]).expect("there is room");
        let pending = map.set(&[row(3)]).expect("there is room");
        assert_eq!(find(&map, 3), None);
        pending.commit();
        assert_eq!(find(&map, 3), Some(103));
        drop(given_up);
        reader.join().expect("the reader saw what it should");
    });
}
