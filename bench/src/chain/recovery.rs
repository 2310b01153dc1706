//! A node that is killed when it has the most unsaved work, and opened again: two children.
//!
//! Derived data is made durable at checkpoints. The first child syncs half of the chain, which ends
//! durable, continues until the next checkpoint is about to begin, and is killed there. The second
//! opens what is left, timed, and syncs the rest, which must give the same set as an uninterrupted
//! run.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use varve_bench::figures::Figures;
use varve_node::Report;

use super::node::{open, report_set, sync};

/// What the first child prints when it is to be killed.
pub(super) const KILL: &str = "ready to be killed";

/// Runs the first child: `CHAIN DATA HALF BYTES`.
pub(super) fn be_killed(words: &[OsString]) -> Result<()> {
    let [chain, data, half, bytes] = words else { bail!("killed wants CHAIN DATA HALF BYTES") };
    let number = |word: &OsString| word.to_str().and_then(|word| word.parse::<u64>().ok());
    let half = u32::try_from(number(half).context("no height")?)?;
    let end = number(bytes).context("no number of bytes")?;
    let mut node = open(Path::new(data))?;
    sync(&mut node, Path::new(chain), Some(half), &mut |_| ())?;
    let mut stored = 0;
    sync(&mut node, Path::new(chain), None, &mut |report| {
        if let Report::Stored { bytes } = report {
            stored += bytes;
        }
        if stored >= end {
            println!("{KILL}");
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    })?;
    bail!("the chain ended before the next checkpoint was due")
}

/// Runs the second child, which reports `recover`, the seconds to open: `CHAIN DATA`.
pub(super) fn recover(words: &[OsString]) -> Result<()> {
    let [chain, data] = words else { bail!("recover wants CHAIN DATA") };
    let start = Instant::now();
    let mut node = open(Path::new(data))?;
    Figures::report("recover", start.elapsed().as_secs_f64());
    Figures::report("recovered_to", node.snapshot().tip.0);
    sync(&mut node, Path::new(chain), None, &mut |_| ())?;
    report_set(&node)
}
