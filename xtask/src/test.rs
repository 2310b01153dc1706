//! `cargo xtask test`: everything CI runs, in one command.
//!
//! Each step runs even when an earlier one failed, so that one run shows everything to fix. The
//! output ends with the skipped tests and their reasons, the failed steps, and the line `N passed,
//! N failed, N skipped`. The exit code is 0 only when nothing failed; a failed step without a
//! failed test counts as one failure.
//!
//! Every run draws the same cases ([`Seed::fixed`]), so a failure can be repeated.
//!
//! What a test needs and cannot have (a package, the real node) never fails a step here: the test
//! itself skips, with a reason. `VARVE_REQUIRE_DATA=1` turns skips for missing data into failures.

use crate::metadata::Metadata;
use crate::seed::Seed;
use crate::tally::Tally;
use crate::timings::{self, Timings};
use crate::{apt, deny, loom, node, run, tidy, weak};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The packages that every step leaves out because they are slow to build.
const LEFT_OUT: &[&str] = &["varve-bench-rivals"];

/// Runs all steps. Returns whether nothing failed.
pub(crate) fn run(advisories: bool, timings: bool) -> Result<bool> {
    let target = Metadata::load()?.target;
    let mut steps = Steps::default();
    let (mut tally, seed) = (Tally::default(), Seed::fixed());

    steps.run("packages", || {
        if let Err(error) = apt::ensure(apt::PACKAGES) {
            println!("continuing without: {error:#}");
        }
        Ok(())
    });
    steps.run("fmt", || run::run(run::cargo().args(["fmt", "--all", "--check"])));
    steps.run("clippy", || {
        run::run(workspace("clippy").args([
            "--all-targets",
            "--keep-going",
            "--",
            "-D",
            "warnings",
        ]))
    });
    steps.run("tidy", || match tidy::run()? {
        true => Ok(()),
        false => bail!("tidy found something to fix"),
    });
    steps.run("deny", || deny::check(&target, advisories));
    steps.run("docs", || {
        run::run(
            workspace("doc").args(["--no-deps", "--keep-going"]).env("RUSTDOCFLAGS", "-D warnings"),
        )
    });
    let mut bitcoind = None;
    steps.run("node", || {
        match node::provide() {
            Ok(path) => bitcoind = Some(path),
            Err(error) => println!("the tests that need a real node skip: {error:#}"),
        }
        Ok(())
    });
    let mut timings = timings.then(Timings::default);
    steps.run("tests", || tests(&target, bitcoind, &seed, &mut tally, timings.as_mut()));
    steps.run("weak hashes", || weak::run(&seed, &mut tally));
    steps.run("loom", || loom::run(&target, &mut tally));
    if let Some(timings) = timings {
        println!("\n== timings");
        timings.report().iter().for_each(|line| println!("{line}"));
    }
    Ok(summary(&steps, tally))
}

/// A cargo command over the packages that are tested.
fn workspace(subcommand: &str) -> Command {
    let mut command = run::cargo();
    command.args([subcommand, "--workspace"]);
    command.args(LEFT_OUT.iter().map(|package| format!("--exclude={package}")));
    command
}

fn tests(
    target: &Path,
    bitcoind: Option<PathBuf>,
    seed: &Seed,
    tally: &mut Tally,
    mut timings: Option<&mut Timings>,
) -> Result<()> {
    let log = target.join("skipped-tests.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let mut cargo = workspace("test");
    cargo.arg("--no-fail-fast").env("VARVE_SKIP_LOG", &log);
    seed.pass_to(&mut cargo);
    if timings.is_some() {
        timings::measure(&mut cargo)?;
    }
    if let Some(bitcoind) = bitcoind {
        cargo.env("BITCOIND_EXE", bitcoind);
    }
    let passed = run::stream(&mut cargo, |line| {
        println!("{line}");
        tally.add_line(line);
        if let Some(timings) = timings.as_deref_mut() {
            timings.add_line(line);
        }
    })?;
    let skips =
        fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
    tally.add_skip_log(&skips);
    if !passed {
        bail!("`cargo test` failed");
    }
    Ok(())
}

/// Prints the end of the output. Returns whether nothing failed.
fn summary(steps: &Steps, mut tally: Tally) -> bool {
    println!("\n== summary");
    for (test, reason) in tally.skipped() {
        println!("skipped: {test}: {reason}");
    }
    let failed_tests = tally.failed();
    for step in &steps.failed {
        println!("failed step: {step}");
        // The failed tests are counted one by one already.
        if !["tests", "weak hashes", "loom"].contains(&step.as_str()) || failed_tests == 0 {
            tally.add_failed_step();
        }
    }
    println!("{}", tally.last_line());
    tally.failed() == 0
}

/// Runs steps one after another, with a heading and the time of each.
#[derive(Default)]
struct Steps {
    failed: Vec<String>,
}

impl Steps {
    fn run(&mut self, name: &str, step: impl FnOnce() -> Result<()>) {
        println!("\n== {name}");
        let start = Instant::now();
        let done = step();
        let seconds = start.elapsed().as_secs_f64();
        match done {
            Ok(()) => println!("-- {name}: ok, {seconds:.1} s"),
            Err(error) => {
                println!("-- {name}: FAILED, {seconds:.1} s: {error:#}");
                self.failed.push(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_whole_and_stops_nothing() {
        let mut steps = Steps::default();
        let mut ran = 0;
        steps.run("one", || bail!("broken"));
        steps.run("two", || {
            ran += 1;
            Ok(())
        });
        assert_eq!(ran, 1);
        assert_eq!(steps.failed, ["one"]);
        assert!(!summary(&steps, Tally::default()));
        assert!(summary(&Steps::default(), Tally::default()));
    }

    #[test]
    fn the_slow_packages_are_members_of_the_workspace() {
        let metadata = Metadata::load().unwrap();
        for left_out in LEFT_OUT {
            assert!(metadata.packages.iter().any(|package| package.name == *left_out));
        }
    }
}
