//! A chain with every kind of transaction, by every way, and all that can be asked about it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use varve_testdata::bitcoind::{Answers, Bitcoind, EveryKind};
use varve_testdata::chains::satoshi;

use super::{check_tip, ways};
use crate::varve::{ask, run, tips};

#[test]
fn a_chain_of_every_kind_by_every_way() {
    let Some(node) = Bitcoind::start(&["-coinstatsindex", "-txindex"]) else { return };
    EveryKind::make(&node);
    let answers = Answers::of(&node);
    let folder = tempfile::tempdir().unwrap();
    for [flag, value] in ways(&node) {
        let data = folder.path().join(&flag);
        let done = ask(&data, &["sync", &flag, &value, "--verify", "scripts"]);
        assert_eq!(done["bestblock"], answers.tip, "{flag}");
        assert_eq!((&done["headers"], &done["refused"]), (&json!(answers.height), &json!(0)));
        // The files also have what the node took back.
        assert!(done["connected"].as_u64().unwrap() >= u64::from(answers.height));
        check_tip(&data, &node);
        // Only the files have branches that have lost.
        let known = tips(&ask(&data, &["status"])["chaintips"]);
        let theirs = tips(&answers.chain_tips);
        match flag.as_str() {
            "--from" => assert_eq!(known, theirs),
            _ => assert_eq!(known, [(u64::from(answers.height), answers.tip.clone(), 0)]),
        }
        check_set(&data, &answers, if flag == "--from" { 1 } else { 25 });
        if flag == "--peer" {
            check_questions(&data, &node);
        }
        // There is nothing more to do.
        assert_eq!(ask(&data, &["sync", &flag, &value])["connected"], 0);
    }
}

/// The set of every `step`th height, and the file of the last.
fn check_set(data: &Path, answers: &Answers, step: usize) {
    for (height, answer) in answers.at_heights.iter().enumerate().rev().step_by(step) {
        let found = ask(data, &["utxo", "stats", "--at", &height.to_string()]);
        for field in ["height", "bestblock", "txouts", "bogosize", "muhash"] {
            assert_eq!(found[field], answer[field], "{field} at {height}");
        }
        assert_eq!(found["total_amount"], satoshi(&answer["total_amount"]));
    }
    let file = data.join("utxo.dat");
    let exported = ask(data, &["utxo", "export", file.to_str().unwrap()]);
    assert_eq!(exported["txouts"], answers.set["txouts"]);
    assert!(fs::read(file).unwrap() == answers.snapshot, "the snapshot file is another one");
}

/// Every block with transactions, these, and what they spend.
fn check_questions(data: &Path, node: &Bitcoind) {
    let mut transactions = 0;
    for height in 0..=node.height() {
        let hash = node.call("getblockhash", &json!([height]));
        let block = node.call("getblock", &json!([hash, 2]));
        let txs = block["tx"].as_array().unwrap();
        if txs.len() == 1 && height % 50 > 0 {
            continue;
        }
        let name = if height % 2 == 0 { hash.as_str().unwrap() } else { &height.to_string() };
        let ours = ask(data, &["block", name]);
        for field in ["hash", "height", "merkleroot", "time", "bits", "nonce", "size"] {
            assert_eq!(ours[field], block[field], "{field} of {height}");
        }
        assert_eq!(ours["previousblockhash"], block["previousblockhash"]);
        assert_eq!(ours["hex"], node.call("getblock", &json!([hash, 0])));
        assert!(txs.iter().map(|tx| &tx["txid"]).eq(ours["tx"].as_array().unwrap()));
        for tx in &txs[1..] {
            check_transaction(data, node, tx, &ours);
            transactions += 1;
        }
    }
    assert!(transactions > 25, "{transactions} transactions");
}

fn check_transaction(data: &Path, node: &Bitcoind, tx: &Value, block: &Value) {
    let txid = tx["txid"].as_str().unwrap();
    let ours = ask(data, &["tx", txid]);
    assert_eq!(ours["hex"], tx["hex"]);
    assert_eq!((&ours["blockhash"], &ours["confirmed"]), (&block["hash"], &json!(true)));
    let input = &tx["vin"].as_array().unwrap().last().unwrap();
    let spent = format!("{}:{}", input["txid"].as_str().unwrap(), input["vout"]);
    let spender = ask(data, &["spender", &spent]);
    assert_eq!((&spender["txid"], &spender["height"]), (&tx["txid"], &block["height"]));
    assert_eq!(spender["vin"], tx["vin"].as_array().unwrap().len() - 1);
    assert_eq!(run(data, &["utxo", "get", &spent]).status.code(), Some(1));
    // Its last output is there, unless it was spent.
    let vout = tx["vout"].as_array().unwrap().len() - 1;
    let point = format!("{txid}:{vout}");
    let coin = node.call("gettxout", &json!([txid, vout, false]));
    assert_eq!(coin.is_null(), !ask(data, &["spender", &point])["txid"].is_null());
    if !coin.is_null() {
        let ours = ask(data, &["utxo", "get", &point]);
        assert_eq!(ours["script_pubkey"], coin["scriptPubKey"]["hex"]);
        assert_eq!(ours["value"], satoshi(&coin["value"]));
        assert_eq!((&ours["height"], &ours["coinbase"]), (&block["height"], &json!(false)));
    }
}
