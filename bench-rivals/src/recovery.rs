//! Reopening after a clean close, after a kill, and rewinding.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use varve_bench::clock::Clock;
use varve_bench::figures::Figures;

use crate::race::{connect, height_of};
use crate::side::Side as _;
use crate::varve::{Setting, Varve};
use crate::work::Work;

/// What a child prints when it may be killed.
pub(crate) const KILL: &str = "ready to be killed";
/// Blocks that the long rewind goes back.
const FAR: u32 = 500;
/// Blocks that the short rewind goes back.
const NEAR: u32 = 6;

/// Reports `reopen`: the seconds to open a set that was closed.
pub(crate) fn reopen(varve: Varve) -> Result<Varve> {
    let start = Instant::now();
    let varve = varve.reopen()?;
    Figures::report("reopen", start.elapsed().as_secs_f64());
    Ok(varve)
}

/// Reports `rewind6` and `rewind500`: the seconds to disconnect 6 and 500 blocks.
pub(crate) fn rewind(varve: &mut Varve) -> Result<()> {
    let set = varve.set_mut();
    let (tip, _) = set.tip().context("the set has no tip")?;
    let below = |depth| tip.checked_sub(depth).context("the chain is too short to rewind");
    let start = Instant::now();
    set.rewind_to(below(NEAR)?)?;
    Figures::report("rewind6", start.elapsed().as_secs_f64());
    set.rewind_to(below(FAR)?)?;
    Figures::report("rewind500", start.elapsed().as_secs_f64());
    Ok(())
}

/// Loads the stock, connects `blocks` blocks, and waits to be killed.
pub(crate) fn be_killed<R: Read>(
    folder: &Path,
    setting: Setting,
    work: &mut Work<R>,
    blocks: u32,
) -> Result<()> {
    let mut varve = Varve::open(folder, setting)?;
    varve.load(&mut work.snapshot()?)?;
    ensure!(work.count()? >= blocks, "the work has fewer blocks than that");
    connect(&mut varve, work, 0..blocks, &mut Clock::new())?;
    println!("{KILL}");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Reports `crash_reopen`, the seconds to open the set and to reconnect the blocks lost by the
/// kill, and `replayed`, how many blocks that were. Reading and parsing them is not counted.
pub(crate) fn recover<R: Read>(
    folder: &Path,
    setting: Setting,
    work: &mut Work<R>,
    blocks: u32,
) -> Result<()> {
    work.skip_snapshot()?;
    work.count()?;
    let start = Instant::now();
    let mut varve = Varve::open(folder, setting)?;
    let mut took = start.elapsed();
    Figures::report("crash_open", took.as_secs_f64());
    let (tip, _) = varve.set().tip().context("the set has no tip")?;
    let first = (0..blocks).find(|number| height_of(*number) > tip).unwrap_or(blocks);
    for _ in 0..first {
        work.block()?;
    }
    let mut clock = Clock::new();
    connect(&mut varve, work, first..blocks, &mut clock)?;
    took += Duration::from_secs_f64(clock.measured().wall);
    let replayed = blocks - first;
    Figures::report("crash_reopen", took.as_secs_f64());
    Figures::report("replayed", replayed);
    varve.sync()?;
    Figures::report("set", varve.digest()?);
    Ok(())
}
