//! Transactions and outputs, on every branch.

use std::collections::BTreeSet;

use serde_json::Value;
use varve::Outpoint;
use varve::types::{Block as Parsed, address};

use super::ledger::{Ledger, Spend};
use super::rig::{NETWORK, SHARED};

/// The spend that an answer describes.
fn spend(value: &Value) -> Spend {
    Spend {
        block: value["block"].as_str().unwrap().parse().unwrap(),
        height: u32::try_from(value["height"].as_u64().unwrap()).unwrap(),
        txid: value["txid"].as_str().unwrap().parse().unwrap(),
        vin: u32::try_from(value["vin"].as_u64().unwrap()).unwrap(),
        confirmed: value["confirmed"].as_bool().unwrap(),
    }
}

#[test]
fn every_transaction_links_both_ways() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    let (mut spent, mut stale) = (0, 0);
    for block in rig.blocks.iter().filter(|block| block.height > 120) {
        let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
        for tx in parsed.txs() {
            let txid = tx.txid();
            let found = rig.ask(&format!("tx/{txid}"));
            let holders = &ledger.holders[&txid];
            let is_confirmed = holders.iter().any(|holder| holder.3);
            assert_eq!(found["state"], if is_confirmed { "confirmed" } else { "stale" });
            stale += usize::from(!is_confirmed);
            let blocks: BTreeSet<&str> = found["blocks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|block| block["hash"].as_str().unwrap())
                .collect();
            let expected: Vec<String> = holders.iter().map(|holder| holder.0.to_string()).collect();
            assert_eq!(blocks, expected.iter().map(String::as_str).collect());
            let weight = tx.base_len() * 3 + tx.bytes().len();
            assert_eq!(
                (&found["weight"], &found["vsize"]),
                (&weight.into(), &weight.div_ceil(4).into())
            );
            let fee = (!tx.is_coinbase()).then(|| ledger.fee(tx));
            assert_eq!(found["fee"].as_u64(), fee, "{txid}");
            for (vin, input) in tx.inputs().enumerate().filter(|_| !tx.is_coinbase()) {
                let (one, made) = (&found["inputs"][vin], &ledger.outputs[&input.outpoint]);
                assert_eq!(one["txid"], input.outpoint.txid.to_string());
                assert_eq!(one["prevout"]["value"], made.value);
                let shown = address::encode(&made.script, NETWORK);
                assert_eq!(one["prevout"]["script"]["address"].as_str(), shown.as_deref());
            }
            for vout in 0..u32::try_from(tx.outputs().count()).unwrap() {
                let one = &found["outputs"][vout as usize];
                let known = ledger.spends.get(&Outpoint::new(txid, vout)).cloned();
                let known = known.unwrap_or_default();
                let confirmed = known.iter().find(|spend| spend.confirmed);
                let by = one["spent_by"].as_object().map(|_| spend(&one["spent_by"]));
                assert_eq!(by.as_ref(), confirmed, "{txid}:{vout}");
                spent += usize::from(by.is_some());
                let others = one["other_spends"].as_array().unwrap().iter().map(spend);
                let others: BTreeSet<Spend> = others.collect();
                let expected = known.into_iter().filter(|spend| !spend.confirmed);
                assert_eq!(others, expected.collect(), "{txid}:{vout}");
            }
        }
    }
    assert!(spent > 50 && stale > 0, "the chain has {spent} spends and {stale} stale transactions");
}

#[test]
fn a_page_of_a_transaction_is_a_part_of_it() {
    let rig = &*SHARED;
    let block = rig.blocks.last().unwrap();
    let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
    let tx = parsed.txs().iter().max_by_key(|tx| tx.outputs().count()).unwrap();
    let (txid, outputs) = (tx.txid(), tx.outputs().count());
    assert!(outputs > 1);
    let whole = rig.ask(&format!("tx/{txid}"));
    for from in 0..=outputs {
        let page = rig.ask(&format!("tx/{txid}?from={from}&limit=1"));
        let expected = whole["outputs"].get(from);
        assert_eq!(page["outputs"].get(0), expected);
        assert_eq!(page["inputs"].get(0), whole["inputs"].get(from));
        assert_eq!((&page["outputs_total"], &page["fee"]), (&outputs.into(), &whole["fee"]));
    }
}

#[test]
fn an_output_has_its_spends_on_every_branch() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    let double: Vec<_> = ledger.spends.iter().filter(|(_, spends)| spends.len() > 1).collect();
    assert!(!double.is_empty(), "no output was spent on two branches");
    let single = ledger.spends.iter().filter(|(_, spends)| spends.len() == 1).take(20);
    for (outpoint, spends) in double.into_iter().take(20).chain(single) {
        let found = rig.ask(&format!("outpoint/{}/{}", outpoint.txid, outpoint.vout));
        let made = &ledger.outputs[outpoint];
        assert_eq!(found["value"], made.value);
        assert_eq!(found["spent"], spends.iter().any(|spend| spend.confirmed));
        let answered: BTreeSet<Spend> =
            found["spends"].as_array().unwrap().iter().map(spend).collect();
        assert_eq!(answered, spends.iter().copied().collect());
    }
}

#[test]
fn a_proof_leads_to_the_merkle_root_on_either_branch() {
    let rig = &*SHARED;
    for block in rig.blocks.iter().filter(|block| block.height > 140) {
        let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
        let tx = parsed.txs().last().unwrap().txid();
        let found = rig.ask(&format!("proof/{tx}"));
        let proven = found["block"].as_str().unwrap();
        let of = rig.blocks.iter().find(|block| block.hash.to_string() == proven).unwrap();
        assert_eq!(found["confirmed"], !of.stale);
        let parsed = Parsed::parse(&of.bytes, NETWORK.format()).unwrap();
        let header: String = of.bytes[..80].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found["header"], header);
        assert_eq!(found["tsc"]["target"], of.hash.to_string());
        let at = parsed.txids().iter().position(|txid| *txid == tx).unwrap();
        assert_eq!((&found["electrum"]["pos"], &found["tsc"]["index"]), (&at.into(), &at.into()));
    }
}
