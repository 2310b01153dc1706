//! Delayed threads: how far the writer gets ahead, and what it waits for.

use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_io::faulty::FaultyStorage;
use varve_runs::{Compaction, Lane};
use varve_types::{Block, Network};

use super::super::*;
use crate::fixture::KEY;
use crate::manifest::Parameters;
use crate::prepare::{Prepared, Repeats};
use crate::undo::UndoConfig;

const PARAMETERS: Parameters =
    Parameters { window: 1, flush_interval: 1, fan_in: 2, max_probed: 3 };

fn open(memory: usize, parameters: Parameters) -> Database {
    let compaction = Compaction::Threads;
    let undo = UndoConfig { cache: 0, ..UndoConfig::default() };
    let options = Options::new(Network::Regtest, KEY);
    let options = Options { parameters, memory, compaction, undo, ..options };
    Database::open(Arc::new(FaultyStorage::new(1)), options).unwrap()
}

/// Keeps a lane busy until released.
fn hold_up(lane: &Lane) -> Sender<()> {
    let (release, wait) = mpsc::channel();
    drop(lane.start(move || wait.recv()));
    release
}

/// Releases the lane after a while, from another thread.
fn later(release: Sender<()>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        release.send(()).unwrap();
    })
}

/// Appends a block with `outputs` outputs.
fn append(database: &mut Database, outputs: usize) {
    let height = database.tip().map_or(0, |(tip, _)| tip.to_u32() + 1);
    let previous = database.tip().map_or(BlockHash::ZERO, |(_, hash)| hash);
    let mut coinbase = TxDraft::coinbase(Height::new(height), 1);
    coinbase.outputs = (0..outputs).map(|_| OutputDraft::with_script(vec![0x51; 30])).collect();
    let bytes = BlockDraft { previous, ..BlockDraft::new(vec![coinbase]) }.bytes();
    let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
    database.append(&BlockAt::new(Height::new(height), &block)).unwrap();
}

/// Waits for a flush or a merge that is under way.
fn settle(database: &mut Database) {
    while !database.work.flush.is_free() || database.work.merges.outputs().next().is_some() {
        database.maintain(0).unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn a_merge_that_takes_long_is_waited_for_only_when_runs_are_too_many() {
    let mut database = open(0, PARAMETERS);
    let release = hold_up(database.work.merges.main_lane());
    let most = 3 + 2;
    while database.runs.as_slice().len() < most {
        append(&mut database, 3);
        assert_eq!(database.waits().for_runs, 0, "{} runs", database.runs.as_slice().len());
    }
    assert!(database.work.merges.main_inputs().is_some(), "a merge is under way, and held up");
    assert!(database.merge_debt() > 0);
    let later = later(release);
    for _ in 0..6 {
        append(&mut database, 3);
        assert!(database.runs.as_slice().len() <= most + 1);
    }
    later.join().unwrap();
    assert!(database.waits().for_runs > 0);
    settle(&mut database);
    assert!(database.runs.as_slice().len() <= 3);
    assert_eq!(database.merge_debt(), 0);
    assert!(database.written().merged > 0);
}

/// A merge of the whole set takes minutes. Runs that come from panes are merged beside it: a
/// lookup probes no more than it should, and no block waits.
#[test]
fn young_runs_are_merged_while_the_whole_set_is() {
    let parameters = Parameters { fan_in: 2, max_probed: 6, ..PARAMETERS };
    let mut database = open(0, parameters);
    // Large runs, of coins that nothing deletes.
    for _ in 0..6 {
        append(&mut database, 5_000);
        settle(&mut database);
    }
    let release = hold_up(database.work.merges.main_lane());
    while database.work.merges.main_inputs().is_none() {
        append(&mut database, 5_000);
    }
    let merging = database.work.merges.main_inputs().unwrap().to_vec();
    let mut beside = 0;
    for _ in 0..60 {
        let merged = database.written().merged;
        append(&mut database, 2);
        while !database.work.merges.is_beside_free() {
            database.maintain(0).unwrap();
            std::thread::yield_now();
        }
        beside += usize::from(database.written().merged > merged);
        let runs = database.runs.as_slice().len();
        assert!(runs <= 6 + 1, "{runs} runs, of which {} are being merged", merging.len());
    }
    assert!(beside > 10, "{beside} merges beside the long one");
    assert_eq!(database.waits().for_runs, 0);
    assert_eq!(database.work.merges.main_inputs().unwrap(), merging, "it is still held up");
    release.send(()).unwrap();
    settle(&mut database);
    let (height, _) = database.tip().unwrap();
    let coins = database.snapshot().coin_count();
    let storage = Arc::clone(&database.storage);
    database.flush().unwrap();
    drop(database);
    let options = Options { parameters, ..Options::new(Network::Regtest, KEY) };
    let database = Database::open(storage, options).unwrap();
    assert_eq!(database.tip().map(|(tip, _)| tip), Some(height));
    let mut walk = database.snapshot().coins().unwrap();
    let walked = std::iter::from_fn(|| walk.next_coin().unwrap().map(drop)).count();
    assert_eq!(walked as u64, coins);
}

#[test]
fn a_flush_that_takes_long_is_waited_for_only_when_the_window_is_full() {
    let parameters = Parameters { window: 1_000, flush_interval: 256, ..PARAMETERS };
    let mut database = open(Options::MEMORY_MIN, parameters);
    let release = hold_up(&database.work.flush_lane);
    while database.work.flush.is_free() {
        append(&mut database, 1_000);
    }
    assert_eq!(database.waits().for_memory, 0);
    // Part of the window's share is left, for a few more blocks.
    let need = Window::memory_of(1_000, 1_000 * 30);
    let mut ahead = 0;
    while !database.budget().is_full(database.window_memory().0, need) {
        append(&mut database, 1_000);
        ahead += 1;
    }
    assert!(ahead > 2, "{ahead} blocks");
    assert_eq!(database.waits().for_memory, 0);
    let later = later(release);
    for _ in 0..3 {
        append(&mut database, 1_000);
        let (window, share) = database.window_memory();
        assert!(window <= share, "{window} of {share}");
    }
    later.join().unwrap();
    assert!(database.waits().for_memory > 0);
    assert!(database.written().flushed > 0, "it has waited for a run");
}

/// A record that is not in memory is read by a thread that may wait: when a block is undone, and
/// when a block that survived a crash is appended again.
#[test]
fn undo_records_are_read_without_the_set() {
    let compaction = Compaction::Inline;
    let undo = UndoConfig { cache: 0, ..UndoConfig::default() };
    let options = Options { compaction, undo, ..Options::new(Network::Regtest, KEY) };
    let storage = Arc::new(FaultyStorage::new(1));
    let mut database = Database::open(storage.clone(), options).unwrap();
    append(&mut database, 3);
    database.flush().unwrap();
    let below = database.tip();
    let coinbase = TxDraft::coinbase(Height::new(1), 1);
    let previous = below.unwrap().1;
    let bytes = BlockDraft { previous, ..BlockDraft::new(vec![coinbase]) }.bytes();
    let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
    let at = BlockAt::new(Height::new(1), &block);
    let prepare = |database: &Database| {
        Prepared::new(database.latest(), Network::Regtest, &at, Repeats::Possible).unwrap()
    };
    let prepared = prepare(&database);
    database.append_prepared(&at, prepared).unwrap();
    let Some(Pause::Record(read)) = database.rewind_or_pause().unwrap() else {
        panic!("the record is in memory");
    };
    assert_ne!(database.tip(), below, "nothing was done");
    read.finish().unwrap();
    assert!(database.rewind_or_pause().unwrap().is_none());
    assert_eq!(database.tip(), below);

    drop(database);
    let mut database = Database::open(storage, options).unwrap();
    assert_eq!(database.tip(), below);
    let mut prepared = prepare(&database);
    let Some(Pause::Record(read)) = database.append_current(&at, &mut prepared).unwrap() else {
        panic!("the record that survived is in memory");
    };
    read.finish().unwrap();
    assert!(database.append_current(&at, &mut prepared).unwrap().is_none());
    assert_eq!(database.tip(), Some((Height::new(1), block.hash())));
}

/// Steps continue while a checkpoint is written; it is whole, of the step that decided it. The
/// owner's flush waits for it, and not for a merge.
#[test]
fn a_checkpoint_that_takes_long_holds_up_nothing_but_a_flush() {
    let mut database = open(0, PARAMETERS);
    let merges = hold_up(database.work.merges.main_lane());
    let release = hold_up(&database.work.checkpoint_lane);
    while database.work.checkpoint.is_free() {
        append(&mut database, 2);
    }
    let decided = database.sequence;
    append(&mut database, 2);
    append(&mut database, 2);
    assert_eq!(database.checkpoint().sequence, Sequence::ZERO);
    let later = later(release);
    let flushed = database.flush().unwrap();
    later.join().unwrap();
    assert_eq!(flushed.sequence, database.sequence);
    assert!(flushed.sequence > decided);
    assert!(database.written().windows > 0);
    drop(merges);
    let storage = Arc::clone(&database.storage);
    drop(database);
    let names = storage.list().unwrap();
    let windows = names.iter().filter(|name| name.ends_with(".window")).count();
    assert_eq!(windows, 1, "the window file of the checkpoint before is gone: {names:?}");
}

/// Jobs in progress when the set is closed are abandoned, and the next opener is not blocked.
#[test]
fn closing_stops_what_is_under_way() {
    let mut database = open(0, PARAMETERS);
    let release = hold_up(database.work.merges.main_lane());
    while database.work.merges.main_inputs().is_none() {
        append(&mut database, 3);
    }
    let number = database.work.merges.outputs().next().unwrap();
    let storage = Arc::clone(&database.storage);
    let later = later(release);
    drop(database);
    later.join().unwrap();
    assert!(!storage.list().unwrap().contains(&number.file_name()), "it was asked to stop");
    let options = Options { parameters: PARAMETERS, ..Options::new(Network::Regtest, KEY) };
    Database::open(storage, options).unwrap();
}
