//! Records on engines that a URL names.

use serde_json::json;
use varve_records::contract::postgres::Server;

use super::store::Store;
use super::tx::{Input, Tx};

/// A parent with a frozen output, and a child.
fn fill(store: &Store) -> (Tx, Tx) {
    let parent = Tx::paying(&[Input::unknown(1, 1_000)], &[500, 400]);
    store.ok(&json!({"op":"create","tx":parent.extended,"block_height":5}));
    let child = Tx::paying(&[parent.output(0)], &[300]);
    store.ok(&json!({"op":"spend_and_create","tx":child.extended,"block_height":6}));
    store.json(&["freeze", &format!("{}:1", parent.txid)]);
    (parent, child)
}

#[test]
fn records_move_to_another_folder() {
    let store = Store::new();
    let (parent, child) = fill(&store);
    store.json(&["conflicts", "--height", "77"]);
    let to = format!("embedded:{}", store.path().join("other").display());
    let report = store.json(&["copy", "--from", "embedded:", "--to", &to]);
    assert_eq!(report, json!({"records": 2, "blobs": 0, "intents": 0}));
    for txid in [&parent.txid, &child.txid] {
        assert_eq!(store.json(&["get", txid, "--engine", &to]), store.json(&["get", txid]));
    }
    let other = store.path().join("other").join("tip");
    let tip = store.path().join("records").join("tip");
    assert_eq!(std::fs::read(other).unwrap(), std::fs::read(tip).unwrap(), "the tip moves along");
    let again = store.refusal(&["copy", "--from", "embedded:", "--to", &to]);
    assert!(again.contains("the target holds records"), "{again}");
    let same = store.refusal(&["copy", "--from", "embedded:", "--to", "embedded:"]);
    assert!(same.contains("name the same records"), "{same}");
}

#[test]
fn records_live_in_postgres() {
    let Some(server) = Server::shared() else { return };
    let store = Store::new();
    let (parent, child) = fill(&store);
    let url = server.url("moved");
    assert_eq!(store.json(&["copy", "--from", "embedded:", "--to", &url])["records"], 2);
    // Another node, with a folder of its own, sees and changes the same records.
    let other = Store::with(&["--engine", &url]);
    for txid in [&parent.txid, &child.txid] {
        assert_eq!(other.json(&["get", txid]), store.json(&["get", txid]));
    }
    let output = format!("{}:1", parent.txid);
    assert!(other.refusal(&["freeze", &output]).contains("UTXO_FROZEN"));
    other.json(&["unfreeze", &output]);
    other.json(&["lock", &child.txid]);
    assert_eq!(store.json(&["get", &child.txid, "--engine", &url])["locked"], true);
    assert_eq!(other.json(&["prune", "--height", "9000"])["elsewhere"], false);
    let bench = server.url("bench");
    let bench = ["bench", "--transactions", "200", "--batch", "50", "--engine", &bench];
    assert_eq!(store.json(&bench)["operations"], 300);
}

#[test]
fn a_server_that_refuses_is_a_sentence_without_secrets() {
    let Some(server) = Server::shared() else { return };
    let port = server.port();
    let store = Store::new();
    for (url, expected) in [
        (format!("postgres://varve:hunter2@127.0.0.1:{port}/none"), "does not exist"),
        (
            "postgres://varve:hunter2@127.0.0.1:1/postgres".to_owned(),
            "no PostgreSQL server answers",
        ),
        ("postgres://varve:hunter2@127.0.0.1:x/postgres".to_owned(), "cannot be used"),
    ] {
        let sentence = store.refusal(&["conflicts", "--engine", &url]);
        assert!(sentence.contains(expected), "{sentence}");
        assert!(!sentence.contains("hunter2"), "{sentence}");
    }
}
