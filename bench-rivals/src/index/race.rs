//! One side's part of the race, in a child.
//!
//! ```text
//! maker thread:  keys → keyed hashes → a block's rows, sorted ──┐  bounded queue
//! main thread:                                                  └► append, a block at a time
//! the side's own threads:                                           flush, merge, compact
//! ```
//!
//! The clock runs from the first key until everything is durable and no compaction is due; making
//! the rows is included for every side. Then the side answers queries, which is not timed.

use std::path::Path;
use std::sync::mpsc;

use anyhow::{Context as _, Result, ensure};
use varve_bench::clock::{Clock, Measured};
use varve_bench::figures::Figures;
use varve_bench::profile::Profiler;

use super::rows::{Kind, ROWS, Rows, probes};
use super::side::{Side, answer};

/// Parts of the race that are timed one by one.
pub(super) const PARTS: u32 = 10;
/// Blocks that are made ahead.
const AHEAD: usize = 16;
/// Present keys of each table that are looked up, and as many absent ones.
const PROBES: usize = 10_000;

/// Runs the race and reports the figures.
pub(super) fn run<S: Side>(
    side: &mut S,
    folder: &Path,
    blocks: u32,
    profile: Option<&Path>,
) -> Result<()> {
    let profiler = profile.map(Profiler::start).transpose()?;
    let measured = race(side, blocks)?;
    profiler.map_or(Ok(()), Profiler::stop)?;
    report(&measured, u64::from(blocks) * ROWS);
    Figures::report("bytes", size(folder)?);
    check(side, blocks)
}

/// Appends all blocks and ends durable. Reports the seconds of each part.
fn race<S: Side>(side: &mut S, blocks: u32) -> Result<Measured> {
    let mut clock = Clock::new();
    clock.start();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(AHEAD);
        scope.spawn(move || {
            let rows = Rows::new();
            // When an append fails, the receiver is dropped, and nothing more is made.
            (0..blocks).try_for_each(|number| sender.send(S::prepare(rows.block(number))).ok())
        });
        let mut before = 0.0;
        for part in 0..PARTS {
            for _ in blocks * part / PARTS..blocks * (part + 1) / PARTS {
                side.append(receiver.recv().context("the maker has ended")?)?;
            }
            clock.stop();
            clock.start();
            let wall = clock.measured().wall;
            Figures::report(&format!("part_{part}"), wall - before);
            before = wall;
        }
        side.finish()?;
        clock.stop();
        Figures::report("finish", clock.measured().wall - before);
        Ok(clock.measured())
    })
}

/// Looks up present and absent keys and the number of rows. Reports a digest of the answers.
pub(super) fn check<S: Side>(side: &S, blocks: u32) -> Result<()> {
    let (rows, expected) = (side.rows()?, u64::from(blocks) * ROWS);
    ensure!(rows == expected, "{rows} rows are there instead of {expected}");
    let mut digest = 0_u64;
    for kind in Kind::ALL {
        for present in [true, false] {
            let answers = answer(side, kind, &probes(kind, blocks, PROBES, present))?;
            digest = digest.rotate_left(13) ^ answers;
        }
    }
    Figures::report("answers", format!("{digest:016x}"));
    Ok(())
}

/// Bytes of all files below a folder.
pub(super) fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata()? {
            found if found.is_dir() => size(&entry.path())?,
            found => found.len(),
        };
    }
    Ok(bytes)
}

fn report(measured: &Measured, rows: u64) {
    Figures::report("rows", rows);
    Figures::report("seconds", measured.seconds());
    Figures::report("cpu", measured.cpu);
    Figures::report("others", measured.others());
    Figures::report("disturbed", u8::from(measured.is_disturbed()));
    Figures::report("written", measured.written);
    Figures::report("read", measured.read);
}
