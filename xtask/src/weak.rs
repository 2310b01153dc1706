//! The tests with weak hashes: nearly all keys of a store share their hash.
//!
//! A hash only finds things quickly; the stored keys decide. The feature `weak-hash` leaves a hash
//! a few bits, so that what would be right only because hashes differ goes wrong. Every lookup is
//! slow then, and so each package runs a part of its tests.

use anyhow::{Result, bail};

use crate::run;
use crate::seed::Seed;
use crate::tally::Tally;

/// Packages that have the feature, and the tests that are run with it. Left out are tests whose
/// cost is the number of rows that share a hash, not what they compare, and those that count reads.
const PACKAGES: &[(&str, &[&str])] = &[
    ("varve-records", &["--lib", "embedded::"]),
    ("varve-utxo", &["--lib"]),
    ("varve-archive", &["--lib", "--test=archive", "--", "--skip=limits::", "--skip=large::"]),
];

/// Runs them all and counts their tests.
pub(crate) fn run(seed: &Seed, tally: &mut Tally) -> Result<()> {
    let mut failed = Vec::new();
    for (package, tests) in PACKAGES {
        let mut cargo = run::cargo();
        cargo.args(["test", "--no-fail-fast", "--features=weak-hash", "--package", package]);
        cargo.args(*tests);
        seed.pass_to(&mut cargo);
        let passed = run::stream(&mut cargo, |line| {
            println!("{line}");
            tally.add_line(line);
        })?;
        if !passed {
            failed.push(*package);
        }
    }
    if !failed.is_empty() {
        bail!("tests with weak hashes failed: {}", failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_have_the_feature() {
        for (package, _) in PACKAGES {
            let folder = package.strip_prefix("varve-").unwrap();
            let manifest = run::root().join(format!("crates/{folder}/Cargo.toml"));
            let text = std::fs::read_to_string(&manifest).unwrap();
            assert!(text.contains("\nweak-hash = []"), "{}", manifest.display());
        }
    }
}
