//! Lookups continue while rows are appended, flushed and merged beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use varve_archive::TxLink;
use varve_archive::search::{Batch, SearchOptions, SearchReader, SearchTable, Settled};
use varve_io::Disk;
use varve_runs::Compaction;

use super::rig::{KEY, TINY, fingerprint};

const BLOCKS: u64 = 3_000;
const TXS: u64 = 20;

/// Transaction `n` has the keys `n / 3` and `1_000_000 + n % 7`.
fn keys(tx: u64) -> [u64; 2] {
    [tx / 3, 1_000_000 + tx % 7]
}

/// Looks up keys whose rows are known, as long as the writer runs.
fn look(reader: &SearchReader, written: &AtomicU64, done: &AtomicBool) -> u64 {
    let mut looked = 0;
    while !done.load(Ordering::Relaxed) || looked == 0 {
        let end = written.load(Ordering::Acquire);
        let first = looked * 7_919 % (end / 3).max(1);
        let wanted: Vec<u64> = (first..(first + 20).min(end / 3)).collect();
        let asked: Vec<_> = wanted.iter().map(|key| fingerprint(*key, false)).collect();
        let mut found = Vec::new();
        reader.find(&asked, &mut found).unwrap();
        for (place, key) in wanted.iter().enumerate() {
            let links: Vec<u64> = found
                .iter()
                .filter(|(at, _)| *at == place)
                .map(|(_, link)| link.to_u64())
                .collect();
            assert_eq!(links, [key * 3 + 2, key * 3 + 1, key * 3]);
        }
        let mut found = Vec::new();
        reader.find(&[fingerprint(1_000_003, false)], &mut found).unwrap();
        assert!(found.len() as u64 >= end / 7, "{} of {end}", found.len());
        assert!(found.is_sorted_by(|a, b| a.1 > b.1), "newest first, each once");
        looked += 1;
    }
    looked
}

#[test]
fn readers_see_every_row_once_whatever_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Arc::new(Disk::open(dir.path()).unwrap());
    let options = SearchOptions { flush_rows: 2_000, compaction: Compaction::Threads, ..TINY };
    let mut table = SearchTable::open(storage, KEY, options, TxLink::new(0)).unwrap();
    let (reader, written, done) = (table.reader(), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| look(&reader, &written, &done))).collect();
        for block in 0..BLOCKS {
            let first = block * TXS;
            let row = |at: u64| keys(first + at).map(|key| (fingerprint(key, false), at as u32));
            let batch = Batch::new((0..TXS).flat_map(row));
            table.tend().unwrap();
            table.append(TxLink::new(first), TXS as u32, batch).unwrap();
            written.store(first + TXS, Ordering::Release);
            let deep = TxLink::new(first.saturating_sub(5 * TXS));
            let durable = TxLink::new(first + TXS);
            table.settle(&Settled { durable, deep, stale: &[], owner: &[] }).unwrap();
        }
        table.finish().unwrap();
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert!(table.size().runs < 20 && table.size().rows == 2 * BLOCKS * TXS, "{:?}", table.size());
}
