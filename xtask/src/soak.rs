//! `cargo xtask soak`: the long form of the randomised tests.
//!
//! CI runs a share of them; this runs each kind of life as often as `--sequences` says, optimised,
//! as many cases of every property, and the model checker. A life that fails names its seed, and
//! the short form fails with the same seed once it reaches it. The properties draw from one new
//! seed, which is printed; a case that fails is kept in `proptest-regressions`.

use anyhow::{Result, bail};

use crate::metadata::Metadata;
use crate::seed::Seed;
use crate::tally::Tally;
use crate::{loom, run};

/// The tests that have a long form, of many lives or of a large one: by `VARVE_SEQUENCES`, or
/// because the build is optimised. Each is a package, a test, and a part of the names.
const LIVES: &[(&str, &str, &str)] = &[
    ("varve-utxo", "database", "random::"),
    ("varve-utxo", "database", "budget::"),
    ("varve-utxo", "database", "hostile::"),
    ("varve-node", "node", "crash::"),
    ("varve-node", "node", "bit_flips::"),
    ("varve-node", "node", "every_way::"),
    ("varve-records", "large", "bounded_memory"),
];

/// The test programs with properties that proptest checks: a package and its programs.
const PROPERTIES: &[(&str, &[&str])] = &[
    ("varve-sha256", &["--lib"]),
    ("varve-types", &["--lib"]),
    ("varve-script-core", &["--test=differential"]),
    ("varve-io", &["--test=io"]),
    ("varve-runs", &["--lib"]),
    ("varve-blocks", &["--lib"]),
    ("varve-consensus", &["--lib", "--test=real"]),
    ("varve-utxo", &["--lib", "--test=database"]),
    ("varve-archive", &["--lib", "--test=tables"]),
    ("varve-records", &["--lib"]),
    ("varve-node", &["--lib"]),
];

/// Runs all. Returns whether nothing failed.
pub(crate) fn run(sequences: u32) -> Result<bool> {
    let target = Metadata::load()?.target;
    let (mut tally, seed) = (Tally::default(), Seed::random());
    for (package, programs) in PROPERTIES {
        println!("\n== {package}, {sequences} cases of each property, {}", seed.assignment());
        let mut cargo = run::cargo();
        cargo.args(["test", "--release", "--no-fail-fast", "--package", package]).args(*programs);
        cargo.env("PROPTEST_CASES", sequences.to_string());
        seed.pass_to(&mut cargo);
        stream(&mut cargo, package, &mut tally)?;
    }
    for (package, test, names) in LIVES {
        println!("\n== {package} {names}, {sequences} lives of each kind");
        let mut cargo = run::cargo();
        cargo.args(["test", "--release", "--package", package, "--test", test, names]);
        cargo.env("VARVE_SEQUENCES", sequences.to_string());
        stream(&mut cargo, package, &mut tally)?;
    }
    println!("\n== loom");
    if let Err(error) = loom::run(&target, &mut tally) {
        println!("{error:#}");
        tally.add_failed_step();
    }
    println!("the properties again: {} cargo xtask soak", seed.assignment());
    println!("{}", tally.last_line());
    Ok(tally.failed() == 0)
}

/// Runs and counts tests of a package; an error when they could not be run at all.
fn stream(cargo: &mut std::process::Command, package: &str, tally: &mut Tally) -> Result<()> {
    let passed = run::stream(cargo, |line| {
        println!("{line}");
        tally.add_line(line);
    })?;
    if !passed && tally.failed() == 0 {
        bail!("`cargo test` of {package} failed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path())
    }

    /// Whether a Rust file, or one in this folder, uses proptest.
    fn has_properties(path: &Path) -> bool {
        if path.is_dir() {
            return entries(path).any(|path| has_properties(&path));
        }
        path.extension().is_some_and(|extension| extension == "rs")
            && fs::read_to_string(path).unwrap().contains("proptest")
    }

    #[test]
    fn every_program_with_properties_is_listed() {
        let mut found = BTreeSet::new();
        for folder in entries(&run::root().join("crates")) {
            let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
            let package = format!("varve-{}", name(&folder));
            if has_properties(&folder.join("src")) {
                found.insert(format!("{package} --lib"));
            }
            let tests = entries(&folder.join("tests")).filter(|path| has_properties(path));
            found.extend(tests.map(|path| format!("{package} --test={}", name(&path))));
        }
        let listed = PROPERTIES.iter().flat_map(|(package, programs)| {
            programs.iter().map(move |program| format!("{package} {program}"))
        });
        assert_eq!(listed.collect::<BTreeSet<_>>(), found);
    }
}
