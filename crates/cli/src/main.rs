//! The `varve` command, on the library `varve` alone.
//!
//! `args` declares the command line, `command` has a module for each command, `data_dir` names the
//! folder, `progress` shows long work, `output` prints, `panic` reports bugs. An error is one
//! sentence on standard error that says what to do next; exit code 1, or 2 for a mistake in the
//! command line. With `--json` standard output carries one JSON object and nothing else.

#![forbid(unsafe_code)]

#[macro_use]
mod output;

mod address;
mod allocator;
mod args;
mod command;
mod data_dir;
mod date;
mod panic;
mod planned;
mod progress;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use mimalloc::MiMalloc;
use varve::ReportingAllocator;

use crate::args::{Args, Command};

/// Memory that one thread allocates and another frees, such as the window's, fragments the system's
/// allocator; this one stays closer to the budget.
#[global_allocator]
static ALLOCATOR: ReportingAllocator<MiMalloc> = ReportingAllocator {
    allocator: MiMalloc,
    advice: "raise the limit of the process (ulimit -v) or of its container, or pass a smaller \
             --memory; what was stored is safe",
};

/// The exit code for a mistake in the command line.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    panic::report();
    let matches = planned::with_planned(Args::command()).get_matches();
    if let Some(refusal) = planned::refusal(&matches) {
        eprintln!("error: {refusal}");
        return ExitCode::from(USAGE);
    }
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    allocator::release_early(args.global.memory);
    let done = match &args.command {
        Command::Demo(demo) => command::demo::run(demo, &args.global),
        Command::Sim(sim) => command::sim::run(sim, args.global.json),
        Command::Sync(sync) => command::sync::run(sync, &args.global),
        Command::Status => command::status::run(&args.global),
        Command::Tx { txid } => command::tx::run(*txid, &args.global),
        Command::Block { block } => command::block::run(*block, &args.global),
        Command::Address(address) => command::address::run(address, &args.global),
        Command::Spender { outpoint } => command::spender::run(*outpoint, &args.global),
        Command::Proof(proof) => command::proof::run(proof, &args.global),
        Command::Index(index) => command::index::run(index, &args.global),
        Command::Compact => command::compact::run(&args.global),
        Command::Verify => command::maintain::verify(&args.global),
        Command::Repair => command::maintain::repair(&args.global),
        Command::Invalidate { block } => command::verdict::invalidate(*block, &args.global),
        Command::Reconsider { block } => command::verdict::reconsider(*block, &args.global),
        Command::Records(records) => command::records::run(records, &args.global),
        Command::Utxo(utxo) => command::utxo::run(utxo, &args.global),
    };
    match done.and_then(|()| output::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader that closed the pipe knows.
        Err(error) if error.is::<output::Closed>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes in one sentence. A cause that the sentence contains already is left
/// out.
fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if sentence.is_empty() {
            sentence = cause;
        } else if !sentence.contains(&cause) {
            sentence.extend([": ", &cause]);
        }
    }
    sentence
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;

    #[test]
    fn a_cause_is_named_once() {
        let error = anyhow::Error::from(varve::SourceError::Io {
            path: "chain".into(),
            source: io::Error::other("no such thing"),
        });
        assert_eq!(super::sentence(&error), "cannot read chain: no such thing");
        let error = Err::<(), _>(error).context("cannot sync").expect_err("it is one");
        assert_eq!(super::sentence(&error), "cannot sync: cannot read chain: no such thing");
    }
}
