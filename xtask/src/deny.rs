//! `cargo deny`: licences, banned crates and sources of the dependencies, by `deny.toml`.
//!
//! It is taken from the `PATH`, else built once into `target/tools`. Known vulnerabilities
//! ("advisories") need a database from the network and change without a change here, so they are
//! checked only on request.

use crate::run;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that is built; one on the `PATH` may differ.
const VERSION: &str = "0.20.2";

/// Checks the dependencies.
pub(crate) fn check(target: &Path, advisories: bool) -> Result<()> {
    let cargo_deny = provide(target)?;
    let mut command = Command::new(cargo_deny);
    command.current_dir(run::root()).args(["check", "licenses", "bans", "sources"]);
    if advisories {
        command.arg("advisories");
    } else {
        println!("advisories are left out: `cargo xtask test --advisories` checks them online");
    }
    run::run(&mut command)
}

fn provide(target: &Path) -> Result<PathBuf> {
    if let Some(installed) = run::find_program("cargo-deny") {
        return Ok(installed);
    }
    let tools = target.join("tools");
    let built = tools.join("bin/cargo-deny");
    if !built.exists() {
        println!("cargo-deny is not on the PATH: building it once into {}", tools.display());
        let build = tools.join("build");
        run::run(
            run::cargo()
                .args(["install", "cargo-deny", "--quiet", "--locked", "--debug"])
                .args(["--no-default-features", "--version", VERSION, "--root"])
                .arg(&tools)
                .arg("--target-dir")
                .arg(&build),
        )?;
        std::fs::remove_dir_all(&build)
            .with_context(|| format!("cannot remove {}", build.display()))?;
    }
    Ok(built)
}
