//! Blocks, block by block.

use varve::types::Block as Parsed;

use super::ledger::Ledger;
use super::rig::{NETWORK, SHARED};

/// The weight of a block by BIP141, from its bytes.
fn weight(parsed: &Parsed<'_>, size: usize) -> usize {
    let witness: usize = parsed.txs().iter().map(|tx| tx.bytes().len() - tx.base_len()).sum();
    (size - witness) * 3 + size
}

#[test]
fn every_block_has_the_figures_of_its_bytes() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    for block in &rig.blocks {
        let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
        let found = rig.ask(&format!("block/{}", block.hash));
        let detail = &found["block"];
        assert_eq!(detail["height"], block.height);
        assert_eq!(detail["confirmed"], !block.stale);
        assert_eq!(detail["size"], block.bytes.len());
        assert_eq!(detail["weight"], weight(&parsed, block.bytes.len()));
        assert_eq!(detail["tx_count"], parsed.txs().len());
        let fees: Vec<u64> = parsed.txs().iter().skip(1).map(|tx| ledger.fee(tx)).collect();
        assert_eq!(detail["fees"], fees.iter().sum::<u64>(), "block {}", block.height);
        let rates = parsed.txs().iter().skip(1).zip(&fees).map(|(tx, fee)| {
            let weight = tx.base_len() * 3 + tx.bytes().len();
            *fee as f64 / weight.div_ceil(4) as f64
        });
        for (name, expected) in
            [("min", rates.clone().reduce(f64::min)), ("max", rates.reduce(f64::max))]
        {
            let found = detail["fee_rates"][name].as_f64();
            assert_eq!(found.is_some(), expected.is_some(), "block {}", block.height);
            // JSON is read back to the last digit but one.
            let apart = found.zip(expected).map_or(0.0, |(found, expected)| found / expected - 1.0);
            assert!(apart.abs() < 1e-12, "block {}: {found:?} {expected:?}", block.height);
        }
        let tip = rig.node.snapshot().tip().height.to_u32();
        let confirmations = if block.stale { 0 } else { tip - block.height + 1 };
        assert_eq!(found["confirmations"], confirmations);
    }
}

#[test]
fn a_block_by_height_is_that_of_the_chain_and_knows_its_neighbours() {
    let rig = &*SHARED;
    let active: Vec<_> = rig.blocks.iter().filter(|block| !block.stale).collect();
    for (at, block) in active.iter().enumerate() {
        let found = rig.ask(&format!("block/{}", block.height));
        assert_eq!(found["block"]["hash"], block.hash.to_string());
        let next = active.get(at + 1).map(|next| next.hash.to_string());
        assert_eq!(found["block"]["next"].as_str(), next.as_deref());
        let below = at.checked_sub(1).map(|at| active[at].hash.to_string());
        assert_eq!(found["block"]["previous"].as_str(), below.as_deref());
    }
}

#[test]
fn pages_of_a_list_are_the_chain_from_the_tip_down() {
    let rig = &*SHARED;
    let active = rig.blocks.iter().rev().filter(|block| !block.stale);
    let expected: Vec<String> = active.map(|block| block.hash.to_string()).collect();
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let from = before.map(|before| format!("&before={before}")).unwrap_or_default();
        let page = rig.ask(&format!("blocks?limit=7{from}"));
        let blocks = page["blocks"].as_array().unwrap();
        assert!(blocks.len() == 7 || page["next"].is_null());
        found.extend(blocks.iter().map(|block| block["hash"].as_str().unwrap().to_owned()));
        before = page["next"].as_u64();
        if before.is_none() {
            break;
        }
    }
    assert_eq!(found, expected);
    assert_eq!(rig.ask("blocks?before=0")["blocks"].as_array().unwrap().len(), 0);
    let above = rig.ask("blocks?before=4294967295&limit=1");
    assert_eq!(above["blocks"][0]["hash"], expected[0]);
}

#[test]
fn pages_of_a_block_are_its_transactions() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    for block in rig.blocks.iter().filter(|block| block.height > 100) {
        let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
        let mut found = Vec::new();
        for from in (0..parsed.txs().len()).step_by(5) {
            let page = rig.ask(&format!("block/{}/txs?from={from}&limit=5", block.hash));
            assert_eq!((&page["from"], &page["total"]), (&from.into(), &parsed.txs().len().into()));
            found.extend(page["txs"].as_array().unwrap().clone());
        }
        assert_eq!(found.len(), parsed.txs().len());
        for (at, (tx, row)) in parsed.txs().iter().zip(&found).enumerate() {
            assert_eq!(
                (&row["txid"], &row["position"]),
                (&tx.txid().to_string().into(), &at.into())
            );
            let fee = (at > 0).then(|| ledger.fee(tx));
            assert_eq!(row["fee"].as_u64(), fee);
            let value: u64 = tx.outputs().map(|output| output.value.to_sat()).sum();
            assert_eq!(row["value"], value);
            assert_eq!(row["inputs"], tx.inputs().count());
        }
        let behind = rig.ask(&format!("block/{}/txs?from={}", block.hash, found.len()));
        assert_eq!(behind["txs"].as_array().unwrap().len(), 0);
    }
}
