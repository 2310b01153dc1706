//! The commands apart from `apply`.

use std::process::Command;

use serde_json::json;

use super::store::Store;
use super::tx::{Input, Tx};

#[test]
fn get_freeze_unfreeze_reassign_lock_and_prune() {
    let store = Store::new();
    let tx = Tx::paying(&[Input::unknown(1, 1_000)], &[500, 400]);
    store.ok(&json!({"op":"create","tx":tx.extended,"block_height":5}));
    let output = format!("{}:0", tx.txid);
    assert_eq!(store.json(&["get", &tx.txid])["fee"], 100);
    let some = store.json(&["get", &tx.txid, "--fields", "locked,blockIDs"]);
    assert_eq!(some.as_object().unwrap().len(), 5, "{some}");
    let text = String::from_utf8(store.run(&["get", &tx.txid]).stdout).unwrap();
    assert!(text.contains("unmined_since         5"), "{text}");

    store.json(&["freeze", &output]);
    assert!(store.refusal(&["freeze", &output]).contains("UTXO_FROZEN"));
    store.json(&["unfreeze", &output]);
    assert!(store.refusal(&["reassign", &output, "--script", "53"]).contains("UTXO_INVALID_SIZE"));
    store.json(&["freeze", &output]);
    store.json(&["reassign", &output, "--script", "53", "--height", "700"]);
    let record = store.json(&["get", &tx.txid]);
    assert_eq!(record["utxo_spendable_in"], json!({"0":1_700}), "from the height that was told");

    store.json(&["lock", &tx.txid]);
    assert_eq!(store.json(&["get", &tx.txid])["locked"], true);
    store.json(&["unlock", &tx.txid]);
    assert_eq!(store.json(&["get", &tx.txid])["locked"], false);
    assert_eq!(store.json(&["prune", "--height", "9000"])["removed"], 0);
    let conflicts = store.json(&["conflicts", &tx.txid]);
    assert_eq!(conflicts["counter_conflicting"], json!([tx.txid]));
}

#[test]
fn what_is_not_there_is_a_sentence_and_exit_code_1() {
    let store = Store::new();
    let txid = "00".repeat(32);
    let sentence = store.refusal(&["get", &txid]);
    assert!(sentence.contains("TX_NOT_FOUND") && sentence.contains(&txid), "{sentence}");
    let sentence = store.refusal(&["get", &txid, "--fields", "nr_utxos"]);
    assert!(sentence.contains("known are"), "{sentence}");
}

#[test]
fn an_unknown_engine_is_refused_with_the_list() {
    let store = Store::new();
    for url in ["postgress://me:secret@host/db", "nonsense"] {
        let sentence = store.refusal(&["conflicts", "--engine", url]);
        assert!(sentence.contains("embedded:PATH, memory: or postgres://"), "{sentence}");
        assert!(!sentence.contains("secret"), "{sentence}");
    }
    assert!(!store.path().join("records").exists());
    assert!(store.run(&["conflicts", "--engine", "memory:"]).status.success());
    assert!(!store.path().join("records").exists(), "memory needs no folder");
}

#[test]
fn bench_measures_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["records", "bench", "--transactions", "200", "--batch", "50", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_varve"));
    let output = command.args(arguments).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["operations"], 300);
    assert!(answer["operations_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn every_command_shows_examples() {
    let commands = [
        "get",
        "freeze",
        "unfreeze",
        "reassign",
        "lock",
        "unlock",
        "conflicts",
        "intents",
        "retry",
        "abandon",
        "prune",
        "apply",
        "copy",
        "bench",
    ];
    for command in commands {
        let output = Store::new().run(&[command, "--help"]);
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:") && help.contains("--engine"), "{help}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for arguments in [
        &["get"][..],
        &["freeze"],
        &["reassign", "x"],
        &["get", "zz"],
        &["apply"],
        &["conflicts", "--height", "0"],
        &["conflicts", "--utxo-batch-size", "0"],
    ] {
        assert_eq!(Store::new().run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
