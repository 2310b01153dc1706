//! A node that is opened for questions: the same answers as from its writer, at no cost of opening,
//! and the writer's opening wherever a crash has left something to do.

use std::sync::Arc;

use varve_io::Storage as _;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_node::{Error, Limits, Options, Organizer, Prune, Reading, Settings, SettingsChange};
use varve_types::{Block, BlockHash, Height, Network};
use varve_utxo::Compaction;

use crate::crash::{blocks, eager_options};
use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{pipe, sync, sync_options};

fn read(storage: &Arc<FaultyStorage>, options: Options) -> Result<Reading, Error> {
    Reading::open(storage.clone(), options, &mut |_, _| {})
}

/// The tip, every branch, every verdict, how it is kept, and every coin.
type State = (
    (Height, BlockHash),
    Height,
    Vec<varve_node::ChainTip>,
    Vec<varve_node::Invalid>,
    varve_node::ScriptsChecked,
    Settings,
    Vec<u8>,
);

fn state_of(node: &Organizer) -> State {
    let snapshot = node.snapshot();
    let mut set = Vec::new();
    snapshot.utxo.export(Network::Regtest, &mut set, &mut |_, _| {}).unwrap();
    (
        snapshot.tip,
        node.header_height(),
        node.chain_tips(),
        node.invalid_blocks().collect(),
        node.scripts(),
        node.settings(),
        set,
    )
}

fn state_read(node: &Reading) -> State {
    let (set, mut bytes) = (node.set().unwrap(), Vec::new());
    assert_eq!((set.coin_count(), set.run_count()), node.coins());
    set.export(Network::Regtest, &mut bytes, &mut |_, _| {}).unwrap();
    (
        node.tip(),
        node.header_height(),
        node.chain_tips().to_vec(),
        node.invalid_blocks().collect(),
        node.scripts(),
        node.settings(),
        bytes,
    )
}

/// Every confirmed block and transaction is found; whatever is stored is read, and judged as by
/// the writer.
fn check_blocks(reading: &Reading, stored: &[Vec<u8>], invalid: impl Fn(&BlockHash) -> bool) {
    let view = reading.view();
    for bytes in stored {
        let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
        let Some(link) = view.to_header(block.hash()).unwrap() else { continue };
        // A crash may leave a header whose block has not come.
        let Some(found) = view.raw_block(link).unwrap() else { continue };
        assert_eq!(found.to_vec(), *bytes);
        assert_eq!(reading.invalid(&block.hash()).unwrap().is_some(), invalid(&block.hash()));
        let number = reading.blocks().number_of(&block.hash()).unwrap().unwrap();
        assert_eq!(reading.blocks().raw(number).unwrap().to_vec(), *bytes);
        for (position, txid) in block.txids().into_iter().enumerate() {
            let place = view.to_tx(txid).unwrap().unwrap();
            let raw = view.raw_tx(place.link).unwrap().unwrap();
            assert_eq!(raw.to_vec(), block.txs()[position].bytes());
        }
    }
    let tip = view.to_confirmed(reading.tip().0).unwrap();
    assert_eq!(view.header(tip).unwrap().hash, reading.tip().1);
}

/// Commits every block, and makes nothing else durable before the end of a sync.
fn lazy_options() -> Options {
    let limits = Limits { group: 1, ..Limits::default() };
    Options { limits, compaction: Compaction::Inline, ..young_options() }
}

fn synced(options: &Options, blocks: &[Vec<u8>]) -> (Arc<FaultyStorage>, State) {
    let storage = Arc::new(FaultyStorage::new(5));
    let mut node = Organizer::open(storage.clone(), options.clone()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, blocks), &sync_options()).unwrap();
    let state = state_of(&node);
    (storage, state)
}

#[test]
fn a_folder_at_rest_gives_the_answers_of_its_writer_and_is_not_written_to() {
    let all = blocks();
    let (storage, expected) = synced(&eager_options(), &all);
    let before = storage.operations();
    let reading = read(&storage, eager_options()).unwrap();
    let opened = storage.operations() - before;
    assert!(opened <= 3, "{opened} operations: more than the lock and a sync of the folder");
    let node = Organizer::open(
        Arc::new(storage.crash(storage.operations(), Crash::KeepAll)),
        eager_options(),
    );
    let node = node.unwrap();
    check_blocks(&reading, &all, |hash| node.invalid(hash).is_some());
    assert!(all.iter().any(|bytes| {
        let hash = Block::parse(bytes, Network::Regtest.format()).unwrap().hash();
        reading.invalid(&hash).unwrap().is_some()
    }));
    assert_eq!(reading.pruned_below().unwrap(), None);
    assert!(reading.archive_bytes().unwrap() > 0);
    assert_eq!(state_read(&reading), expected);
}

/// The folder is one reader's, as it is one writer's.
#[test]
fn a_folder_that_is_in_use_is_refused() {
    let (storage, _) = synced(&eager_options(), &blocks());
    let refused = |error: Error| assert!(error.to_string().contains("in use by"), "{error}");
    let writer = Organizer::open(storage.clone(), eager_options()).unwrap();
    refused(read(&storage, eager_options()).err().unwrap());
    drop(writer);
    let reader = read(&storage, eager_options()).unwrap();
    refused(read(&storage, eager_options()).err().unwrap());
    refused(Organizer::open(storage.clone(), eager_options()).err().unwrap());
    drop(reader);
}

/// Whatever write a power cut comes after, the reader says what the writer says; and the next
/// reader has nothing left to do.
#[test]
fn after_every_power_cut_a_reader_finds_what_the_writer_finds() {
    let all = blocks();
    let (storage, _) = synced(&eager_options(), &all);
    let (mut rested, operations) = (0, storage.operations());
    for operation in (0..=operations).rev().step_by(5) {
        for crash in [Crash::KeepAll, Crash::LoseAll] {
            let image = || Arc::new(storage.crash(operation, crash));
            let (left, copy) = (image(), image());
            let Ok(node) = Organizer::open(copy, eager_options()) else { continue };
            let expected = state_of(&node);
            let reading = read(&left, eager_options()).unwrap();
            assert_eq!(state_read(&reading), expected, "{operation}, {crash:?}");
            check_blocks(&reading, &all, |hash| node.invalid(hash).is_some());
            drop(reading);
            let before = left.operations();
            let again = read(&left, eager_options()).unwrap();
            rested += usize::from(left.operations() - before <= 3);
            assert!(left.operations() - before <= 3, "{operation}, {crash:?}: not at rest");
            assert_eq!(again.tip(), expected.0);
        }
    }
    assert!(rested > 20, "{rested} images");
}

/// A sync that was killed has made nothing durable but its commits. The first reader replays, and
/// leaves the folder at rest.
#[test]
fn the_first_reader_after_a_crash_leaves_the_folder_at_rest() {
    let all = bytes_of(&Mined::genesis().chain(1, 40));
    let storage = Arc::new(FaultyStorage::new(5));
    let mut node = Organizer::open(storage.clone(), lazy_options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &all[..10]), &sync_options()).unwrap();
    let mut committed = 0;
    node.sync(&mut pipe(Network::Regtest, &all), &sync_options(), &mut |report| {
        if let varve_node::Report::Committed { .. } = report {
            committed = storage.operations();
        }
    })
    .unwrap();
    let expected = state_of(&node);
    drop(node);
    let left = Arc::new(storage.crash(committed, Crash::KeepAll));
    for life in 0..3 {
        let before = left.operations();
        let reading = read(&left, lazy_options()).unwrap();
        let written = left.operations() - before;
        assert_eq!(written > 3, life == 0, "life {life}: {written} operations");
        assert_eq!(state_read(&reading), expected);
        check_blocks(&reading, &all, |_| false);
    }
}

/// A pruned folder is read like any other.
#[test]
fn a_pruned_folder_is_read_at_rest() {
    let undo = varve_utxo::UndoConfig { blocks: 5, segment_size: 2_000, cache: 0 };
    let settings = SettingsChange { prune: Some(Prune::To(1)), ..SettingsChange::default() };
    let options = Options { undo, settings, block_segment: 2_000, ..eager_options() };
    let all = bytes_of(&Mined::genesis().chain(1, 60));
    let (storage, expected) = synced(&options, &all);
    let options = Options { settings: SettingsChange::default(), ..options };
    let before = storage.operations();
    let reading = read(&storage, options).unwrap();
    assert!(storage.operations() - before <= 3);
    assert!(reading.pruned_below().unwrap().is_some());
    assert_eq!(state_read(&reading), expected);
}

/// A file that a reader looks into and that is damaged is named, whether it notices when it opens
/// the folder or when it is asked.
#[test]
fn damage_is_named() {
    let all = bytes_of(&Mined::genesis().chain(1, 30));
    let (storage, _) = synced(&eager_options(), &all);
    let archive = storage.directory("archive").unwrap();
    let tables = archive.list().unwrap();
    let is_asked = |name: &str| name.starts_with("tx_len-") || name.starts_with("block-");
    let tables = tables.iter().filter(|name| is_asked(name) || *name == "block_tx.head");
    let mut files: Vec<String> = tables.map(|name| format!("archive/{name}")).collect();
    let runs = archive.directory("tx").unwrap().list().unwrap();
    files.extend(runs.iter().map(|name| format!("archive/tx/{name}")));
    files.extend(["commit/checkpoint", "archive/archive", "blocks/manifest"].map(str::to_owned));
    assert!(files.len() > 7, "{files:?}");
    for name in &files {
        let damaged = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
        let in_pages = name.ends_with(".head") || name.ends_with(".run");
        let at = if in_pages { 4_096 + 100 } else { 66 };
        assert!(damaged.flip_bit(name, varve_io::FileOffset::new(at), 3), "{name}");
        let find = || -> Result<(), Error> {
            let reading = read(&damaged, eager_options())?;
            let view = reading.view();
            for bytes in &all {
                let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
                for txid in block.txids() {
                    assert!(view.to_tx(txid)?.is_some());
                }
            }
            Ok(())
        };
        let error = find().expect_err(name);
        let file = name.rsplit('/').next().unwrap();
        assert!(error.to_string().contains(file), "{name}: {error}");
    }
}
