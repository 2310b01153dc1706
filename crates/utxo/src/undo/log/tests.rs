//! The undo log through reorganisations, pruning, crashes and damage.

use std::time::Duration;

use varve_io::faulty::{Crash, FaultyStorage, Operation};
use varve_types::{Amount, BlockHash, Coin, Outpoint, Txid};

use super::*;
use crate::entry::Entry;
use crate::undo::UndoTx;

const STORE: StoreId = StoreId(*b"undo-log-of-test");
const SMALL: UndoConfig = UndoConfig { blocks: 128, segment_size: 4096, cache: 600 };

/// The record of the block that step `sequence` connected at `height`.
fn record(sequence: u32, height: u32) -> UndoRecord {
    let number = sequence.to_le_bytes()[0];
    let outpoint = |vout| Outpoint::new(Txid::from_bytes([number; 32]), vout);
    let (value, script) = (Amount::from_sat(u64::from(sequence)), &[number; 30][..]);
    let coin = Coin { height: Height::new(1), coinbase: false, value, script };
    UndoRecord {
        sequence: Sequence::new(sequence),
        height: Height::new(height),
        block: BlockHash::from_bytes([number; 32]),
        previous: BlockHash::ZERO,
        spent: std::iter::once(Entry::add(outpoint(0), Sequence::new(1), coin)).collect(),
        created: vec![outpoint(1), outpoint(2)],
        txs: vec![UndoTx { txid: Txid::from_bytes([number; 32]), spends: 1, creates: 2 }],
    }
}

fn open(storage: &Arc<FaultyStorage>, checkpoint: &UndoCheckpoint) -> UndoLog {
    open_with(storage, Compaction::Inline, checkpoint)
}

fn open_with(
    storage: &Arc<FaultyStorage>,
    compaction: Compaction,
    checkpoint: &UndoCheckpoint,
) -> UndoLog {
    let storage: Arc<dyn Storage> = Arc::clone(storage) as _;
    UndoLog::open(storage, STORE, SMALL, compaction, checkpoint).unwrap()
}

fn push(log: &mut UndoLog, record: &UndoRecord) {
    let staged = log.stage(&record.head(), 1, |payload| record.encode(payload)).unwrap();
    log.push(staged);
}

fn pop(log: &mut UndoLog) {
    if let Some((_, below)) = log.tip().unwrap() {
        log.pop(below);
    }
}

/// Makes all records durable.
fn sync(log: &mut UndoLog) -> UndoCheckpoint {
    let (checkpoint, pending) = log.begin_sync();
    pending.finish().unwrap();
    checkpoint
}

/// The bytes that the log holds.
fn bytes(log: &mut UndoLog) -> u64 {
    log.wait().unwrap();
    let reader = log.writer.reader();
    reader.end().since(reader.start()).unwrap()
}

fn tip(log: &UndoLog) -> Option<UndoRecord> {
    log.tip().unwrap().map(|(record, _)| record)
}

/// The sequences of the chain's records, the tip's first.
fn walk(log: &mut UndoLog, limit: usize) -> Vec<u32> {
    let mut sequences = Vec::new();
    while sequences.len() < limit
        && let Some((record, below)) = log.tip().unwrap()
    {
        sequences.push(record.sequence.to_u32());
        log.pop(below);
    }
    sequences
}

#[test]
fn a_reorganisation_goes_back_to_the_fork() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    assert_eq!(tip(&log), None);
    (1..=5).for_each(|n| push(&mut log, &record(n, n)));
    (0..2).for_each(|_| pop(&mut log));
    // Steps 6 and 7 disconnected; 8 and 9 are another branch.
    push(&mut log, &record(8, 4));
    push(&mut log, &record(9, 5));
    let checkpoint = sync(&mut log);
    let mut bytes = Vec::new();
    checkpoint.encode(&mut bytes);
    assert_eq!(UndoCheckpoint::decode(&mut Reader::new(&bytes)), Ok(checkpoint.clone()));
    assert_eq!(tip(&log), Some(record(9, 5)));
    assert_eq!(walk(&mut log, 99), [9, 8, 3, 2, 1]);
    let mut log = open(&storage, &checkpoint);
    assert_eq!(walk(&mut log, 99), [9, 8, 3, 2, 1], "from disk");
    pop(&mut log);
    assert_eq!(tip(&log), None, "there is nothing below");
}

#[test]
fn old_segments_go_and_the_last_blocks_stay() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut checkpoint = UndoCheckpoint::default();
    let mut largest = 0;
    for height in 1..=1000_u32 {
        // A node that is restarted often prunes as well.
        let mut log = open(&storage, &checkpoint);
        push(&mut log, &record(height, height));
        checkpoint = sync(&mut log);
        log.prune(Height::new(height));
        largest = largest.max(bytes(&mut log));
    }
    let record_bytes = 16 + 8 + 72 + 2 + 38 + 30 + 37;
    assert!(largest < (128 + 64) * record_bytes + 2 * 4096, "{largest} bytes are kept");
    let mut log = open(&storage, &checkpoint);
    assert_eq!(walk(&mut log, 128), (873..=1000).rev().collect::<Vec<_>>());
    // The checkpoint is older than the pruning, and marks records that were removed since.
    let kept = open(&storage, &checkpoint).kept_from().unwrap().to_u32();
    let blocks = usize::try_from(1001 - kept).unwrap();
    let all = (kept..=1000).rev().collect::<Vec<_>>();
    assert_eq!(walk(&mut open(&storage, &checkpoint), blocks), all, "all from there on are kept");
    let deeper = loop {
        match log.tip() {
            Ok(record) => log.pop(record.unwrap().1),
            Err(error) => break error,
        }
    };
    assert!(matches!(deeper, UndoError::TooDeep), "{deeper:?}");
}

#[test]
fn a_replay_adopts_what_survived() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    (1..=3).for_each(|n| push(&mut log, &record(n, n)));
    let checkpoint = sync(&mut log);
    // Over several segments, so that the next ones are sealed and mapped when they are read.
    (4..=90).for_each(|n| push(&mut log, &record(n, n)));
    assert!(storage.list().unwrap().len() > 3);
    let end = bytes(&mut log);
    let storage = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
    let mut log = open(&storage, &checkpoint);
    assert_eq!(tip(&log), Some(record(3, 3)), "the chain is as it was at the checkpoint");
    assert_eq!(log.survivor().unwrap(), Some(record(4, 4)));
    assert_eq!(sync(&mut log), checkpoint, "survivors are no part of the chain yet");
    push(&mut log, &record(4, 4));
    assert_eq!(bytes(&mut log), end, "nothing was written");
    assert_eq!(log.survivor().unwrap(), Some(record(5, 5)));
    // The replay takes another way: what else survived is cut.
    push(&mut log, &record(5, 77));
    assert_eq!(log.survivor().unwrap(), None);
    assert_eq!(walk(&mut log, 99), [5, 4, 3, 2, 1]);
}

/// At every operation and in many ways: everything that the last durable checkpoint refers to is
/// intact, and the log continues from it.
#[test]
fn a_crash_at_any_instant_loses_no_checkpoint() {
    let storage = Arc::new(FaultyStorage::new(3));
    let mut log = open(&storage, &UndoCheckpoint::default());
    let mut durable = vec![(0, UndoCheckpoint::default(), Vec::new())];
    let mut chain: Vec<u32> = Vec::new();
    for sequence in 1..=60_u32 {
        if sequence % 7 == 0 {
            pop(&mut log);
            chain.pop();
        } else {
            chain.push(sequence);
            let height = u32::try_from(chain.len()).unwrap();
            push(&mut log, &record(sequence, height));
        }
        if sequence % 5 == 0 {
            let checkpoint = sync(&mut log);
            let mut newest_first = chain.clone();
            newest_first.reverse();
            durable.push((storage.operations(), checkpoint, newest_first));
        }
    }
    for n in 0..=storage.operations() {
        let (_, checkpoint, chain) = durable.iter().rfind(|(at, ..)| *at <= n).unwrap();
        for seed in 0..4 {
            let after = Arc::new(storage.crash(n, Crash::Seed(seed)));
            let mut log = open(&after, checkpoint);
            push(&mut log, &record(100, 50));
            sync(&mut log);
            assert_eq!(tip(&log), Some(record(100, 50)));
            pop(&mut log);
            assert_eq!(walk(&mut log, 99), *chain, "crash after operation {n}, seed {seed}");
        }
    }
}

#[test]
fn damage_is_an_error() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    (1..=3).for_each(|n| push(&mut log, &record(n, n)));
    let checkpoint = sync(&mut log);
    drop(log);
    let name = storage.list().unwrap().remove(0);
    assert!(storage.flip_bit(&name, varve_io::FileOffset::new(500), 3));
    let mut log = open(&storage, &checkpoint);
    let mut walk = || -> Result<(), UndoError> {
        while let Some((_, below)) = log.tip()? {
            log.pop(below);
        }
        Ok(())
    };
    let error = walk().unwrap_err();
    assert!(error.to_string().contains(&name), "{error}");
    // A checkpoint that leads nowhere.
    let astray = UndoCheckpoint { tip: Some(GlobalOffset::new(1)), ..checkpoint };
    assert!(open(&storage, &astray).tip().is_err());
}

#[test]
fn a_spender_is_found_in_the_chain() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    let txid = |number| Txid::from_bytes([number; 32]);
    let spent = |number| Outpoint::new(txid(number), 0);
    let find = |log: &UndoLog, outpoint: Outpoint, died: Option<u32>| {
        log.spenders().find(&outpoint, died.map(Sequence::new)).unwrap()
    };
    (1..=5).for_each(|n| push(&mut log, &record(n, n)));
    assert_eq!(find(&log, spent(3), None), Some(txid(3)));
    for died in 3..6 {
        assert_eq!(find(&log, spent(3), Some(died)), Some(txid(3)), "no later than {died}");
    }
    assert_eq!(find(&log, spent(3), Some(2)), None, "it died before");
    assert_eq!(find(&log, Outpoint::new(txid(3), 1), None), None, "created, not spent");
    (0..3).for_each(|_| pop(&mut log));
    assert_eq!(find(&log, spent(3), None), None, "no longer part of the chain");
    assert_eq!(find(&log, spent(2), None), Some(txid(2)));
    log.forget_chain();
    assert_eq!(find(&log, spent(2), None), None);
    push(&mut log, &record(9, 2));
    assert_eq!(walk(&mut log, 99), [9], "there is nothing below");
}

/// While the storage hangs, records can still be pushed, read, popped and searched, up to the
/// unwritten bytes that the owner allows.
#[test]
fn nobody_waits_for_a_write_but_a_checkpoint() {
    for operation in [Operation::Write, Operation::Sync, Operation::SyncDir] {
        let storage = Arc::new(FaultyStorage::new(0));
        let mut log = open_with(&storage, Compaction::Threads, &UndoCheckpoint::default());
        push(&mut log, &record(1, 1));
        log.wait().unwrap();
        let gate = storage.hold(operation, "");
        // More than a segment, so that one is sealed, which syncs it and the directory.
        (2..=60).for_each(|n| push(&mut log, &record(n, n)));
        assert!(gate.wait_for_caller(Duration::from_secs(60)), "{operation:?}");
        log.settle().unwrap();
        assert!(log.unwritten() > 0);
        assert_eq!(tip(&log), Some(record(60, 60)));
        let found = log.spenders().find(&Outpoint::new(Txid::from_bytes([60; 32]), 0), None);
        assert_eq!(found.unwrap(), Some(Txid::from_bytes([60; 32])));
        let (checkpoint, pending) = log.begin_sync();
        let finishing = std::thread::spawn(move || pending.finish());
        assert!(!finishing.is_finished());
        drop(gate);
        finishing.join().unwrap().unwrap();
        log.wait().unwrap();
        assert_eq!(log.unwritten(), 0);
        drop(log);
        let left = Arc::new(storage.crash(storage.operations(), Crash::LoseAll));
        let mut log = open(&left, &checkpoint);
        assert_eq!(walk(&mut log, 99), (1..=60).rev().collect::<Vec<_>>());
    }
}

/// A caller who starts over after an error does not get errors of earlier writes.
#[test]
fn what_failed_before_is_tried_again_without_an_error() {
    for compaction in [Compaction::Inline, Compaction::Threads] {
        let storage = Arc::new(FaultyStorage::new(0));
        let mut log = open_with(&storage, compaction, &UndoCheckpoint::default());
        storage.set_capacity(Some(500));
        (1..=20).for_each(|n| push(&mut log, &record(n, n)));
        let (_, pending) = log.begin_sync();
        assert!(matches!(pending.finish(), Err(UndoError::Unwritten { .. })));
        storage.set_capacity(None);
        log.retry();
        log.settle().unwrap();
        log.wait().unwrap();
        let checkpoint = sync(&mut log);
        let mut log = open(&storage, &checkpoint);
        assert_eq!(walk(&mut log, 99), (1..=20).rev().collect::<Vec<_>>());
    }
}

/// A write that fails is reported once, and made when there is space; nothing is lost or doubled.
#[test]
fn what_could_not_be_written_is_written_later() {
    for compaction in [Compaction::Inline, Compaction::Threads] {
        let storage = Arc::new(FaultyStorage::new(0));
        let mut log = open_with(&storage, compaction, &UndoCheckpoint::default());
        (1..=5).for_each(|n| push(&mut log, &record(n, n)));
        log.wait().unwrap();
        storage.set_capacity(Some(1_500));
        (6..=30).for_each(|n| push(&mut log, &record(n, n)));
        let error = log.wait().unwrap_err();
        assert!(error.to_string().contains("the disk is full"), "{error}");
        let (_, pending) = log.begin_sync();
        assert!(matches!(pending.finish(), Err(UndoError::Unwritten { .. })));
        push(&mut log, &record(31, 31));
        assert!(log.wait().is_err(), "it is still full");
        storage.set_capacity(None);
        log.wait().unwrap();
        let checkpoint = sync(&mut log);
        let mut log = open(&storage, &checkpoint);
        assert_eq!(walk(&mut log, 99), (1..=31).rev().collect::<Vec<_>>());
    }
}

/// A search reads a bounded number of bytes, and none of the records above the step in which the
/// coin died.
#[test]
fn a_search_for_a_spender_is_bounded() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    (1..=200).for_each(|n| push(&mut log, &record(n, n)));
    let checkpoint = sync(&mut log);
    drop(log);
    // Nothing is in memory.
    let log = open(&storage, &checkpoint);
    let outpoint = Outpoint::new(Txid::from_bytes([20; 32]), 0);
    let spenders = log.spenders();
    let one = 8 + 72 + 2 + 38 + 30 + 37;
    let found = spenders.find_within(1_000 * one, &outpoint, None).unwrap();
    assert_eq!(found, Some(Txid::from_bytes([20; 32])));
    assert_eq!(spenders.find_within(50 * one, &outpoint, None).unwrap(), None, "too far down");
    let hinted = spenders.find_within(181 * 4_096, &outpoint, Some(Sequence::new(20))).unwrap();
    assert_eq!(hinted, Some(Txid::from_bytes([20; 32])));
}
