//! Many things in one request.

use serde_json::{Value, json};

use super::{served, simulated};
use crate::model::{address, script_hash};

#[test]
fn batches_are_the_same_as_single_questions() {
    let (server, model) = served(&simulated(130, 23));
    let mut client = server.client();
    let scripts: Vec<_> =
        model.scripts.keys().filter(|script| address(script).is_some()).take(20).collect();
    let addresses: Vec<String> = scripts.iter().filter_map(|script| address(script)).collect();
    let hashes: Vec<String> = scripts.iter().map(|script| script_hash(script)).collect();
    let mut merged: std::collections::BTreeMap<(usize, usize), (String, i64)> = Default::default();
    for script in &scripts {
        for (at, (txid, moved)) in &model.scripts[*script] {
            let value = moved.funded.1.cast_signed() - moved.spent.1.cast_signed();
            merged.entry(*at).or_insert((txid.to_string(), 0)).1 += value;
        }
    }
    let txids: Vec<String> = merged.values().rev().map(|(txid, _)| txid.clone()).collect();
    let ids = |page: &Value| -> Vec<String> {
        page.as_array().unwrap().iter().map(|tx| tx["txid"].as_str().unwrap().to_owned()).collect()
    };
    for (path, body) in [("addresses", json!(addresses)), ("scripthashes", json!(hashes))] {
        let mut found: Vec<String> = Vec::new();
        while found.len() < txids.len() {
            let after = found.last().map(|last| format!("?after_txid={last}")).unwrap_or_default();
            let page = client.post_json(&format!("/api/{path}/txs{after}"), &body);
            assert_eq!(page.status, 200, "{}", page.text());
            found.extend(ids(&page.json()));
        }
        assert_eq!(found, txids);
        let summary = client.post_json(&format!("/api/{path}/txs/summary"), &body).json();
        let values: Vec<i64> =
            summary.as_array().unwrap().iter().map(|row| row["value"].as_i64().unwrap()).collect();
        let expected: Vec<i64> = merged.values().rev().map(|(_, value)| *value).collect();
        assert_eq!((ids(&summary), values), (txids.clone(), expected));
    }
    let some: Vec<String> = txids.iter().take(5).cloned().collect();
    let spends: Vec<Value> =
        some.iter().map(|txid| client.json(&format!("/api/tx/{txid}/outspends"))).collect();
    assert_eq!(client.json(&format!("/api/txs/outspends?txids={}", some.join(","))), json!(spends));
    let by_txid = client.post_json("/api/internal/txs/outspends/by-txid", &json!(some));
    assert_eq!(by_txid.json(), json!(spends));
    let outpoints: Vec<String> = some.iter().map(|txid| format!("{txid}:0")).collect();
    let by_outpoint =
        client.post_json("/api/internal/txs/outspends/by-outpoint", &json!(outpoints));
    let firsts: Vec<Value> = spends.iter().map(|spends| spends[0].clone()).collect();
    assert_eq!(by_outpoint.json(), json!(firsts));
    let txs: Vec<Value> = some.iter().map(|txid| client.json(&format!("/api/tx/{txid}"))).collect();
    let with_unknown = [some, vec!["0".repeat(64)]].concat();
    assert_eq!(client.post_json("/api/internal/txs", &json!(with_unknown)).json(), json!(txs));
}
