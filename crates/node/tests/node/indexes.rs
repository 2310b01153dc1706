//! Optional indexes: chosen, brought on, dropped, and compared with Core's answers.

use std::path::Path;
use std::sync::Arc;

use hex_conservative::DisplayHex as _;
use serde_json::Value;
use varve_consensus::contract::draft::TxDraft;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{FileOffset, Storage};
use varve_node::{Error, Index, IndexSet, Options, Organizer, Prune, Report, SettingsChange};
use varve_testdata::chains;
use varve_types::{BlockHash, Height, Network};
use varve_utxo::SetHash;

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, options, pipe, statistics, sync, sync_options};

fn with(indexes: &str, options: Options) -> Options {
    let indexes: IndexSet = indexes.parse().unwrap();
    let settings = SettingsChange { indexes: Some(indexes), ..SettingsChange::default() };
    Options { settings, ..options }
}

fn files(folder: &Path, store: &str, prefix: &str) -> usize {
    let names = std::fs::read_dir(folder.join(store)).unwrap().map(Result::unwrap);
    names.filter(|name| name.file_name().to_string_lossy().starts_with(prefix)).count()
}

/// Every filter that Core gave is ours.
fn check_filters(node: &Organizer, expected: &Value) {
    let snapshot = node.snapshot();
    let view = snapshot.view();
    for (height, answer) in expected["filters"].as_object().unwrap() {
        let link = view.to_confirmed(Height::new(height.parse().unwrap())).unwrap();
        let row = view.filter(link).unwrap().unwrap();
        assert_eq!(row.body.to_lower_hex_string(), answer["filter"], "at {height}");
        assert_eq!(BlockHash::from_bytes(row.header).to_string(), answer["header"], "at {height}");
    }
}

fn count_reports(node: &mut Organizer, blocks: &[Vec<u8>]) -> Vec<(Index, u64)> {
    let mut told = Vec::new();
    let mut source = pipe(Network::Regtest, blocks);
    node.sync(&mut source, &sync_options(), &mut |report| {
        if let Report::Indexed { index, done, .. } = report {
            told.push((index, done));
        }
    })
    .unwrap();
    told
}

#[test]
fn filters_of_core_chosen_at_first_and_later() {
    let Some(blocks) = chains::core31() else { return };
    let expected = chains::json("regtest-core31/expected.json").unwrap();
    let tip = Height::new(u32::try_from(expected["height"].as_u64().unwrap()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let open = |indexes: &str| {
        let options = with(indexes, options(Network::Regtest));
        Organizer::open(disk(folder.path()), options).unwrap()
    };
    let mut node = open("filter");
    count_reports(&mut node, &blocks);
    check_filters(&node, &expected);
    assert_eq!(node.indexed(Index::Filter).unwrap(), Some(tip));
    drop(node);
    assert!(files(folder.path(), "archive", "filter") > 0);

    let node = open("none");
    let (_, genesis) = (tip, node.snapshot().archive.to_confirmed(Height::GENESIS).unwrap());
    assert!(node.snapshot().archive.filter(genesis).is_err(), "there is no such index");
    drop(node);
    assert_eq!(files(folder.path(), "archive", "filter-"), 0, "dropped");

    let mut node = open("filter,stats");
    assert_eq!(node.indexed(Index::Filter).unwrap(), None);
    let told = count_reports(&mut node, &blocks);
    let all = u64::from(tip.to_u32());
    assert!(told.contains(&(Index::Filter, all + 1)) && told.contains(&(Index::Stats, all)));
    check_filters(&node, &expected);
    assert_eq!(node.indexed(Index::Stats).unwrap(), Some(tip));
    let mut counted = 0;
    node.stats_at(tip, &mut |_, _| counted += 1).unwrap();
    assert_eq!(counted, 0, "the sync has counted");
    drop(node);
    // What was chosen stays chosen.
    let node = Organizer::open(disk(folder.path()), options(Network::Regtest)).unwrap();
    assert_eq!(node.settings().indexes.to_string(), "filter,stats");
    check_filters(&node, &expected);
    drop(node);
    drop(open("filter"));
    assert_eq!(files(folder.path(), "stats", "stats"), 0, "dropped");
}

#[test]
fn an_index_is_not_added_where_blocks_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let undo = varve_utxo::UndoConfig { blocks: 5, ..Default::default() };
    let plain = Options { undo, block_segment: 2_000, ..young_options() };
    let prune = SettingsChange { prune: Some(Prune::To(1)), ..SettingsChange::default() };
    let pruned = Options { settings: prune, ..plain.clone() };
    let mut node = Organizer::open(disk(folder.path()), pruned).unwrap();
    let blocks = bytes_of(&Mined::genesis().chain(1, 40));
    sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
    assert!(node.pruned_below().unwrap().is_some());
    drop(node);
    let open = |options: Options| Organizer::open(disk(folder.path()), options);
    let error = open(with("script", plain.clone())).err().unwrap();
    assert!(matches!(error, Error::Pruned { .. }), "{error}");
    let error = open(with("stats", plain.clone())).err().unwrap();
    assert!(matches!(error, Error::Pruned { .. }), "{error}");
    let node = open(plain).unwrap();
    assert_eq!(node.settings().indexes, IndexSet::default(), "a refused wish changes nothing");
}

/// A damaged row is an error of whoever asks for it; the others are answered as before. What is
/// left of a log whose beginning is gone is made anew.
#[test]
fn figures_are_opened_without_a_look_at_all_of_them() {
    const FILE: &str = "stats/stats-000000000000";
    let blocks = bytes_of(&Mined::genesis().chain(1, 12));
    let storage = Arc::new(FaultyStorage::new(3));
    let mut node = Organizer::open(storage.clone(), young_options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
    let count = |node: &Organizer, height| {
        let mut counted = 0;
        let found = node.stats_at(Height::new(height), &mut |_, _| counted += 1);
        found.map(|found| (found.muhash(), counted))
    };
    let (hash, counted) = count(&node, 12).unwrap();
    assert_eq!(counted, 12);
    drop(node);
    let copy = || Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
    let damaged = copy();
    assert!(damaged.flip_bit(FILE, FileOffset::new(3_000), 1));
    let node = Organizer::open(damaged, young_options()).unwrap();
    assert_eq!(count(&node, 12).unwrap(), (hash, 0));
    let error = count(&node, 3).unwrap_err().to_string();
    assert!(error.contains("stats-000000000000"), "{error}");
    let cut = copy();
    cut.directory("stats").unwrap().remove("stats-000000000000").unwrap();
    let node = Organizer::open(cut, young_options()).unwrap();
    assert!(node.indexed(Index::Stats).is_err(), "what is lost is not taken for not begun");
    assert_eq!(count(&node, 12).unwrap(), (hash, 12));
}

/// After a reorganisation figures are cut off and made again. A power cut in between leaves those
/// of the new chain alone.
#[test]
fn power_cuts_while_figures_are_made_again() {
    let old = Mined::genesis().chain(1, 5);
    let new: Vec<Mined> = old[..2].iter().cloned().chain(old[1].chain(2, 4)).collect();
    let storage = Arc::new(FaultyStorage::new(3));
    let mut node = Organizer::open(storage.clone(), young_options()).unwrap();
    let figures = |node: &Organizer| -> Vec<_> {
        let tip = node.snapshot().tip.0.to_u32();
        let at = |height| node.stats_at(Height::new(height), &mut |_, _| {}).unwrap();
        let rows = (0..=tip).rev().map(at);
        rows.map(|row| (row.block, row.txouts, row.bogosize, row.total_amount)).collect()
    };
    for chain in [&old, &new] {
        let blocks = bytes_of(chain);
        sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        figures(&node);
    }
    let (tip, expected, end) = (node.snapshot().tip, figures(&node), storage.operations());
    let (mut n, mut cuts) = (end, 0);
    loop {
        let crash = [Crash::LoseAll, Crash::KeepAll, Crash::Seed(n as u64)][n % 3];
        let node = Organizer::open(Arc::new(storage.crash(n, crash)), young_options()).unwrap();
        if node.snapshot().tip != tip {
            assert!(cuts > 20, "{cuts}");
            return;
        }
        assert_eq!(figures(&node), expected, "after {n} of {end}, {crash:?}");
        (n, cuts) = (n - 1, cuts + 1);
    }
}

/// A power cut at every write while indexes are chosen and dropped.
#[test]
fn power_cuts_while_indexes_change() {
    let blocks = bytes_of(&Mined::genesis().chain(1, 12));
    let first = Arc::new(FaultyStorage::new(3));
    let mut node = Organizer::open(first.clone(), young_options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
    let tip = node.snapshot().tip;
    drop(node);
    let change = |storage: Arc<dyn Storage>, indexes: &str| {
        let mut node = Organizer::open(storage, with(indexes, young_options())).unwrap();
        sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        assert_eq!(node.snapshot().tip, tip);
        for index in node.settings().indexes.iter() {
            assert_eq!(node.indexed(index).unwrap(), Some(tip.0), "{indexes}");
        }
        node.verify(&mut |_, _| {}).unwrap();
    };
    let before = first.operations();
    change(first.clone(), "filter,script,stats");
    change(first.clone(), "stats");
    for n in before..=first.operations() {
        let crash = [Crash::LoseAll, Crash::KeepAll, Crash::Seed(n as u64)][n % 3];
        let after = Arc::new(first.crash(n, crash));
        drop(Organizer::open(after.clone(), young_options()).unwrap());
        change(after.clone(), "filter,script");
        change(after, "none");
    }
}

/// Before BIP30 was enforced a block could make the coins of an older coinbase again. The figures
/// lose the older coins, whether the row is made when the block is connected or later.
#[test]
fn figures_of_a_block_that_overwrites_coins() {
    let mut chain = vec![Mined::genesis().above(1, Vec::new())];
    for _ in 0..4 {
        chain.push(chain.last().unwrap().above(1, Vec::new()));
    }
    let mut draft = chain[4].draft(1, Vec::new());
    draft.txs[0] = chain[1].coinbase.clone();
    let again = chain[4].mine(draft);
    let next = again.above(1, vec![TxDraft::spending(&[again.coin()], 2)]);
    let mut options = young_options();
    options.params.heights.bip34 = Height::new(1_000);
    options.params.bip30_exceptions = vec![(Height::new(6), again.hash)];
    chain.extend([again, next]);
    let check = |node: &Organizer, computed: u32| {
        let mut rows = 0;
        let tip = node.snapshot().tip.0;
        let found = node.stats_at(tip, &mut |_, _| rows += 1).unwrap();
        let set = statistics(node, SetHash::Muhash);
        assert_eq!((Some(found.muhash()), found.txouts), (set.hash, set.txouts), "at {tip}");
        assert_eq!(rows, computed);
    };
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Organizer::open(disk(folder.path()), with("stats", options.clone())).unwrap();
    for end in 5..=chain.len() {
        let blocks = bytes_of(&chain[..end]);
        sync(&mut kept, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        check(&kept, 0);
        let folder = tempfile::tempdir().unwrap();
        let mut later = Organizer::open(disk(folder.path()), options.clone()).unwrap();
        sync(&mut later, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        check(&later, u32::try_from(end).unwrap());
    }
}
