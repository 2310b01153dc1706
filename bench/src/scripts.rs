//! `scripts`: every script of a chain is checked, against a real node.
//!
//! 1. A chain of which every input is signed is made once ([`Simulated`]). Ours syncs it with
//!    `--verify scripts` and the real node connects it with `-assumevalid=0 -par=2`, in turns. The
//!    upper half of the blocks is timed, which holds all transactions. All must reach the same tip,
//!    and ours the set that the simulator's model expects.
//! 2. Ours connects a block with one transaction of as many inputs as fit, of four kinds, in the
//!    middle of a sync ([`many_inputs`]).
//!
//! The rules for children, processors and disturbed runs are those of [`crate::chain`].

mod many_inputs;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use varve_bench::clock::Clock;
use varve_bench::figures::Figures;
use varve_bench::profile::{self, Part, Profiler};
use varve_bench::ratio::Ratio;
use varve_node::Verify;

use crate::Effort;
use crate::chain::node::{open, report_set, sync_scripts};
use crate::chain::peer::{Peer, Took};
use crate::chain::simulated::Simulated;
use crate::chain::sync::report;
use crate::chain::{PROCESSORS, bind, child};
use many_inputs::Kind;

/// Blocks of the chain. The first hundred have nothing but a coinbase.
const fn blocks(effort: Effort) -> u32 {
    match effort {
        Effort::Default => 200,
        Effort::Full => 420,
    }
}

/// The part a function belongs to, by words in its name; the first match wins.
const PARTS: [Part; 6] = [
    ("signatures", &["secp256k1"]),
    ("hashes", &["sha256", "Sha256", "SHA256", "ripemd160", "RIPEMD"]),
    ("interpreter", &["varve_core", "varve_transaction"]),
    ("unspent set", &["varve_utxo", "hashbrown"]),
    ("rest of ours", &["varve_"]),
    ("memory", &["mi_", "malloc", "free", "operator", "memmove", "memcpy", "memset", "fault"]),
];

/// Runs the benchmark.
pub(crate) fn run(effort: Effort) -> Result<()> {
    bind()?;
    let exe = std::env::current_exe()?;
    let target = exe.parent().and_then(Path::parent).context("the program has no folder")?;
    let scratch = tempfile::Builder::new().prefix("bench-scripts-").tempdir_in(target)?;
    let mut bars = vec![many(scratch.path())?];
    let chain = Simulated::provide(target, blocks(effort), 100)?;
    println!(
        "\n{} blocks, {:.2} GB, every input signed; {PROCESSORS} processors",
        chain.height,
        chain.bytes as f64 / 1e9
    );
    let stage = Stage { chain, folder: scratch.path().to_owned() };
    match stage.race()? {
        Some(ratio) => {
            let bar = Ratio::at_least("scripts.core", ratio, 1.2);
            if !bar.is_met()
                && let Err(error) = stage.print_profile()
            {
                println!("no profile: {error:#}");
            }
            bars.push(bar);
        }
        None => println!("scripts.core is not measured: there is no bitcoind"),
    }
    bars.iter().for_each(Ratio::print);
    Ok(())
}

/// Blocks with one large transaction, of each kind.
fn many(folder: &Path) -> Result<Ratio> {
    println!(
        "{:14} {:>7} {:>9} {:>9} {:>8}",
        "one block of", "inputs", "seconds", "cpu s", "others"
    );
    let mut best = f64::INFINITY;
    // The kind of the bar three times; the others for comparison.
    for kind in [Kind::Wpkh, Kind::Taproot, Kind::Wpkh, Kind::Wsh, Kind::ShWpkh, Kind::Wpkh] {
        let data = folder.join("many");
        let words = [data.clone().into(), OsString::from(kind.name())];
        let figures = child::start("many", &words, None)?;
        fs::remove_dir_all(&data)?;
        let seconds = figures.number("seconds")?;
        println!(
            "{:14} {:7} {seconds:9.2} {:9.2} {:7.0}%{}",
            kind.name(),
            kind.inputs(),
            figures.number("cpu")?,
            figures.number("others")? * 100.0,
            disturbed(figures.number("disturbed")? != 0.0),
        );
        if kind == Kind::Wpkh {
            best = best.min(seconds);
        }
    }
    Ok(Ratio::at_most("scripts.many_inputs", best, 3.0))
}

const fn disturbed(yes: bool) -> &'static str {
    if yes { "  disturbed" } else { "" }
}

/// The chain, and where files go.
#[derive(Debug)]
struct Stage {
    chain: Simulated,
    folder: PathBuf,
}

impl Stage {
    /// The real node's time over ours.
    fn race(&self) -> Result<Option<f64>> {
        println!("{:14} {:>9} {:>9} {:>8}", "side", "seconds", "cpu s", "others");
        let first = self.ours()?;
        let Some(peer) = Peer::find() else { return Ok(None) };
        println!("the real node is: {}", peer.name);
        let folder = self.folder.join("bitcoind");
        peer.prepare(&self.chain, &folder)?;
        let mut theirs = Vec::new();
        let mut ours = vec![first];
        for _ in 0..2 {
            theirs.push(self.theirs(&peer, &folder)?);
            ours.push(self.ours()?);
        }
        fs::remove_dir_all(folder)?;
        let fastest = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Some(fastest(&theirs) / fastest(&ours)))
    }

    fn theirs(&self, peer: &Peer, folder: &Path) -> Result<f64> {
        let Took { measured, .. } = peer.run(&self.chain, folder, Verify::Scripts)?;
        println!(
            "{:14} {:9.2} {:9.2} {:7.0}%{}",
            "bitcoind",
            measured.wall,
            measured.cpu,
            measured.others() * 100.0,
            disturbed(measured.is_disturbed()),
        );
        Ok(measured.wall)
    }

    fn ours(&self) -> Result<f64> {
        let figures = self.sync(None)?;
        let seconds = figures.number("seconds")?;
        println!(
            "{:14} {seconds:9.2} {:9.2} {:7.0}%{}",
            "varve",
            figures.number("cpu")?,
            figures.number("others")? * 100.0,
            disturbed(figures.number("disturbed")? != 0.0),
        );
        Ok(seconds)
    }

    fn sync(&self, profile: Option<&Path>) -> Result<Figures> {
        let Simulated { folder, tip, muhash, .. } = &self.chain;
        let data = self.folder.join("data");
        let half = self.chain.half().to_string();
        let mut words: Vec<OsString> =
            vec![folder.clone().into(), data.clone().into(), half.into()];
        words.extend(profile.map(OsString::from));
        let figures = child::start("scripts", &words, None);
        fs::remove_dir_all(&data)?;
        let figures = figures?;
        ensure!(figures.text("tip")? == tip, "our tip is not {tip}");
        ensure!(figures.text("muhash")? == muhash, "our set does not have the hash {muhash}");
        Ok(figures)
    }

    fn print_profile(&self) -> Result<()> {
        let file = self.folder.join("perf.data");
        self.sync(Some(&file))?;
        println!("\nwhere the time of our sync goes:");
        profile::print(&file, &PARTS)
    }
}

/// Runs a child: `CHAIN DATA HALF [PROFILE]`.
pub(crate) fn be_synced(words: &[OsString]) -> Result<()> {
    let [chain, data, half, more @ ..] = words else { bail!("scripts wants CHAIN DATA HALF") };
    let (chain, data) = (Path::new(chain), Path::new(data));
    let half = half.to_str().and_then(|half| half.parse().ok()).context("no height")?;
    let mut node = open(data)?;
    sync_scripts(&mut node, chain, Some(half))?;
    let profiler = more.first().map(|file| Profiler::start(Path::new(file))).transpose()?;
    let mut clock = Clock::new();
    clock.start();
    sync_scripts(&mut node, chain, None)?;
    clock.stop();
    profiler.map_or(Ok(()), Profiler::stop)?;
    report(&clock.measured());
    report_set(&node)
}

/// Runs a child: `FOLDER KIND`.
pub(crate) fn be_many(words: &[OsString]) -> Result<()> {
    let [folder, kind] = words else { bail!("many wants FOLDER KIND") };
    let kind = kind.to_str().and_then(Kind::parse).context("no such kind")?;
    let folder = Path::new(folder);
    many_inputs::write(&folder.join("blocks"), kind)?;
    let mut node = open(&folder.join("data"))?;
    sync_scripts(&mut node, folder, Some(many_inputs::BELOW))?;
    let mut clock = Clock::new();
    clock.start();
    sync_scripts(&mut node, folder, None)?;
    clock.stop();
    let tip = node.snapshot().tip.0.to_u32();
    ensure!(tip == many_inputs::TOP, "the chain ends at {tip}, not at {}", many_inputs::TOP);
    report(&clock.measured());
    Ok(())
}
