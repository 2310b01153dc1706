//! Pages that a key costs, and figures: rows and lookups a second, bytes a row.
//!
//! As a test it asserts the pages, with a million rows. For the figures, on an idle machine:
//! `SEARCH_ROWS=60 cargo test --release -p varve-archive --test search measure -- --nocapture`,
//! where the rows are in millions.

use std::sync::Arc;
use std::time::Instant;

use varve_archive::TxLink;
use varve_archive::search::{
    Batch, Fingerprint, SearchOptions, SearchReader, SearchTable, Settled,
};
use varve_io::{Disk, Storage};
use varve_runs::Compaction;

use super::rig::{KEY, mix};

/// Transactions of a block, and its rows: 2.47 a transaction, as mainnet's inputs.
const TXS: u64 = 3_000;
const ROWS: u64 = TXS * 247 / 100;
/// Blocks that may still be replaced.
const WINDOW: u64 = 12;
/// Keys that are looked up for each figure.
const LOOKUPS: u64 = 200_000;

fn batch(block: u64) -> Batch {
    Batch::new((0..ROWS).map(|row| {
        let key = Fingerprint::new(mix(block * ROWS + row + 1));
        (key, (row * TXS / ROWS) as u32)
    }))
}

/// Appends the rows of `blocks` blocks, all in this thread or beside it.
fn grow(table: &mut SearchTable, blocks: u64) {
    let (mut sorting, start) = (0.0, Instant::now());
    for block in 0..blocks {
        let begun = Instant::now();
        let batch = batch(block);
        sorting += begun.elapsed().as_secs_f64();
        let first = block * TXS;
        table.tend().unwrap();
        table.append(TxLink::new(first), TXS as u32, batch).unwrap();
        let durable = TxLink::new(first + TXS);
        let deep = TxLink::new(first.saturating_sub(WINDOW * TXS));
        table.settle(&Settled { durable, deep, stale: &[], owner: &[] }).unwrap();
    }
    table.finish().unwrap();
    let (elapsed, millions) = (start.elapsed().as_secs_f64(), table.size().rows as f64 / 1e6);
    println!(
        "  {millions:.0} million rows in {elapsed:.2} s; a second: {:.1} sorted, {:.1} the rest",
        millions / sorting,
        millions / (elapsed - sorting),
    );
    print_size(table);
}

/// Merges everything.
fn tidy(table: &mut SearchTable) {
    let start = Instant::now();
    table.tidy().unwrap();
    table.finish().unwrap();
    let size = table.size();
    let millions = (size.rows - size.young) as f64 / 1e6;
    println!("  all merged, {:.1} million a second", millions / start.elapsed().as_secs_f64());
    print_size(table);
}

fn print_size(table: &SearchTable) {
    let size = table.size();
    let rows = (size.rows - size.young) as f64;
    println!(
        "    {} runs, written {:.2} times; a row: {:.3} bytes, index {:.3}; {:?}",
        size.runs,
        table.written() as f64 / size.bytes as f64,
        size.bytes as f64 / rows,
        size.index as f64 / rows,
        table.memory(),
    );
}

/// Looks keys up, and returns the pages that one costs.
fn look(reader: &SearchReader, name: &str, key: impl Fn(u64) -> Fingerprint, many: u64) -> f64 {
    let (mut found, mut rows) = (Vec::new(), 0);
    let (before, start) = (reader.page_reads().pages, Instant::now());
    for round in 0..LOOKUPS / many {
        let keys: Vec<Fingerprint> = (0..many).map(|at| key(round * many + at)).collect();
        found.clear();
        reader.find(&keys, &mut found).unwrap();
        rows += found.len();
    }
    let a_second = LOOKUPS as f64 / start.elapsed().as_secs_f64();
    let pages = (reader.page_reads().pages - before) as f64 / LOOKUPS as f64;
    println!(
        "    {name}, {many} at a time: {:.0} thousand/s; a key: {pages:.3} pages, {:.4} rows",
        a_second / 1e3,
        rows as f64 / LOOKUPS as f64,
    );
    pages
}

#[test]
fn measure() {
    let millions = std::env::var("SEARCH_ROWS").ok().and_then(|rows| rows.parse().ok());
    let blocks = millions.unwrap_or(1_u64) * 1_000_000 / ROWS;
    let present = |at| Fingerprint::new(mix(mix(at) % (blocks * ROWS) + 1));
    let absent = |at| Fingerprint::new(mix(u64::MAX / 2 + at));
    for compaction in [Compaction::Inline, Compaction::Threads] {
        println!("{compaction:?}");
        let dir = tempfile::tempdir().unwrap();
        let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path()).unwrap());
        let flush_rows = usize::try_from(blocks * ROWS / 12).unwrap().min(2 << 20);
        let options = SearchOptions { compaction, flush_rows, ..SearchOptions::default() };
        let mut table =
            SearchTable::open(Arc::clone(&storage), KEY, options, TxLink::new(0)).unwrap();
        grow(&mut table, blocks);
        assert!(table.size().runs > 1, "{:?}", table.size());
        let reader = table.reader();
        for many in [1, 1_000] {
            look(&reader, "present", present, many);
            assert!(look(&reader, "absent", absent, many) <= 1.3);
        }
        tidy(&mut table);
        for many in [1, 1_000] {
            assert!(look(&reader, "present", present, many) <= 1.1);
            assert!(look(&reader, "absent", absent, many) <= 1.1);
        }
        assert!(table.size().young > 0, "{:?}", table.size());
        table.rest().unwrap();
        drop((table, reader));
        println!("  at rest");
        let reader = SearchReader::at_rest(&storage, KEY, TxLink::new(blocks * TXS)).unwrap();
        for many in [1, 1_000] {
            assert!(look(&reader, "present", present, many) <= 1.3);
            assert!(look(&reader, "absent", absent, many) <= 1.1);
        }
    }
}
