//! The tests under a model checker: `loom` runs every order of threads that matters.
//!
//! They are built with `--cfg loom`, which replaces the atomics of the crates under test. That is
//! another build of everything below them, so it has its own target folder, and neither build
//! invalidates the other. The tests are few and finish in seconds; unoptimised they would take
//! minutes.

use std::path::Path;

use anyhow::{Result, bail};

use crate::run;
use crate::tally::Tally;

/// The packages that have a test named `loom`.
const PACKAGES: &[&str] = &["varve-archive", "varve-utxo"];

/// Runs them all and counts their tests.
pub(crate) fn run(target: &Path, tally: &mut Tally) -> Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["test", "--release", "--test", "loom", "--no-fail-fast"]);
    cargo.args(PACKAGES.iter().map(|package| format!("--package={package}")));
    cargo.arg("--target-dir").arg(target.join("loom"));
    cargo.env("RUSTFLAGS", "--cfg loom");
    let passed = run::stream(&mut cargo, |line| {
        println!("{line}");
        tally.add_line(line);
    })?;
    if !passed {
        bail!("a test under loom failed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_have_the_test() {
        for package in PACKAGES {
            let folder = package.strip_prefix("varve-").unwrap();
            let test = run::root().join(format!("crates/{folder}/tests/loom.rs"));
            assert!(test.exists(), "{}", test.display());
        }
    }
}
