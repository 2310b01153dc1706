//! Answers about the whole: status, readiness, branches, the set, the database.

use std::collections::BTreeSet;

use varve::{Height, Source};
use varve_server::sync_state::SyncPhase;

use super::client::get;
use super::ledger::Ledger;
use super::rig::{Rig, SHARED, blocks};

#[test]
fn a_node_at_the_tip_is_ready() {
    let rig = &*SHARED;
    assert_eq!(rig.ask("health")["status"], "ok");
    let ready = rig.ask("ready");
    assert_eq!((&ready["ready"], &ready["missing"]), (&true.into(), &serde_json::json!([])));
    let status = rig.ask("status");
    assert_eq!(
        (&status["network"], &status["prune"]),
        (&"regtest".into(), &serde_json::Value::Null)
    );
    let indexes = status["indexes"].as_array().unwrap();
    assert_eq!(indexes.len(), 3);
    assert!(indexes.iter().all(|index| index["height"] == status["tip"]["height"]));
}

#[test]
fn a_node_that_lacks_blocks_is_not_ready() {
    let rig = Rig::new(Vec::new());
    let chain = blocks(110, 6).into_iter().map(|block| block.bytes);
    let job = rig.node.sync(Source::blocks(chain.collect::<Vec<_>>()));
    job.stop_height(Height::new(98)).run().unwrap();
    rig.service.sync_state().set(SyncPhase::Syncing);
    let answer = get(&rig.address, "/api/varve/v1/ready");
    let json = answer.json();
    assert_eq!((answer.status, &json["ready"]), (503, &false.into()), "{json}");
    assert_eq!((&json["tip"]["height"], &json["headers"]), (&98.into(), &110.into()));
    assert!(json["missing"][0].as_str().unwrap().starts_with("12 blocks"), "{json}");
    assert_eq!(json["state"], "syncing");
    rig.service.sync_state().set(SyncPhase::Ended);
    assert_eq!(rig.ask("ready")["state"], "ended");
    assert_eq!(rig.ask("health")["status"], "ok");
}

#[test]
fn forks_are_drawn_with_both_branches() {
    let rig = &*SHARED;
    let found = rig.ask("forks");
    let branches = found["branches"].as_array().unwrap();
    assert_eq!(found["total"], branches.len());
    assert_eq!(branches[0]["state"], "active");
    let active: BTreeSet<String> = rig
        .blocks
        .iter()
        .filter(|block| !block.stale)
        .map(|block| block.hash.to_string())
        .collect();
    let mut stale = BTreeSet::new();
    for branch in &branches[1..] {
        assert_eq!(branch["state"], "stale");
        assert!(active.contains(branch["fork"]["hash"].as_str().unwrap()));
        let fork = branch["fork"]["height"].as_u64().unwrap();
        let blocks = branch["blocks"].as_array().unwrap();
        assert_eq!(branch["length"], blocks.len());
        for (at, block) in (fork + 1..).zip(blocks) {
            assert_eq!(block["height"], at);
            stale.insert(block["hash"].as_str().unwrap().to_owned());
        }
        for (at, block) in (fork + 1..).zip(branch["beside"].as_array().unwrap()) {
            assert_eq!(block["height"], at);
            assert!(active.contains(block["hash"].as_str().unwrap()));
        }
    }
    let expected = rig.blocks.iter().filter(|block| block.stale);
    let expected: BTreeSet<String> = expected.map(|block| block.hash.to_string()).collect();
    assert!(!expected.is_empty());
    assert_eq!(stale, expected);
}

#[test]
fn a_refused_branch_says_why_and_a_long_one_is_outlined() {
    let chain = blocks(40, 8);
    let rig = Rig::new(chain.iter().filter(|block| !block.stale).cloned().collect());
    let from = rig.blocks[30].hash;
    rig.node.invalidate(from).unwrap();
    let found = rig.ask("forks");
    let branch = &found["branches"][1];
    assert_eq!((&branch["state"], &branch["length"]), (&"invalid".into(), &11.into()));
    assert!(branch["reason"].is_string());
    let blocks = branch["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 6);
    assert_eq!((&blocks[0]["height"], &blocks[4]["gap"]), (&30.into(), &6.into()));
    assert_eq!(blocks[5]["height"], 40);
    let block = rig.ask(&format!("block/{from}"));
    assert!(block["block"]["invalid"].is_string() && block["confirmations"] == 0);
}

#[test]
fn the_set_has_its_figures_at_every_height() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    let tip = rig.node.snapshot().tip().height.to_u32();
    let found = rig.ask("set?points=1000");
    let (txouts, amount) = ledger.set_at(tip);
    assert_eq!((&found["txouts"], &found["total_amount"]), (&txouts.into(), &amount.into()));
    assert_eq!(found["counted_to"], tip);
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), tip as usize + 1);
    for (height, point) in (0..).zip(points) {
        let (txouts, amount) = ledger.set_at(height);
        let expected = (&height.into(), &txouts.into(), &amount.into());
        assert_eq!((&point["height"], &point["txouts"], &point["total_amount"]), expected);
    }
    let part = rig.ask("set?points=3&from=10&to=20");
    let heights: Vec<_> =
        part["points"].as_array().unwrap().iter().map(|point| point["height"].as_u64()).collect();
    assert_eq!(heights, [Some(10), Some(15), Some(20)]);
    assert_eq!(rig.ask("set")["points"], serde_json::json!([]));
}

#[test]
fn the_sediment_is_that_of_the_folder() {
    let rig = &*SHARED;
    let ledger = Ledger::of(&rig.blocks);
    let tip = rig.node.snapshot().tip().height.to_u32();
    let found = rig.ask("sediment");
    assert_eq!(found["coins"], ledger.set_at(tip).0);
    assert_eq!(found["blocks"], rig.blocks.len());
    let panes = found["window"]["panes"].as_array().unwrap();
    let steps: u64 = panes.iter().map(|pane| pane["steps"].as_u64().unwrap()).sum();
    assert_eq!(found["window"]["steps"], steps);
    assert_eq!(panes[0]["height"], tip);
    let of_runs = |field: &str| -> u64 {
        let runs = found["runs"].as_array().unwrap();
        runs.iter().map(|run| run[field].as_u64().unwrap()).sum()
    };
    assert!(of_runs("adds") - of_runs("deletes") <= ledger.set_at(tip).0);
    let stores = found["stores"].as_array().unwrap();
    let names: BTreeSet<_> = stores.iter().map(|store| store["name"].as_str().unwrap()).collect();
    assert!(names.contains("blocks") && names.contains("utxo"), "{names:?}");
    let blocks = stores.iter().find(|store| store["name"] == "blocks").unwrap();
    let written: usize = rig.blocks.iter().map(|block| block.bytes.len()).sum();
    assert!(blocks["bytes"].as_u64().unwrap() >= written as u64);
    assert!(found["memory"]["budget"].as_u64().unwrap() > 0);
}

#[test]
fn without_a_mempool_all_is_zero() {
    let found = SHARED.ask("mempool");
    assert_eq!((&found["live"], &found["count"]), (&false.into(), &0.into()));
}
