//! Benchmarks against rivals that are slow to build:
//! `varve-bench-rivals utxo|records|index [--full|--tiny]`.
//!
//! Separate from `bench` so that nobody builds a C++ database without need; not among the default
//! members, not in CI. The parent ([`utxo`], [`records`], [`index`]) writes the work once, if it is
//! not computed from a seed, and starts this program again for every side ([`child`]), under a
//! separate memory limit (`varve_testdata::cgroup`). A child does one thing ([`command`]), mostly a
//! [`race`], and prints [`figures`](varve_bench::figures).
//!
//! The exit code is 0 when everything could be measured, whether or not the bars are met; 1 when
//! not, which includes sides that did not do the same work; 2 for a wrong command line.

mod block_maker;
mod child;
mod command;
mod digest;
mod hostile;
mod index;
mod key;
mod lookups;
mod race;
mod records;
mod recovery;
mod rival;
mod scripts;
mod side;
mod size;
mod stock;
mod utxo;
mod varve;
mod work;

use std::ffi::OsString;
use std::process::ExitCode;

/// The allocator of the `varve` command, for all sides.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let done = match *words.as_slice() {
        ["child", ..] => command::run(arguments.get(1..).unwrap_or_default()),
        ["utxo"] => utxo::run(&utxo::Size::SHORT),
        ["utxo", "--tiny"] => utxo::run(&utxo::Size::TINY),
        ["utxo", "--full"] => utxo::run(&utxo::Size::FULL),
        ["records"] => records::run(&records::Size::SHORT),
        ["records", "--tiny"] => records::run(&records::Size::TINY),
        ["records", "--full"] => records::run(&records::Size::FULL),
        ["index"] => index::run(&index::Size::SHORT),
        ["index", "--tiny"] => index::run(&index::Size::TINY),
        ["index", "--full"] => index::run(&index::Size::FULL),
        _ => {
            eprintln!("usage: varve-bench-rivals utxo|records|index [--full|--tiny]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
