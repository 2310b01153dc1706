//! Nobody waits for a disk while others want to commit.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use varve_types::{Height, Outpoint, Txid};

use super::gate::{Call, Gate, GatedStorage};
use super::size::create;
use super::threads::spend;
use super::twin::small;
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::{Context, Engine as _};
use crate::operation::{MinedBlockInfo, Operation};
use crate::outcome::{Pruned, Reply};
use crate::record::{BlockId, BlockRef};
use varve_runs::Compaction;

const CONTEXT: Context = Context { height: Height::new(100), retention: 5 };
/// When everything is due.
const LATER: Context = Context { height: Height::new(200), ..CONTEXT };
/// More than one chunk.
const OUTPUTS: u32 = 20;

fn name(kind: u8, number: u32) -> Txid {
    let mut bytes = [kind; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

/// A record that spends outputs of others.
fn create_spending(txid: Txid, inputs: Vec<Outpoint>) -> Operation {
    let Operation::Unit(mut unit) = create(txid, OUTPUTS) else { panic!("it is a unit") };
    unit.create.as_mut().unwrap().inputs = inputs;
    Operation::Unit(unit)
}

fn mined(txid: Txid) -> Operation {
    let block = BlockRef { id: BlockId(1), height: Height::new(100), subtree: 0 };
    let info = MinedBlockInfo { block, on_longest_chain: true, unset: false };
    Operation::SetMined { txid, info }
}

fn apply(engine: &EmbeddedEngine, operations: &[Operation]) {
    for outcome in engine.apply(&CONTEXT, operations).unwrap() {
        outcome.result.unwrap();
    }
}

/// Another caller commits something, in reasonable time.
fn commit_another(engine: &EmbeddedEngine, number: u32) {
    thread::scope(|scope| {
        let (done, is_done) = channel();
        scope.spawn(move || {
            apply(engine, &[create(name(9, number), 1)]);
            done.send(()).unwrap();
        });
        let done = is_done.recv_timeout(Duration::from_secs(30));
        // A panic would wait for the thread for ever.
        if done.is_err() {
            eprintln!("a commit waits for somebody else's read");
            std::process::abort();
        }
    });
}

/// An engine that has nothing of full files in memory, and no maps. Its upkeep has threads of its
/// own, which the gate lets pass.
fn engine(gate: &Arc<Gate>, checkpoint_every: u64) -> EmbeddedEngine {
    gate.open();
    let (segment_size, cache, upkeep) = (20_000, 0, Compaction::Threads);
    let options = EmbeddedOptions { segment_size, cache, checkpoint_every, upkeep, ..small() };
    EmbeddedEngine::open(Arc::new(GatedStorage::new(gate)), options).unwrap()
}

/// Record `number` with a parent, two children that spend it, and a conflicting child, all in files
/// that are not in memory.
fn family(engine: &EmbeddedEngine, number: u32) -> Txid {
    let [parent, record, child, other, lost] = [1, 2, 3, 4, 5].map(|kind| name(kind, number));
    let lost_one = create_spending(lost, vec![Outpoint::new(record, 3)]);
    apply(engine, &[create(parent, OUTPUTS)]);
    apply(engine, &[create_spending(record, vec![Outpoint::new(parent, 15)])]);
    apply(engine, &[create(child, OUTPUTS), create(other, OUTPUTS), lost_one]);
    let spends = [(child, 0), (other, 17)];
    apply(engine, &spends.map(|(by, vout)| spend(by, Outpoint::new(record, vout))));
    apply(engine, &[child, other, lost].map(mined));
    apply(engine, &[Operation::SetConflicting { txid: lost, conflicting: true }]);
    record
}

/// Stops an operation at its first read, its second, and so on. At none of them others wait,
/// whether the index is in memory or, as far as it can be, in runs.
fn check(operation: impl Fn(Txid) -> Operation + Sync) {
    for in_runs in [false, true] {
        check_where(in_runs, &operation);
    }
}

fn check_where(in_runs: bool, operation: impl Fn(Txid) -> Operation + Sync) {
    const FAMILIES: u32 = 120;
    let gate = Arc::new(Gate::default());
    let engine = engine(&gate, u64::MAX);
    let records: Vec<Txid> = (0..FAMILIES).map(|number| family(&engine, number)).collect();
    let losers = |txid| Operation::SetConflicting { txid, conflicting: true };
    apply(&engine, &records.iter().copied().map(losers).collect::<Vec<_>>());
    if in_runs {
        engine.checkpoint().unwrap();
        assert!(!engine.commit.index().unwrap().cold().is_empty());
    }
    // All of them leave the file in memory.
    (0..100).for_each(|number| apply(&engine, &[create(name(8, number), OUTPUTS)]));
    let mut stops = 0;
    for (left, txid) in (0..).zip(records) {
        let act = || {
            let outcomes = engine.apply(&LATER, &[operation(txid)]).unwrap();
            let reply = outcomes[0].result.clone().unwrap();
            assert!(!matches!(reply, Reply::Pruned(pruned) if pruned != Pruned::Removed));
        };
        let number = u32::try_from(left).unwrap();
        if !gate.stop_at((Call::Read, left), act, || commit_another(&engine, number)) {
            break;
        }
        stops += 1;
    }
    assert!((2..FAMILIES).contains(&stops), "stopped at every read: {stops}");
}

#[test]
fn pruning_reads_before_it_takes_the_lock() {
    check(|txid| Operation::Prune { txid, height: Height::new(200) });
}

#[test]
fn marking_a_conflict_reads_before_it_takes_the_lock() {
    check(|txid| Operation::SetConflicting { txid, conflicting: false });
}

#[test]
fn deleting_reads_before_it_takes_the_lock() {
    check(|txid| Operation::Delete { txid });
}

#[test]
fn locking_reads_before_it_takes_the_lock() {
    check(|txid| Operation::SetLocked { txid, locked: true });
}

/// The front of the log is the coldest there is. Whoever cleans it holds up nobody else.
#[test]
fn cleaning_reads_while_others_commit() {
    let gate = Arc::new(Gate::default());
    let engine = engine(&gate, 20_000);
    // What lives for ever lies at the front and has to be moved again and again.
    (0..40).for_each(|number| apply(&engine, &[create(name(7, number), OUTPUTS)]));
    let mut stops = 0;
    for round in 0..400_u32 {
        let old = Operation::Delete { txid: name(6, round.saturating_sub(1)) };
        let act = || apply(&engine, &[old, create(name(6, round), OUTPUTS)]);
        let at = (Call::Read, round as usize % 5);
        stops += u32::from(gate.stop_at(at, act, || commit_another(&engine, round)));
    }
    assert!(stops > 20, "cleaning was stopped: {stops}");
    let sizes = engine.status().unwrap();
    assert!(sizes.stored < 2 * sizes.live + 6 * 20_000, "it was cleaned: {sizes:?}");
}
