//! Where the time of a run goes, by `perf` if the machine has it.
//!
//! The child starts `perf` on itself when the clock starts for the first time, and stops it after
//! the last block, so that loading is excluded. The parent reads the report, groups the functions
//! into parts by their names, and prints both.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

/// Functions that are printed.
const TOP: usize = 14;
/// A part of the work, and words in the names of functions that do it.
pub type Part = (&'static str, &'static [&'static str]);

/// A running `perf`.
#[derive(Debug)]
pub struct Profiler(Child);

impl Profiler {
    /// Starts to watch this process.
    pub fn start(output: &Path) -> Result<Self> {
        let perf = Command::new("perf")
            .args(["record", "--quiet", "--freq=997", "--pid"])
            .arg(std::process::id().to_string())
            .arg("--output")
            .arg(output)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start perf")?;
        // Give it time to attach.
        std::thread::sleep(Duration::from_millis(300));
        Ok(Self(perf))
    }

    /// Stops `perf`, so that the file is complete.
    pub fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("perf has no process id")?, Signal::INT)?;
        self.0.wait()?;
        Ok(())
    }
}

/// Prints what is in the file. A function belongs to the first part with a word that occurs in its
/// name.
pub fn print(file: &Path, parts: &[Part]) -> Result<()> {
    let report = Command::new("perf")
        .args(["report", "--stdio", "--no-children", "--sort=symbol", "--input"])
        .arg(file)
        .stderr(Stdio::null())
        .output()
        .context("cannot start perf")?;
    let lines = parse(&String::from_utf8_lossy(&report.stdout));
    let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
    for (share, symbol) in &lines {
        *shares.entry(part_of(symbol, parts)).or_default() += share;
    }
    let mut shares: Vec<_> = shares.into_iter().collect();
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    for (part, share) in shares {
        println!("  {share:5.1}%  {part}");
    }
    for (share, symbol) in lines.iter().take(TOP) {
        println!("    {share:5.1}%  {symbol}");
    }
    Ok(())
}

/// Lines as `    12.34%  [.] varve_utxo::window::lookup`.
fn parse(report: &str) -> Vec<(f64, String)> {
    let line = |line: &str| {
        let (share, symbol) = line.trim().split_once('%')?;
        // Columns that are empty without call graphs follow the name.
        let symbol = symbol.trim().split("  ").next().unwrap_or_default();
        Some((share.trim().parse().ok()?, symbol.to_owned()))
    };
    report.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

fn part_of(symbol: &str, parts: &[Part]) -> &'static str {
    let fits = |words: &[&str]| words.iter().any(|word| symbol.contains(word));
    parts.iter().find(|(_, words)| fits(words)).map_or("other", |(part, _)| *part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_and_divided() {
        let report = "# Overhead  Symbol\n#\n    12.34%  [.] varve_utxo::window::version::find\n\
                      \n     3.00%  [k] clear_page_erms     -      -    \n nonsense\n";
        let lines = parse(report);
        let parts: [Part; 2] = [("lookup", &["window"]), ("memory", &["clear_page"])];
        let parts: Vec<_> =
            lines.iter().map(|(share, name)| (*share, part_of(name, &parts))).collect();
        assert_eq!(lines[1].1, "[k] clear_page_erms");
        assert_eq!(parts, [(12.34, "lookup"), (3.0, "memory")]);
    }
}
