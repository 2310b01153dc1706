//! `cargo xtask kernel`: the verifier of scripts by libbitcoinkernel, built and tested.
//!
//! The tests of `varve-consensus` run with the feature `kernel`: the same vectors and blocks that
//! the default verifier passes. Then the command is built with it. The library needs cmake and
//! boost and takes minutes, so this is not part of `cargo xtask test`, and has a separate target
//! folder.

use anyhow::{Result, bail};

use crate::metadata::Metadata;
use crate::{apt, run};

/// Tests, then builds.
pub(crate) fn run() -> Result<bool> {
    apt::ensure(&[apt::CMAKE, apt::BOOST])?;
    let target = Metadata::load()?.target.join("kernel");
    for args in [
        &["test", "--package=varve-consensus", "--features=kernel"][..],
        &[
            "build",
            "--release",
            "--package=varve-cli",
            "--no-default-features",
            "--features=kernel",
        ],
    ] {
        let mut cargo = run::cargo();
        cargo.args(args).arg("--target-dir").arg(&target);
        if !run::stream(&mut cargo, |line| println!("{line}"))? {
            bail!("`cargo {}` failed", args.join(" "));
        }
    }
    println!("the command with libbitcoinkernel: {}", target.join("release/varve").display());
    Ok(true)
}
