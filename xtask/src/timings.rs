//! `cargo xtask test --timings`: how long the tests of each crate take, and the slowest tests.
//!
//! 1. Cargo runs every test program through `xtask timed PROGRAM …`: a *runner*, set for this one
//!    call, so that nothing is built differently.
//! 2. The runner lets the harness report the time of each test. That is an unstable option, so it
//!    sets the variable that allows it, for the test program alone. It prints a line when the
//!    program ends, `timed: PACKAGE SECONDS`.
//! 3. [`Timings`] reads both from the output.
//!
//! Tests of a program run side by side, so the time of a crate is less than the sum of its tests.

use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const MARK: &str = "timed: ";
/// How many of the slowest tests are listed.
const SLOWEST: usize = 10;

/// The times of one run of all tests.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    /// Seconds that the test programs of a package ran.
    packages: BTreeMap<String, f64>,
    /// Tests of the program that runs, of which the package is not known yet.
    running: Vec<(f64, String)>,
    tests: Vec<(f64, String)>,
}

/// Makes cargo run test programs through this program.
pub(crate) fn measure(cargo: &mut Command) -> Result<()> {
    let own = std::env::current_exe().context("cannot find the program that runs")?;
    let own = own.to_str().context("the path of this program is not UTF-8")?;
    // JSON strings are TOML strings.
    let runner = serde_json::json!([own, "timed"]);
    cargo.arg("--config").arg(format!("target.'cfg(all())'.runner = {runner}"));
    Ok(())
}

/// Runs a test program and prints how long it took. The answer says whether it succeeded.
pub(crate) fn run(program: &Path, args: &[String]) -> Result<bool> {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(args);
    // Programs of documentation tests are elsewhere, and have another harness.
    if program.parent().is_some_and(|folder| folder.ends_with("deps")) {
        command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
    }
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {}", program.display()))?;
    println!("{MARK}{package} {:.2}", start.elapsed().as_secs_f64());
    Ok(status.success())
}

impl Timings {
    /// Takes a line of the output.
    pub(crate) fn add_line(&mut self, line: &str) {
        if let Some((package, seconds)) =
            line.strip_prefix(MARK).and_then(|end| end.split_once(' '))
        {
            *self.packages.entry(package.to_owned()).or_default() += seconds.parse().unwrap_or(0.0);
            let tests = self.running.drain(..);
            self.tests.extend(tests.map(|(seconds, test)| (seconds, format!("{package} {test}"))));
        } else if let Some((test, result)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
        {
            // `ok <1.234s>`
            let time = result.split_once('<').and_then(|(_, time)| time.strip_suffix("s>"));
            if let Some(seconds) = time.and_then(|time| time.parse().ok()) {
                self.running.push((seconds, test.to_owned()));
            }
        }
    }

    /// What to print: the packages, then the slowest tests, the longest time first.
    pub(crate) fn report(&self) -> Vec<String> {
        let packages = self.packages.iter().map(|(name, seconds)| (*seconds, name.clone()));
        let mut lines = sorted(packages);
        lines.extend(sorted(self.tests.iter().cloned()).into_iter().take(SLOWEST));
        lines
    }
}

fn sorted(times: impl Iterator<Item = (f64, String)>) -> Vec<String> {
    let mut times: Vec<_> = times.collect();
    times.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    times.into_iter().map(|(seconds, name)| format!("{seconds:7.1} s  {name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_the_slowest_tests() {
        let mut timings = Timings::default();
        let output = "running 2 tests\n\
                      test a::quick ... ok <0.001s>\ntest a::slow ... ok <7.250s>\n\
                      test a::off ... ignored\ntimed: varve-types 7.30\n\
                      test b ... FAILED <2.000s>\ntimed: varve-types 2.10\n\
                      test c ... ok <3.000s>\ntimed: varve-io 3.00\n";
        output.lines().for_each(|line| timings.add_line(line));
        let expected = [
            "    9.4 s  varve-types",
            "    3.0 s  varve-io",
            "    7.2 s  varve-types a::slow",
            "    3.0 s  varve-io c",
            "    2.0 s  varve-types b",
            "    0.0 s  varve-types a::quick",
        ];
        assert_eq!(timings.report(), expected);
    }
}
