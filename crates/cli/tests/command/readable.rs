//! What people read: transactions, blocks, the set on standard output, and commands to come.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::varve::{ask, command, refusal, run, simulate, varve};

/// The lines that the command prints for people, on a data directory of regtest.
fn lines(data: &Path, args: &[&str]) -> Vec<String> {
    let global = ["--network", "regtest", "--datadir", data.to_str().unwrap()];
    let output = varve(&[args, &global].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The line that begins with a label, without it.
fn field<'a>(lines: &'a [String], label: &str) -> Option<&'a str> {
    let begin = format!("  {label:<10} ");
    lines.iter().find_map(|line| line.strip_prefix(&begin))
}

/// Satoshi of an amount in coins.
fn satoshi(coins: &str) -> u64 {
    coins.replace('.', "").parse().unwrap()
}

#[test]
fn a_transaction_is_shown_with_what_it_spends_and_pays() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    let spent = expected["outputs"].as_array().unwrap().iter().filter(|o| !o["spender"].is_null());
    let mut seen = 0;
    for output in spent.step_by(15) {
        let spender = &output["spender"];
        let (txid, vin) = (spender["txid"].as_str().unwrap(), &spender["vin"]);
        let shown = lines(&data, &["tx", txid]);
        assert_eq!(field(&shown, "txid"), Some(txid));
        let block =
            format!("{} at height {}", spender["blockhash"].as_str().unwrap(), spender["height"]);
        assert_eq!(field(&shown, "block"), Some(block.as_str()));
        let depth = 124 - spender["height"].as_u64().unwrap() + 1;
        assert_eq!(field(&shown, "confirmed"), Some(format!("{depth} times").as_str()));
        // The input, with the value of what it spends in the line below.
        let input = format!(
            "  {:<10} {}:{}",
            format!("input {vin}"),
            output["txid"].as_str().unwrap(),
            output["vout"]
        );
        let place = shown.iter().position(|line| *line == input).expect("the input is shown");
        let (value, from) = shown[place + 1].trim().split_once(" from ").unwrap();
        assert_eq!(satoshi(value), output["value"].as_u64().unwrap());
        assert!(from.starts_with(char::is_uppercase) || from == "multisig", "{from}");
        // The fee is what the inputs have more than the outputs.
        let sum = |separator: &str| -> u64 {
            let values = shown.iter().filter_map(|line| line.split_once(separator));
            values.map(|(value, _)| satoshi(value.split_whitespace().last().unwrap())).sum()
        };
        let fee = field(&shown, "fee").unwrap().split_once(", ").unwrap().0;
        assert_eq!(satoshi(fee), sum(" from ") - sum(" to "), "{shown:#?}");
        seen += 1;
    }
    assert!(seen > 2, "{seen}");
    let coinbase = ask(&data, &["block", "124"])["tx"][0].as_str().unwrap().to_owned();
    let shown = lines(&data, &["tx", &coinbase]);
    assert!(field(&shown, "input 0").unwrap().starts_with("coinbase "), "{shown:#?}");
    assert!(field(&shown, "output 0").unwrap().contains(" to P2WPKH bcrt1q"), "{shown:#?}");
    assert_eq!(field(&shown, "fee"), None);

    let block = lines(&data, &["block", "123"]);
    let json = ask(&data, &["block", "123"]);
    assert_eq!(field(&block, "confirmed"), Some("2 times"));
    assert_eq!(field(&block, "previous"), json["previousblockhash"].as_str());
    assert_eq!(field(&block, "next"), expected["tip"].as_str());
    assert_eq!(field(&block, "merkle"), json["merkleroot"].as_str());
    assert_eq!(field(&block, "tx 1"), json["tx"][1].as_str());
    assert!(field(&block, "time").unwrap().starts_with("2020-09-1"), "{block:#?}");
    let genesis = lines(&data, &["block", "0"]);
    assert_eq!(field(&genesis, "mined"), Some("50.00000000"));
    assert_eq!(field(&genesis, "previous"), Some("none"));

    // A block of a branch that lost, and a transaction in it.
    let stale = expected["reorgs"][0]["old_tip"].as_str().unwrap();
    let shown = lines(&data, &["block", stale]);
    assert!(field(&shown, "confirmed").unwrap().starts_with("no: "), "{shown:#?}");
    let shown = lines(&data, &["tx", field(&shown, "tx 0").unwrap()]);
    assert!(field(&shown, "confirmed").unwrap().starts_with("no: "), "{shown:#?}");
}

#[test]
fn the_set_goes_to_standard_output_as_it_goes_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    let file = folder.path().join("set.dat");
    let answer = ask(&data, &["utxo", "export", file.to_str().unwrap()]);
    let bytes = fs::read(&file).unwrap();
    assert_eq!(answer["bytes"].as_u64(), Some(bytes.len() as u64));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file stays");
    let output = run(&data, &["utxo", "export", "-"]);
    assert!(output.status.success());
    assert!(output.stdout == bytes, "byte for byte");
    let told = String::from_utf8(output.stderr).unwrap();
    let said: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    for name in ["height", "bestblock", "txouts", "bytes"] {
        assert_eq!(said[name], answer[name], "{name}");
    }
    assert_eq!(said["file"], "-");
    // A reader that goes away has only a part, so this is no success; it needs no telling.
    let mut export = command(&data, &["utxo", "export", "-"]);
    let mut export = export.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    export.stdout.take().unwrap().read_exact(&mut [0; 8]).unwrap();
    let ended = export.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
    // A full disk is an error.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command(&data, &["utxo", "export", "-"]).stdout(full).output().unwrap();
    assert!(refusal(&output).contains("cannot write to standard output"));
}

#[test]
fn a_command_that_is_planned_says_so() {
    for args in [&["sql"][..], &["--network", "regtest", "sql", "SELECT 1"], &["bench", "--json"]] {
        let output = varve(args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains("is not in this version"), "{args:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(output.stdout.is_empty());
    }
    // What is not planned is a mistake, also below a command.
    for args in [&["wallet"][..], &["utxo", "index"]] {
        let output = varve(args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(told.contains("unrecognized subcommand"), "{told}");
    }
    let help = String::from_utf8(varve(&["--help"]).stdout).unwrap();
    assert!(help.contains("Planned, and not in this version: sql, "), "{help}");
    assert!(!help.contains("\n  sql"), "{help}");
}
