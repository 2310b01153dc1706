//! A chain from block files through the command: sync, questions, damage, crashes.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::varve::{ask, command, json, refusal, run, simulate, tips, varve};

fn check_answers(data: &Path, expected: &Value) {
    let status = ask(data, &["status"]);
    assert_eq!(status["network"], "regtest");
    assert_eq!((&status["height"], &status["bestblock"]), (&expected["height"], &expected["tip"]));
    assert_eq!(status["headers"], expected["height"]);
    assert_eq!(tips(&status["chaintips"]), tips(&expected["chaintips"]));
    let stats = ask(data, &["utxo", "stats"]);
    for field in ["height", "bestblock", "txouts", "bogosize", "hash_serialized_3", "total_amount"]
    {
        assert_eq!(stats[field], expected[field], "{field}");
    }
}

#[test]
fn a_chain_and_the_questions_about_it() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let from = chain.to_str().unwrap();
    let half = ask(&data, &["sync", "--from", from, "--stop-height", "60"]);
    assert_eq!(half["height"], 60);
    let done = ask(&data, &["sync", "--from", from]);
    assert_eq!(done["bestblock"], expected["tip"]);
    check_answers(&data, &expected);

    // The set at past heights.
    for (height, answer) in expected["at_heights"].as_object().unwrap().iter().step_by(20) {
        let stats = ask(&data, &["utxo", "stats", "--at", height]);
        for field in ["height", "bestblock", "txouts", "bogosize", "muhash", "total_amount"] {
            assert_eq!(stats[field], answer[field], "{field} at {height}");
        }
    }
    let message = refusal(&run(&data, &["utxo", "stats", "--at", "999"]));
    assert!(message.contains("does not reach height 999"), "{message}");
    let past = ["utxo", "stats", "--at", "9", "--hash", "hash_serialized_3"];
    assert!(refusal(&run(&data, &past)).contains("for the tip alone"));

    // Some sampled outputs: its transaction, its block, its coin or its spender.
    for output in expected["outputs"].as_array().unwrap().iter().step_by(60) {
        let (txid, vout) = (output["txid"].as_str().unwrap(), &output["vout"]);
        let point = format!("{txid}:{vout}");
        let tx = ask(&data, &["tx", txid]);
        assert_eq!((&tx["txid"], &tx["confirmed"]), (&output["txid"], &Value::Bool(true)));
        let block = ask(&data, &["block", tx["blockhash"].as_str().unwrap()]);
        assert!(block["tx"].as_array().unwrap().contains(&tx["txid"]));
        assert!(block["hex"].as_str().unwrap().contains(tx["hex"].as_str().unwrap()));
        assert!(tx["blocks"].as_array().unwrap().contains(&block["hash"]));
        let spender = ask(&data, &["spender", &point]);
        let coin = run(&data, &["utxo", "get", &point]);
        let tip = serde_json::json!({"height": expected["height"], "hash": expected["tip"]});
        assert!([&tx, &block, &spender].iter().all(|answer| answer["tip"] == tip), "{spender}");
        match spender["txid"].is_null() {
            true => assert_eq!(json(&coin)["txid"], output["txid"]),
            false => {
                assert!(refusal(&coin).contains(&point));
                assert!(spender["height"].as_u64() >= tx["height"].as_u64());
            }
        }
    }
    assert_eq!(ask(&data, &["block", "124"])["hash"], expected["tip"]);
    for (args, says) in [
        (["tx", &"7".repeat(64)], "is in no stored block"),
        (["proof", &"7".repeat(64)], "is in no stored block"),
        (["block", "125"], "does not reach height 125"),
        (["block", &"0".repeat(64)], "is not known"),
        (["spender", &format!("{}:0", "7".repeat(64))], "is in no stored block"),
    ] {
        let message = refusal(&run(&data, &args));
        assert!(message.contains(says) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn other_networks_other_processes_and_no_chain_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    let message = refusal(&run(&data, &["status"]));
    assert!(message.contains("there is no chain in"), "{message}");
    let from = chain.to_str().unwrap();
    ask(&data, &["sync", "--from", from, "--stop-height", "5"]);
    let text = data.to_str().unwrap();
    let message = refusal(&varve(&["status", "--network", "signet", "--datadir", text]));
    assert!(message.contains("holds the chain of regtest, not of signet"), "{message}");
    let mut holder = command(&data, &["sync", "--from", from, "--follow"]);
    let mut holder = holder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !data.join("socket").exists() {
        assert!(holder.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    let message = refusal(&run(&data, &["repair"]));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let names_it = message.contains(&format!("process {} (`varve sync`)", holder.id()));
    assert!(message.contains("in use by") && names_it, "{message}");
    let two = command(&data, &["sync", "--from", from, "--peer", "x"]).output().unwrap();
    assert_eq!(two.status.code(), Some(2), "one source at a time");
}

#[test]
fn killed_at_random_moments_it_ends_at_the_same_place() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let from = chain.to_str().unwrap();
    let mut killed = 0;
    for round in 0..20_u64 {
        let mut sync = command(&data, &["sync", "--from", from]);
        let mut sync = sync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(10 + round * 37 % 150));
        // SIGKILL; or it was done before.
        sync.kill().unwrap();
        killed += u64::from(!sync.wait().unwrap().success());
    }
    assert!(killed > 3, "killed {killed} times");
    ask(&data, &["sync", "--from", from]);
    check_answers(&data, &expected);
    ask(&data, &["verify"]);
}

#[test]
fn damage_is_found_and_what_derives_from_blocks_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    let whole = ask(&data, &["verify"]);
    assert_eq!(whole["txouts"], expected["txouts"]);
    // The archive is lost, and the set with it.
    for store in ["archive", "utxo"] {
        fs::remove_dir_all(data.join(store)).unwrap();
    }
    assert_eq!(ask(&data, &["repair"])["bestblock"], expected["tip"]);
    check_answers(&data, &expected);
    assert_eq!(ask(&data, &["verify"]), whole);
    // The log of commits is lost: the blocks are there, and a sync confirms them again.
    fs::remove_file(data.join("commit/commits-000000000000")).unwrap();
    assert_eq!(ask(&data, &["repair"])["height"], 0);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    check_answers(&data, &expected);
    // One bit of what is needed for a reorganisation, and one of a block.
    for name in ["utxo/undo-000000000000", "blocks/blocks-000000000000"] {
        let path = data.join(name);
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        bytes[whole.len() / 2] ^= 4;
        fs::write(&path, bytes).unwrap();
        let message = refusal(&run(&data, &["verify"]));
        assert!(message.contains(&format!("{name} is damaged")), "{message}");
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn standard_input_and_a_record_that_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let mut bytes = fs::read(chain.join("blocks/blk00000.dat")).unwrap();
    let cut = bytes.len() - 10;
    bytes.truncate(cut);
    let mut sync = command(&data, &["sync", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    sync.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = sync.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("is cut off or damaged"), "{message}");
    assert_eq!(output.status.code(), Some(1), "{message}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["height"], &answer["complete"]), (&Value::from(123), &Value::from(false)));
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    check_answers(&data, &expected);
}
