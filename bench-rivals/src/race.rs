//! One side's part of the race, in a child.
//!
//! 1. The stock is loaded. Not timed.
//! 2. The warm-up blocks are connected, so that there are young coins. Not timed.
//! 3. The other blocks are connected, a batch at a time: a batch is read and prepared while the
//!    clock is stopped, and connected while it runs.
//! 4. Everything is made durable, timed.
//! 5. The digest of the whole set is taken. Not timed.

use std::io::Read;
use std::path::Path;

use anyhow::{Result, ensure};
use varve_bench::clock::{Clock, Measured};
use varve_bench::figures::Figures;
use varve_bench::profile::Profiler;
use varve_consensus::BlockAt;
use varve_types::{Block, Height};

use crate::digest::Found;
use crate::side::Side;
use crate::stock::{BASE_HEIGHT, NETWORK};
use crate::work::Work;

/// Blocks made ready at a time.
const BATCH: u32 = 16;

/// The parameters of a child's race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race<'a> {
    /// Blocks before the clock starts.
    pub(crate) warm_up: u32,
    /// Where a profile goes, when one is wanted.
    pub(crate) profile: Option<&'a Path>,
}

/// Runs the race and reports the figures. Leaves the work at its probes.
pub(crate) fn run<S: Side, R: Read>(
    side: &mut S,
    work: &mut Work<R>,
    Race { warm_up, profile }: Race<'_>,
) -> Result<()> {
    side.load(&mut work.snapshot()?)?;
    let blocks = work.count()?;
    ensure!(blocks >= warm_up, "the work has fewer blocks than the warm-up");
    let mut untimed = Clock::new();
    connect(side, work, 0..warm_up, &mut untimed)?;
    let profiler = profile.map(Profiler::start).transpose()?;
    let mut clock = Clock::new();
    let found = connect(side, work, warm_up..blocks, &mut clock)?;
    clock.start();
    side.sync()?;
    clock.stop();
    profiler.map_or(Ok(()), Profiler::stop)?;
    report(&clock.measured(), blocks - warm_up);
    Figures::report("found", found);
    let digest = side.digest()?;
    Figures::report("set", digest);
    Ok(())
}

/// Connects the blocks of a range, which counts from the first of the work.
pub(crate) fn connect<S: Side, R: Read>(
    side: &mut S,
    work: &mut Work<R>,
    range: std::ops::Range<u32>,
    clock: &mut Clock,
) -> Result<Found> {
    let mut found = Found::default();
    let mut next = range.start;
    while next < range.end {
        let count = BATCH.min(range.end - next);
        let bytes: Vec<Vec<u8>> = (0..count).map(|_| work.block()).collect::<Result<_>>()?;
        let parsed: Vec<Block<'_>> = bytes
            .iter()
            .map(|bytes| Block::parse(bytes, NETWORK.format()))
            .collect::<Result<_, _>>()?;
        let ready: Vec<S::Ready<'_>> = (next..)
            .zip(&parsed)
            .map(|(number, block)| side.prepare(BlockAt::new(height_of(number), block)))
            .collect();
        clock.start();
        found.join(&side.connect(&ready)?);
        clock.stop();
        next += count;
    }
    Ok(found)
}

/// The height of a block of the work.
pub(crate) const fn height_of(number: u32) -> Height {
    Height::new(BASE_HEIGHT.to_u32() + 1 + number)
}

fn report(measured: &Measured, blocks: u32) {
    Figures::report("seconds", measured.seconds());
    Figures::report("block_ms", measured.seconds() * 1e3 / f64::from(blocks));
    Figures::report("wall", measured.wall);
    Figures::report("cpu", measured.cpu);
    Figures::report("background", measured.background);
    Figures::report("others", measured.others());
    Figures::report("disturbed", u8::from(measured.is_disturbed()));
    Figures::report("written", measured.written);
    Figures::report("read", measured.read);
}
