//! Real chains: Core's statistics of the set at every height for which there is an answer, on the
//! way up, after reopening, and on the way down.

use std::sync::Arc;

use serde_json::Value;
use varve_consensus::BlockAt;
use varve_io::{Disk, Storage};
use varve_testdata::chains::{self, Answered};
use varve_types::{Block, BlockHash, Height, Network};
use varve_utxo::{Compaction, Database, Options, Parameters, SetHash, UndoConfig, Version};

use crate::statistics::statistics;
use crate::twin::KEY;

/// Compares a version with an answer of `gettxoutsetinfo`, in all fields that it has.
fn compare(version: &Version, expected: &Value) {
    let height = &expected["height"];
    for (name, hash) in
        [("muhash", SetHash::Muhash), ("hash_serialized_3", SetHash::HashSerialized3)]
    {
        let Some(answer) = expected[name].as_str() else { continue };
        let found = statistics(version, hash);
        let shown = BlockHash::from_bytes(found.hash.unwrap()).to_string();
        assert_eq!(shown, answer, "{name} at {height}");
    }
    let found = statistics(version, SetHash::None);
    assert_eq!(Some(found.txouts), expected["txouts"].as_u64(), "coins at {height}");
    assert_eq!(Some(found.bogosize), expected["bogosize"].as_u64(), "bogosize at {height}");
    let amount = chains::satoshi(&expected["total_amount"]);
    assert_eq!(found.total_amount.unwrap().to_sat(), amount, "amount at {height}");
}

fn up_and_down(network: Network, chain: &Answered) {
    let Answered { blocks, answers } = chain;
    let dir = tempfile::tempdir().unwrap();
    // Every checkpoint is a handful of syncs: the longest chain makes fewer.
    let flush_interval = if blocks.len() > 1_000 { 16 } else { 2 };
    let parameters = Parameters { window: 4, flush_interval, fan_in: 2, max_probed: 6 };
    let undo = UndoConfig { blocks: 5_000, ..UndoConfig::default() };
    // A short chain would be over before a thread has written its first run.
    let compaction = if blocks.len() > 1_000 { Compaction::Threads } else { Compaction::Inline };
    let options = Options { parameters, undo, shards: 4, compaction, ..Options::new(network, KEY) };
    let open = || {
        let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path()).unwrap());
        Database::open(storage, options).unwrap()
    };
    let check = |database: &Database| {
        let tip = database.tip().unwrap().0.to_u32();
        let here = answers.iter().filter(|answer| chains::height(answer) == tip);
        here.map(|answer| compare(&database.snapshot(), answer)).count()
    };
    let mut database = open();
    let mut compared = 0;
    for (height, bytes) in (0..).zip(blocks) {
        let block = Block::parse(bytes, network.format()).unwrap();
        database.append(&BlockAt::new(Height::new(height), &block)).unwrap();
        compared += check(&database);
    }
    assert_eq!(compared, answers.len(), "every answer was compared");
    assert!(!database.snapshot().runs().as_slice().is_empty(), "old blocks are in runs");
    database.flush().unwrap();
    drop(database);
    let mut database = open();
    check(&database);
    let mut heights: Vec<u32> = answers.iter().map(chains::height).collect();
    heights.sort_unstable();
    for height in heights.into_iter().rev() {
        database.rewind_to(Height::new(height)).unwrap();
        assert!(check(&database) > 0);
    }
}

#[test]
fn mainnet() {
    let Some(chain) = Answered::mainnet() else { return };
    up_and_down(Network::Mainnet, &chain);
}

#[test]
fn signet() {
    let Some(chain) = Answered::signet() else { return };
    up_and_down(Network::Signet, &chain);
}

#[test]
fn regtest_kernel() {
    let Some(chain) = Answered::kernel(Network::Regtest.genesis_block()) else { return };
    up_and_down(Network::Regtest, &chain);
}

#[test]
fn regtest_core31() {
    let Some(chain) = Answered::core31() else { return };
    up_and_down(Network::Regtest, &chain);
}
