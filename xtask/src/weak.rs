//! The tests with weak hashes: nearly all keys of a store share their hash.
//!
//! A hash only makes lookups fast; the stored keys decide. The feature `weak-hash` reduces a hash
//! to a few bits, so that code that is right only because hashes differ fails. Every lookup is then
//! slow, so each package runs a part of its tests.
//!
//! 1. One call of cargo builds the test programs of all packages. The command line interface is
//!    selected with them, although none of its programs is built: cargo unites the features of what
//!    is selected, and with it they are those of the step `tests`, so that only the packages with
//!    weak hashes are built again.
//! 2. Each program is run with its own selection of tests.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::run;
use crate::seed::Seed;
use crate::tally::Tally;

/// A test program, and which of its tests are run with weak hashes. Left out are tests whose cost
/// is the number of rows that share a hash, not what they compare, and those that count reads.
struct Program {
    package: &'static str,
    target: &'static str,
    arguments: &'static [&'static str],
}

const PROGRAMS: &[Program] = &[
    Program { package: "varve-records", target: "varve_records", arguments: &["embedded::"] },
    Program { package: "varve-utxo", target: "varve_utxo", arguments: &[] },
    Program { package: "varve-archive", target: "varve_archive", arguments: &[] },
    Program {
        package: "varve-archive",
        target: "archive",
        arguments: &["--skip=limits::", "--skip=large::"],
    },
    Program {
        package: "varve-node",
        target: "node",
        arguments: &["conduit::", "script_history::"],
    },
];

/// Selected for its dependencies' features alone.
const WITH: &str = "varve-cli";

/// Runs them all and counts their tests.
pub(crate) fn run(seed: &Seed, tally: &mut Tally) -> Result<()> {
    let built = build()?;
    let mut failed = Vec::new();
    for program in PROGRAMS {
        let file = built.iter().find(|file| file.is(program));
        let file = file.with_context(|| format!("cargo did not build {}", program.target))?;
        let mut command = Command::new(&file.path);
        command.args(program.arguments).current_dir(folder(program.package));
        command.env("CARGO_PKG_NAME", program.package);
        command.env("CARGO_MANIFEST_DIR", folder(program.package));
        seed.pass_to(&mut command);
        println!("\n{} {}", program.package, program.target);
        let passed = run::stream(&mut command, |line| {
            println!("{line}");
            tally.add_line(line);
        })?;
        if !passed {
            failed.push(program.target);
        }
    }
    if !failed.is_empty() {
        bail!("tests with weak hashes failed: {}", failed.join(", "));
    }
    Ok(())
}

/// A test program that cargo has built.
struct Built {
    package: String,
    target: String,
    path: PathBuf,
}

impl Built {
    fn is(&self, program: &Program) -> bool {
        self.package == program.package && self.target == program.target
    }
}

fn build() -> Result<Vec<Built>> {
    let mut cargo = run::cargo();
    cargo.args([
        "test",
        "--no-run",
        "--message-format=json",
        "--lib",
        "--test=archive",
        "--test=node",
    ]);
    let mut packages: Vec<&str> = PROGRAMS.iter().map(|program| program.package).collect();
    packages.dedup();
    let features = packages.iter().map(|package| format!("--features={package}/weak-hash"));
    cargo.args(features).args(packages.iter().chain([&WITH]).flat_map(|name| ["--package", name]));
    let messages = run::output(&mut cargo).context("the tests with weak hashes do not build")?;
    Ok(messages.lines().filter_map(built).collect())
}

/// The program of a message of cargo, if it is about one.
fn built(message: &str) -> Option<Built> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message.get("executable")?.as_str()?.into();
    let target = message.get("target")?.get("name")?.as_str()?.to_owned();
    // `path+file:///FOLDER#NAME@VERSION`, or without `NAME@` where the folder has that name.
    let id = message.get("package_id")?.as_str()?;
    let (folder, end) = id.rsplit_once('#')?;
    let package = match end.split_once('@') {
        Some((name, _)) => name,
        None => folder.rsplit('/').next()?,
    };
    Some(Built { package: package.to_owned(), target, path })
}

fn folder(package: &str) -> PathBuf {
    let name = package.strip_prefix("varve-").unwrap_or(package);
    run::root().join("crates").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_have_the_feature() {
        for program in PROGRAMS {
            let manifest = folder(program.package).join("Cargo.toml");
            let text = std::fs::read_to_string(&manifest).unwrap();
            assert!(text.contains("\nweak-hash = ["), "{}", manifest.display());
        }
    }

    #[test]
    fn programs_are_read_from_the_messages_of_cargo() {
        let message = |id: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}",
                    "target":{{"name":"varve_utxo"}},"executable":{executable}}}"#
            )
        };
        let id = "path+file:///checkout/crates/utxo#varve-utxo@0.1.0";
        let found = built(&message(id, "\"/target/a\"")).unwrap();
        assert_eq!((&*found.package, &*found.target), ("varve-utxo", "varve_utxo"));
        assert_eq!(found.path, PathBuf::from("/target/a"));
        let short = built(&message("path+file:///varve-utxo#0.1.0", "\"/a\"")).unwrap();
        assert_eq!(short.package, "varve-utxo");
        assert!(built(&message(id, "null")).is_none(), "a library is not a program");
        assert!(built("Compiling").is_none());
    }
}
