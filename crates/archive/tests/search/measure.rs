//! Figures of an idle machine, printed by `cargo test --release -p varve-archive --test search -- --ignored measure
//! --nocapture`. `SEARCH_ROWS` is the number of rows, in millions.

use std::sync::Arc;
use std::time::Instant;

use varve_archive::TxLink;
use varve_archive::search::{Batch, Fingerprint, SearchOptions, SearchTable, Settled};
use varve_io::Disk;
use varve_runs::Compaction;

use crate::rig::{KEY, fingerprint, mix};

/// Transactions of a block, and its rows: 2.47 a transaction, as mainnet's inputs.
const TXS: u64 = 3_000;
const ROWS: u64 = TXS * 247 / 100;

fn batch(block: u64) -> Batch {
    Batch::new((0..ROWS).map(|row| {
        let key = Fingerprint::new(mix(block * ROWS + row + 1));
        (key, (row * TXS / ROWS) as u32)
    }))
}

/// Appends the rows of so many blocks, all in this thread or beside it; then merges everything.
fn grow(blocks: u64, compaction: Compaction, storage: Arc<Disk>) -> SearchTable {
    let options = SearchOptions { compaction, flush_rows: 2 << 20, ..SearchOptions::default() };
    let mut table = SearchTable::open(storage, KEY, options, TxLink::new(0)).unwrap();
    let (mut sorting, start) = (0.0, Instant::now());
    for block in 0..blocks {
        let begun = Instant::now();
        let batch = batch(block);
        sorting += begun.elapsed().as_secs_f64();
        let first = block * TXS;
        table.tend().unwrap();
        table.append(TxLink::new(first), TXS as u32, batch).unwrap();
        let durable = TxLink::new(first + TXS);
        let deep = TxLink::new(first.saturating_sub(144 * TXS));
        table.settle(&Settled { durable, deep, stale: &[], owner: &[] }).unwrap();
    }
    table.finish().unwrap();
    let (elapsed, start) = (start.elapsed().as_secs_f64(), Instant::now());
    let (written, runs) = (table.written(), table.size().runs);
    table.tidy().unwrap();
    table.finish().unwrap();
    let (tidied, size) = (start.elapsed().as_secs_f64(), table.size());
    let millions = size.rows as f64 / 1e6;
    let in_runs = (size.rows - size.young) as f64;
    println!(
        "{compaction:?}: {millions:.0} M rows in {elapsed:.1} s, written {:.2} times, {runs} runs\n  \
         millions a second: sorted {:.1}, all the rest {:.1}, a merge of all {:.1}\n  \
         {:.3} bytes a row, index {:.3}; {:?}",
        written as f64 / size.bytes as f64,
        millions / sorting,
        millions / (elapsed - sorting),
        in_runs / 1e6 / tidied,
        size.bytes as f64 / in_runs,
        size.index as f64 / in_runs,
        table.memory(),
    );
    table
}

#[test]
#[ignore = "a measurement of a minute"]
fn measure() {
    let millions = std::env::var("SEARCH_ROWS").ok().and_then(|rows| rows.parse().ok());
    let blocks = millions.unwrap_or(20_u64) * 1_000_000 / ROWS;
    for compaction in [Compaction::Inline, Compaction::Threads] {
        let dir = tempfile::tempdir().unwrap();
        let storage = Arc::new(Disk::open(dir.path()).unwrap());
        look(&grow(blocks, compaction, storage), blocks);
    }
}

fn look(table: &SearchTable, blocks: u64) {
    let (reader, mut found) = (table.reader(), Vec::new());
    for (name, many, absent) in [
        ("present", 1, false),
        ("absent", 1, true),
        ("present", 1_000, false),
        ("absent", 1_000, true),
    ] {
        let (before, start) = (reader.page_reads().pages, Instant::now());
        let (count, mut hits) = (200_000, 0);
        for round in 0..count / many {
            let key = |at: u64| match absent {
                true => fingerprint(u64::MAX / 2 + round * many + at, false),
                false => Fingerprint::new(mix(mix(round * many + at) % (blocks * ROWS) + 1)),
            };
            let keys: Vec<Fingerprint> = (0..many).map(key).collect();
            found.clear();
            reader.find(&keys, &mut found).unwrap();
            hits += found.len();
        }
        println!(
            "  {name}, {many} at a time: {:.0} thousand a second, {:.3} pages a key, {:.4} rows a key",
            count as f64 / 1e3 / start.elapsed().as_secs_f64(),
            (reader.page_reads().pages - before) as f64 / count as f64,
            hits as f64 / count as f64,
        );
        if absent {
            let pages = (reader.page_reads().pages - before) as f64 / count as f64;
            assert!(pages <= 1.3, "{pages} pages for an absent key");
        }
    }
}
