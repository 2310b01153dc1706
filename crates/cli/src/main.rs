//! The `varve` command, on the library `varve` and the servers alone.
//!
//! `args` declares the command line, `config` adds what the environment and a file set, `command`
//! has a module for each command, `data_dir` names the folder, `held` runs a command in the process
//! that holds the folder, `progress` shows long work, `output` prints, `panic` reports bugs. An
//! error is one sentence on standard error that says what to do next; exit code 1, or 2 for a
//! mistake in the command line. With `--json` standard output carries one JSON object and nothing
//! else.

#![forbid(unsafe_code)]

#[macro_use]
mod output;

mod address;
mod allocator;
mod args;
mod command;
mod config;
mod data_dir;
mod date;
mod held;
mod panic;
mod planned;
mod progress;
mod signals;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use mimalloc::MiMalloc;
use varve::ReportingAllocator;

use crate::args::Args;

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
    let args = match parse() {
        Ok(args) => args,
        Err(exit_code) => return exit_code,
    };
    allocator::release_early(args.global.memory);
    match held::run(&args) {
        Ok(code) => ExitCode::from(code),
        // The reader that closed the pipe knows.
        Err(error) if error.is::<output::Closed>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// Reads the command line, with what is set outside of it. A mistake is reported here.
fn parse() -> Result<Args, ExitCode> {
    let command = planned::with_planned(Args::command());
    let layered = config::layered(&command, std::env::args_os().collect()).map_err(|error| {
        eprintln!("error: {}", sentence(&error));
        ExitCode::from(USAGE)
    })?;
    let matches =
        command.try_get_matches_from(&layered.arguments).and_then(
            |matches| match planned::refusal(&matches) {
                Some(refusal) => {
                    let kind = clap::error::ErrorKind::InvalidSubcommand;
                    Err(clap::Error::raw(kind, format!("{refusal}\n")))
                }
                None => Args::from_arg_matches(&matches),
            },
        );
    matches.map_err(|error| {
        // A failure to print could be reported nowhere.
        let _ = error.print();
        for place in layered.places(&error.to_string()) {
            eprintln!("{place}");
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
    })
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
