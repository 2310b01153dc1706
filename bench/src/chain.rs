//! `chain`: a whole node syncs a simulated chain, against a real node, and then answers queries.
//!
//! 1. The chain is made once ([`simulated`]).
//! 2. Ours syncs it twice ([`sync`]) and the real node connects it ([`peer`]); the second half of
//!    each run is timed. All must reach the same tip, and ours the set that the simulator's model
//!    expects.
//! 3. On what ours has built, sizes and lookups are measured ([`lookups`]).
//! 4. One of ours is killed and opens again ([`recovery`]); one meets branches ([`reorg`]).
//! 5. Everything is printed, missed bars of speed with a profile of what limits them.
//!
//! Every side is a separate process, bound to two processors. A run that others disturbed is
//! marked and done again, once; the less disturbed one counts.

mod bars;
pub(crate) mod child;
mod lookups;
pub(crate) mod node;
mod padding;
pub(crate) mod peer;
mod recovery;
pub(crate) mod reorg;
pub(crate) mod simulated;
pub(crate) mod sync;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use varve_bench::figures::Figures;
use varve_bench::profile::{self, Part};
use varve_node::{Limits, Verify};

use crate::Effort;
use peer::{Peer, Took};
use recovery::KILL;
use simulated::Simulated;

pub(crate) use child::run as run_child;

/// Processors that every side has.
pub(crate) const PROCESSORS: usize = 2;
/// Percentage of signed inputs: scripts are not checked here.
const SIGNED: u32 = 5;
/// The part a function belongs to, by words in its name; the first match wins.
const PARTS: [Part; 8] = [
    ("hashes", &["sha256", "Sha256"]),
    ("unspent set", &["varve_utxo", "hashbrown"]),
    ("archive", &["varve_archive", "siphasher"]),
    ("block store", &["varve_blocks", "crc32c", "varve_io"]),
    ("rules", &["varve_consensus", "varve_node"]),
    ("parsing", &["varve_types"]),
    ("memory", &["mi_", "alloc", "memmove", "memcpy", "memset", "clear_page", "fault"]),
    ("disk and waiting", &["copy_", "ext4", "blk", "sync", "write", "read", "futex", "sched"]),
];

/// How large everything is.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Blocks of the chain.
    blocks: u32,
    /// Blocks of the chain with branches.
    reorg_blocks: u32,
}

impl Size {
    const fn of(effort: Effort) -> Self {
        match effort {
            Effort::Default => Self { blocks: 420, reorg_blocks: 130 },
            Effort::Full => Self { blocks: 1_650, reorg_blocks: 420 },
        }
    }
}

/// Everything that was measured.
#[derive(Debug)]
struct Results {
    varve: Figures,
    peer: Option<Took>,
    recovered: Figures,
    reorg: Figures,
}

/// Runs the benchmark.
pub(crate) fn run(effort: Effort) -> Result<()> {
    bind()?;
    let exe = std::env::current_exe()?;
    let target = exe.parent().and_then(Path::parent).context("the program has no folder")?;
    let size = Size::of(effort);
    let chain = Simulated::provide(target, size.blocks, SIGNED)?;
    println!(
        "{} blocks, {:.2} GB; the upper half of the blocks timed, {PROCESSORS} processors",
        chain.height,
        chain.bytes as f64 / 1e9
    );
    let scratch = tempfile::Builder::new().prefix("bench-chain-").tempdir_in(target)?;
    let stage = Stage { chain, folder: scratch.path().to_owned() };
    let results = stage.measure(size)?;
    let bars = bars::of(&results)?;
    if bars.iter().any(|bar| bars::is_of_speed(bar) && !bar.is_met())
        && let Err(error) = stage.print_profile()
    {
        println!("no profile: {error:#}");
    }
    bars.iter().for_each(varve_bench::ratio::Ratio::print);
    Ok(())
}

/// Binds this process and its children to the first processors.
pub(crate) fn bind() -> Result<()> {
    let mut set = CpuSet::new();
    (0..PROCESSORS).for_each(|processor| set.set(processor));
    sched_setaffinity(None, &set).context("the machine does not have two processors for us")
}

/// The chain, and where files go.
#[derive(Debug)]
struct Stage {
    chain: Simulated,
    folder: PathBuf,
}

impl Stage {
    fn measure(&self, size: Size) -> Result<Results> {
        bars::print_head();
        let varve = self.race()?;
        let peer = self.peer()?;
        let again = self.race()?;
        let faster = again.number("seconds")? < varve.number("seconds")?;
        let varve = if faster { again } else { varve };
        let recovered = self.recover()?;
        let folder = self.folder.join("reorg");
        let words = [folder.clone().into(), size.reorg_blocks.to_string().into()];
        let reorg = child::start("reorg", &words, None)?;
        fs::remove_dir_all(folder)?;
        Ok(Results { varve, peer, recovered, reorg })
    }

    /// Ours, again when it was disturbed.
    fn race(&self) -> Result<Figures> {
        let figures = self.sync(None)?;
        bars::print_side("varve", &figures)?;
        if figures.number("disturbed")? == 0.0 {
            return Ok(figures);
        }
        let again = self.sync(None)?;
        bars::print_side("varve", &again)?;
        let better = again.number("others")? < figures.number("others")?;
        Ok(if better { again } else { figures })
    }

    fn sync(&self, profile: Option<&Path>) -> Result<Figures> {
        let data = self.folder.join("data");
        let half = self.chain.half().to_string();
        let mut words: Vec<OsString> =
            vec![self.chain.folder.clone().into(), data.clone().into(), half.into()];
        words.extend(profile.map(OsString::from));
        let figures = child::start("sync", &words, None);
        fs::remove_dir_all(&data)?;
        let figures = figures?;
        self.check(&figures)?;
        Ok(figures)
    }

    /// The tip and the set are those of the simulator's model.
    fn check(&self, figures: &Figures) -> Result<()> {
        let Simulated { tip, muhash, .. } = &self.chain;
        ensure!(figures.text("tip")? == tip, "our tip is not {tip}");
        ensure!(figures.text("muhash")? == muhash, "our set does not have the hash {muhash}");
        Ok(())
    }

    /// The real node, where there is one; again when it was disturbed.
    fn peer(&self) -> Result<Option<Took>> {
        let Some(peer) = Peer::find() else {
            println!("no bitcoind: `cargo xtask node` provides one, or set BITCOIND_EXE");
            return Ok(None);
        };
        println!("the real node is: {}", peer.name);
        let folder = self.folder.join("bitcoind");
        peer.prepare(&self.chain, &folder)?;
        let mut took = peer.run(&self.chain, &folder, Verify::Spends)?;
        bars::print_peer(&took);
        if took.measured.is_disturbed() {
            let again = peer.run(&self.chain, &folder, Verify::Spends)?;
            bars::print_peer(&again);
            if again.measured.others() < took.measured.others() {
                took = again;
            }
        }
        fs::remove_dir_all(folder)?;
        Ok(Some(took))
    }

    /// Kills one of ours when it has the most unsaved work, and opens it again.
    fn recover(&self) -> Result<Figures> {
        let (chain, data) = (self.chain.folder.clone(), self.folder.join("killed"));
        // Just before a checkpoint is due; in a short chain, before its end.
        let lag = Limits::default().lag;
        let bytes = (lag - lag / 16).min(self.chain.bytes * 2 / 5);
        let words: [OsString; 4] = [
            chain.clone().into(),
            data.clone().into(),
            self.chain.half().to_string().into(),
            bytes.to_string().into(),
        ];
        child::start("killed", &words, Some(KILL))?;
        let recovered = child::start("recover", &[chain.into(), data.clone().into()], None)?;
        fs::remove_dir_all(data)?;
        self.check(&recovered)?;
        Ok(recovered)
    }

    fn print_profile(&self) -> Result<()> {
        let file = self.folder.join("perf.data");
        self.sync(Some(&file))?;
        println!("\nwhere the time of our sync goes:");
        profile::print(&file, &PARTS)
    }
}
