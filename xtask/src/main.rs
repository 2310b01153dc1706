//! The project's commands, run as `cargo xtask NAME`.
//!
//! Everything a contributor or the CI machine runs is here and nowhere else, so there is no second
//! list of steps that could drift: `.ci/run` calls `cargo xtask test`.
//!
//! This crate is built before everything else, on machines that have nothing yet. So it depends on
//! no other crate of the workspace, and on two small ones outside it.

#![forbid(unsafe_code)]

mod apt;
mod args;
mod bench;
mod deny;
mod dist;
mod fuzz;
mod kernel;
mod loom;
mod metadata;
mod node;
mod run;
mod seed;
mod soak;
mod tally;
mod test;
mod tidy;
mod timings;
mod weak;

use args::Command;
use std::process::ExitCode;

const HELP: &str = "\
The project's own commands.

  cargo xtask test [--advisories] [--timings]
                                    everything CI runs: fmt, clippy, tidy, deny, docs, all tests,
                                    loom; ends with the line `N passed, N failed, N skipped`;
                                    with timings: how long each crate's tests take, by the clock
                                    and by processors, and the slowest ten
  cargo xtask soak [--sequences N]  the long form of the random tests: 10,000 lives of each kind,
                                    10,000 cases of each property, from a new seed
  cargo xtask tidy [--faces]        the project's own rules: edges, paths in the docs, budgets;
                                    with faces: the public items that no other crate names
  cargo xtask node                  provides a real bitcoind for tests; the last line is its path
  cargo xtask kernel                tests and builds the verifier by libbitcoinkernel (cmake, boost)
  cargo xtask fuzz [TARGET [FILE…]] [--seconds N]
                                    fuzzes every decoder, or one, 60 seconds each;
                                    with files: runs the target once on each, and stops
  cargo xtask dist                  a static program, a Debian package and an OCI image, each
                                    checked by starting it; in the target folder's dist/
  cargo xtask bench NAME [--full]   a benchmark; ends with lines `ratio NAME VALUE goal GOAL`

Examples:
  cargo xtask test
  BITCOIND_EXE=$(cargo xtask node | tail -n1) cargo test -p varve-sim
  cargo xtask fuzz transaction --seconds 600
  cargo xtask soak --sequences 1000
  cargo xtask bench parse
";

fn main() -> ExitCode {
    let command = match args::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(usage) => {
            eprintln!("{usage}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Help => {
            print!("{HELP}");
            Ok(true)
        }
        Command::Test { advisories, timings } => test::run(advisories, timings),
        Command::Timed { program, args } => timings::run(&program, &args),
        Command::Soak { sequences } => soak::run(sequences),
        Command::Tidy { faces: false } => tidy::run(),
        Command::Tidy { faces: true } => tidy::print_faces().map(|()| true),
        Command::Node => node::run(),
        Command::Kernel => kernel::run(),
        Command::Dist => dist::run(),
        Command::Fuzz(request) => fuzz::run(&request),
        Command::Bench { name, full } => bench::run(&name, full),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
