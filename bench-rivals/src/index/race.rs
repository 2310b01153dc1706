//! One side's part of the race, in a child.
//!
//! ```text
//! maker thread:  keys → keyed hashes → a block's rows, sorted ──┐  bounded queue
//! main thread:                                                  └► append, a block at a time
//! the side's own threads:                                           flush, merge, compact
//! ```
//!
//! The clock runs from the first key to the moment when everything is durable and no compaction is
//! due; making rows is in it, for every side alike. Then the side answers. Not timed.

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
/// Keys of each table that are looked for, as many again that are absent.
const PROBES: usize = 10_000;

/// Runs the race and tells the figures.
pub(super) fn run<S: Side>(
    side: &mut S,
    folder: &Path,
    (blocks, profile): (u32, Option<&Path>),
) -> Result<()> {
    let profiler = profile.map(Profiler::start).transpose()?;
    let measured = race(side, blocks)?;
    profiler.map_or(Ok(()), Profiler::stop)?;
    tell(&measured, u64::from(blocks) * ROWS);
    Figures::tell("bytes", size(folder)?);
    check(side, blocks)
}

/// Appends all blocks and ends durable. Tells the seconds of each part.
fn race<S: Side>(side: &mut S, blocks: u32) -> Result<Measured> {
    let mut clock = Clock::new();
    clock.start();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(AHEAD);
        scope.spawn(move || {
            let rows = Rows::new();
            // When an append fails, the receiver goes, and nothing more is made.
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
            Figures::tell(&format!("part_{part}"), wall - before);
            before = wall;
        }
        side.finish()?;
        clock.stop();
        Figures::tell("finish", clock.measured().wall - before);
        Ok(clock.measured())
    })
}

/// Asks for present and absent keys and for the number of rows. Tells a digest of the answers.
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
    Figures::tell("answers", format!("{digest:016x}"));
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

fn tell(measured: &Measured, rows: u64) {
    Figures::tell("rows", rows);
    Figures::tell("seconds", measured.seconds());
    Figures::tell("cpu", measured.cpu);
    Figures::tell("others", measured.others());
    Figures::tell("disturbed", u8::from(measured.is_disturbed()));
    Figures::tell("written", measured.written);
    Figures::tell("read", measured.read);
}
