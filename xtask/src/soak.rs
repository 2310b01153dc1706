//! `cargo xtask soak`: the long form of the tests that live by chance.
//!
//! CI runs a share of them; this runs each kind of life as often as `--sequences` says, optimised,
//! and the model checker. A life that fails names its seed, and the same seed fails again in the
//! short form when it is reached.

use anyhow::{Result, bail};

use crate::metadata::Metadata;
use crate::tally::Tally;
use crate::{loom, run};

/// The tests that have a long form, of many lives or of a large one: by `VARVE_SEQUENCES`, or
/// because the build is optimised. Each is a package, a test, and a part of the names.
const LIVES: &[(&str, &str, &str)] = &[
    ("varve-utxo", "database", "random::"),
    ("varve-utxo", "hostile", "ground_keys"),
    ("varve-node", "node", "crash::"),
    ("varve-node", "node", "bit_flips::"),
    ("varve-records", "large", "bounded_memory"),
];

/// Runs all. The answer says whether nothing failed.
pub(crate) fn run(sequences: u32) -> Result<bool> {
    let target = Metadata::load()?.target;
    let mut tally = Tally::default();
    for (package, test, names) in LIVES {
        println!("\n== {package} {names}, {sequences} lives of each kind");
        let mut cargo = run::cargo();
        cargo.args(["test", "--release", "--package", package, "--test", test, names]);
        cargo.env("VARVE_SEQUENCES", sequences.to_string());
        let passed = run::stream(&mut cargo, |line| {
            println!("{line}");
            tally.add_line(line);
        })?;
        if !passed && tally.failed() == 0 {
            bail!("`cargo test` of {package} failed");
        }
    }
    println!("\n== loom");
    if let Err(error) = loom::run(&target, &mut tally) {
        println!("{error:#}");
        tally.add_failed_step();
    }
    println!("{}", tally.last_line());
    Ok(tally.failed() == 0)
}
