//! Benchmarks of Varve against light rivals: `varve-bench NAME [--full]`.
//!
//! Each benchmark prints what it measured and ends with one line per bar,
//! `ratio NAME VALUE goal GOAL`: see [`ratio`]. The exit code is 0 when it could measure, whether
//! or not the bars are met; 1 when it could not, and 2 for a wrong command line.

#![forbid(unsafe_code)]

mod muhash;
mod parse;
mod ratio;

use std::process::ExitCode;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// Long enough for a steady figure.
    Default,
    /// Several times as long.
    Full,
}

type Benchmark = fn(Effort) -> Result<(), String>;

const BENCHMARKS: [(&str, Benchmark); 2] = [("muhash", muhash::run), ("parse", parse::run)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, effort) = match *arguments.as_slice() {
        [name] => (name, Effort::Default),
        [name, "--full"] => (name, Effort::Full),
        _ => return usage(),
    };
    let Some((_, benchmark)) = BENCHMARKS.iter().find(|(known, _)| *known == name) else {
        return usage();
    };
    match benchmark(effort) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{name}: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    let names: Vec<&str> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
    eprintln!("usage: varve-bench {} [--full]", names.join("|"));
    ExitCode::from(2)
}
