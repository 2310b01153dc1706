//! Scripts: balances, histories and unspent outputs, now and as of a height.

use std::collections::BTreeSet;

use serde_json::Value;
use varve::types::address;
use varve::{Outpoint, ScriptHash, Txid};

use super::ledger::{History, Ledger, Touch};
use super::rig::{NETWORK, SHARED};

/// The busiest scripts, and some that have little.
fn sample(ledger: &Ledger) -> Vec<ScriptHash> {
    let mut all: Vec<_> = ledger.scripts.iter().map(|(hash, txs)| (txs.len(), *hash)).collect();
    all.sort_unstable();
    all.iter().rev().take(12).chain(all.iter().take(6)).map(|(_, hash)| *hash).collect()
}

fn sums(history: &History, at: u32) -> Touch {
    let below = history.iter().filter(|((height, _), _)| *height <= at);
    below.fold(Touch::default(), |sum, (_, (_, touch))| Touch {
        received: sum.received + touch.received,
        sent: sum.sent + touch.sent,
        funded: sum.funded + touch.funded,
        spent: sum.spent + touch.spent,
    })
}

fn unspent(ledger: &Ledger, script: ScriptHash, at: u32) -> BTreeSet<(String, u64, u64)> {
    let coins = ledger.coins.iter().filter(|(outpoint, (made, spent))| {
        let is_own = ScriptHash::of(&ledger.outputs[*outpoint].script) == script;
        is_own && *made <= at && spent.is_none_or(|spent| spent > at)
    });
    coins
        .map(|(outpoint, (made, _))| {
            (outpoint.to_string(), ledger.outputs[outpoint].value, (*made).into())
        })
        .collect()
}

#[test]
fn balances_and_unspent_outputs_are_those_of_any_height() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    let tip = rig.node.snapshot().tip().height.to_u32();
    for script in sample(&ledger) {
        let history = &ledger.scripts[&script];
        for at in [None, Some(tip), Some(tip - 1), Some(tip - 9), Some(110), Some(3), Some(0)] {
            let query = at.map(|at| format!("?at={at}")).unwrap_or_default();
            let found = rig.ask(&format!("script/{script}{query}"));
            let expected = sums(history, at.unwrap_or(tip));
            let balance = expected.received - expected.sent;
            assert_eq!(found["balance"]["confirmed"], balance, "{script}{query}");
            assert_eq!(found["received"], expected.received);
            assert_eq!(found["sent"], expected.sent);
            assert_eq!(found["counts"]["funded"], expected.funded);
            assert_eq!(found["counts"]["spent"], expected.spent);
            let utxos = rig.ask(&format!("script/{script}/utxos{query}"));
            let utxos = utxos["utxos"].as_array().unwrap().iter().map(|utxo| {
                let txid: Txid = utxo["txid"].as_str().unwrap().parse().unwrap();
                let vout = u32::try_from(utxo["vout"].as_u64().unwrap()).unwrap();
                let (value, height) = (utxo["value"].as_u64(), utxo["height"].as_u64());
                (Outpoint::new(txid, vout).to_string(), value.unwrap(), height.unwrap())
            });
            let expected = unspent(&ledger, script, at.unwrap_or(tip));
            assert_eq!(utxos.collect::<BTreeSet<_>>(), expected, "{script}{query}");
        }
    }
}

/// All pages of a history.
fn pages(script: &str, order: &str) -> Vec<Value> {
    let (mut txs, mut cursor) = (Vec::new(), None);
    loop {
        let from = cursor.map(|cursor: u64| format!("&cursor={cursor}")).unwrap_or_default();
        let page = SHARED.ask(&format!("script/{script}/history?limit=3&order={order}{from}"));
        assert_eq!(page["unconfirmed"].as_array().unwrap().len(), 0);
        txs.extend(page["txs"].as_array().unwrap().clone());
        cursor = page["cursor"].as_u64();
        if cursor.is_none() {
            return txs;
        }
    }
}

#[test]
fn pages_of_a_history_are_all_of_it_in_either_order() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    for script in sample(&ledger) {
        let history = &ledger.scripts[&script];
        let mut found = pages(&script.to_string(), "desc");
        found.reverse();
        assert_eq!(found, pages(&script.to_string(), "asc"));
        assert_eq!(found.len(), history.len());
        for (((height, position), (txid, touch)), row) in history.iter().zip(&found) {
            assert_eq!(
                (&row["height"], &row["position"]),
                (&(*height).into(), &(*position).into())
            );
            assert_eq!(row["txid"], txid.to_string());
            assert_eq!(
                (&row["received"], &row["sent"]),
                (&touch.received.into(), &touch.sent.into())
            );
        }
    }
}

#[test]
fn a_balance_over_time_is_the_balance_behind_each_block() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    for script in sample(&ledger) {
        let history = &ledger.scripts[&script];
        let heights: BTreeSet<u32> = history.keys().map(|(height, _)| *height).collect();
        let found = rig.ask(&format!("script/{script}/balance-history"));
        assert_eq!(found["complete"], true);
        let points = found["points"].as_array().unwrap();
        assert_eq!(points.len(), heights.len());
        for (height, point) in heights.iter().zip(points) {
            let expected = sums(history, *height);
            assert_eq!(point["height"], *height);
            assert_eq!(point["balance"], expected.received - expected.sent);
        }
        let short = rig.ask(&format!("script/{script}/balance-history?limit=1"));
        assert_eq!(short["complete"], history.len() == 1);
        assert_eq!(short["points"].get(0), points.last());
    }
}

#[test]
fn an_address_names_its_script() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    let made =
        ledger.outputs.values().find(|made| address::encode(&made.script, NETWORK).is_some());
    let script = &made.unwrap().script;
    let shown = address::encode(script, NETWORK).unwrap();
    let mut by_address = rig.ask(&format!("script/{shown}"));
    let by_hash = rig.ask(&format!("script/{}", ScriptHash::of(script)));
    assert_eq!(by_address["script"]["address"], shown);
    assert_eq!(by_address["script"]["hash"], by_hash["script"]["hash"]);
    by_address["script"] = by_hash["script"].clone();
    assert_eq!(by_address, by_hash);
}
