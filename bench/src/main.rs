//! Benchmarks of Varve against rivals that need no building: `varve-bench NAME [--full]`.
//!
//! Each benchmark prints what it measured and ends with one line per bar, `ratio NAME VALUE goal
//! GOAL`: see [`varve_bench::ratio`]. The exit code is 0 when the measurement succeeded, whether or
//! not the bars are met; 1 when it failed, and 2 for a wrong command line.

#![forbid(unsafe_code)]

mod chain;
mod engines;
mod indexer;
mod muhash;
mod parse;
mod reads;
mod scripts;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;

/// The allocator of the `varve` command, for all sides.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// Long enough for a steady figure.
    Default,
    /// Several times as long.
    Full,
}

type Benchmark = fn(Effort) -> Result<(), String>;

const BENCHMARKS: [(&str, Benchmark); 8] = [
    ("chain", run_chain),
    ("engines", run_engines),
    ("indexer", run_indexer),
    ("muhash", muhash::run),
    ("parse", parse::run),
    ("reads", run_reads),
    ("scripts", run_scripts),
    ("serve", run_serve),
];

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let arguments: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let (name, effort) = match *arguments.as_slice() {
        ["child", ..] => {
            let done = chain::run_child(words.get(1..).unwrap_or_default());
            return exit("child", done.map_err(|error| format!("{error:#}")));
        }
        [name] => (name, Effort::Default),
        [name, "--full"] => (name, Effort::Full),
        _ => return usage(),
    };
    let Some((_, benchmark)) = BENCHMARKS.iter().find(|(known, _)| *known == name) else {
        return usage();
    };
    exit(name, benchmark(effort))
}

fn run_chain(effort: Effort) -> Result<(), String> {
    chain::run(effort).map_err(|error| format!("{error:#}"))
}

fn run_engines(effort: Effort) -> Result<(), String> {
    engines::run(effort).map_err(|error| format!("{error:#}"))
}

fn run_indexer(effort: Effort) -> Result<(), String> {
    indexer::run(effort).map_err(|error| format!("{error:#}"))
}

fn run_reads(effort: Effort) -> Result<(), String> {
    reads::run(effort).map_err(|error| format!("{error:#}"))
}

fn run_scripts(effort: Effort) -> Result<(), String> {
    scripts::run(effort).map_err(|error| format!("{error:#}"))
}

fn run_serve(effort: Effort) -> Result<(), String> {
    serve::run(effort).map_err(|error| format!("{error:#}"))
}

fn exit(name: &str, done: Result<(), String>) -> ExitCode {
    match done {
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
