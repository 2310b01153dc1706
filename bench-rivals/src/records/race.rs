//! One side's part of the race, in a child.
//!
//! 1. The stock is loaded. Not timed.
//! 2. Some batches warm up. Not timed.
//! 3. Two callers do the other batches, each its own, at the same time: some batches are read and
//!    prepared while the clock is stopped, and applied while it runs. Each is durable when it
//!    returns.
//! 4. The child says so and is killed. What it acknowledged must be there when it is opened again.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use varve_records::Operation;

use super::side::Side;
use super::work::{BATCH, CALLERS, Preparer, Work};
use varve_bench::clock::{Clock, Measured};
use varve_bench::figures::Figures;
use varve_bench::profile::Profiler;

/// The line after which a child wants to be killed.
pub(super) const KILL: &str = "ready to be killed";
/// Records loaded at a time.
const LOADED: u32 = 10_000;
/// Batches of each caller that are made ready at a time.
const READY: u32 = 10;

/// The parameters of a child's race.
pub(super) struct Race<'a> {
    pub(super) preparer: Preparer,
    /// Batches before the clock starts.
    pub(super) warm_up: u32,
    /// Where a profile goes, when one is wanted.
    pub(super) profile: Option<&'a Path>,
}

/// Runs the race, reports the figures and waits to be killed.
pub(super) fn run<S: Side, R: Read>(
    side: &mut S,
    work: &mut Work<R>,
    race: Race<'_>,
) -> Result<()> {
    let Race { preparer, warm_up, profile } = race;
    load(side, work, &preparer)?;
    let batches = work.count()?;
    ensure!(batches > warm_up, "the work has no more batches than the warm-up");
    let mut course = Course { side, work, preparer };
    course.batches(warm_up, &mut Clock::new())?;
    let profiler = profile.map(Profiler::start).transpose()?;
    let mut clock = Clock::new();
    let times = course.batches(batches - warm_up, &mut clock)?;
    profiler.map_or(Ok(()), Profiler::stop)?;
    report(&clock.measured(), times);
    println!("{KILL}");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn load<S: Side, R: Read>(side: &mut S, work: &mut Work<R>, preparer: &Preparer) -> Result<()> {
    let mut left = work.count()?;
    while left > 0 {
        let count = left.min(LOADED);
        let units = (0..count).map(|_| preparer.create(&work.transaction()?));
        side.load(&units.collect::<Result<Vec<_>>>()?)?;
        left -= count;
    }
    side.loaded()
}

struct Course<'a, S, R> {
    side: &'a S,
    work: &'a mut Work<R>,
    preparer: Preparer,
}

impl<S: Side, R: Read> Course<'_, S, R> {
    /// Applies `count` batches; returns the time of each.
    fn batches(&mut self, count: u32, clock: &mut Clock) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(count as usize);
        let mut left = count;
        while left > 0 {
            let now = left.min(READY * CALLERS);
            let mut callers: Vec<Vec<Vec<Operation>>> = vec![Vec::new(); CALLERS as usize];
            for number in 0..now {
                let caller = callers.get_mut((number % CALLERS) as usize);
                caller.context("a caller")?.push(self.batch()?);
            }
            clock.start();
            times.extend(do_all(self.side, &callers)?);
            clock.stop();
            left -= now;
        }
        Ok(times)
    }

    fn batch(&mut self) -> Result<Vec<Operation>> {
        let units = self.work.count()?;
        (0..units).map(|_| self.preparer.both(&self.work.transaction()?)).collect()
    }
}

/// Runs the batches of all callers at the same time.
pub(super) fn do_all<S: Side>(side: &S, callers: &[Vec<Vec<Operation>>]) -> Result<Vec<Duration>> {
    let run = |batches: &[Vec<Operation>]| -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(batches.len());
        for batch in batches {
            let begun = Instant::now();
            let refused = side.apply(batch)?;
            times.push(begun.elapsed());
            ensure!(refused == 0, "{refused} units were refused");
        }
        Ok(times)
    };
    std::thread::scope(|scope| {
        let run = &run;
        let spawn = |batches| scope.spawn(move || run(batches));
        let threads: Vec<_> = callers.iter().map(|batches| spawn(batches.as_slice())).collect();
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| anyhow::anyhow!("a caller panicked"))??);
        }
        Ok(times)
    })
}

/// Reports what was measured over batches that took these times.
pub(super) fn report(measured: &Measured, mut times: Vec<Duration>) {
    let units = times.len() as f64 * f64::from(BATCH);
    times.sort_unstable();
    let at = |share: usize| {
        let place = times.len().saturating_sub(1) * share / 100;
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    Figures::report("seconds", measured.seconds());
    Figures::report("units", units);
    Figures::report("p50", at(50));
    Figures::report("p99", at(99));
    Figures::report("cpu", measured.cpu);
    Figures::report("background", measured.background);
    Figures::report("others", measured.others());
    Figures::report("disturbed", u8::from(measured.is_disturbed()));
    Figures::report("written", measured.written);
    Figures::report("read", measured.read);
}
