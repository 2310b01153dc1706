//! Histories, balances and unspent outputs of every script against a scan of all blocks.

use varve_io::Storage;
use varve_node::source::directory::Directory;
use varve_node::{Index, Limits, Options, Organizer, Reading};
use varve_sim::{Config, Profile, write_chain};
use varve_testdata::chains;
use varve_types::Network;
use varve_utxo::UndoConfig;

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, options, pipe, sync, sync_options};
use crate::scan::{check, check_node, check_pushes, tiny};

/// Feeds blocks one by one, and checks every script after each reorganisation.
fn replay(blocks: &[Vec<u8>], network: Network) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let options = tiny("script,pushdata", options(network));
    let mut node = Organizer::open(disk(folder.path()), options.clone()).unwrap();
    let mut reorganisations = 0;
    for (count, block) in blocks.iter().enumerate() {
        let before = node.snapshot().tip;
        sync(&mut node, &mut pipe(network, std::slice::from_ref(block)), &sync_options()).unwrap();
        let now = node.snapshot();
        if now.archive.to_header(before.1).unwrap() != now.archive.to_confirmed(before.0) {
            reorganisations += 1;
            check_node(&node);
            if reorganisations % 4 == 1 {
                check_pushes(&now);
            }
        }
        if count % 97 == 96 {
            drop(node);
            node = Organizer::open(disk(folder.path()), options.clone()).unwrap();
        }
    }
    assert!(check_node(&node) > 20);
    assert!(check_pushes(&node.snapshot()) > 20);
    node.verify(&mut |_, _| {}).unwrap();
    let snapshot = node.snapshot();
    for back in [1, 30, 100] {
        let at = snapshot.tip.0.to_u32().saturating_sub(back);
        check(&snapshot, &snapshot.script_histories().unwrap(), Some(at));
    }
    reorganisations
}

#[test]
fn every_script_of_core_after_each_reorganisation_equals_a_scan() {
    let Some(blocks) = chains::core31() else { return };
    assert!(replay(&blocks, Network::Regtest) > 0, "blocks are in the order of their arrival");
}

#[test]
fn a_history_added_later_dropped_and_added_again_equals_a_scan() {
    let Some(blocks) = chains::core31() else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |indexes: &str| {
        Organizer::open(disk(folder.path()), tiny(indexes, options(Network::Regtest))).unwrap()
    };
    let take = |node: &mut Organizer| {
        sync(node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
    };
    let mut node = open("none");
    take(&mut node);
    assert!(node.snapshot().script_histories().is_err(), "not kept");
    drop(node);
    for _ in 0..2 {
        let mut node = open("script");
        assert_eq!(node.indexed(Index::Script).unwrap(), None);
        take(&mut node);
        let snapshot = node.snapshot();
        assert_eq!(node.indexed(Index::Script).unwrap(), Some(snapshot.tip.0));
        check_node(&node);
        drop(node);
        let root: std::sync::Arc<dyn Storage> = disk(folder.path());
        let reading = Reading::open(root, options(Network::Regtest), &mut |_, _| {}).unwrap();
        check(&snapshot, &reading.script_histories().unwrap(), None);
        drop(reading);
        drop(snapshot);
        drop(open("none"));
        let names = std::fs::read_dir(folder.path().join("script-history")).unwrap();
        let runs = names.filter(|name| name.as_ref().unwrap().path().extension().is_some());
        assert_eq!(runs.count(), 0, "dropped");
    }
}

#[test]
fn a_deep_reorganisation_takes_flushed_blocks_back() {
    let genesis = Mined::genesis();
    let (old, new) = (genesis.chain(1, 40), genesis.chain(2, 41));
    let undo = UndoConfig { blocks: 50, ..UndoConfig::default() };
    let folder = tempfile::tempdir().unwrap();
    let options = tiny("script", Options { undo, ..young_options() });
    let mut node = Organizer::open(disk(folder.path()), options).unwrap();
    for branch in [&old, &new] {
        let blocks = bytes_of(branch);
        sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        assert_eq!(node.snapshot().tip.1, branch.last().unwrap().hash);
        check_node(&node);
    }
}

#[test]
fn a_simulated_chain_with_branches_equals_a_scan() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        reorg_depth: Some(6),
        transactions: Some(20),
        coins: Some(200),
        signed_percent: 100,
        ..Config::new(Profile::Mainnet, 180, 11)
    };
    write_chain(&config, &folder.path().join("sim"), |_| {}).unwrap();
    let limits = Limits { group: 1, lag: 300_000, ..Limits::default() };
    let options = tiny("all", Options { limits, ..options(Network::Regtest) });
    let mut node = Organizer::open(disk(&folder.path().join("data")), options).unwrap();
    let mut source = Directory::open(&folder.path().join("sim"), Network::Regtest, false).unwrap();
    sync(&mut node, &mut source, &sync_options()).unwrap();
    assert!(check_node(&node) > 1_000);
    assert!(check_pushes(&node.snapshot()) > 1_000);
    node.verify(&mut |_, _| {}).unwrap();
    let snapshot = node.snapshot();
    let scripts = snapshot.script_histories().unwrap();
    for back in [3, 60, 150] {
        check(&snapshot, &scripts, Some(snapshot.tip.0.to_u32() - back));
    }
}
