//! Our side's run, in a child: the second half of the chain is timed.
//!
//! 1. The first half is synced and made durable. Not timed.
//! 2. The second half, from opening the block files to the checkpoint at the end, after which
//!    everything is durable. Timed.
//! 3. What was built is measured: the set's hash, sizes, lookups.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use varve_bench::clock::{Clock, Measured};
use varve_bench::figures::Figures;
use varve_bench::profile::Profiler;
use varve_node::{Organizer, Report};
use varve_types::Height;

use super::lookups;
use super::node::{open, report_set, sync};
use super::simulated::folder_bytes;

/// Runs a child: `CHAIN DATA HALF [PROFILE]`.
pub(crate) fn run(words: &[OsString]) -> Result<()> {
    let [chain, data, half, more @ ..] = words else { bail!("sync wants CHAIN DATA HALF") };
    let (chain, data) = (Path::new(chain), Path::new(data));
    let half = half.to_str().and_then(|half| half.parse().ok()).context("no height")?;
    let mut node = open(data)?;
    sync(&mut node, chain, Some(half), &mut |_| ())?;
    let profiler = more.first().map(|file| Profiler::start(Path::new(file))).transpose()?;
    let mut clock = Clock::new();
    let (mut blocks, mut bytes) = (0_u64, 0);
    clock.start();
    sync(&mut node, chain, None, &mut |report| {
        if let Report::Connected { bytes: size, .. } = report {
            blocks += 1;
            bytes += size;
        }
    })?;
    clock.stop();
    let measured = clock.measured();
    profiler.map_or(Ok(()), Profiler::stop)?;
    report(&measured);
    Figures::report("blocks", blocks);
    Figures::report("bytes", bytes);
    report_set(&node)?;
    report_sizes(&node, data)?;
    lookups::run(&node)
}

/// Reports what a clock measured.
pub(crate) fn report(measured: &Measured) {
    Figures::report("seconds", measured.wall);
    Figures::report("cpu", measured.cpu);
    Figures::report("others", measured.others());
    Figures::report("disturbed", u8::from(measured.is_disturbed()));
    Figures::report("written", measured.written);
    Figures::report("resident", resident());
}

/// The most memory that this process had at any time, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

/// Reports `transactions`, `inputs`, `archive_bytes` (all files of the archive) and `index_bytes`
/// (what the block store has besides the bytes of blocks).
fn report_sizes(node: &Organizer, data: &Path) -> Result<()> {
    let snapshot = node.snapshot();
    let (mut transactions, mut inputs, mut raw) = (0_u64, 0_u64, 0_u64);
    for height in 0..=snapshot.tip.0.to_u32() {
        let link = snapshot.archive.to_confirmed(Height::new(height)).context("a gap")?;
        let row = snapshot.archive.block(link)?.context("a block without its row")?;
        transactions += u64::from(row.tx_count);
        inputs += u64::from(row.inputs);
        raw += u64::from(row.size);
    }
    Figures::report("transactions", transactions);
    Figures::report("inputs", inputs);
    Figures::report("archive_bytes", folder_bytes(&data.join("archive"))?);
    Figures::report("index_bytes", folder_bytes(&data.join("blocks"))?.saturating_sub(raw));
    Ok(())
}
