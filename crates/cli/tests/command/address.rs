//! `varve address`: balance, history and unspent outputs of a script.

use serde_json::{Value, json};

use crate::varve::{ask, refusal, run, simulate};

/// A number of an answer.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn an_address_by_pages_at_a_height_and_without_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    let from = chain.to_str().unwrap();
    ask(&data, &["sync", "--from", from]);
    let nobody = "00".repeat(32);
    let message = refusal(&run(&data, &["address", &nobody]));
    assert!(message.contains("--index script"), "{message}");
    ask(&data, &["sync", "--from", from, "--index", "all"]);

    // The script that the coinbase of block 1 pays.
    let coinbase = ask(&data, &["block", "1"])["tx"][0].as_str().unwrap().to_owned();
    let node = varve::Node::builder().network(varve::Network::Regtest).datadir(&data);
    let node = node.open().unwrap();
    let tx = node.snapshot().tx(coinbase.parse().unwrap()).unwrap().unwrap();
    let script = tx.parse().unwrap().outputs().next().unwrap().script.to_vec();
    drop((tx, node));
    let hash = varve::ScriptHash::of(&script).to_string();

    let answer = ask(&data, &["address", &hash, "--limit", "500"]);
    let names: Vec<_> = answer.as_object().unwrap().keys().collect();
    let expected = ["balance", "counts", "cursor", "history", "script_hash", "tip", "utxos"];
    assert_eq!(names, expected);
    assert_eq!(answer["script_hash"], hash);
    assert_eq!(answer["cursor"], Value::Null);
    assert_eq!(answer["balance"]["unconfirmed"], 0);
    let status = ask(&data, &["status"]);
    let tip = json!({ "height": status["height"], "hash": status["bestblock"] });
    assert_eq!(answer["tip"], tip);
    let history = answer["history"].as_array().unwrap();
    assert_eq!((&history[0]["txid"], &history[0]["height"]), (&json!(coinbase), &json!(1)));
    assert_eq!(number(&answer["counts"]["txs"]), history.len() as u64);

    // Three ways to the same balance.
    let sum = |list: &Value, name: &str| -> u64 {
        list.as_array().unwrap().iter().map(|entry| number(&entry[name])).sum()
    };
    let balance = number(&answer["balance"]["confirmed"]);
    let moved = sum(&answer["history"], "received") - sum(&answer["history"], "sent");
    assert_eq!((balance, balance), (moved, sum(&answer["utxos"], "value")));
    let unspent = answer["utxos"].as_array().unwrap().len() as u64;
    assert_eq!(number(&answer["counts"]["funded"]) - number(&answer["counts"]["spent"]), unspent);

    // Pages of one, the same as one page; the first alone lists unspent outputs.
    let (mut paged, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let text = cursor.to_string();
        let more = if cursor.is_null() { vec![] } else { vec!["--cursor", text.as_str()] };
        let args = [&["address", hash.as_str(), "--limit", "1"], more.as_slice()].concat();
        let page = ask(&data, &args);
        assert_eq!((&page["balance"], &page["counts"]), (&answer["balance"], &answer["counts"]));
        assert!(cursor.is_null() || page["utxos"].as_array().unwrap().is_empty());
        paged.extend(page["history"].as_array().unwrap().clone());
        cursor = page["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(&paged, history);

    let then = ask(&data, &["address", &hash, "--at", "1"]);
    assert_eq!(then["history"].as_array().unwrap().len(), 1);
    assert_eq!(number(&then["balance"]["confirmed"]), number(&history[0]["received"]));
    let empty = ask(&data, &["address", &nobody]);
    assert_eq!((&empty["history"], &empty["counts"]["txs"]), (&json!([]), &json!(0)));
    let message = refusal(&run(&data, &["address", "nonsense"]));
    assert!(message.contains("nonsense"), "{message}");
}
