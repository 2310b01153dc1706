//! A set that has lost a coin refuses a good block. The history is asked before a block is marked.

use std::sync::Arc;

use varve_consensus::BlockAt;
use varve_consensus::contract::draft::TxDraft;
use varve_io::Storage as _;
use varve_io::faulty::FaultyStorage;
use varve_node::{DataDirectory, Error, Options, Organizer, Prune, SettingsChange};
use varve_types::script::opcode::{OP_0, OP_1};
use varve_types::{Block, Height, Network, Outpoint, Txid};
use varve_utxo::{Database, Options as SetOptions, Secret, StoreKey, UndoConfig};

use crate::crash::eager_options;
use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{pipe, sync, sync_options};

/// Opens the set of a closed node.
fn open_set(storage: &Arc<FaultyStorage>, options: &Options) -> Database {
    let directory =
        DataDirectory::open(storage.clone(), Network::Regtest, &options.seed).unwrap().identity();
    let key = StoreKey { id: directory.store, secret: Secret::new(directory.secret) };
    let set = SetOptions { undo: options.undo, ..SetOptions::new(Network::Regtest, key) };
    Database::open(storage.directory("utxo").unwrap(), set).unwrap()
}

/// Takes the coin of `victim` out of the set, which stands at the block `tip` as before: the tip is
/// connected again with a body that spends one coin more under the same header.
fn lose_coin(storage: &Arc<FaultyStorage>, options: &Options, tip: &Mined, victim: Outpoint) {
    let mut set = open_set(storage, options);
    assert_eq!(set.tip().unwrap().1, tip.hash);
    set.rewind().unwrap();
    let block = Block::parse(&tip.bytes, Network::Regtest.format()).unwrap();
    let txs = block.txs().iter().map(|tx| tx.bytes().to_vec());
    let thief = TxDraft::spending(&[victim], 1).bytes();
    let txs: Vec<Vec<u8>> = txs.chain([thief]).collect();
    let mut forged = tip.bytes[..80].to_vec();
    forged.push(u8::try_from(txs.len()).unwrap());
    txs.iter().for_each(|tx| forged.extend_from_slice(tx));
    let forged = Block::parse(&forged, Network::Regtest.format()).unwrap();
    set.append(&BlockAt::new(Height::new(tip.height), &forged)).unwrap();
    set.flush().unwrap();
    assert_eq!(set.tip().unwrap().1, tip.hash);
}

/// Gives the coin of `victim` another script in the set, which nobody can answer: the set is
/// exported and the changed file imported.
fn spoil_script(storage: &Arc<FaultyStorage>, victim: &Mined) {
    let set = open_set(storage, &young_options());
    let (height, _) = set.tip().unwrap();
    let mut file = Vec::new();
    set.reader().snapshot().export(Network::Regtest, &mut file, &mut |_, _| {}).unwrap();
    drop(set);
    let (txid, script) = (victim.coinbase.txid(), &victim.coinbase.outputs[0].script);
    assert_eq!(script, &[OP_1]);
    let coins = file.windows(32).position(|bytes| bytes == txid.as_bytes()).unwrap() + 32;
    // A script of n bytes that is not of a common form has the length n + 6.
    let packed = file[coins..].windows(2).position(|bytes| bytes == [7, OP_1]).unwrap();
    file[coins + packed + 1] = OP_0;
    let folder = storage.directory("utxo").unwrap();
    folder.list().unwrap().iter().for_each(|name| folder.remove(name).unwrap());
    open_set(storage, &young_options()).import(&file[..], height, &mut |_, _| {}).unwrap();
}

/// The sync ends with an error that names both stores, and nothing is marked.
fn contradicts(node: &mut Organizer, blocks: &[Vec<u8>]) {
    let before = node.snapshot().tip;
    let refused = sync(node, &mut pipe(Network::Regtest, blocks), &sync_options());
    let message = refused.unwrap_err().to_string();
    for part in ["unspent set", "history", "varve verify", "varve repair"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(node.invalid_blocks().count(), 0, "nothing is marked");
    assert_eq!(node.snapshot().tip, before);
}

#[test]
fn a_set_with_another_script_marks_no_block() {
    let storage = Arc::new(FaultyStorage::new(3));
    let chain = Mined::genesis().chain(1, 6);
    let mut node = Organizer::open(storage.clone(), young_options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &bytes_of(&chain)), &sync_options()).unwrap();
    drop(node);
    spoil_script(&storage, &chain[5]);
    let longer = bytes_of(chain.iter().chain(&chain[5].chain(1, 3)));
    let mut node = Organizer::open(storage, young_options()).unwrap();
    contradicts(&mut node, &longer);
}

/// Where blocks are pruned the history cannot tell, and the set's word counts.
#[test]
fn a_pruned_folder_goes_by_the_set() {
    let undo = UndoConfig { blocks: 3, segment_size: 300, cache: 0 };
    let settings = SettingsChange { prune: Some(Prune::To(1)), ..SettingsChange::default() };
    let options = || Options { undo, settings, block_segment: 700, ..eager_options() };
    let storage = Arc::new(FaultyStorage::new(3));
    let chain = Mined::genesis().chain(1, 60);
    let mut node = Organizer::open(storage.clone(), options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &bytes_of(&chain)), &sync_options()).unwrap();
    assert!(node.pruned_below().unwrap().is_some_and(|height| height.to_u32() > 5));
    drop(node);
    // Block 5 spends the coinbase of block 4; the second output of that is unspent.
    let old = Outpoint::new(TxDraft::spending(&[chain[3].coin()], 3).txid(), 1);
    let good = chain[59].above(1, vec![TxDraft::spending(&[old], 1)]);
    lose_coin(&storage, &options(), &chain[59], old);
    let mut node = Organizer::open(storage, options()).unwrap();
    let blocks = bytes_of([&chain[59], &good]);
    let refused = sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].0, good.hash.to_string());
    assert!(refused[0].1.starts_with("bad-txns-inputs-missingorspent"), "{refused:?}");
    assert!(node.invalid(&good.hash).is_some());
}

#[test]
fn a_set_that_has_lost_a_coin_marks_no_block() {
    let storage = Arc::new(FaultyStorage::new(3));
    let chain = Mined::genesis().chain(1, 6);
    let mut node = Organizer::open(storage.clone(), young_options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &bytes_of(&chain)), &sync_options()).unwrap();
    drop(node);
    lose_coin(&storage, &young_options(), &chain[5], chain[5].coin());
    let longer = bytes_of(chain.iter().chain(&chain[5].chain(1, 3)));
    let mut node = Organizer::open(storage.clone(), young_options()).unwrap();
    contradicts(&mut node, &longer);
    drop(node);
    // The set is rebuilt, and the same blocks are taken.
    let mut node = Organizer::repair(storage, young_options(), &mut |_, _| {}).unwrap();
    assert_eq!(sync(&mut node, &mut pipe(Network::Regtest, &longer), &sync_options()).unwrap(), []);
    assert_eq!(node.snapshot().tip.0.to_u32(), 9);
    node.verify(&mut |_, _| {}).unwrap();
}

/// Where both say no, the block is marked as before.
#[test]
fn a_block_that_the_history_refuses_too_is_marked() {
    let storage = Arc::new(FaultyStorage::new(3));
    let chain = Mined::genesis().chain(1, 6);
    let nothing = Outpoint::new(Txid::from_bytes([9; 32]), 0);
    let bad = chain[5].above(1, vec![TxDraft::spending(&[nothing], 1)]);
    let mut node = Organizer::open(storage, young_options()).unwrap();
    let blocks = bytes_of(chain.iter().chain([&bad]));
    let refused = sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options());
    let refused: Result<_, Error> = refused;
    assert_eq!(refused.unwrap().len(), 1);
    assert!(node.invalid(&bad.hash).is_some());
}
