//! Chains of real nodes, and what those nodes say of them.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use varve_consensus::Params;
use varve_node::source::directory::Directory;
use varve_node::{Limits, Options, Organizer};
use varve_testdata::chains;
use varve_types::{Height, Network};
use varve_utxo::{Parameters, SetHash};

use crate::rig::{
    Dice, chain_tips, disk, expected_tips, options, pipe, set_hash, statistics, stop_at, sync,
    sync_options, tip,
};

/// The blocks of the chain that Core wrote, in the order of its file, and its answers.
fn core_chain() -> Option<(Vec<Vec<u8>>, Value)> {
    Some((chains::core31()?, chains::json("regtest-core31/expected.json")?))
}

/// Compares everything at the tip with Core's answers.
fn check_core_tip(node: &Organizer, expected: &Value) {
    assert_eq!(tip(node).1, expected["tip"]);
    assert_eq!(chain_tips(node), expected_tips(&expected["chaintips"]));
    let answer = &expected["hash_serialized_3"];
    assert_eq!(set_hash(node, SetHash::HashSerialized3), answer["hash_serialized_3"]);
    let snapshot = varve_testdata::data("regtest-core31/snapshot.dat").unwrap();
    let mut ours = Vec::new();
    node.snapshot().utxo.export(Network::Regtest, &mut ours, &mut |_, _| {}).unwrap();
    assert!(ours == fs::read(snapshot).unwrap(), "the snapshot file is another one");
}

/// A set that reaches its old ages soon, and a node that commits and checkpoints often.
fn small(network: Network) -> Options {
    let parameters =
        Parameters { window: 4, flush_interval: 4, fan_in: 2, ..Parameters::default() };
    let limits = Limits { group: 20_000, lag: 100_000, ..Limits::default() };
    Options { parameters, limits, ..options(network) }
}

#[test]
fn the_chain_of_core_in_any_order_of_its_blocks() {
    let Some((mut blocks, expected)) = core_chain() else { return };
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), options(Network::Regtest)).unwrap();
        let refused =
            sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        assert_eq!(refused, []);
        check_core_tip(&node, &expected);
        drop(node);
        let node = Organizer::open(disk(folder.path()), options(Network::Regtest)).unwrap();
        check_core_tip(&node, &expected);
        Dice(seed).shuffle(&mut blocks);
    }
}

/// Syncs by and by from the folder, up to every height that Core gave an answer for.
fn check_core_heights(folder: &Path, options: &Options, expected: &Value) {
    let blocks = varve_testdata::data("regtest-core31/blocks").unwrap();
    let answers = expected["muhash"].as_object().unwrap();
    let mut heights: Vec<u64> = answers.keys().map(|height| height.parse().unwrap()).collect();
    heights.sort_unstable();
    for height in heights {
        let mut node = Organizer::open(disk(folder), options.clone()).unwrap();
        let mut source = Directory::open(&blocks, Network::Regtest, false).unwrap();
        assert_eq!(sync(&mut node, &mut source, &stop_at(height)).unwrap(), []);
        let answer = &answers[&height.to_string()];
        assert_eq!(tip(&node), (height, answer["bestblock"].as_str().unwrap().to_owned()));
        let found = statistics(&node, SetHash::Muhash);
        assert_eq!(set_hash(&node, SetHash::Muhash), answer["muhash"], "at {height}");
        assert_eq!(found.txouts, answer["txouts"].as_u64().unwrap());
        assert_eq!(found.bogosize, answer["bogosize"].as_u64().unwrap());
    }
    let mut node = Organizer::open(disk(folder), options.clone()).unwrap();
    let mut source = Directory::open(&blocks, Network::Regtest, false).unwrap();
    sync(&mut node, &mut source, &sync_options()).unwrap();
    check_core_tip(&node, expected);
    check_past_heights(&node, answers);
}

/// The figures of past heights: counted once, read afterwards, in any order.
fn check_past_heights(node: &Organizer, answers: &serde_json::Map<String, Value>) {
    let mut rows = 0;
    for height in answers.keys().chain(answers.keys()) {
        let answer = &answers[height];
        let height = Height::new(height.parse().unwrap());
        let found = node.stats_at(height, &mut |_, _| rows += 1).unwrap();
        assert_eq!(found.block.to_string(), answer["bestblock"]);
        let hash = varve_types::BlockHash::from_bytes(found.muhash());
        assert_eq!(hash.to_string(), answer["muhash"], "at {height}");
        assert_eq!(found.txouts, answer["txouts"].as_u64().unwrap());
        assert_eq!(found.bogosize, answer["bogosize"].as_u64().unwrap());
        assert_eq!(found.total_amount, chains::satoshi(&answer["total_amount"]));
    }
    assert_eq!(rows, node.snapshot().tip.0.to_u32(), "every row was counted once");
}

#[test]
fn the_chain_of_core_at_every_height_it_answered_for() {
    let Some((_, expected)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    check_core_heights(folder.path(), &options(Network::Regtest), &expected);
}

#[test]
fn the_chain_of_core_with_a_small_window() {
    let Some((_, expected)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    check_core_heights(folder.path(), &small(Network::Regtest), &expected);
}

/// Syncs up to every height of an oracle file and compares.
fn check_oracle(network: Network, blocks: &[Vec<u8>], oracle: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), small(network)).unwrap();
    for answer in oracle["heights"].as_array().unwrap() {
        let height = answer["height"].as_u64().unwrap();
        let given = &blocks[..=usize::try_from(height).unwrap()];
        sync(&mut node, &mut pipe(network, given), &stop_at(height)).unwrap();
        assert_eq!(tip(&node).1, answer["bestblock"], "at {height}");
        assert_eq!(set_hash(&node, SetHash::Muhash), answer["muhash"], "at {height}");
    }
    sync(&mut node, &mut pipe(network, blocks), &sync_options()).unwrap();
    let answer = &oracle["tip"];
    assert_eq!(tip(&node).1, answer["bestblock"]);
    assert_eq!(set_hash(&node, SetHash::HashSerialized3), answer["hash_serialized_3"]);
}

#[test]
fn mainnet() {
    let Some(blocks) = chains::mainnet() else { return };
    let oracle = chains::json("vectors/oracle_mainnet_0-4312.json").unwrap();
    check_oracle(Network::Mainnet, &blocks, &oracle);
}

#[test]
fn signet() {
    let Some(blocks) = chains::signet() else { return };
    let oracle = chains::json("vectors/oracle_signet_0-120.json").unwrap();
    check_oracle(Network::Signet, &blocks, &oracle);
}

#[test]
fn regtest_kernel() {
    let Some(blocks) = chains::kernel(Network::Regtest.genesis_block()) else { return };
    let oracle = chains::json("vectors/oracle_regtest_kernel_0-206.json").unwrap();
    check_oracle(Network::Regtest, &blocks, &oracle);
}

/// The chain of btcd's own test: 3A, 4A and 5A overtake 3 and 4. Its coinbases mature at once.
#[test]
fn btcd_reorganisation() {
    let mut files = Vec::new();
    for name in ["blk_0_to_4", "blk_3A", "blk_4A", "blk_5A"] {
        let path = format!("chains/btcd-reorg/{name}.dat.bz2");
        let Some(path) = varve_testdata::data(&path) else { return };
        let mut bytes = Vec::new();
        let packed = fs::read(path).unwrap();
        bzip2::read::BzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        files.push(chains::blk_file(&bytes));
    }
    let params = Params { coinbase_maturity: 1, ..Params::new(Network::Mainnet) };
    let options = Options { params, ..options(Network::Mainnet) };
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), options).unwrap();
    let mut tips = Vec::new();
    for given in 1..=files.len() {
        let blocks = files[..given].concat();
        let mut source = pipe(Network::Mainnet, &blocks);
        assert_eq!(sync(&mut node, &mut source, &sync_options()).unwrap(), []);
        tips.push(node.snapshot().tip);
    }
    let heights: Vec<u32> = tips.iter().map(|(height, _)| height.to_u32()).collect();
    assert_eq!(heights, [4, 4, 4, 5], "the first of two equals stays");
    assert!(tips[0] == tips[2] && node.chain_tips().len() == 2);
}
