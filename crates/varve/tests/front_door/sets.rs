//! Unspent sets in files and alone, and records.

use std::fs;

use varve::records::{BlockState, RecordStore, Settings};
use varve::{Error, Height, Node, SetHash};

use crate::chain::{NETWORK, blocks, synced};

#[test]
fn an_exported_set_is_imported_alone_and_takes_no_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, file) = (folder.path().join("chain"), folder.path().join("set"));
    let set = synced(&chain, &blocks(112, 6)).snapshot().unspent().unwrap();
    let mut out = fs::File::create(&file).unwrap();
    let coins = set.export(&mut out, &mut |_, _| {}).unwrap();
    let stats = set.stats(SetHash::HashSerialized3, &mut |_, _| {}).unwrap();
    assert_eq!(coins, stats.txouts);

    let alone = folder.path().join("alone");
    let builder = || Node::builder().network(NETWORK).datadir(&alone);
    let import = |height| builder().import_unspent(&file, height, &mut |_, _| {});
    assert!(matches!(import(None), Err(Error::BaseHeight { .. })));
    assert!(!alone.exists(), "a refused file makes no folder");
    let imported = import(Some(Height::new(112))).unwrap();
    assert_eq!((imported.coins, imported.checked), (coins, false));
    assert_eq!(Some(imported.tip), set.tip());
    let copy = builder().open_unspent().unwrap();
    assert_eq!(copy.stats(SetHash::HashSerialized3, &mut |_, _| {}).unwrap(), stats);
    drop(copy);
    assert!(matches!(builder().open(), Err(Error::NoChain { .. })));
    assert!(matches!(builder().create(), Err(Error::SetAlone { .. })));
    assert!(matches!(import(Some(Height::new(112))), Err(Error::SetExists { .. })));
}

#[test]
fn a_file_that_is_cut_off_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, file) = (folder.path().join("chain"), folder.path().join("set"));
    let mut bytes = Vec::new();
    let set = synced(&chain, &blocks(112, 6)).snapshot().unspent().unwrap();
    set.export(&mut bytes, &mut |_, _| {}).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let alone = folder.path().join("alone");
    let builder = || Node::builder().network(NETWORK).datadir(&alone);
    let error = builder().import_unspent(&file, Some(Height::new(112)), &mut |_, _| {});
    assert!(matches!(error, Err(Error::Import { .. })), "{error:?}");
    assert!(!alone.exists());
    assert!(matches!(builder().open_unspent(), Err(Error::NoSet { .. })));
}

/// The figures of a past height are those that the set had there.
#[test]
fn figures_of_a_past_height() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(115, 7);
    let node = synced(&folder.path().join("whole"), &blocks);
    let half: Vec<_> = blocks.iter().filter(|b| !b.stale && b.height <= 108).cloned().collect();
    let there = synced(&folder.path().join("half"), &half).snapshot();
    let mut expected = there.stats(SetHash::Muhash).unwrap();
    expected.transactions = 0;
    let past = |hash| node.stats_at(Height::new(108), hash, &mut |_, _| {});
    assert_eq!(past(SetHash::Muhash).unwrap(), expected);
    assert!(matches!(past(SetHash::HashSerialized3), Err(Error::HashOfTheTipAlone { .. })));
}

#[test]
fn records_remember_their_tip() {
    let folder = tempfile::tempdir().unwrap();
    let path = Node::builder().datadir(folder.path()).records_path().unwrap();
    let open = || RecordStore::open(&path, Settings::new(NETWORK), 64 << 20);
    let state = BlockState { height: Height::new(7), median_time: 9 };
    open().unwrap().set_tip(state).unwrap();
    assert_eq!(open().unwrap().block_state(), state);
    assert!(RecordStore::index_memory(&path, 64 << 20).is_some());
    let little = RecordStore::open(&path, Settings::new(NETWORK), 1 << 20);
    assert!(matches!(little.err(), Some(Error::RecordsMemory { .. })));
}
