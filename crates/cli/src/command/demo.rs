//! `varve demo`: makes a chain, syncs it, checks it, serves it, and goes on mining.
//!
//! 1. Simulate a chain that looks like today's main chain, and write it as block files.
//! 2. Read the files back, parse every transaction, hash it, and check every merkle root and that
//!    each block follows the one before it (`reading`).
//! 3. Sync a node from the files, with all indexes: every block is checked, stored, archived and
//!    joined to the unspent set, and everything is made durable.
//! 4. Compare the tip, the tips of all branches and the set's hash with the answers the simulator's
//!    own model gave.
//! 5. Serve the node, and mine the chain on: blocks at an interval, transactions before them, a
//!    branch that overtakes another now and then (`miner`).
//! 6. Print where to look, until Ctrl-C. With `--once`, or when nobody looks (standard output is no
//!    terminal): ask the servers for what was mined (`questions`), print a summary, and end.

mod miner;
mod questions;
mod reading;
mod summary;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;
use varve::{Node, SetHash, Snapshot, Source, Statistics, shown_hash};
use varve_server::json;
use varve_server::serve::{Listeners, ServeError, ServeOptions, Server};
use varve_sim::{Chain, Config, Profile, Summary};

use self::miner::Miner;
use self::questions::Asked;
use self::reading::{Reading, read_back};
use crate::args::{ChainOptions, Demo, Global};
use crate::command::serve::{MakeSource, Running, all_indexes};
use crate::command::{sim, sync, utxo};
use crate::data_dir::DataDir;
use crate::output::print_json;
use crate::progress::megabytes_per_second;
use crate::signals::stop_on_signals;

/// Blocks at the start that hold too few transactions to be like the chain they grow into.
const WARM_UP: u32 = 120;
/// Blocks of a branch that loses.
const REORG_DEPTH: u32 = 2;
/// The interval between blocks when nobody looks.
const HURRY: Duration = Duration::from_millis(150);
/// How long a demo that nobody looks at may wait for its own blocks.
const PATIENCE: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(20);

/// Megabytes a second.
struct Rates {
    sim: f64,
    parse: f64,
    sync: f64,
}

/// Runs the command.
pub(crate) fn run(args: &Demo, global: &Global) -> Result<()> {
    let once = args.once || global.json || !io::stdout().is_terminal();
    let temporary;
    let folder = match &args.keep {
        Some(folder) => folder.as_path(),
        None => {
            temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
            temporary.path()
        }
    };
    let config = Config::new(Profile::Mainnet, args.blocks, args.seed);
    let root = folder.join("data");
    let data = DataDir::at(&root, config.network(), global.memory);
    data.builder().check_free()?;
    let listeners = bind(args, once)?;
    let (written, chain, sim_rate) = sim::begin(&config, folder)?;
    let reading = read_back(&folder.join("blocks"), config.network(), written.blocks)?;
    let node = data.builder().indexes(all_indexes()).open_or_create()?;
    let started = Instant::now();
    sync::show(node.sync(Source::folder(folder)), &node, false)?;
    let sync_rate = megabytes_per_second(reading.bytes, started.elapsed());
    let snapshot = node.snapshot();
    let counted = utxo::statistics(&snapshot.unspent()?, SetHash::HashSerialized3)?;
    check(&snapshot, &counted, &folder.join("expected.json"))?;
    drop((snapshot, node));
    let parse = megabytes_per_second(reading.bytes, reading.parsing);
    let rates = Rates { sim: sim_rate, parse, sync: sync_rate };
    if !global.json {
        summary::print(&reading, &counted, &rates);
    }
    // A folder that is kept stays what was checked, unless somebody looks on.
    let copy = (once && args.keep.is_some()).then(|| copy_of(&root)).transpose()?;
    let root = copy.as_ref().map_or(root.as_path(), TempDir::path);
    let node = DataDir::at(root, config.network(), global.memory).open_node()?;
    let asked = live(args, &node, (listeners, chain, once))?;
    drop(node);
    if let Some(asked) = asked {
        return report(&asked, (&written, &reading, &counted, &rates), global);
    }
    Ok(())
}

/// A copy of a folder, until it is dropped.
fn copy_of(folder: &Path) -> Result<TempDir> {
    let copy = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut folders = vec![(folder.to_owned(), copy.path().to_owned())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let (entry, to) = (entry?, to.clone());
            let to = to.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => folders.push((entry.path(), to)),
                false => drop(fs::copy(entry.path(), to)?),
            }
        }
    }
    Ok(copy)
}

/// Takes the ports. A demo that nobody looks at takes any, and others when the usual ones are in
/// use.
fn bind(args: &Demo, once: bool) -> Result<Listeners> {
    let places = |http, electrum| [(Server::Http, Some(http)), (Server::Electrum, Some(electrum))];
    let any = || Listeners::bind(places("127.0.0.1:0", "127.0.0.1:0"));
    match (args.http.as_deref(), args.electrum.as_deref()) {
        (None, None) if once => Ok(any()?),
        (None, None) => match Listeners::bind(places("127.0.0.1:3000", "127.0.0.1:50001")) {
            Err(ServeError::Bind { .. }) => Ok(any()?),
            bound => Ok(bound?),
        },
        (http, electrum) => {
            let (http, electrum) =
                (http.unwrap_or("127.0.0.1:0"), electrum.unwrap_or("127.0.0.1:0"));
            Ok(Listeners::bind(places(http, electrum))?)
        }
    }
}

/// Serves and mines until a signal comes, or until the servers were asked.
fn live(
    args: &Demo,
    node: &Node,
    (listeners, mut chain, once): (Listeners, Chain, bool),
) -> Result<Option<Asked>> {
    chain.continue_with_reorgs(REORG_DEPTH)?;
    let tip = node.snapshot().tip();
    let mut miner = Miner::new(node.network(), (tip.hash, tip.height.to_u32()));
    let sources: Box<MakeSource> = Box::new(miner.sources());
    let source = (ChainOptions::default(), sources);
    let running = Running::start_from(node, listeners, ServeOptions::default(), source)?;
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    let hot = chain.hot_scripts();
    miner.start(chain, if once { HURRY } else { Duration::from_secs(args.interval.into()) })?;
    if !once {
        print_places(&running, node, args.interval);
    }
    let begin = Instant::now();
    let mut asked = Ok(None);
    while !stop.load(Ordering::Relaxed) {
        running.follower.tick();
        thread::sleep(TICK);
        if once && questions::is_time(node, &miner.mined()) {
            asked = questions::ask(&running, node, (&miner.mined(), &hot));
            // A block may have come between a question and its answer.
            match &asked {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => break,
            }
        }
        if once && begin.elapsed() > PATIENCE {
            asked =
                Err(anyhow::anyhow!("the servers are not where the miner is; please report it"));
            break;
        }
    }
    miner.stop();
    running.stop();
    asked
}

fn print_places(running: &Running, node: &Node, interval: u32) {
    println!();
    if let Some(http) = running.address(Server::Http) {
        println!("  explorer   http://{http}/");
        println!("  REST       http://{http}/api/blocks/tip/height   docs at /api/docs");
        println!("  metrics    http://{http}/metrics");
    }
    if let Some(electrum) = running.address(Server::Electrum) {
        println!(
            "  Electrum   {electrum}:t   electrum --regtest --oneserver --server {electrum}:t"
        );
    }
    let path = node.path().display();
    println!("  command    varve status --network {} --datadir {path}", node.network());
    println!();
    println!("  a block every {interval} s, a reorganisation now and then; Ctrl-C ends it");
}

/// Prints the answer of a demo that ended by itself.
fn report(
    asked: &Asked,
    (written, reading, counted, rates): (&Summary, &Reading, &Statistics, &Rates),
    global: &Global,
) -> Result<()> {
    if global.json {
        return print_json(&json::Demo {
            network: Config::new(Profile::Mainnet, 0, 0).network(),
            height: written.height,
            bestblock: reading.tip,
            blocks: reading.blocks,
            bytes: reading.bytes,
            transactions: reading.transactions,
            txouts: counted.txouts,
            hash_serialized_3: counted.hash.map(shown_hash),
            sim_mb_per_s: rates.sim,
            parse_mb_per_s: rates.parse,
            sync_mb_per_s: rates.sync,
            live: json::DemoLive {
                height: asked.mined.height,
                bestblock: asked.mined.tip,
                blocks: asked.mined.blocks,
                reorgs: asked.mined.reorgs,
                mempool_transactions: asked.mined.transactions,
                answers: asked.answers,
            },
        });
    }
    let mined = &asked.mined;
    println!("  mined      {} blocks live, up to height {}", mined.blocks, mined.height);
    println!(
        "             {} reorganisations, {} transactions ahead of their blocks",
        mined.reorgs, mined.transactions
    );
    println!("  served     {} answers by HTTP and Electrum are those of the node", asked.answers);
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
