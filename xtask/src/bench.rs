//! `cargo xtask bench NAME`: runs a benchmark of `bench/` or `bench-rivals/` and reads its bars.
//!
//! A benchmark prints what it likes and one line for each bar it is measured by:
//!
//! ```text
//! ratio parse.bitcoin 2.81 goal 2.5
//! ```
//!
//! The bar is met when the value is at least the goal. These lines are held back and printed last,
//! after a sentence for each bar that was missed. A missed bar is a result, not a failure: only a
//! benchmark that could not run, or gave no bar, makes the command fail.

use crate::{apt, node, run};
use anyhow::{Result, bail};

/// The benchmarks whose rivals are slow to build.
const WITH_RIVALS: &[&str] = &["utxo", "records", "index"];
/// The benchmarks whose rival is a real node.
const WITH_NODE: &[&str] = &["chain", "scripts", "serve"];

/// Runs one benchmark.
pub(crate) fn run(name: &str, full: bool) -> Result<bool> {
    let package = if WITH_RIVALS.contains(&name) {
        // RocksDB's bindings need it; libclang from another source works too.
        if let Err(error) = apt::ensure(&[apt::CLANG]) {
            println!("continuing without: {error:#}");
        }
        "--package=varve-bench-rivals"
    } else {
        "--package=varve-bench"
    };
    if name == "engines"
        && let Err(error) = apt::ensure(&[apt::POSTGRES])
    {
        println!("going on without: {error:#}");
    }
    let mut cargo = run::cargo();
    cargo.args(["run", "--quiet", "--release", package, "--", name]);
    if full {
        cargo.arg("--full");
    }
    if WITH_NODE.contains(&name) {
        match node::provide() {
            Ok(bitcoind) => drop(cargo.env("BITCOIND_EXE", bitcoind)),
            Err(error) => println!("continuing without a real node: {error:#}"),
        }
    }
    let mut bars = Vec::new();
    let ran = run::stream(&mut cargo, |line| match Bar::parse(line) {
        Some(bar) => bars.push((bar, line.to_owned())),
        None => println!("{line}"),
    })?;
    for (bar, _) in bars.iter().filter(|(bar, _)| !bar.is_met()) {
        println!("missed: {} is {}, its goal is {}", bar.name, bar.value, bar.goal);
    }
    for (_, line) in &bars {
        println!("{line}");
    }
    if !ran {
        bail!("the benchmark `{name}` could not run");
    }
    if bars.is_empty() {
        bail!("the benchmark `{name}` gave no line `ratio NAME VALUE goal GOAL`");
    }
    Ok(true)
}

/// One line `ratio NAME VALUE goal GOAL`.
#[derive(Debug, PartialEq)]
struct Bar {
    name: String,
    value: f64,
    goal: f64,
}

impl Bar {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["ratio", name, value, "goal", goal] = words.as_slice() else { return None };
        let name = (*name).to_owned();
        Some(Self { name, value: value.parse().ok()?, goal: goal.parse().ok()? })
    }

    /// NaN never meets a goal.
    fn is_met(&self) -> bool {
        self.value >= self.goal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_bars_and_knows_which_are_held() {
        let held = |line| Bar::parse(line).map(|bar| bar.is_met());
        assert_eq!(held("ratio parse.bitcoin 2.81 goal 2.5"), Some(true));
        assert_eq!(held("ratio parse.bitcoin 2.5 goal 2.5"), Some(true));
        assert_eq!(held("ratio parse.bitcoin 2.4 goal 2.5"), Some(false));
        assert_eq!(held("ratio parse.bitcoin NaN goal 2.5"), Some(false));
    }

    #[test]
    fn other_lines_are_no_bars() {
        for line in ["", "ratio a 1", "ratio a x goal 1", "the ratio a 1 goal 1", "ratio a 1 goal"]
        {
            assert_eq!(Bar::parse(line), None, "{line}");
        }
    }
}
