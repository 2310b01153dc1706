//! The undo log through reorganisations, pruning, crashes and damage.

use varve_io::faulty::{Crash, FaultyStorage};
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
    let storage: Arc<dyn Storage> = Arc::clone(storage) as _;
    UndoLog::open(storage, STORE, SMALL, checkpoint).unwrap()
}

/// The sequences of the chain's records, the tip's first.
fn walk(log: &mut UndoLog, limit: usize) -> Vec<u32> {
    let mut sequences = Vec::new();
    while sequences.len() < limit
        && let Some(record) = log.tip().unwrap()
    {
        sequences.push(record.sequence.to_u32());
        log.pop().unwrap();
    }
    sequences
}

#[test]
fn a_reorganisation_goes_back_to_the_fork() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    assert_eq!(log.tip().unwrap(), None);
    (1..=5).for_each(|n| log.push(&record(n, n)).unwrap());
    (0..2).for_each(|_| log.pop().unwrap());
    // Steps 6 and 7 disconnected; 8 and 9 are another branch.
    log.push(&record(8, 4)).unwrap();
    log.push(&record(9, 5)).unwrap();
    let checkpoint = log.sync().unwrap();
    let mut bytes = Vec::new();
    checkpoint.encode(&mut bytes);
    assert_eq!(UndoCheckpoint::decode(&mut Reader::new(&bytes)), Ok(checkpoint.clone()));
    assert_eq!(log.tip().unwrap(), Some(record(9, 5)));
    assert_eq!(walk(&mut log, 99), [9, 8, 3, 2, 1]);
    let mut log = open(&storage, &checkpoint);
    assert_eq!(walk(&mut log, 99), [9, 8, 3, 2, 1], "from disk");
    log.pop().unwrap();
    assert_eq!(log.tip().unwrap(), None, "there is nothing below");
}

#[test]
fn old_segments_go_and_the_last_blocks_stay() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut checkpoint = UndoCheckpoint::default();
    let mut largest = 0;
    for height in 1..=1000_u32 {
        // A node that is restarted all the time prunes as well.
        let mut log = open(&storage, &checkpoint);
        log.push(&record(height, height)).unwrap();
        checkpoint = log.sync().unwrap();
        log.prune(Height::new(height)).unwrap();
        largest = largest.max(log.bytes());
    }
    let record_bytes = 16 + 8 + 72 + 2 + 38 + 30 + 37;
    assert!(largest < (128 + 64) * record_bytes + 2 * 4096, "{largest} bytes are kept");
    let mut log = open(&storage, &checkpoint);
    assert_eq!(walk(&mut log, 128), (873..=1000).rev().collect::<Vec<_>>());
    // The checkpoint is older than the pruning, and marks records that have gone since.
    let kept = open(&storage, &checkpoint).kept_from().unwrap().to_u32();
    let blocks = usize::try_from(1001 - kept).unwrap();
    let all = (kept..=1000).rev().collect::<Vec<_>>();
    assert_eq!(walk(&mut open(&storage, &checkpoint), blocks), all, "all from there on are kept");
    let deeper = (0..200).try_for_each(|_| log.pop());
    assert!(matches!(deeper, Err(UndoError::TooDeep)), "{deeper:?}");
}

#[test]
fn a_replay_adopts_what_survived() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    (1..=3).for_each(|n| log.push(&record(n, n)).unwrap());
    let checkpoint = log.sync().unwrap();
    // Over several segments, so that the next ones are sealed and mapped when they are read.
    (4..=90).for_each(|n| log.push(&record(n, n)).unwrap());
    assert!(storage.list().unwrap().len() > 3);
    let end = log.bytes();
    let storage = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
    let mut log = open(&storage, &checkpoint);
    assert_eq!(log.tip().unwrap(), Some(record(3, 3)), "the chain is as it was at the checkpoint");
    assert_eq!(log.survivor().unwrap(), Some(record(4, 4)));
    assert_eq!(log.sync().unwrap(), checkpoint, "survivors are no part of the chain yet");
    log.push(&record(4, 4)).unwrap();
    assert_eq!(log.bytes(), end, "nothing was written");
    assert_eq!(log.survivor().unwrap(), Some(record(5, 5)));
    // The replay takes another way: what else survived is cut.
    log.push(&record(5, 77)).unwrap();
    assert_eq!(log.survivor().unwrap(), None);
    assert_eq!(walk(&mut log, 99), [5, 4, 3, 2, 1]);
}

/// At every operation and in many ways: what the last durable checkpoint named is there and whole,
/// and the log goes on from it.
#[test]
fn a_crash_at_any_instant_loses_no_checkpoint() {
    let storage = Arc::new(FaultyStorage::new(3));
    let mut log = open(&storage, &UndoCheckpoint::default());
    let mut durable = vec![(0, UndoCheckpoint::default(), Vec::new())];
    let mut chain: Vec<u32> = Vec::new();
    for sequence in 1..=60_u32 {
        if sequence % 7 == 0 {
            log.pop().unwrap();
            chain.pop();
        } else {
            chain.push(sequence);
            let height = u32::try_from(chain.len()).unwrap();
            log.push(&record(sequence, height)).unwrap();
        }
        if sequence % 5 == 0 {
            let checkpoint = log.sync().unwrap();
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
            log.push(&record(100, 50)).unwrap();
            log.sync().unwrap();
            assert_eq!(log.tip().unwrap(), Some(record(100, 50)));
            log.pop().unwrap();
            assert_eq!(walk(&mut log, 99), *chain, "crash after operation {n}, seed {seed}");
        }
    }
}

#[test]
fn damage_is_an_error() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    (1..=3).for_each(|n| log.push(&record(n, n)).unwrap());
    let checkpoint = log.sync().unwrap();
    drop(log);
    let name = storage.list().unwrap().remove(0);
    assert!(storage.flip_bit(&name, varve_io::FileOffset::new(500), 3));
    let mut log = open(&storage, &checkpoint);
    let mut walk = || -> Result<(), UndoError> {
        for _ in 0..3 {
            log.tip()?;
            log.pop()?;
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
fn a_spender_is_found_as_far_down_as_records_are_kept() {
    let storage = Arc::new(FaultyStorage::new(0));
    let mut log = open(&storage, &UndoCheckpoint::default());
    let txid = |number| Txid::from_bytes([number; 32]);
    let spent = |number| Outpoint::new(txid(number), 0);
    (1..=5).for_each(|n| log.push(&record(n, n)).unwrap());
    assert_eq!(log.spender(&spent(3)).unwrap(), Some(txid(3)));
    assert_eq!(log.spender(&Outpoint::new(txid(3), 1)).unwrap(), None, "created, not spent");
    (0..3).for_each(|_| log.pop().unwrap());
    assert_eq!(log.spender(&spent(3)).unwrap(), None, "no longer part of the chain");
    assert_eq!(log.spender(&spent(2)).unwrap(), Some(txid(2)));
    log.forget_chain();
    assert_eq!(log.spender(&spent(2)).unwrap(), None);
    log.push(&record(9, 2)).unwrap();
    assert_eq!(walk(&mut log, 99), [9], "there is nothing below");
}
