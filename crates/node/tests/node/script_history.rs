//! Histories, balances and unspent outputs of every script against a scan of all blocks.

use std::collections::{BTreeMap, HashMap};

use varve_archive::history::{HistoryOptions, is_indexed};
use varve_archive::search::Order;
use varve_io::Storage;
use varve_node::source::directory::Directory;
use varve_node::{
    Index, IndexSet, Limits, NodeSnapshot, Options, Organizer, Reading, ScriptPage, ScriptTx,
    ScriptUnspent, Scripts, SettingsChange, SyncOptions, Verify,
};
use varve_sim::{Config, Profile, write_chain};
use varve_testdata::chains;
use varve_types::{Amount, Block, Header, Height, Network, Outpoint, ScriptHash};
use varve_utxo::{Compaction, UndoConfig};

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, options, pipe, sync, sync_options};

/// A window of four blocks and small runs, two of them merged at a time.
fn tiny(indexes: &str, options: Options) -> Options {
    let indexes: IndexSet = indexes.parse().unwrap();
    let history = HistoryOptions {
        fan_in: 2,
        window: 4,
        flush_bytes: 4 << 10,
        flush_blocks: 6,
        compaction: Compaction::Inline,
        ..HistoryOptions::default()
    };
    let settings = SettingsChange { prune: None, indexes: Some(indexes) };
    Options { history, settings, ..options }
}

/// What a scan finds of a script: its transactions, and its unspent outputs.
#[derive(Default)]
struct Found {
    txs: Vec<ScriptTx>,
    unspent: BTreeMap<Outpoint, ScriptUnspent>,
}

/// Reads the confirmed chain up to a height.
fn scan(snapshot: &NodeSnapshot, top: u32) -> HashMap<ScriptHash, Found> {
    let view = snapshot.view();
    let mut scripts: HashMap<ScriptHash, Found> = HashMap::new();
    let mut coins: HashMap<Outpoint, (ScriptHash, Amount)> = HashMap::new();
    for height in 1..=top {
        let height = Height::new(height);
        let link = view.to_confirmed(height).unwrap();
        let bytes = view.raw_block(link).unwrap().unwrap().to_vec();
        let parsed = Block::parse(&bytes, view.network().format()).unwrap();
        let block = Header::new(bytes.first_chunk().unwrap()).hash();
        for (position, tx) in (0..).zip(parsed.txs()) {
            let txid = tx.txid();
            let empty = ScriptTx {
                txid,
                height,
                block,
                position,
                funded: 0,
                received: Amount::from_sat(0),
                spent: 0,
                sent: Amount::from_sat(0),
            };
            let mut touched: BTreeMap<[u8; 32], ScriptTx> = BTreeMap::new();
            for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                let Some((script, value)) = coins.remove(&input.outpoint) else { continue };
                scripts.get_mut(&script).unwrap().unspent.remove(&input.outpoint);
                let entry = touched.entry(*script.as_bytes()).or_insert(empty);
                entry.spent += 1;
                entry.sent = Amount::from_sat(entry.sent.to_sat() + value.to_sat());
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                if !is_indexed(output.script) {
                    continue;
                }
                let (script, outpoint) = (ScriptHash::of(output.script), Outpoint::new(txid, vout));
                let value = output.value;
                coins.insert(outpoint, (script, value));
                let unspent = ScriptUnspent { height, position, outpoint, value };
                scripts.entry(script).or_default().unspent.insert(outpoint, unspent);
                let entry = touched.entry(*script.as_bytes()).or_insert(empty);
                entry.funded += 1;
                entry.received = Amount::from_sat(entry.received.to_sat() + value.to_sat());
            }
            for (script, entry) in touched {
                scripts.get_mut(&ScriptHash::from_bytes(script)).unwrap().txs.push(entry);
            }
        }
    }
    scripts
}

/// Compares every script with a scan, as of a height when one is given.
fn check(snapshot: &NodeSnapshot, scripts: &Scripts, at: Option<u32>) -> usize {
    assert_eq!(scripts.tip(), Some(snapshot.tip));
    let expected = scan(snapshot, at.unwrap_or(snapshot.tip.0.to_u32()));
    let at = at.map(Height::new);
    for (script, found) in &expected {
        let sums = scripts.sums(script, at).unwrap();
        let count = |of: fn(&ScriptTx) -> u32| found.txs.iter().map(|tx| i64::from(of(tx))).sum();
        let txs = i64::try_from(found.txs.len()).unwrap();
        assert_eq!(
            (sums.funded, sums.spent, sums.txs),
            (count(|tx| tx.funded), count(|tx| tx.spent), txs)
        );
        let balance: u64 = found.unspent.values().map(|output| output.value.to_sat()).sum();
        assert_eq!(sums.balance(), balance);
        for order in [Order::Ascending, Order::Descending] {
            let (mut txs, mut cursor) = (Vec::new(), None);
            loop {
                let limit = (found.txs.len() / 2).max(3);
                let page =
                    scripts.history(script, at, ScriptPage { order, cursor, limit }).unwrap();
                txs.extend(page.txs);
                cursor = page.cursor;
                if cursor.is_none() {
                    break;
                }
            }
            if order == Order::Descending {
                txs.reverse();
            }
            assert_eq!(txs, found.txs, "{order:?}");
        }
        let mut unspent: Vec<ScriptUnspent> = found.unspent.values().copied().collect();
        unspent.sort_unstable();
        assert_eq!(scripts.unspent(script, at).unwrap(), unspent);
    }
    let nobody = ScriptHash::of(b"nobody");
    assert_eq!(scripts.sums(&nobody, at).unwrap().txs, 0);
    expected.len()
}

fn check_node(node: &Organizer) -> usize {
    let snapshot = node.snapshot();
    check(&snapshot, &snapshot.script_histories().unwrap(), None)
}

/// Feeds blocks one by one, and checks every script after each reorganisation.
fn replay(blocks: &[Vec<u8>], network: Network) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let options = tiny("script", options(network));
    let mut node = Organizer::open(disk(folder.path()), options.clone()).unwrap();
    let mut reorganisations = 0;
    for (count, block) in blocks.iter().enumerate() {
        let before = node.snapshot().tip;
        sync(&mut node, &mut pipe(network, std::slice::from_ref(block)), &sync_options()).unwrap();
        let now = node.snapshot();
        if now.archive.to_header(before.1).unwrap() != now.archive.to_confirmed(before.0) {
            reorganisations += 1;
            check_node(&node);
        }
        if count % 97 == 96 {
            drop(node);
            node = Organizer::open(disk(folder.path()), options.clone()).unwrap();
        }
    }
    assert!(check_node(&node) > 20);
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
    node.verify(&mut |_, _| {}).unwrap();
    let snapshot = node.snapshot();
    let scripts = snapshot.script_histories().unwrap();
    for back in [3, 60, 150] {
        check(&snapshot, &scripts, Some(snapshot.tip.0.to_u32() - back));
    }
}

/// The chains of Conduit's own test of reorganisations: the third leaves the second at height 110,
/// and all wallet transactions move to one block.
#[test]
fn the_reorganisation_of_conduit_equals_a_scan() {
    let folder = tempfile::tempdir().unwrap();
    let options = tiny("script", options(Network::BsvRegtest));
    let mut node = Organizer::open(disk(folder.path()), options).unwrap();
    for name in ["115_3677f4", "116_7c9cd2", "117_28c2d3", "118_0ebc17"] {
        let path = format!("chains/conduit-regtest/contrib/blockchains/blockchain_{name}");
        let Some(path) = varve_testdata::data(&path) else { return };
        let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let blocks = files.filter(|file| file.file_name().is_some_and(|name| name.len() == 64));
        let blocks: Vec<Vec<u8>> = blocks.map(|file| std::fs::read(file).unwrap()).collect();
        let spends = SyncOptions { verify: Verify::Spends, ..sync_options() };
        sync(&mut node, &mut pipe(Network::BsvRegtest, &blocks), &spends).unwrap();
        let height: u32 = name[..3].parse().unwrap();
        assert_eq!(node.snapshot().tip.0.to_u32(), height, "{name}");
        assert!(check_node(&node) > 5, "{name}");
    }
}
