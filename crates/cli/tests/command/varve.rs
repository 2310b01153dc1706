//! Runs the command, and reads what it says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;

const VARVE: &str = env!("CARGO_BIN_EXE_varve");

/// Runs the command, for five minutes at most, with these arguments alone.
pub(crate) fn varve(args: &[&str]) -> Output {
    Command::new("timeout").args(["300", VARVE]).args(args).output().unwrap()
}

/// The same on a data directory of regtest, with `--json`.
pub(crate) fn run(data: &Path, args: &[&str]) -> Output {
    let data = ["--network", "regtest", "--json", "--datadir", data.to_str().unwrap()];
    varve(&[args, &data].concat())
}

/// The same as a process to be started.
pub(crate) fn command(data: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(VARVE);
    command.args(args).args(["--network", "regtest", "--json", "--datadir"]).arg(data);
    command
}

/// The answer on a data directory of regtest, which must be one.
pub(crate) fn ask(data: &Path, args: &[&str]) -> Value {
    json(&run(data, args))
}

/// An answer in JSON.
pub(crate) fn json(output: &Output) -> Value {
    let (status, stderr) = (output.status, String::from_utf8_lossy(&output.stderr));
    assert!(status.success(), "{status}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON value")
}

/// The one sentence of a refused command. A sync that has begun says before what it checks, and any
/// command how far it is, every few seconds: such a line ends with a rate.
pub(crate) fn refusal(output: &Output) -> String {
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(output.stdout.is_empty(), "an error prints nothing on standard output");
    let is_progress = |line: &str| line.ends_with("/s") || line.ends_with("/s)");
    let says = |line: &&str| !line.starts_with("spends ") && !is_progress(line);
    let mut lines = message.lines().filter(says);
    let sentence = lines.next().unwrap_or_default().to_owned();
    assert_eq!(lines.next(), None, "{message}");
    sentence
}

/// A small simulated chain with branches, and its answers. Most tests begin with it, so it is made
/// once, and each gets a copy of its files.
pub(crate) fn simulate(folder: &Path) -> Value {
    static FILES: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        simulate_blocks(folder.path(), "124");
        let names = ["blocks/blk00000.dat", "expected.json"].map(PathBuf::from);
        names.map(|name| (name.clone(), fs::read(folder.path().join(name)).unwrap())).into()
    });
    fs::create_dir_all(folder.join("blocks")).unwrap();
    for (name, bytes) in &*FILES {
        fs::write(folder.join(name), bytes).unwrap();
    }
    serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap()
}

/// A chain of so many blocks, which is made each time.
pub(crate) fn simulate_blocks(folder: &Path, blocks: &str) -> Value {
    let out = folder.to_str().unwrap();
    let sim = varve(&["sim", "--out", out, "--blocks", blocks, "--seed", "3", "--reorgs", "4"]);
    assert!(sim.status.success(), "{}", String::from_utf8_lossy(&sim.stderr));
    serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap()
}

/// Height, hash and branch length of every tip, sorted.
pub(crate) fn tips(tips: &Value) -> Vec<(u64, String, u64)> {
    let tip = |tip: &Value| {
        let number = |field: &str| tip[field].as_u64().unwrap();
        (number("height"), tip["hash"].as_str().unwrap().to_owned(), number("branchlen"))
    };
    let mut tips: Vec<_> = tips.as_array().unwrap().iter().map(tip).collect();
    tips.sort();
    tips
}
