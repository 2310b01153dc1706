//! What users run, beside a real node: sync by every way, questions about what came, following,
//! kills on either side, peers that stall or do not agree.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed test may panic")]

mod every_kind;
mod follow;
mod peers;
mod proxy;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use varve_testdata::bitcoind::Bitcoind;

const VARVE: &str = env!("CARGO_BIN_EXE_varve");

/// The command on a data directory of regtest.
fn command(data: &Path, args: &[&str]) -> Command {
    with_arguments(Command::new(VARVE), data, args)
}

fn with_arguments(mut command: Command, data: &Path, args: &[&str]) -> Command {
    command.args(args).args(["--network", "regtest", "--json", "--datadir"]).arg(data);
    command
}

/// Runs the command, for a minute at most.
fn run(data: &Path, args: &[&str]) -> Output {
    let mut timeout = Command::new("timeout");
    timeout.args(["60", VARVE]);
    with_arguments(timeout, data, args).output().unwrap()
}

/// The answer of the command, which must go well.
fn ask(data: &Path, args: &[&str]) -> Value {
    let output = run(data, args);
    let (status, stderr) = (output.status, String::from_utf8_lossy(&output.stderr));
    assert!(status.success(), "{args:?}: {status}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The ways to a node: the flag of `varve sync` and what it takes.
fn ways(node: &Bitcoind) -> [[String; 2]; 3] {
    let login = node.cookie_file().display().to_string();
    [
        ["--peer".to_owned(), node.p2p_address()],
        ["--rpc".to_owned(), format!("http://{login}@{}", node.rpc_address())],
        ["--from".to_owned(), node.folder().display().to_string()],
    ]
}

/// Height, hash and branch length of every tip, sorted.
fn tips(tips: &Value) -> Vec<(u64, String, u64)> {
    let tip = |tip: &Value| {
        let number = |field: &str| tip[field].as_u64().unwrap();
        (number("height"), tip["hash"].as_str().unwrap().to_owned(), number("branchlen"))
    };
    let mut tips: Vec<_> = tips.as_array().unwrap().iter().map(tip).collect();
    tips.sort();
    tips
}

/// Tip and set are those of the node, and the stores agree with one another.
fn check_tip(data: &Path, node: &Bitcoind) {
    let status = ask(data, &["status"]);
    assert_eq!(status["bestblock"], node.tip());
    assert_eq!((&status["height"], &status["headers"]), (&json!(node.height()), &status["height"]));
    let set = node.call("gettxoutsetinfo", &json!(["hash_serialized_3"]));
    let ours = ask(data, &["utxo", "stats"]);
    for field in ["height", "bestblock", "txouts", "bogosize", "hash_serialized_3"] {
        assert_eq!(ours[field], set[field], "{field}");
    }
    assert_eq!(ask(data, &["verify"])["txouts"], set["txouts"]);
}
