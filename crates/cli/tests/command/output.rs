//! Where answers go: readers that go away, disks that are full, sentences that say things once.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::varve::{ask, command, refusal, run, simulate, varve};

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    let from = chain.to_str().unwrap();
    // Nobody listens, neither to the answer nor to what is told beside it.
    let mut sync = command(&data, &["sync", "--from", from, "--stop-height", "110"]);
    let mut sync = sync.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((sync.stdout.take(), sync.stderr.take()));
    assert!(sync.wait().unwrap().success());
    assert_eq!(ask(&data, &["status"])["height"], 110);
    // More than a pipe holds, of which one byte is read.
    let mut block = command(&data, &["block", "110"]);
    let mut block = block.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    BufReader::with_capacity(1, block.stdout.take().unwrap()).fill_buf().unwrap();
    let ended = block.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
    assert!(ended.status.success());
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    ask(&data, &["sync", "--from", chain.to_str().unwrap(), "--stop-height", "9"]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let message = refusal(&command(&data, &["status"]).stdout(full).output().unwrap());
    assert!(message.contains("cannot write the answer"), "{message}");
}

#[test]
fn a_cause_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let message = refusal(&run(folder.path(), &["sync", "--from", nowhere.to_str().unwrap()]));
    assert_eq!(message.matches("No such file").count(), 1, "{message}");
}

#[test]
fn every_command_shows_examples() {
    let commands = [
        "demo",
        "sim",
        "sync",
        "serve",
        "status",
        "verify",
        "repair",
        "tx",
        "block",
        "spender",
        "proof",
        "compact",
        "completions",
        "man",
    ];
    for command in commands
        .map(|command| vec![command])
        .into_iter()
        .chain(["list", "add", "drop"].map(|command| vec!["index", command]))
        .chain(["get", "stats", "export", "import"].map(|command| vec!["utxo", command]))
    {
        let output = varve(&[&command[..], &["--help"]].concat());
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:") && help.contains("--datadir"), "{help}");
    }
}

#[test]
fn a_refused_sync_makes_no_folder() {
    let Some(blocks) = varve_testdata::data("regtest-core31/blocks") else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let from = ["sync", "--from", blocks.to_str().unwrap(), "--datadir", data.to_str().unwrap()];
    let message = refusal(&varve(&[&from[..], &["--network", "signet"]].concat()));
    assert!(message.contains("not of signet; pass --network regtest"), "{message}");
    let scripts = ["--network", "bsv-regtest", "--verify", "scripts"];
    let message = refusal(&varve(&[&from[..], &scripts].concat()));
    assert!(message.contains("--verify spends"), "{message}");
    assert!(!data.exists(), "the right network can still be chosen");
}
