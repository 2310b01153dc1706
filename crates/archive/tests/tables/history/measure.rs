//! Figures: bytes a transaction, rows a second, lookups.
//!
//! As a test it asserts the bytes, with 300,000 transactions. For the figures, on an idle machine:
//! `HISTORY_TXS=10 cargo test --release -p varve-archive --test history measure -- --nocapture`,
//! where transactions are in millions.

use std::sync::Arc;
use std::time::Instant;

use varve_archive::TxLink;
use varve_archive::history::{
    Batch, BlockChanges, Connected, Funded, HistoryKeys, HistoryOptions, HistoryTable, Spent,
};
use varve_archive::search::Order;
use varve_io::Disk;
use varve_types::{Amount, BlockHash, Height};

use super::rig::{KEY, mix, outpoint, script};

const TXS: u32 = 3_000;
/// Outputs and inputs of a hundred transactions, as on mainnet.
const OUTPUTS: u64 = 267;
const INPUTS: u64 = 247;
/// Outputs of a hundred that go to a script of their own; the others to one of the busy ones.
const FRESH: u64 = 35;
const BUSY: u64 = 40_000;

/// A chain of which every output is spent but for one in 17, most of them soon.
struct Chain {
    seed: u64,
    coins: Vec<(Funded, Height)>,
    scripts: u64,
}

impl Chain {
    fn random(&mut self) -> u64 {
        self.seed += 1;
        mix(self.seed)
    }

    fn block(&mut self, height: u32) -> (Connected, BlockChanges) {
        let height = Height::new(height);
        let mut changes = BlockChanges { height, ..BlockChanges::default() };
        for position in 0..TXS {
            let inputs = INPUTS / 100 + u64::from(self.random() % 100 < INPUTS % 100);
            for _ in 0..inputs.min(self.coins.len() as u64) {
                let len = self.coins.len() as u64;
                // Half of them among the youngest 6,000, a quarter among twice as many, and so on.
                let span = (6_000 << self.random().trailing_zeros().min(20)).min(len);
                let at = len - 1 - self.random() % span;
                let (Funded { outpoint, value, script, .. }, height) =
                    self.coins.swap_remove(at as usize);
                changes.spent.push(Spent { position, outpoint, height, value, script });
            }
            let tx = self.random();
            let outputs = OUTPUTS / 100 + u64::from(self.random() % 100 < OUTPUTS % 100);
            for vout in 0..outputs as u32 {
                let is_fresh = self.random() % 100 < FRESH;
                let who = if is_fresh { BUSY + self.scripts } else { self.skewed() };
                self.scripts += u64::from(is_fresh);
                let value = Amount::from_sat(self.random() >> (34 + self.random() % 16));
                let (outpoint, script) = (outpoint(tx, vout), script(who));
                let output = Funded { position, outpoint, value, script };
                changes.funded.push(output);
                if !self.random().is_multiple_of(17) {
                    self.coins.push((output, height));
                }
            }
        }
        let hash = |height: u32| {
            let mut bytes = [1; 32];
            bytes[..4].copy_from_slice(&height.to_le_bytes());
            BlockHash::from_bytes(bytes)
        };
        let number = height.to_u32();
        let connected = Connected {
            height,
            hash: hash(number),
            parent: hash(number.wrapping_sub(1)),
            count: TXS,
        };
        (connected, changes)
    }

    /// One of the busy scripts: few have most of the outputs.
    fn skewed(&mut self) -> u64 {
        let bits = self.random() % 16;
        self.random() % (BUSY >> bits).max(1)
    }
}

#[test]
fn measure() {
    let millions = std::env::var("HISTORY_TXS").ok().and_then(|txs| txs.parse().ok());
    let txs = millions.map_or(300_000, |millions: u64| millions * 1_000_000);
    let blocks = (txs / u64::from(TXS)) as u32;
    let dir = tempfile::tempdir().unwrap();
    let storage = Arc::new(Disk::open(dir.path()).unwrap());
    let keys = HistoryKeys::new(KEY);
    let options = HistoryOptions {
        window: 12,
        flush_bytes: 32 << 20,
        flush_blocks: (blocks / 12).max(4) as usize,
        ..HistoryOptions::default()
    };
    let mut table = HistoryTable::open(storage, keys, options).unwrap();
    let mut chain = Chain { seed: 1, coins: Vec::new(), scripts: 0 };
    let (mut making, mut batching, mut events, mut young) = (0.0, 0.0, 0, 0);
    let start = Instant::now();
    for height in 0..blocks {
        let begun = Instant::now();
        let (connected, changes) = chain.block(height);
        making += begun.elapsed().as_secs_f64();
        events += changes.funded.len() + changes.spent.len();
        let begun = Instant::now();
        let batch = Batch::new(&keys, &changes);
        batching += begun.elapsed().as_secs_f64();
        young = young.max(batch.memory());
        table.tend().unwrap();
        table.connect(&connected, batch).unwrap();
        table.settle().unwrap();
    }
    table.finish().unwrap();
    let rest = start.elapsed().as_secs_f64() - making - batching;
    let (millions, events) = (txs as f64 / 1e6, events as f64 / 1e6);
    println!("{millions:.1} million transactions, {events:.1} million outputs paid or spent");
    println!(
        "  a second: {:.2} million made rows, {:.2} the rest",
        events / batching,
        events / rest
    );
    println!("  a block in memory: {young} bytes; {:?}", table.size());
    let begun = Instant::now();
    table.tidy().unwrap();
    table.finish().unwrap();
    let size = table.size();
    println!(
        "  all merged in {:.2} s, {:.2} million rows a second; written {:.2} times; {size:?}",
        begun.elapsed().as_secs_f64(),
        size.rows as f64 / 1e6 / begun.elapsed().as_secs_f64(),
        table.written() as f64 / size.bytes as f64,
    );
    let in_runs = table.watermark().unwrap().end.to_u64() as f64;
    let bytes = size.bytes as f64 / in_runs;
    println!("  {bytes:.1} bytes a transaction, {:.2} a row", size.bytes as f64 / size.rows as f64);
    look(&table, &mut chain);
    assert!(bytes < 40.0, "{bytes}");
}

fn look(table: &HistoryTable, chain: &mut Chain) {
    let view = table.reader().view();
    let all = TxLink::new(0)..TxLink::new(u64::MAX >> 8);
    for (name, busy) in [("busy", true), ("fresh", false)] {
        let count = 20_000;
        let scripts: Vec<_> = (0..count)
            .map(|_| {
                script(if busy { chain.skewed() } else { BUSY + chain.random() % chain.scripts })
            })
            .collect();
        let begun = Instant::now();
        let found = view.sums(&scripts).unwrap();
        let batched = begun.elapsed().as_secs_f64();
        assert!(found.iter().filter(|sums| sums.txs > 0).count() > count / 2);
        let begun = Instant::now();
        let pages = view.histories(&scripts, Order::Descending, 10).unwrap();
        let paged = begun.elapsed().as_secs_f64();
        assert_eq!(pages.len(), count);
        let begun = Instant::now();
        for script in scripts.iter().take(2_000) {
            let page = view.history(script, all.clone(), Order::Descending, 10).unwrap();
            assert!(page.rows.len() <= 10);
        }
        println!(
            "  {name}: {:.0} thousand sums, {:.0} pages of 10 a second in batches; one in {:.1} µs",
            count as f64 / batched / 1e3,
            count as f64 / paged / 1e3,
            begun.elapsed().as_secs_f64() * 1e6 / 2_000.0,
        );
    }
}
