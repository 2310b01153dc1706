//! Walks at random beside the oracle.
//!
//! ```text
//! seed ─► Universe  a few transactions that fight for the same outputs
//!      └► Generator operations on them ─┬─► engine under test ─► outcomes ─┐
//!                                       └─► memory             ─► outcomes ─┴─ must be equal
//! ```
//!
//! After every few batches everything is compared: all records with all fields, all slots, all
//! scans, all intents. Now and then the power fails between two batches and the engine is opened
//! again. When the storage fails within a batch (an engine's disk may do that on purpose), the
//! engine is opened again too, and must be where the oracle is after some first part of the batch:
//! operations are done in order, and each whole or not at all.
//!
//! The same seed gives the same walk, so a failure is repeated by its seed.

mod generator;
mod universe;

pub use generator::Generator;
pub use universe::{Rng, Universe};

use std::sync::Mutex;
use std::thread;

use varve_types::{Height, Outpoint};

use super::{Disk, scan_all};
use crate::engine::{Context, Engine, Scan};
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::memory::{MemoryDisk, MemoryEngine};
use crate::operation::{Operation, Unit};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::slot::Slot;
use crate::spending_data::SpendingData;

/// A walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Decides everything.
    pub seed: u64,
    /// The number of batches.
    pub steps: u32,
    /// Of a hundred batches, after how many the power fails.
    pub reopen: u32,
}

/// The engine agrees with the oracle, operation by operation.
pub fn random_operations_agree_with_the_oracle<D: Disk>(disk: &D) {
    walk(disk, &Walk { seed: 1, steps: 400, reopen: 0 });
}

/// The engine agrees with the oracle, whenever the power fails between two batches.
pub fn random_operations_survive_crashes<D: Disk>(disk: &D) {
    walk(disk, &Walk { seed: 2, steps: 200, reopen: 30 });
}

/// Walks beside the oracle. The disk must be empty.
///
/// # Panics
///
/// When the engine does not agree.
pub fn walk<D: Disk>(disk: &D, walk: &Walk) {
    let mut generator = Generator::new(walk.seed);
    let mut oracle = MemoryDisk::default();
    let mut engine = disk.open();
    for step in 0..walk.steps {
        let (context, batch) = generator.next_batch();
        match engine.apply(&context, &batch) {
            Ok(outcomes) => {
                let expected = MemoryEngine::open(oracle.clone()).apply(&context, &batch);
                let expected = expected.expect("maps do not fail");
                compare_outcomes(walk.seed, step, &batch, &outcomes, &expected);
                if generator.rng().below(100) < u64::from(walk.reopen) {
                    drop(engine);
                    disk.crash();
                    engine = disk.open();
                }
            }
            Err(_) => {
                drop(engine);
                disk.crash();
                engine = disk.open();
                oracle = find_cut(&oracle, &context, &batch, &engine, generator.universe());
            }
        }
        if step % 16 == 0 || step + 1 == walk.steps {
            let state = State::of(&engine, generator.universe());
            let expected = State::of(&MemoryEngine::open(oracle.clone()), generator.universe());
            state.compare(&expected, &format!("seed {}, after batch {step}", walk.seed));
        }
    }
}

/// What another engine has can be restored as it is: nothing that readers see and nothing that
/// later operations do says where a record came from.
pub fn random_records_can_be_restored<D: Disk>(disk: &D) {
    let mut generator = Generator::new(4);
    let oracle = MemoryDisk::default();
    let memory = MemoryEngine::open(oracle);
    let engine = disk.open();
    let everything = |generator: &Generator| -> Vec<Operation> {
        let txids: Vec<_> = generator.universe().txs().iter().map(Transaction::txid).collect();
        let records = memory.read(&txids, Fields::ALL).expect("maps do not fail");
        let restore = |record: Record| Operation::Restore(Box::new(record));
        records.into_iter().flatten().map(restore).collect()
    };
    for step in 0..300 {
        let (context, batch) = generator.next_batch();
        let expected = memory.apply(&context, &batch).expect("maps do not fail");
        if step > 200 {
            let outcomes = engine.apply(&context, &batch).expect("the storage works");
            compare_outcomes(4, step, &batch, &outcomes, &expected);
        }
        if step == 200 || step == 250 {
            // The second time they replace what is there.
            let all = everything(&generator);
            assert!(all.len() > 5, "there is something to restore");
            let outcomes = engine.apply(&context, &all).expect("the storage works");
            assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{outcomes:?}");
            for intent in super::all_intents(&memory) {
                let begin = Operation::BeginIntent(intent);
                engine.apply(&context, &[begin]).expect("the storage works");
            }
        }
        if step % 16 == 8 && step > 200 {
            let state = State::of(&engine, generator.universe());
            state.compare(&State::of(&memory, generator.universe()), &format!("batch {step}"));
        }
    }
}

fn compare_outcomes(
    seed: u64,
    step: u32,
    batch: &[Operation],
    outcomes: &[Outcome],
    expected: &[Outcome],
) {
    assert_eq!(outcomes.len(), batch.len(), "one outcome an operation");
    for (index, operation) in batch.iter().enumerate() {
        assert_eq!(
            outcomes[index], expected[index],
            "seed {seed}, batch {step}, operation {index}: {operation:?}"
        );
    }
}

/// The oracle after that first part of the batch which the engine has.
fn find_cut(
    before: &MemoryDisk,
    context: &Context,
    batch: &[Operation],
    engine: &impl Engine,
    universe: &Universe,
) -> MemoryDisk {
    let state = State::of(engine, universe);
    for count in 0..=batch.len() {
        let oracle = before.fork();
        let memory = MemoryEngine::open(oracle.clone());
        memory.apply(context, &batch[..count]).expect("maps do not fail");
        if State::of(&memory, universe) == state {
            return oracle;
        }
    }
    panic!("after the failure the engine holds no first part of the batch: {batch:?}");
}

/// Everything that an engine shows.
#[derive(Debug, PartialEq)]
struct State {
    records: Vec<Option<Record>>,
    slots: Vec<Option<crate::engine::SlotView>>,
    scans: Vec<(Scan, Vec<varve_types::Txid>)>,
    intents: Vec<crate::intent::Intent>,
}

impl State {
    fn of(engine: &impl Engine, universe: &Universe) -> Self {
        let txids: Vec<_> = universe.txs().iter().map(Transaction::txid).collect();
        let records = engine.read(&txids, Fields::ALL).expect("the storage works");
        records.iter().flatten().for_each(check_counts);
        let outpoints: Vec<_> =
            txids.iter().flat_map(|txid| (0..9).map(|vout| Outpoint::new(*txid, vout))).collect();
        let heights = [90, 105, 120, 300, 900, 2_000, u32::MAX].map(Height::new);
        let by_height = heights.into_iter().flat_map(|height| {
            [Scan::UnminedSince(height), Scan::DueAt(height), Scan::PreservedUntil(height)]
        });
        let scans = [Scan::All, Scan::Unmined, Scan::Conflicting].into_iter().chain(by_height);
        Self {
            records,
            slots: engine.slots(&outpoints).expect("the storage works"),
            scans: scans.map(|scan| (scan, scan_all(engine, scan, 5))).collect(),
            intents: super::all_intents(engine),
        }
    }

    fn compare(&self, expected: &Self, place: &str) {
        for (record, expected) in self.records.iter().zip(&expected.records) {
            assert_eq!(record, expected, "{place}");
        }
        assert_eq!(self, expected, "{place}");
    }
}

/// The counts of a record are those of its slots.
fn check_counts(record: &Record) {
    let slots = || record.utxos.iter().flatten();
    let spent: u32 = record.parts.iter().map(|part| part.spent).sum();
    assert_eq!(slots().filter_map(Slot::spender).count(), spent as usize);
    let frozen = slots().filter(|slot| slot.is_frozen()).count();
    assert_eq!(frozen, record.frozen_utxos as usize);
    assert_eq!(record.utxos.len(), record.total_utxos as usize);
}

/// A crowd that fights for outputs leaves no unit half done.
pub fn random_crowds_leave_no_half_units<D: Disk>(disk: &D) {
    let engine = disk.open();
    let universe = Universe::new(3);
    let context = Context { height: super::START, retention: 0 };
    let created = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..4 {
            let (engine, universe, created) = (&engine, &universe, &created);
            scope.spawn(move || {
                let mut order: Vec<_> = (0..universe.txs().len()).collect();
                Rng::new(number).shuffle(&mut order);
                // Parents may come after their children, so the first round makes only some.
                for index in order.iter().chain(&order) {
                    let unit = universe.unit(*index);
                    let outcomes = engine.apply(&context, &[unit.clone().into()]);
                    let outcomes = outcomes.expect("the storage works");
                    if outcomes[0].result.is_ok() {
                        created.lock().expect("no thread fails").push(unit);
                    }
                }
            });
        }
    });
    check_units(&engine, &universe, &created.into_inner().expect("no thread fails"));
}

/// What was created is there once with all its spends, and nothing else is.
fn check_units(engine: &impl Engine, universe: &Universe, created: &[Unit]) {
    let mut txids: Vec<_> = created.iter().map(|unit| unit.txid).collect();
    txids.sort();
    assert!(txids.is_sorted_by(|a, b| a < b), "each is created once");
    assert_eq!(scan_all(engine, Scan::All, 5), txids);
    assert!(txids.len() > 5, "enough have won");
    assert!(txids.len() < universe.txs().len(), "and some have lost");
    let mut spends = 0;
    for unit in created {
        for spend in unit.spend.iter().flat_map(|part| &part.spends) {
            let views = engine.slots(&[spend.outpoint]).expect("the storage works");
            let slot = views[0].as_ref().and_then(|view| view.slot).expect("it was spent");
            assert_eq!(slot.spending, Some(SpendingData::new(unit.txid, spend.vin)));
            spends += 1;
        }
    }
    let records = engine.read(&txids, Fields::ALL).expect("the storage works");
    records.iter().flatten().for_each(check_counts);
    let counts = records.iter().flatten().flat_map(|record| &record.parts);
    assert_eq!(counts.map(|part| part.spent as usize).sum::<usize>(), spends);
}
