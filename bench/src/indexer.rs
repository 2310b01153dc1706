//! `indexer`: a node with the indexes of a wallet server syncs a simulated chain, and answers.
//!
//! 1. A child syncs the chain with the indexes `script`, `filter` and `stats` (spenders are always
//!    indexed), the second half by the clock (`indexer.mb_per_s`). The last blocks come one by one,
//!    each timed until a question about a script that it pays is answered (`indexer.visible`).
//! 2. Then the files are measured (`indexer.bytes`), and the newest ten transactions of scripts
//!    with about ten are asked for (`indexer.history10`).
//! 3. A second child makes a script of a million transactions and asks for its first page and its
//!    balance ([`busy`]).
//! 4. A third meets branches six blocks deep, with all these indexes (`indexer.reorg6`).
//!
//! Every side is a separate process, bound to two processors. What an electrs of the same node
//! would take is not measured here: it needs a build of its own.

pub(crate) mod busy;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use varve_archive::search::Order;
use varve_bench::clock::Clock;
use varve_bench::figures::Figures;
use varve_bench::ratio::Ratio;
use varve_node::{Organizer, Report, ScriptPage, Scripts};
use varve_testdata::Random;
use varve_types::{Block, Height, ScriptHash};

use crate::Effort;
use crate::chain::node::{NETWORK, open_with, sync};
use crate::chain::reorg::{push_bytes, take};
use crate::chain::simulated::{Simulated, folder_bytes};
use crate::chain::{PROCESSORS, bind, child, sync as chain_sync};

/// The indexes beside those that every node has.
pub(crate) const INDEXES: &str = "filter,script,stats";
/// Signed inputs in a hundred: nobody looks at scripts here.
const SIGNED: u32 = 5;
/// Blocks at the end that come one by one.
const LAST: u32 = 12;
/// Scripts that are asked for.
const PROBES: usize = 20_000;
/// Files of the archive that say where a transaction is and who spends its outputs.
const TABLES: [&str; 5] = ["block", "block_tx", "tx_len", "tx", "spend"];

/// Runs the benchmark.
pub(crate) fn run(effort: Effort) -> Result<()> {
    bind()?;
    let exe = std::env::current_exe()?;
    let target = exe.parent().and_then(Path::parent).context("the program has no folder")?;
    let (blocks, reorg_blocks, busy) = match effort {
        Effort::Default => (420, 130, 100_000),
        Effort::Full => (1_650, 420, 1_000_000),
    };
    let chain = Simulated::provide(target, blocks, SIGNED)?;
    println!(
        "{} blocks, {:.2} GB; the upper half of the blocks by the clock, {PROCESSORS} processors",
        chain.height,
        chain.bytes as f64 / 1e9
    );
    let scratch = tempfile::Builder::new().prefix("bench-indexer-").tempdir_in(target)?;
    let path = |name: &str| scratch.path().join(name).into_os_string();
    let word = |number: u32| OsString::from(number.to_string());
    let words = [
        chain.folder.clone().into_os_string(),
        path("sync"),
        word(chain.half()),
        word(chain.height),
    ];
    let synced = child::start("indexer", &words, None)?;
    ensure!(synced.text("tip")? == chain.tip, "the chain was not synced to its end");
    fs::remove_dir_all(path("sync"))?;
    let busy = child::start("indexer-busy", &[path("busy"), word(busy)], None)?;
    fs::remove_dir_all(path("busy"))?;
    let reorg = child::start("indexer-reorg", &[path("reorg"), word(reorg_blocks)], None)?;
    println!("indexer.electrs is not measured: no electrs is built here");
    for bar in bars(&synced, &busy, &reorg)? {
        bar.print();
    }
    Ok(())
}

fn bars(synced: &Figures, busy: &Figures, reorg: &Figures) -> Result<Vec<Ratio>> {
    let rate = synced.number("bytes")? / synced.number("seconds")? / 1e6;
    let bytes = synced.number("index_bytes")? / synced.number("transactions")?;
    println!(
        "{rate:.1} MB/s{}; {bytes:.1} bytes a transaction: {:.1} of them script history",
        if synced.number("disturbed")? == 0.0 { "" } else { " (disturbed)" },
        synced.number("history_bytes")? / synced.number("transactions")?,
    );
    println!(
        "newest ten of a script: {:.0} µs, {:.0} µs in the slowest hundredth ({} scripts)",
        synced.number("history_median")? * 1e6,
        synced.number("history_p99")? * 1e6,
        synced.text("history_probes")?,
    );
    println!(
        "a block of {} transactions: {:.0} ms until it answers",
        synced.text("visible_txs")?,
        synced.number("visible")? * 1e3
    );
    println!(
        "a script of {} transactions: first page {:.2} ms, balance {:.3} ms",
        busy.text("busy_txs")?,
        busy.number("busy_page")? * 1e3,
        busy.number("busy_balance")? * 1e3
    );
    println!("the slowest of {} reorganisations", reorg.text("reorgs")?);
    Ok(vec![
        Ratio::at_least("indexer.mb_per_s", rate, 100.0),
        Ratio::at_most("indexer.bytes", bytes, 55.0),
        Ratio::at_most("indexer.history10", synced.number("history_p99")?, 0.001),
        Ratio::at_most("indexer.busy", busy.number("busy_page")?, 0.005),
        Ratio::at_most("indexer.busy_balance", busy.number("busy_balance")?, 0.001),
        Ratio::at_most("indexer.visible", synced.number("visible")?, 0.1),
        Ratio::at_most("indexer.reorg6", reorg.number("reorg6")?, 0.3),
    ])
}

/// Runs a child: `CHAIN DATA HALF HEIGHT`.
pub(crate) fn be_synced(words: &[OsString]) -> Result<()> {
    let [chain, data, half, height] = words else { bail!("indexer wants CHAIN DATA HALF HEIGHT") };
    let number = |word: &OsString| word.to_str().and_then(|word| word.parse::<u32>().ok());
    let (half, height) = number(half).zip(number(height)).context("no heights")?;
    let (chain, data) = (Path::new(chain), Path::new(data));
    let mut node = open_with(data, INDEXES)?;
    sync(&mut node, chain, Some(half), &mut |_| ())?;
    let (mut clock, mut bytes) = (Clock::new(), 0);
    clock.start();
    sync(&mut node, chain, Some(height - LAST), &mut |report| {
        if let Report::Connected { bytes: size, .. } = report {
            bytes += size;
        }
    })?;
    clock.stop();
    chain_sync::report(&clock.measured());
    Figures::report("bytes", bytes);
    tell_visible(&mut node, chain)?;
    Figures::report("tip", node.snapshot().tip.1);
    tell_histories(&node)?;
    let transactions = node.snapshot().archive.bounds().txs;
    drop(node);
    tell_sizes(data, transactions)
}

/// Takes the last blocks one by one. Reports `visible`, the slowest in seconds from its bytes to an
/// answer about a script that it pays, of the blocks with the most transactions, and their number.
fn tell_visible(node: &mut Organizer, chain: &Path) -> Result<()> {
    let blocks = last_blocks(node, chain)?;
    ensure!(!blocks.is_empty(), "the chain has no more blocks");
    let mut most = (0, Duration::ZERO);
    for bytes in blocks {
        let block = Block::parse(&bytes, NETWORK.format())?;
        let (count, hash) = (block.txs().len(), block.hash());
        let output = block.txs().last().and_then(|tx| tx.outputs().next()).context("no output")?;
        let (script, mut piece) = (ScriptHash::of(output.script), Vec::new());
        push_bytes(&bytes, &mut piece)?;
        let took = take(node, &mut piece)?;
        ensure!(node.snapshot().tip.1 == hash, "the block did not become the tip");
        let start = Instant::now();
        newest_ten(&node.snapshot().script_histories()?, &script)?;
        let took = took + start.elapsed();
        if count > most.0 || (count == most.0 && took > most.1) {
            most = (count, took);
        }
    }
    Figures::report("visible", most.1.as_secs_f64());
    Figures::report("visible_txs", most.0);
    Ok(())
}

/// The blocks of the chain's files that the node lacks, in order: few, at the end of the last.
fn last_blocks(node: &Organizer, chain: &Path) -> Result<Vec<Vec<u8>>> {
    let mut files: Vec<_> = fs::read_dir(chain.join("blocks"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut blocks = Vec::new();
    for file in files.iter().rev().take(2).rev() {
        let bytes = fs::read(file.path())?;
        let mut rest = bytes.as_slice();
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let [_, _, _, _, len @ ..] = *head;
            let len = u32::from_le_bytes(len) as usize;
            let Some(block) = after.get(..len).filter(|block| block.len() > 80) else { break };
            let hash = Block::parse(block, NETWORK.format())?.hash();
            if node.snapshot().archive.to_header(hash)?.is_none() {
                blocks.push(block.to_vec());
            }
            rest = after.get(len..).unwrap_or_default();
        }
    }
    Ok(blocks)
}

fn newest_ten(scripts: &Scripts, script: &ScriptHash) -> Result<usize> {
    let page = ScriptPage { order: Order::Descending, cursor: None, limit: 10 };
    Ok(scripts.history(script, None, page)?.txs.len())
}

/// Reports how long the newest ten transactions of scripts with 8 to 12 of them take, warm.
fn tell_histories(node: &Organizer) -> Result<()> {
    let snapshot = node.snapshot();
    let (view, scripts) = (snapshot.view(), snapshot.script_histories()?);
    let mut probes = Vec::new();
    for height in (1..=snapshot.tip.0.to_u32()).rev() {
        let link = view.to_confirmed(Height::new(height)).context("a gap")?;
        let bytes = view.raw_block(link)?.context("a block has no bytes")?;
        let block = Block::parse(&bytes, NETWORK.format())?;
        for tx in block.txs().iter().step_by(7) {
            let Some(output) = tx.outputs().next() else { continue };
            let script = ScriptHash::of(output.script);
            if (8..=12).contains(&scripts.sums(&script, None)?.txs) {
                probes.push(script);
            }
        }
        if probes.len() >= PROBES {
            break;
        }
    }
    ensure!(!probes.is_empty(), "no script has about ten transactions");
    Random::new(7).shuffle(&mut probes);
    for script in &probes {
        newest_ten(&scripts, script)?;
    }
    let mut times = Vec::with_capacity(probes.len());
    for script in &probes {
        let start = Instant::now();
        std::hint::black_box(newest_ten(&scripts, script)?);
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    Figures::report("history_median", at(50));
    Figures::report("history_p99", at(99));
    Figures::report("history_probes", times.len());
    Ok(())
}

/// Reports `transactions`, `index_bytes` (txid, place, spender and script history) and
/// `history_bytes`, of a folder at rest.
fn tell_sizes(data: &Path, transactions: u64) -> Result<()> {
    let archive = varve_io::Disk::open(&data.join("archive"))?;
    let tables = TABLES.iter().map(|table| varve_archive::table_bytes(&archive, table));
    let tables = tables.sum::<Result<u64, _>>()?;
    let history = folder_bytes(&data.join("script-history"))?;
    Figures::report("transactions", transactions);
    Figures::report("index_bytes", tables + history);
    Figures::report("history_bytes", history);
    Ok(())
}
