//! This program started again, as a child that does one thing: `varve-bench child NAME WORDS…`.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use varve_bench::figures::Figures;

use super::{recovery, reorg, sync};
use crate::{indexer, scripts, serve};

/// Runs in the child.
pub(crate) fn run(words: &[OsString]) -> Result<()> {
    let [name, words @ ..] = words else { bail!("a child wants a name") };
    match name.to_str().unwrap_or_default() {
        "sync" => sync::run(words),
        "reorg" => reorg::run(words, "none"),
        "indexer-reorg" => reorg::run(words, indexer::INDEXES),
        "indexer" => indexer::be_synced(words),
        "indexer-busy" => indexer::busy::run(words),
        "killed" => recovery::be_killed(words),
        "recover" => recovery::recover(words),
        "scripts" => scripts::be_synced(words),
        "many" => scripts::be_many(words),
        "serve" => serve::be_server(words),
        other => bail!("there is no child `{other}`"),
    }
}

/// Runs a child to its end and takes its figures. With `kill_at` it is killed without warning when
/// it prints that line.
pub(crate) fn start(name: &str, words: &[OsString], kill_at: Option<&str>) -> Result<Figures> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["child", name])
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a child")?;
    let stdout = child.stdout.take().context("the child has no output")?;
    let mut figures = Figures::default();
    let mut killed = false;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if kill_at == Some(line.as_str()) {
            child.kill()?;
            killed = true;
        } else if !figures.take(&line) {
            println!("{line}");
        }
    }
    let status = child.wait()?;
    if killed != kill_at.is_some() || !(killed || status.success()) {
        bail!("the child `{name}` failed ({status})");
    }
    Ok(figures)
}
