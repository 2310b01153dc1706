//! How large the archive is and how fast: bytes a transaction and an input, inserts, lookups.
//!
//! ```text
//! cargo run --release -p varve-archive --example archive_figures -- [BLOCKS] [TRANSACTIONS]
//! ```
//!
//! Simulates a chain of mainnet's shape, stores its blocks, archives them with a checkpoint every
//! 64 blocks, and asks for random transactions and spenders from two threads.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example that prints figures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use varve_archive::contract::random::Dice;
use varve_archive::{
    Archive, ArchiveConfig, Chain, Indexes, MmapBackend, MmapConfig, MmapTables, View,
};
use varve_blocks::{BlockReader, BlockStore, Options, Synced};
use varve_consensus::BlockAt;
use varve_io::{Disk, StoreId};
use varve_sim::{Config, Profile};
use varve_types::{Block, Height, Outpoint, Txid};

const THREADS: u64 = 2;
const LOOKUPS: u32 = 400_000;

/// What was archived, to ask for.
#[derive(Default)]
struct Keys {
    txids: Vec<Txid>,
    points: Vec<Outpoint>,
    bytes: u64,
    insert: Duration,
}

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u32>().unwrap());
    let (blocks, transactions) = (args.next().unwrap_or(300), args.next().unwrap_or(2000));
    let transactions = Some(transactions);
    let config = Config { transactions, mempool: 0, ..Config::new(Profile::Mainnet, blocks, 1) };
    let dir = tempfile::tempdir_in(".").unwrap();
    let network = config.network();
    let options = Options::new(StoreId([1; 16]), [2; 16], network.format());
    let blocks_dir = Arc::new(Disk::open(&dir.path().join("blocks")).unwrap());
    let mut store = BlockStore::open(blocks_dir, options, Synced::NEW).unwrap();
    let archive_dir = Arc::new(Disk::open(&dir.path().join("archive")).unwrap());
    // Heads are saved with every checkpoint, so that the sizes have them.
    let files = MmapConfig { relink: 0, ..MmapConfig::new(StoreId([3; 16]), [4; 16]) };
    let backend = MmapBackend::open(archive_dir, files).unwrap();
    let archive_config = ArchiveConfig { network, indexes: Indexes::default() };
    let mut archive = Archive::open(backend, archive_config).unwrap();

    let keys = fill(&config, &mut store, &mut archive);
    store.sync().unwrap();
    let started = Instant::now();
    archive.checkpoint(u64::from(blocks)).unwrap();
    println!("last checkpoint: {:?}", started.elapsed());
    print_sizes(&archive, &keys);
    let view = View::new(archive.snapshot(), store.reader());
    measure("tx lookups", &view, &keys.txids, |view, txid| {
        assert!(view.to_tx(*txid).unwrap().is_some());
    });
    measure("spenders with txid", &view, &keys.points, |view, point| {
        let spender = view.confirmed_spender(*point).unwrap().unwrap();
        std::hint::black_box(view.txid(&spender.tx).unwrap());
    });
    measure("spender lookups", &view, &keys.points, |view, point| {
        assert!(view.confirmed_spender(*point).unwrap().is_some());
    });
}

/// Stores and archives the chain; only archiving is timed.
fn fill(config: &Config, store: &mut BlockStore, archive: &mut Archive<MmapBackend>) -> Keys {
    let mut keys = Keys::default();
    for (height, simulated) in (0..).zip(varve_sim::Chain::new(config).unwrap()) {
        let bytes = &simulated.bytes;
        let block = Block::parse(bytes, config.network().format()).unwrap();
        let number = store.append(&block).unwrap();
        let block = BlockAt::new(Height::new(height), &block);
        let started = Instant::now();
        let link = archive.set_header(block.block().header()).unwrap();
        archive.set_block(&block, number).unwrap();
        archive.push(Chain::Candidate, link).unwrap();
        archive.push(Chain::Confirmed, link).unwrap();
        if height % 64 == 63 {
            archive.checkpoint(height.into()).unwrap();
        }
        keys.insert += started.elapsed();
        keys.bytes += bytes.len() as u64;
        keys.txids.extend_from_slice(block.txids());
        let spends = block.block().txs().iter().skip(1).flat_map(|tx| tx.inputs());
        keys.points.extend(spends.map(|input| input.outpoint));
    }
    let megabytes = keys.bytes as f64 / 1e6;
    let seconds = keys.insert.as_secs_f64();
    println!("archived {megabytes:.0} MB in {seconds:.2} s: {:.0} MB/s", megabytes / seconds);
    keys
}

fn print_sizes(archive: &Archive<MmapBackend>, keys: &Keys) {
    let (txs, inputs) = (keys.txids.len() as f64, keys.points.len() as f64);
    let mut total = 0;
    for size in archive.sizes().unwrap() {
        let bytes = size.body + size.head;
        total += bytes;
        let each = bytes as f64 / size.rows.max(1) as f64;
        println!(
            "{:12} {:>10} rows, body {:>11}, head {:>10}: {each:.1} bytes a row",
            size.name, size.rows, size.body, size.head
        );
    }
    let (total, limit) = (total as f64, 60.0 * txs + 16.0 * inputs);
    println!("{txs} transactions, {inputs} inputs: {:.1} bytes a transaction", total / txs);
    println!("{:.1} % of 60 bytes a transaction and 16 an input", 100.0 * total / limit);
}

/// Asks for random keys from two threads.
fn measure<K: Sync>(
    name: &str,
    view: &View<MmapTables, BlockReader>,
    keys: &[K],
    ask: impl Fn(&View<MmapTables, BlockReader>, &K) + Sync,
) {
    // The first round warms what the second measures.
    for round in 0..2 {
        let started = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let ask = &ask;
                scope.spawn(move || {
                    let mut dice = Dice(thread + 100 * round);
                    let count = u32::try_from(keys.len()).unwrap();
                    for _ in 0..LOOKUPS {
                        ask(view, keys.get(dice.roll(count) as usize).unwrap());
                    }
                });
            }
        });
        let lookups = THREADS as f64 * f64::from(LOOKUPS);
        let rate = lookups / started.elapsed().as_secs_f64();
        println!("{name}, round {round}: {rate:.0} a second on {THREADS} threads");
    }
}
