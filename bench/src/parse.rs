//! `parse`: from the bytes of real blocks to the txids of all their transactions.
//!
//! Three sides do the same work over the same full mainnet blocks, in memory, in one thread:
//!
//! * `varve`: [`Block::parse`] and [`Block::txids`];
//! * `bitcoin`: `deserialize::<Block>` and `compute_txid` of every transaction;
//! * `bitcoin_slices`: its visitor, with `txid` of every transaction;
//!
//! and ours twice more, without the txids and with the merkle root, to see where time goes.
//!
//! The sides take turns, block after block, so that a change in the machine's speed affects all of
//! them. Each side's best time for each block counts, because noise only adds time. Before anything
//! is measured, all sides must have found the same txids.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bitcoin_slices::{Visit as _, Visitor, bsl};
use varve_bench::ratio::Ratio;
use varve_types::{Block, Format};

use crate::Effort;

/// Smaller files are single blocks of the early chain, too small to measure.
const FULL_BLOCK: usize = 500_000;

/// From the bytes of a block to its txids.
type Side = fn(&[u8]) -> Hashes;

const SIDES: [(&str, Side); 5] = [
    ("varve", varve),
    ("bitcoin", bitcoin),
    ("bitcoin_slices", slices),
    ("varve without txids", varve_parse),
    ("varve and merkle root", varve_merkle),
];

/// Internal bytes of txids.
type Hashes = Vec<[u8; 32]>;

pub(crate) fn run(effort: Effort) -> Result<(), String> {
    let blocks = full_blocks()?;
    let bytes: usize = blocks.iter().map(Vec::len).sum();
    let mut txs = 0;
    for block in &blocks {
        let ours = varve(block);
        txs += ours.len();
        if ours != bitcoin(block) || ours != slices(block) {
            return Err("the sides disagree about the txids of a block".into());
        }
    }
    println!("{} blocks, {txs} transactions, {} MB", blocks.len(), bytes / 1_000_000);

    let duration = Duration::from_secs(if effort == Effort::Full { 60 } else { 15 });
    let times = best_rounds(&blocks, &SIDES.map(|(_, side)| side), duration);
    for ((name, _), time) in SIDES.iter().zip(&times) {
        let nanoseconds = time.as_nanos() as f64 / txs as f64;
        let rate = bytes as f64 / time.as_secs_f64() / 1e6;
        println!("{name:22} {rate:8.0} MB/s  {nanoseconds:6.0} ns a transaction");
    }
    let of = |name| SIDES.iter().zip(&times).find(|(side, _)| side.0 == name);
    let (Some((_, ours)), Some((_, theirs))) = (of("varve"), of("bitcoin")) else {
        return Err("a side is missing".into());
    };
    let value = theirs.as_secs_f64() / ours.as_secs_f64();
    Ratio::at_least("parse.bitcoin", value, 2.5).print();
    Ok(())
}

/// The full blocks among the data, whatever their folder.
fn full_blocks() -> Result<Vec<Vec<u8>>, String> {
    let mut blocks = Vec::new();
    for folder in ["stale", "blocks", "blocks/bcoin"] {
        let Some(folder) = varve_testdata::data(folder) else {
            return Err("no real blocks to parse; set VARVE_DATA to the folder with them".into());
        };
        let mut paths: Vec<_> = std::fs::read_dir(&folder)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
            .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
        paths.sort();
        for path in paths {
            let raw = path.extension().is_some_and(|end| end == "bin" || end == "raw");
            if !raw || !path.is_file() {
                continue;
            }
            let bytes = std::fs::read(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            if bytes.len() >= FULL_BLOCK && Block::parse(&bytes, Format::Segwit).is_ok() {
                blocks.push(bytes);
            }
        }
    }
    if blocks.is_empty() { Err("no full block among the data".into()) } else { Ok(blocks) }
}

/// The time of each side for all blocks: the sum over the blocks of its best time for each.
fn best_rounds(blocks: &[Vec<u8>], sides: &[Side], duration: Duration) -> Vec<Duration> {
    let mut best = vec![vec![Duration::MAX; sides.len()]; blocks.len()];
    let start = Instant::now();
    while start.elapsed() < duration {
        for (block, best) in blocks.iter().zip(&mut best) {
            for (side, best) in sides.iter().zip(best) {
                let turn = Instant::now();
                black_box(side(black_box(block)));
                *best = turn.elapsed().min(*best);
            }
        }
    }
    (0..sides.len()).map(|side| best.iter().filter_map(|block| block.get(side)).sum()).collect()
}

fn varve(bytes: &[u8]) -> Hashes {
    let block = Block::parse(bytes, Format::Segwit).expect("the real blocks parse");
    block.txids().into_iter().map(varve_types::Txid::to_bytes).collect()
}

fn varve_parse(bytes: &[u8]) -> Hashes {
    black_box(Block::parse(bytes, Format::Segwit).expect("the real blocks parse"));
    Vec::new()
}

fn varve_merkle(bytes: &[u8]) -> Hashes {
    let block = Block::parse(bytes, Format::Segwit).expect("the real blocks parse");
    vec![block.merkle_tree().root.to_bytes()]
}

fn bitcoin(bytes: &[u8]) -> Hashes {
    use bitcoin::hashes::Hash as _;
    let block: bitcoin::Block =
        bitcoin::consensus::deserialize(bytes).expect("the real blocks parse");
    block.txdata.iter().map(|tx| tx.compute_txid().to_byte_array()).collect()
}

fn slices(bytes: &[u8]) -> Hashes {
    struct Txids(Hashes);
    impl Visitor for Txids {
        fn visit_transaction(&mut self, tx: &bsl::Transaction<'_>) -> ControlFlow<()> {
            use bitcoin::hashes::Hash as _;
            self.0.push(tx.txid().to_byte_array());
            ControlFlow::Continue(())
        }
    }
    let mut txids = Txids(Vec::new());
    bsl::Block::visit(bytes, &mut txids).expect("the real blocks parse");
    txids.0
}
