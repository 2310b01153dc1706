//! The command line of `cargo xtask`, read into a [`Command`].

use std::path::PathBuf;

/// How long each fuzz target runs when `--seconds` is not given.
const FUZZ_SECONDS: u32 = 60;
/// How many lives of each kind `soak` runs when `--sequences` is not given.
const SOAK_SEQUENCES: u32 = 10_000;

/// One command with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// No command, or `--help`: the list of commands.
    Help,
    /// Everything CI runs.
    Test {
        /// Also check the dependencies for known vulnerabilities, which needs the network.
        advisories: bool,
        /// Measure how long each crate's tests take, and list the slowest tests.
        timings: bool,
    },
    /// Runs a test program for `test --timings`. Cargo calls it.
    Timed {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        args: Vec<String>,
    },
    /// The long form of the randomised tests.
    Soak {
        /// Lives of each kind.
        sequences: u32,
    },
    /// The project's own rules.
    Tidy {
        /// List the public items without a user instead.
        faces: bool,
    },
    /// A real bitcoind.
    Node,
    /// The verifier by libbitcoinkernel.
    Kernel,
    /// A static program, a Debian package and an image.
    Dist,
    /// Fuzzing.
    Fuzz(FuzzRequest),
    /// One benchmark.
    Bench {
        /// Which.
        name: String,
        /// The long form instead of the one that takes less than ten minutes.
        full: bool,
    },
}

/// What to fuzz, and for how long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FuzzRequest {
    /// One target, or all.
    pub target: Option<String>,
    /// Inputs to run once each, instead of searching for new ones.
    pub files: Vec<PathBuf>,
    /// How long each target searches.
    pub seconds: u32,
}

/// Reads the arguments after `cargo xtask`. The error is a sentence for the user.
pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut args = args.peekable();
    let Some(name) = args.next() else { return Ok(Command::Help) };
    if args.peek().is_some_and(|arg| arg == "--help" || arg == "-h") {
        return Ok(Command::Help);
    }
    match name.as_str() {
        "help" | "--help" | "-h" => Ok(Command::Help),
        "test" => {
            let advisories = args.next_if(|arg| arg == "--advisories").is_some();
            let timings = args.next_if(|arg| arg == "--timings").is_some();
            nothing_more(args, Command::Test { advisories, timings })
        }
        "soak" => parse_soak(args),
        "tidy" => {
            let faces = args.next_if(|arg| arg == "--faces").is_some();
            nothing_more(args, Command::Tidy { faces })
        }
        "timed" => {
            let program = args.next().ok_or("timed wants the test program to run")?.into();
            Ok(Command::Timed { program, args: args.collect() })
        }
        "node" => nothing_more(args, Command::Node),
        "kernel" => nothing_more(args, Command::Kernel),
        "dist" => nothing_more(args, Command::Dist),
        "fuzz" => parse_fuzz(args).map(Command::Fuzz),
        "bench" => parse_bench(args),
        _ => Err(format!("there is no command `{name}`")),
    }
}

fn parse_soak(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut sequences = SOAK_SEQUENCES;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--sequences" => sequences = above_zero(&arg, args.next())?,
            _ => return Err(format!("soak does not accept `{arg}`")),
        }
    }
    Ok(Command::Soak { sequences })
}

/// The value of an option that wants a number above 0.
fn above_zero(option: &str, value: Option<String>) -> Result<u32, String> {
    let value = value.unwrap_or_default();
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{option} wants a number above 0, not `{value}`")),
    }
}

fn parse_fuzz(mut args: impl Iterator<Item = String>) -> Result<FuzzRequest, String> {
    let mut request = FuzzRequest { target: None, files: Vec::new(), seconds: FUZZ_SECONDS };
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            request.seconds = above_zero(&arg, args.next())?;
        } else if arg.starts_with('-') {
            return Err(format!("fuzz does not accept `{arg}`"));
        } else if request.target.is_none() {
            request.target = Some(arg);
        } else {
            request.files.push(arg.into());
        }
    }
    Ok(request)
}

fn parse_bench(args: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut name, mut full) = (None, false);
    for arg in args {
        match arg.as_str() {
            "--full" => full = true,
            _ if arg.starts_with('-') || name.is_some() => {
                return Err(format!("bench does not accept `{arg}`"));
            }
            _ => name = Some(arg),
        }
    }
    let name =
        name.ok_or("bench wants the name of a benchmark, as in `cargo xtask bench parse`")?;
    Ok(Command::Bench { name, full })
}

fn nothing_more(
    mut rest: impl Iterator<Item = String>,
    command: Command,
) -> Result<Command, String> {
    match rest.next() {
        None => Ok(command),
        Some(arg) => Err(format!("`{arg}` is not accepted here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn reads_every_command() {
        assert_eq!(parse_line(""), Ok(Command::Help));
        assert_eq!(parse_line("bench --help"), Ok(Command::Help));
        assert_eq!(parse_line("test"), Ok(Command::Test { advisories: false, timings: false }));
        let both = Command::Test { advisories: true, timings: true };
        assert_eq!(parse_line("test --advisories --timings"), Ok(both));
        let timed = Command::Timed { program: "a".into(), args: vec!["--exact".to_owned()] };
        assert_eq!(parse_line("timed a --exact"), Ok(timed));
        assert!(parse_line("timed").is_err());
        assert_eq!(parse_line("soak"), Ok(Command::Soak { sequences: SOAK_SEQUENCES }));
        assert_eq!(parse_line("soak --sequences 7"), Ok(Command::Soak { sequences: 7 }));
        assert_eq!(parse_line("tidy"), Ok(Command::Tidy { faces: false }));
        assert_eq!(parse_line("tidy --faces"), Ok(Command::Tidy { faces: true }));
        assert_eq!(parse_line("node"), Ok(Command::Node));
        assert_eq!(parse_line("dist"), Ok(Command::Dist));
        let bench = Command::Bench { name: "parse".into(), full: true };
        assert_eq!(parse_line("bench --full parse"), Ok(bench));
        let fuzz = FuzzRequest { target: Some("tx".into()), files: vec!["a".into()], seconds: 5 };
        assert_eq!(parse_line("fuzz tx --seconds 5 a"), Ok(Command::Fuzz(fuzz)));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let wrong = [
            "tests",
            "test --fast",
            "tidy x",
            "bench",
            "bench a b",
            "fuzz --seconds",
            "fuzz -x",
            "soak 7",
            "soak --sequences 0",
        ];
        for line in wrong {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }
}
