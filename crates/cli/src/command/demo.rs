//! `varve demo`: makes a chain, syncs it and checks the result.
//!
//! 1. Simulate a chain that looks like today's main chain, and write it as block files.
//! 2. Read the files back, parse every transaction, hash it, and check every merkle root and that
//!    each block follows the one before it.
//! 3. Sync a node from the files: every block is checked, stored, archived and joined to the
//!    unspent set, and everything is made durable.
//! 4. Compare the tip, the tips of all branches and the set's hash with the answers the simulator's
//!    own model gave, and sum the chain up.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use varve::types::Block;
use varve::types::blk::Records;
use varve::{BlockHash, Network, SetHash, Snapshot, Source, Statistics, shown_hash};
use varve_server::json;
use varve_sim::stats::{Meter, Stats};
use varve_sim::{Config, Profile};

use crate::args::{Demo, Global};
use crate::command::{sim, sync, utxo};
use crate::data_dir::DataDir;
use crate::output::print_json;
use crate::progress::{Progress, megabytes_per_second};

/// Blocks at the start that hold too few transactions to be like the chain they grow into.
const WARM_UP: u32 = 120;

/// What reading the chain back has found.
struct Reading {
    tip: BlockHash,
    blocks: u64,
    bytes: u64,
    transactions: u64,
    /// Time spent on parsing, hashing and merkle roots alone.
    parsing: Duration,
    stats: Stats,
}

/// Runs the command.
pub(crate) fn run(args: &Demo, global: &Global) -> Result<()> {
    let temporary;
    let folder = match &args.keep {
        Some(folder) => folder.as_path(),
        None => {
            temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
            temporary.path()
        }
    };
    let config = Config::new(Profile::Mainnet, args.blocks, args.seed);
    let network = config.network();
    let root = folder.join("data");
    let data = DataDir::at(&root, network, global.memory);
    data.builder().check_free()?;
    let (written, sim_rate) = sim::write(&config, folder)?;
    let reading = read_back(&folder.join("blocks"), network, written.blocks)?;
    let node = data.builder().open_or_create()?;
    let started = Instant::now();
    sync::show(node.sync(Source::folder(folder)), &node, false)?;
    let sync_rate = megabytes_per_second(reading.bytes, started.elapsed());
    let snapshot = node.snapshot();
    let counted = utxo::statistics(&snapshot.unspent()?, SetHash::HashSerialized3)?;
    check(&snapshot, &counted, &folder.join("expected.json"))?;

    let parse_rate = megabytes_per_second(reading.bytes, reading.parsing);
    if global.json {
        return print_json(&json::Demo {
            network,
            height: written.height,
            bestblock: reading.tip,
            blocks: reading.blocks,
            bytes: reading.bytes,
            transactions: reading.transactions,
            txouts: counted.txouts,
            hash_serialized_3: counted.hash.map(shown_hash),
            sim_mb_per_s: sim_rate,
            parse_mb_per_s: parse_rate,
            sync_mb_per_s: sync_rate,
        });
    }
    print_summary(&reading, &counted, &Rates { parse: parse_rate, sync: sync_rate });
    Ok(())
}

/// Megabytes a second.
struct Rates {
    parse: f64,
    sync: f64,
}

fn read_back(folder: &Path, network: Network, blocks: u64) -> Result<Reading> {
    let mut progress = Progress::start("read back", blocks);
    let mut reading = Reading {
        tip: BlockHash::from_bytes([0; 32]),
        blocks: 0,
        bytes: 0,
        transactions: 0,
        parsing: Duration::ZERO,
        stats: Stats::default(),
    };
    let mut meter = Meter::new(network, WARM_UP);
    for number in 0.. {
        let path = folder.join(format!("blk{number:05}.dat"));
        if !path.exists() {
            break;
        }
        let file = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for record in Records::new(&file, network.disk_magic()) {
            read_block(record.block, network, &mut reading)
                .with_context(|| format!("{}, offset {}", path.display(), record.offset))?;
            meter.add(record.block)?;
            progress.set(reading.blocks, reading.bytes);
        }
    }
    progress.finish(reading.bytes);
    reading.stats = meter.stats().clone();
    Ok(reading)
}

fn read_block(bytes: &[u8], network: Network, reading: &mut Reading) -> Result<()> {
    let started = Instant::now();
    let block = Block::parse(bytes, network.format())?;
    let merkle_root = block.merkle_tree().root;
    reading.parsing += started.elapsed();

    let header = block.header();
    ensure!(merkle_root == header.merkle_root(), "the merkle root is wrong");
    ensure!(header.previous() == reading.tip, "the block does not follow the one before it");
    reading.tip = block.hash();
    reading.blocks += 1;
    reading.bytes += bytes.len() as u64;
    reading.transactions += block.txs().len() as u64;
    Ok(())
}

/// Compares the tip, the branches and the set with those of the simulator's model.
fn check(snapshot: &Snapshot, counted: &Statistics, path: &Path) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let expected: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    let said = |field: &str| expected.get(field).and_then(Value::as_str).unwrap_or_default();
    let tip = snapshot.tip().hash.to_string();
    if said("tip") != tip {
        bail!("synced to the tip {tip}, but {} says {}", path.display(), said("tip"));
    }
    let tips = expected.get("chaintips").and_then(Value::as_array).map_or(0, Vec::len);
    let found = snapshot.chain_tips().len();
    if found != tips {
        bail!("found {found} branches, but {} says {tips}", path.display());
    }
    let hash = counted.hash.map(shown_hash).unwrap_or_default();
    let model = said("hash_serialized_3");
    if model != hash {
        bail!("the unspent set has the hash {hash}, but {} says {model}", path.display());
    }
    Ok(())
}

fn print_summary(reading: &Reading, counted: &Statistics, rates: &Rates) {
    let stats = &reading.stats;
    println!();
    println!("  tip        {}", reading.tip);
    println!("  chain      {} blocks, {} transactions", reading.blocks, reading.transactions);
    println!("  parsed     {:.0} MB/s with every txid and merkle root, one thread", rates.parse);
    println!("  synced     {:.0} MB/s, checked, stored and archived", rates.sync);
    println!("  unspent    {} outputs, as the simulator's own model says:", counted.txouts);
    println!("             {}", counted.hash.map(shown_hash).unwrap_or_default());
    if stats.transactions == 0 {
        println!("  (too short for figures: try more than {WARM_UP} blocks)");
        return;
    }
    println!("  a block    {} transactions", stats.transactions / stats.blocks.max(1));
    println!(
        "  each       {} inputs, {} outputs, {} bytes",
        average(stats.inputs, stats.transactions),
        average(stats.outputs, stats.transactions),
        stats.transaction_bytes / stats.transactions,
    );
    let mut classes: Vec<_> = stats.classes.iter().collect();
    classes.sort_by_key(|&(class, count)| (Reverse(*count), *class));
    let mix: Vec<String> = classes
        .iter()
        .map(|&(class, &count)| format!("{class} {}", percent(count, stats.outputs)))
        .collect();
    println!("  outputs    {}", mix.join(", "));
    let [same_block, young, older] = stats.ages;
    println!(
        "  spent      {} in their own block, {} within 144 blocks, {} later",
        percent(same_block, stats.inputs),
        percent(young, stats.inputs),
        percent(older, stats.inputs),
    );
}

/// A quotient with two decimals.
fn average(sum: u64, count: u64) -> String {
    let hundredths = sum * 100 / count.max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A share in percent with one decimal.
fn percent(part: u64, whole: u64) -> String {
    let tenths = part * 1000 / whole.max(1);
    format!("{}.{}%", tenths / 10, tenths % 10)
}
