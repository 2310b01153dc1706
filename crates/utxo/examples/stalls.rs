//! How long a block holds its owner up, with threads beside the writer and without.
//!
//! ```text
//! cargo run --release -p varve-utxo --example stalls [BLOCKS [DIRECTORY]]
//! ```
//!
//! Blocks of 4,000 outputs, three of four spent twenty blocks later, go through a small window into
//! runs that merge often. Told are the median and the worst time of an append, by the clock, how
//! often it waited, and what was written for every byte of the blocks, part by part.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a measurement, not the product"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use varve_consensus::BlockAt;
use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_io::{Disk, StoreId};
use varve_types::{Block, BlockHash, Height, Network, Outpoint};
use varve_utxo::{Compaction, Database, Options, Parameters, Secret, StoreKey};

const OUTPUTS: usize = 4_000;
const AGE: usize = 20;

fn main() {
    let blocks: usize = std::env::args().nth(1).map_or(300, |count| count.parse().unwrap());
    let temporary = tempfile::tempdir().unwrap();
    let directory = std::env::args().nth(2).map_or(temporary.path().to_path_buf(), PathBuf::from);
    let blocks = make(blocks);
    for compaction in [Compaction::Inline, Compaction::Threads] {
        run(&blocks, compaction, &directory.join(format!("{compaction:?}")));
    }
}

fn make(count: usize) -> Vec<Vec<u8>> {
    let mut previous = BlockHash::ZERO;
    let (mut blocks, mut made): (Vec<Vec<u8>>, Vec<Vec<Outpoint>>) = (Vec::new(), Vec::new());
    for height in (0..).take(count) {
        let mut coinbase = TxDraft::coinbase(Height::new(height), 1);
        coinbase.outputs = (0..OUTPUTS).map(|_| OutputDraft::with_script(vec![0x51; 22])).collect();
        let txid = coinbase.txid();
        let mut txs = vec![coinbase];
        if blocks.len() > AGE {
            let old = &made[blocks.len() - AGE];
            txs.extend(old.chunks(4).map(|coins| TxDraft::spending(&coins[..3], 1)));
        }
        let bytes = BlockDraft { previous, ..BlockDraft::new(txs) }.bytes();
        previous = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        blocks.push(bytes);
        made.push((0..).take(OUTPUTS).map(|vout| Outpoint::new(txid, vout)).collect());
    }
    blocks
}

fn run(blocks: &[Vec<u8>], compaction: Compaction, directory: &std::path::Path) {
    let key = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
    let parameters = Parameters { window: 24, flush_interval: 16, fan_in: 4, max_probed: 12 };
    let options = Options { parameters, compaction, ..Options::new(Network::Regtest, key) };
    let storage = Arc::new(Disk::open(directory).unwrap());
    let mut database = Database::open(storage, options).unwrap();
    let mut times: Vec<Duration> = Vec::new();
    for (height, bytes) in (0..).zip(blocks) {
        let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
        let start = Instant::now();
        database.append(&BlockAt::new(Height::new(height), &block)).unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let all: Duration = times.iter().sum();
    println!("{compaction:?}: all {all:.1?}, median {median:.1?}, worst {worst:.1?}");
    let data: usize = blocks.iter().map(Vec::len).sum();
    let (written, share) = (database.written(), |bytes: u64| bytes as f64 / data as f64);
    println!(
        "  {:?}, merge debt {}, written {:.2}: \
         flushed {:.2}, merged {:.2}, windows {:.2}, undo {:.2}",
        database.waits(),
        database.merge_debt(),
        share(written.total()),
        share(written.flushed),
        share(written.merged),
        share(written.windows),
        share(written.undo)
    );
}
