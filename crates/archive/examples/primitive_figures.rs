//! Figures of the record tables: inserts and lookups a second on one and two threads, bytes a row.
//!
//! ```text
//! cargo run --release -p varve-archive --example primitive_figures [ROWS] [DIRECTORY]
//! ```
//!
//! The table is that of transactions: keys of 32 bytes, values of 12. Rows are inserted in batches
//! of 2,000, as those of a block, with a checkpoint every 500 batches; lookups are of random keys
//! that exist (`find`), that exist and have their whole chain read (`find all`), and that do not
//! exist (`absent`).

use std::num::ParseIntError;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use varve_archive::primitive::{
    Error, Geometry, Heads, Keyed, Manifest, Mark, RecordMap, RecordReader, Row, Table, TableConfig,
};
use varve_io::{Disk, Kind, Storage, StoreId};

const BATCH: u64 = 2000;
const KIND: Kind = Kind(*b"FIGURES\0");

type TxReader = RecordReader<32, 12>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows = arguments.next().map_or(Ok::<_, ParseIntError>(10_000_000), |n| n.parse())?;
    let given = arguments.next();
    let temporary = tempfile::tempdir()?;
    let directory = given.as_deref().map_or(temporary.path(), Path::new);
    for threads in [1, 2] {
        let storage = Arc::new(Disk::open(&directory.join(format!("tx-{threads}")))?);
        records(storage, rows, threads)?;
    }
    Ok(())
}

/// A key like a hash: a bijection of the number, in all parts of the key.
fn key(number: u64) -> [u8; 32] {
    let mut key = [0; 32];
    for (part, salt) in key.as_chunks_mut::<8>().0.iter_mut().zip(1_u64..) {
        let mut word = number.wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        *part = (word ^ (word >> 29)).to_le_bytes();
    }
    key
}

fn value<const V: usize>(number: u64) -> [u8; V] {
    let mut value = [0; V];
    value.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
    value
}

fn config(name: &str) -> TableConfig {
    TableConfig {
        name: name.to_owned(),
        kind: KIND,
        store: StoreId([5; 16]),
        segment_len: 64 << 20,
        geometry: Geometry::for_rows(1 << 18),
    }
}

fn report(what: &str, threads: u64, count: u64, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let rate = count as f64 / seconds / 1e6;
    println!("{what:24} {threads} thread(s)  {rate:7.3} M/s  {seconds:7.2} s");
}

fn checkpoint(
    storage: &Arc<Disk>,
    manifest: &mut Manifest,
    table: &mut dyn Table,
    heads: Heads,
) -> Result<(), Error> {
    let place = (storage.as_ref() as &dyn Storage, "manifest", KIND);
    manifest.checkpoint(place, (&mut [table], heads), b"")
}

fn records(storage: Arc<Disk>, rows: u64, threads: u64) -> Result<(), Box<dyn std::error::Error>> {
    let hasher = Keyed::new([7; 16]);
    let mut manifest = Manifest::new(StoreId([5; 16]), [7; 16]);
    let mut map = RecordMap::<32, 12>::open(storage.clone(), &config("tx"), hasher, Mark::NEW)?;
    let begun = Instant::now();
    let group = 500 * BATCH;
    for start in (0..rows).step_by(1_000_000) {
        let share = group / threads;
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (map, from) = (&map, start + thread * share);
                scope.spawn(move || insert(map, from..(from + share).min(rows)));
            }
        });
        checkpoint(&storage, &mut manifest, &mut map, Heads::Defer)?;
    }
    report("tx: insert", threads, rows, begun);
    let begun = Instant::now();
    checkpoint(&storage, &mut manifest, &mut map, Heads::Save)?;
    println!("tx: save all heads       {:.2} s", begun.elapsed().as_secs_f64());
    for number in 0..1000 {
        map.insert(&key(rows + number), &value(number))?;
    }
    let begun = Instant::now();
    checkpoint(&storage, &mut manifest, &mut map, Heads::Save)?;
    println!("tx: save 1000 rows more  {:.3} s", begun.elapsed().as_secs_f64());
    let lookups = rows.min(2_000_000);
    let timed = |what, look: &(dyn Fn(&TxReader, u64) -> bool + Sync)| {
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let reader = map.reader().clone();
                scope.spawn(move || {
                    for number in thread * lookups / threads..(thread + 1) * lookups / threads {
                        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % rows;
                        assert!(look(&reader, number), "row {number}");
                    }
                });
            }
        });
        report(what, threads, lookups, begun);
    };
    timed("tx: first touch", &|reader, number| found(reader, number));
    timed("tx: find", &|reader, number| found(reader, number));
    timed("tx: find all", &|reader, number| {
        let mut all = Vec::new();
        reader.find_all(&key(number), &mut all).is_ok() && all.len() == 1
    });
    many("tx: find many", threads, lookups, &|numbers| {
        let keys: Vec<_> = numbers.iter().map(|number| key(number % rows)).collect();
        let mut all = Vec::new();
        map.reader().find_many(&keys, &mut all).is_ok() && all.len() == keys.len()
    });
    timed("tx: absent", &|reader, number| {
        matches!(reader.find(&key(number + (1 << 40))), Ok(None))
    });
    println!("tx: bytes a row          {:.2}", bytes_a_row(storage.as_ref(), rows)?);
    drop(map);
    let begun = Instant::now();
    let map = RecordMap::<32, 12>::open(storage, &config("tx"), hasher, manifest.mark("tx"))?;
    println!("tx: open                 {:.3} s", begun.elapsed().as_secs_f64());
    assert!(found(map.reader(), 1));
    Ok(())
}

fn insert(map: &RecordMap<32, 12>, numbers: std::ops::Range<u64>) {
    for start in numbers.clone().step_by(2000) {
        let batch = start..(start + BATCH).min(numbers.end);
        let rows: Vec<_> = batch.map(|n| Row { key: key(n), value: value(n) }).collect();
        map.set(&rows).expect("there is room").commit();
    }
}

fn found(reader: &TxReader, number: u64) -> bool {
    matches!(reader.find(&key(number)), Ok(Some((_, found))) if found == value(number))
}

/// Times batches of 1,000 random lookups.
fn many(what: &str, threads: u64, lookups: u64, look: &(dyn Fn(&[u64]) -> bool + Sync)) {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let share = thread * lookups / threads..(thread + 1) * lookups / threads;
                let numbers: Vec<u64> =
                    share.map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8).collect();
                assert!(numbers.chunks(1000).all(look), "every row is found");
            });
        }
    });
    report(what, threads, lookups, begun);
}

/// The bytes of all files, by the row.
fn bytes_a_row(storage: &dyn Storage, rows: u64) -> Result<f64, Error> {
    use varve_io::{Access, Caching};
    let mut bytes = 0;
    for name in storage.list()? {
        bytes += storage.open(&name, Access::Read, Caching::Buffered)?.size()?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let figure = bytes as f64 / rows as f64;
    Ok(figure)
}
