//! `cargo xtask fuzz`: coverage-guided fuzzing on the stable toolchain.
//!
//! 1. Build the program `fuzz` of the crate `fuzz/` with libFuzzer, and with the compiler's
//!    coverage counters on every edge and comparison of our code and its dependencies
//!    ([`RUSTFLAGS`]). This is what `cargo fuzz` does on a nightly toolchain, without the address
//!    sanitizer, which stable lacks. Overflow checks and debug assertions are on.
//! 2. Ask the program for the names of its targets; it also writes the first inputs of each into
//!    `target/fuzz-corpus/TARGET/`, from real data where available.
//! 3. Run each target for its time. libFuzzer mutates the inputs that reached new code and keeps
//!    those that reach more, in the same folder, so that the next run continues from there.
//! 4. An input that makes a target panic, hang or use too much memory is a finding. It is kept
//!    under `target/fuzz-artifacts/TARGET/`, and the command to run it again is printed.

use crate::args::FuzzRequest;
use crate::metadata::Metadata;
use crate::run;
use anyhow::{Context as _, Result, bail};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An input that takes this long is a finding.
const TIMEOUT_SECONDS: u32 = 10;

/// A decoder's memory must be proportional to its input.
const MEMORY_MIB: u32 = 1024;

const RUSTFLAGS: &str = "\
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 \
    -Cdebug-assertions=on \
    -Coverflow-checks=on";

/// Fuzzes. Returns whether there was no finding.
pub(crate) fn run(request: &FuzzRequest) -> Result<bool> {
    let target = Metadata::load()?.target;
    let program = build(&target)?;
    let corpus = target.join("fuzz-corpus");
    let names = run::output(Command::new(&program).arg("seed").arg(&corpus))?;
    let names: Vec<&str> = match &request.target {
        None => names.lines().collect(),
        Some(wanted) if names.lines().any(|name| name == wanted) => vec![wanted],
        Some(wanted) => {
            let all: Vec<&str> = names.lines().collect();
            bail!("there is no fuzz target `{wanted}`; there are: {}", all.join(", "));
        }
    };
    if let ([name], [_, ..]) = (names.as_slice(), request.files.as_slice()) {
        let mut replay = Command::new(&program);
        run::run(replay.env("VARVE_FUZZ_TARGET", name).args(&request.files))?;
        return Ok(true);
    }
    let mut results = Vec::new();
    for name in names {
        println!("\n== fuzz {name}, {} s", request.seconds);
        let artifacts = target.join("fuzz-artifacts").join(name);
        let session = Session { program: &program, name, artifacts, corpus: corpus.join(name) };
        results.push(session.run(request.seconds)?);
    }
    println!("\n== summary");
    for result in &results {
        println!("{result}");
    }
    Ok(results.iter().all(|result| result.passed))
}

/// Builds the fuzz program, with its own target folder because all flags differ.
fn build(target: &Path) -> Result<PathBuf> {
    let version = run::output(Command::new("rustc").arg("-vV").current_dir(run::root()))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("`rustc -vV` names no host")?;
    let folder = target.join("fuzz");
    // With --target the flags do not reach build scripts, which have no libFuzzer to report to.
    run::run(
        run::cargo()
            .args(["build", "--release", "--package=varve-fuzz", "--features=libfuzzer"])
            .args(["--bin=fuzz", "--target", host, "--target-dir"])
            .arg(&folder)
            .env("RUSTFLAGS", RUSTFLAGS),
    )?;
    Ok(folder.join(host).join("release/fuzz"))
}

/// One run of one target.
struct Session<'a> {
    program: &'a Path,
    name: &'a str,
    artifacts: PathBuf,
    corpus: PathBuf,
}

impl Session<'_> {
    fn run(&self, seconds: u32) -> Result<Outcome> {
        fs::create_dir_all(&self.artifacts)?;
        fs::create_dir_all(&self.corpus)?;
        let known = self.findings()?;
        let mut child = Command::new(self.program)
            .env("VARVE_FUZZ_TARGET", self.name)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={TIMEOUT_SECONDS}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
            .arg(format!("-artifact_prefix={}/", self.artifacts.display()))
            .arg(&self.corpus)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the fuzz program")?;
        let stderr = child.stderr.take().expect("standard error is a pipe");
        let mut watch = Watch::default();
        run::each_line(stderr, |line| watch.add_line(line))?;
        let passed = child.wait()?.success();
        if !passed {
            watch.print_tail();
        }
        let new: Vec<PathBuf> =
            self.findings()?.into_iter().filter(|path| !known.contains(path)).collect();
        for path in &new {
            println!("finding: {}", path.display());
            println!("run it again: cargo xtask fuzz {} {}", self.name, path.display());
        }
        let Watch { first_coverage, last_coverage, runs, .. } = watch;
        Ok(Outcome { name: self.name.to_owned(), passed, first_coverage, last_coverage, runs })
    }

    fn findings(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.artifacts)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }
}

/// What is read from libFuzzer's lines, such as
/// `#8192 pulse  cov: 410 ft: 1622 corp: 254/13Kb lim: 80 exec/s: 4096 rss: 48Mb`.
#[derive(Debug, Default)]
struct Watch {
    first_coverage: u64,
    last_coverage: u64,
    runs: u64,
    tail: VecDeque<String>,
}

impl Watch {
    /// How many of the last lines are shown for a finding: a panic with its backtrace.
    const TAIL: usize = 40;

    fn add_line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(runs) = words.first().and_then(|word| word.strip_prefix('#')) {
            let after = |name| words.iter().skip_while(move |word| **word != name).nth(1);
            if let Some(coverage) = after("cov:").and_then(|value| value.parse().ok()) {
                self.last_coverage = coverage;
                if self.first_coverage == 0 {
                    self.first_coverage = coverage;
                }
            }
            self.runs = runs.parse().unwrap_or(self.runs);
            // Lines for inputs that reached something new are too many to print.
            if words.iter().any(|word| ["INITED", "pulse", "DONE"].contains(word)) {
                println!("{line}");
            }
            return;
        }
        if self.tail.len() == Self::TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line.to_owned());
    }

    fn print_tail(&self) {
        for line in &self.tail {
            println!("{line}");
        }
    }
}

/// How one target ended.
struct Outcome {
    name: String,
    passed: bool,
    first_coverage: u64,
    last_coverage: u64,
    runs: u64,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, first_coverage, last_coverage, runs, .. } = self;
        let end = if self.passed { "no finding" } else { "FINDING" };
        write!(f, "{name}: {end}, {runs} runs, coverage {first_coverage} to {last_coverage}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_coverage_and_runs() {
        let mut watch = Watch::default();
        watch.add_line("INFO: seed corpus: files: 3 min: 80b max: 285b total: 584b rss: 41Mb");
        watch.add_line("#4\tINITED cov: 230 ft: 231 corp: 3/584b exec/s: 0 rss: 41Mb");
        watch.add_line("#30\tNEW    cov: 234 ft: 240 corp: 4/700b lim: 285 exec/s: 0 rss: 41Mb");
        watch.add_line("#99\tDONE   cov: 300 ft: 411 corp: 9/1Kb lim: 285 exec/s: 49 rss: 41Mb");
        watch.add_line("Done 99 runs in 2 second(s)");
        assert_eq!((watch.first_coverage, watch.last_coverage, watch.runs), (230, 300, 99));
        assert_eq!(watch.tail.len(), 2);
    }

    #[test]
    fn keeps_the_last_lines() {
        let mut watch = Watch::default();
        (0..100).for_each(|number| watch.add_line(&number.to_string()));
        assert_eq!(watch.tail.len(), Watch::TAIL);
        assert_eq!(watch.tail.back().map(String::as_str), Some("99"));
    }
}
