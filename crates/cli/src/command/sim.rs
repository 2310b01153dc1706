//! `varve sim`: writes a simulated chain and the answers expected of it.

use std::path::Path;

use anyhow::Result;
use varve_server::json;
use varve_sim::{Chain, Config, Summary, begin_chain, write_chain};

use crate::args::Sim;
use crate::output::print_json;
use crate::progress::{Progress, megabytes_per_second};

/// Runs the command.
pub(crate) fn run(args: &Sim, as_json: bool) -> Result<()> {
    let config = Config {
        signed_percent: args.signed,
        reorg_depth: args.reorgs,
        xor: args.xor,
        ..Config::new(args.profile, args.blocks, args.seed)
    };
    let (summary, rate) = write(&config, &args.out)?;
    let expected = args.out.join("expected.json");
    if as_json {
        return print_json(&json::Sim {
            network: config.network(),
            profile: config.profile.name(),
            seed: config.seed,
            height: summary.height,
            blocks: summary.blocks,
            bytes: summary.bytes,
            transactions: summary.transactions,
            reorgs: summary.reorgs,
            mb_per_s: rate,
            expected: &expected.to_string_lossy(),
        });
    }
    println!(
        "{} blocks up to height {} with {} transactions and {} reorgs in {}; answers in {}",
        summary.blocks,
        summary.height,
        summary.transactions,
        summary.reorgs,
        args.out.join("blocks").display(),
        expected.display(),
    );
    Ok(())
}

/// Writes a chain under a progress bar, and returns what was written, the chain to go on with, and
/// how fast it was, in MB/s.
pub(crate) fn begin(config: &Config, folder: &Path) -> Result<(Summary, Chain, f64)> {
    let mut progress = Progress::start("simulate", u64::from(config.blocks));
    let (summary, chain) =
        begin_chain(config, folder, |now| progress.set(u64::from(now.height), now.bytes))?;
    let took = progress.finish(summary.bytes);
    let rate = megabytes_per_second(summary.bytes, took);
    Ok((summary, chain, rate))
}

/// Writes a chain under a progress bar, and returns what was written and how fast, in MB/s.
fn write(config: &Config, folder: &Path) -> Result<(Summary, f64)> {
    let mut progress = Progress::start("simulate", u64::from(config.blocks));
    let summary =
        write_chain(config, folder, |now| progress.set(u64::from(now.height), now.bytes))?;
    let took = progress.finish(summary.bytes);
    let rate = megabytes_per_second(summary.bytes, took);
    Ok((summary, rate))
}
