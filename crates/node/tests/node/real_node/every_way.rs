//! A chain with every kind of transaction, by every way, with all scripts checked: the same tip,
//! the same set at every height, the same snapshot file, the same bytes of every block.

use serde_json::json;
use varve_node::{Options, Organizer};
use varve_testdata::bitcoind::{Answers, Bitcoind, EveryKind};
use varve_testdata::chains::satoshi;
use varve_types::{BlockHash, Height, Network};
use varve_utxo::{Parameters, SetHash};

use super::{WAYS, source};
use crate::rig::{
    chain_tips, disk, expected_tips, is_long, options, set_hash, statistics, sync, sync_options,
    tip,
};

/// Everything that the node can be asked for, and its past at every `step`th height.
fn check(ours: &Organizer, answers: &Answers, step: usize) {
    assert_eq!(tip(ours), (u64::from(answers.height), answers.tip.clone()));
    for (height, answer) in (0..).zip(&answers.at_heights).step_by(step) {
        let found = ours.stats_at(Height::new(height), &mut |_, _| {}).unwrap();
        let muhash = BlockHash::from_bytes(found.muhash()).to_string();
        assert_eq!(muhash, answer["muhash"], "at {height}");
        assert_eq!(found.block.to_string(), answer["bestblock"]);
        assert_eq!((found.txouts, found.bogosize), figures(answer));
        assert_eq!(found.total_amount, satoshi(&answer["total_amount"]));
    }
    let set = &answers.set;
    assert_eq!(set_hash(ours, SetHash::HashSerialized3), set["hash_serialized_3"]);
    let found = statistics(ours, SetHash::None);
    assert_eq!((found.txouts, found.bogosize), figures(set));
    assert_eq!(found.transactions, set["transactions"].as_u64().unwrap());
    let mut file = Vec::new();
    ours.snapshot().utxo.export(Network::Regtest, &mut file, &mut |_, _| {}).unwrap();
    assert!(file == answers.snapshot, "the snapshot file is another one");
}

fn figures(answer: &serde_json::Value) -> (u64, u64) {
    (answer["txouts"].as_u64().unwrap(), answer["bogosize"].as_u64().unwrap())
}

/// Every block of the active chain, byte for byte.
fn check_blocks(ours: &Organizer, node: &Bitcoind) {
    let view = ours.snapshot().view();
    for height in 0..=node.height() {
        let hash = node.call("getblockhash", &json!([height]));
        let link = view.to_confirmed(Height::new(height)).unwrap();
        assert!(*view.raw_block(link).unwrap().unwrap() == node.block(hash.as_str().unwrap()));
    }
}

/// A set that reaches its old ages soon.
fn small() -> Options {
    let parameters =
        Parameters { window: 4, flush_interval: 4, fan_in: 2, ..Parameters::default() };
    Options { parameters, ..options(Network::Regtest) }
}

#[test]
fn a_chain_of_every_kind_by_every_way() {
    let Some(node) = Bitcoind::start(&["-rest", "-coinstatsindex"]) else { return };
    EveryKind::make(&node);
    let answers = Answers::of(&node);
    assert!(answers.snapshot.len() > 100_000, "the set has twenty thousand coins and more");
    let folder = tempfile::tempdir().unwrap();
    for (way, options) in WAYS.into_iter().zip([options(Network::Regtest), small(), small()]) {
        let path = folder.path().join(way);
        std::fs::create_dir(&path).unwrap();
        let mut ours = Organizer::open(disk(&path), options.clone()).unwrap();
        let mut source = source(way, &node, false);
        assert_eq!(sync(&mut ours, source.as_mut(), &sync_options()).unwrap(), []);
        // One way at every height; the others, whose sets are split otherwise, at some.
        check(&ours, &answers, if way == "files" || is_long() { 1 } else { 9 });
        check_blocks(&ours, &node);
        if way == "files" {
            assert_eq!(chain_tips(&ours), expected_tips(&answers.chain_tips));
        }
        drop(ours);
        let ours = Organizer::open(disk(&path), options).unwrap();
        check(&ours, &answers, 40);
        let verified = ours.verify(&mut |_, _| {}).unwrap();
        assert_eq!(verified.coins, answers.set["txouts"].as_u64().unwrap());
    }
}
