//! `cargo xtask test --timings`: how long the tests of each crate take, and the slowest tests.
//!
//! 1. Cargo runs every test program through `xtask timed PROGRAM …`: a *runner*, set for this one
//!    call, so that nothing is built differently.
//! 2. The runner lets the harness report the time of each test. That is an unstable option, so it
//!    sets the variable that allows it, for the test program alone. It prints a line when the
//!    program ends, `timed: PACKAGE SECONDS PROCESSOR`.
//! 3. [`Timings`] reads both from the output.
//!
//! Tests of a program run side by side, so the time of a crate is less than the sum of its tests. A
//! crate whose tests took much less processor time than processors were there has tests that wait.

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
    /// Seconds that the test programs of a package ran, and their processor seconds.
    packages: BTreeMap<String, (f64, f64)>,
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

/// Runs a test program and prints how long it took. Returns whether it succeeded.
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
    println!("{MARK}{package} {:.2} {:.2}", start.elapsed().as_secs_f64(), children_seconds());
    Ok(status.success())
}

impl Timings {
    /// Takes a line of the output.
    pub(crate) fn add_line(&mut self, line: &str) {
        let mut words = line.strip_prefix(MARK).into_iter().flat_map(str::split_whitespace);
        if let Some(package) = words.next() {
            let mut seconds = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
            let (wall, processor) = self.packages.entry(package.to_owned()).or_default();
            *wall += seconds();
            *processor += seconds();
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
        let packages = self.packages.iter().map(|(name, (seconds, processor))| {
            (*seconds, format!("{name}, {processor:.1} s of processors"))
        });
        let mut lines = sorted(packages);
        lines.extend(sorted(self.tests.iter().cloned()).into_iter().take(SLOWEST));
        lines
    }
}

/// Processor seconds of the children that have ended, by fields 16 and 17 of `/proc/self/stat`, in
/// hundredths. Zero where there is no such file.
fn children_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    children_ticks(&stat) / 100.0
}

fn children_ticks(stat: &str) -> f64 {
    // The name in field 2 may have blanks and parentheses; field 3 follows the last one.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    fields.split(' ').skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
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
                      test a::off ... ignored\ntimed: varve-types 7.30 9.00\n\
                      test b ... FAILED <2.000s>\ntimed: varve-types 2.10 1.50\n\
                      test c ... ok <3.000s>\ntimed: varve-io 3.00 0.20\n";
        output.lines().for_each(|line| timings.add_line(line));
        let expected = [
            "    9.4 s  varve-types, 10.5 s of processors",
            "    3.0 s  varve-io, 0.2 s of processors",
            "    7.2 s  varve-types a::slow",
            "    3.0 s  varve-io c",
            "    2.0 s  varve-types b",
            "    0.0 s  varve-types a::quick",
        ];
        assert_eq!(timings.report(), expected);
    }

    #[test]
    fn processor_time_of_children() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 250 30 20 0 9 0";
        assert!((children_ticks(stat) - 280.0).abs() < 0.1);
        assert!(children_ticks("") < 0.1);
    }
}
