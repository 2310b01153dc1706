//! Figures, printed by `cargo test --release -p varve-archive --test search -- --ignored measure
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

#[test]
#[ignore = "a measurement of a minute"]
fn measure() {
    let millions = std::env::var("SEARCH_ROWS").ok().and_then(|rows| rows.parse().ok());
    let blocks = millions.unwrap_or(20_u64) * 1_000_000 / ROWS;
    for compaction in [Compaction::Inline, Compaction::Threads] {
        let dir = tempfile::tempdir().unwrap();
        let storage = Arc::new(Disk::open(dir.path()).unwrap());
        let options = SearchOptions { compaction, flush_rows: 2 << 20, ..SearchOptions::default() };
        let mut table = SearchTable::open(storage, KEY, options, TxLink::new(0)).unwrap();
        let (mut sorting, start) = (0.0, Instant::now());
        for block in 0..blocks {
            let begun = Instant::now();
            let batch = batch(block);
            sorting += begun.elapsed().as_secs_f64();
            let first = block * TXS;
            table.append(TxLink::new(first), TXS as u32, batch).unwrap();
            let durable = TxLink::new(first + TXS);
            let deep = TxLink::new(first.saturating_sub(144 * TXS));
            table.settle(&Settled { durable, deep, stale: &[], owner: &[] }).unwrap();
        }
        table.finish().unwrap();
        let appended = start.elapsed().as_secs_f64();
        table.tidy().unwrap();
        table.finish().unwrap();
        let tidied = start.elapsed().as_secs_f64() - appended;
        let size = table.size();
        let rows = size.rows as f64;
        println!(
            "{compaction:?}: {:.0} M rows; batches {:.1} M/s; the rest {:.1} M/s; last merge of all \
             {:.1} M/s; {} runs, {:.3} bytes a row, index {:.3}, written {:.2}; {:?}",
            rows / 1e6,
            rows / 1e6 / sorting,
            rows / 1e6 / (appended - sorting),
            rows / 1e6 / tidied,
            size.runs,
            size.bytes as f64 / (rows - size.young as f64),
            size.index as f64 / rows,
            table.written() as f64 / size.bytes as f64,
            table.memory(),
        );
        look(&table, blocks);
    }
}

fn look(table: &SearchTable, blocks: u64) {
    let (reader, mut found) = (table.reader(), Vec::new());
    for (name, many, absent) in
        [("present", 1, false), ("absent", 1, true), ("present", 1_000, false), ("absent", 1_000, true)]
    {
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
            "  {name}, {many} at a time: {:.0} k/s, {:.3} pages a key, {:.4} rows a key",
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
