//! Branches that overtake: simulated chains, and deeper than undo records reach.

use std::fs;

use serde_json::Value;
use varve_node::source::directory::Directory;
use varve_node::{Limits, Options, Organizer, Report, Source, SyncOptions};
use varve_sim::{Config, Profile, write_chain};
use varve_types::{Height, Network};
use varve_utxo::{Parameters, SetHash, UndoConfig};

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{
    chain_tips, disk, expected_tips, framed, options, pipe, set_hash, stop_at, sync, sync_options,
    tip,
};

#[test]
fn a_simulated_chain_with_branches() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        reorg_depth: Some(6),
        transactions: Some(20),
        coins: Some(200),
        signed_percent: 100,
        ..Config::new(Profile::Mainnet, 180, 11)
    };
    write_chain(&config, &folder.path().join("sim"), |_| {}).unwrap();
    let expected = fs::read(folder.path().join("sim/expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let limits = Limits { group: 1, lag: 300_000, ..Limits::default() };
    let options = Options { limits, ..options(Network::Regtest) };
    let mut node = Organizer::open(disk(&folder.path().join("data")), options).unwrap();
    let mut source = Directory::open(&folder.path().join("sim"), Network::Regtest, false).unwrap();
    assert_eq!(sync(&mut node, &mut source, &sync_options()).unwrap(), []);
    assert_eq!(tip(&node).1, expected["tip"]);
    assert_eq!(chain_tips(&node), expected_tips(&expected["chaintips"]));
    assert_eq!(set_hash(&node, SetHash::HashSerialized3), expected["hash_serialized_3"]);
    assert_eq!(set_hash(&node, SetHash::Muhash), expected["muhash"]);
    let verified = node.verify(&mut |_, _| {}).unwrap();
    assert_eq!(verified.coins, expected["txouts"].as_u64().unwrap());
}

#[test]
fn a_branch_that_leaves_below_the_last_undo_record() {
    let genesis = Mined::genesis();
    let (old, new) = (genesis.chain(1, 40), genesis.chain(2, 41));
    let undo = UndoConfig { blocks: 3, segment_size: 1_000, ..UndoConfig::default() };
    let parameters =
        Parameters { window: 2, flush_interval: 2, fan_in: 2, ..Parameters::default() };
    let options = Options { undo, parameters, ..young_options() };
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), options.clone()).unwrap();
    let sync = |node: &mut Organizer, blocks: &[Mined]| {
        let blocks = bytes_of(blocks);
        assert_eq!(sync(node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap(), []);
    };
    let stats = |node: &Organizer, height| {
        let found = node.stats_at(Height::new(height), &mut |_, _| {}).unwrap();
        (found.block, found.txouts, found.muhash())
    };
    sync(&mut node, &old);
    sync(&mut node, &new[..40]);
    assert_eq!(node.snapshot().tip.1, old[39].hash, "the first of two equals stays");
    assert_eq!(stats(&node, 40).0, old[39].hash);
    sync(&mut node, &new);
    assert_eq!(node.snapshot().tip.1, new[40].hash);

    let clean = tempfile::tempdir().unwrap();
    let mut clean = Organizer::open(disk(clean.path()), options).unwrap();
    sync(&mut clean, &new);
    let hash = SetHash::HashSerialized3;
    assert_eq!(set_hash(&node, hash), set_hash(&clean, hash));
    for height in [40, 7, 41] {
        assert_eq!(stats(&node, height), stats(&clean, height));
    }
    assert!(node.stats_at(Height::new(42), &mut |_, _| {}).is_err());
}

/// Blocks come so fast that no commit is made before several windows of them are stored. The sync
/// ended there, at height 512, and so did a branch of more blocks than that.
#[test]
fn a_chain_and_a_branch_that_are_longer_than_what_is_asked_for_at_once() {
    let genesis = Mined::genesis();
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let data = folder.path().join("data");
    [&files, &data].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    let mut node = Organizer::open(disk(&data), young_options()).unwrap();
    let best_alone = SyncOptions { all_branches: false, ..sync_options() };
    for (number, length) in [(1, 700), (2, 1400)] {
        let blocks = bytes_of(&genesis.chain(number, length));
        let path = files.join(format!("blk0000{number}.dat"));
        fs::write(path, framed(Network::Regtest, &blocks)).unwrap();
        let mut source = Directory::open(&files, Network::Regtest, false).unwrap();
        assert_eq!(sync(&mut node, &mut source, &best_alone).unwrap(), []);
        assert_eq!(node.snapshot().tip.0.to_u32() as usize, length);
    }
}

/// A stop height holds the better branch back; it does not take the chain to less work than it has.
#[test]
fn a_stop_height_below_the_tip_takes_nothing_away() {
    let genesis = Mined::genesis();
    let (old, new) = (genesis.chain(1, 5), genesis.chain(2, 7));
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let mut take = |blocks: &[Mined], options: &SyncOptions| {
        let mut source = pipe(Network::Regtest, &bytes_of(blocks));
        assert_eq!(sync(&mut node, &mut source, options).unwrap(), []);
        node.snapshot().tip.1
    };
    assert_eq!(take(&old, &sync_options()), old[4].hash);
    assert_eq!(take(&new, &stop_at(3)), old[4].hash);
    assert_eq!(take(&new, &stop_at(5)), new[4].hash, "on the way to the best chain");
    assert_eq!(take(&new, &sync_options()), new[6].hash);
}

/// A pipe or a folder that holds later blocks alone goes on where the node knows their parent: the
/// tip, a block that the locator leaves out, the end or the middle of a stale branch.
#[test]
fn pieces_of_a_chain_go_on_from_any_block_that_is_known() {
    let genesis = Mined::genesis();
    let old = genesis.chain(1, 40);
    let (fork, stale) = (old[14].chain(2, 24), old[37].chain(3, 2));
    let (above_stale, above_fork) = (stale[1].chain(4, 1), fork[23].chain(5, 3));
    let pieces: [(&[Mined], &Mined); 7] = [
        (&old[..30], &old[29]),
        (&old[30..], &old[39]),
        (&stale, &old[39]),
        (&fork[..5], &old[39]),
        (&fork[5..], &old[39]),
        (&above_stale, &above_stale[0]),
        (&above_fork, &above_fork[2]),
    ];
    for by_pipe in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
        for (piece, tip) in pieces {
            let framed = framed(Network::Regtest, &bytes_of(piece));
            let files = tempfile::tempdir().unwrap();
            fs::write(files.path().join("blk00000.dat"), &framed).unwrap();
            let mut by_file = Directory::open(files.path(), Network::Regtest, false).unwrap();
            let mut by_bytes = pipe(Network::Regtest, &bytes_of(piece));
            let source: &mut dyn Source = if by_pipe { &mut by_bytes } else { &mut by_file };
            let mut warnings: Vec<String> = Vec::new();
            node.sync(source, &sync_options(), &mut |report| {
                if let Report::Warning(warning) = report {
                    warnings.push(warning.to_string());
                }
            })
            .unwrap();
            assert_eq!((warnings, node.snapshot().tip.1), (Vec::new(), tip.hash));
        }
    }
}
