//! Random lives of a table: blocks, reorganisations shallow and deep, ends clean and not.

use std::sync::Arc;

use proptest::prelude::*;
use varve_archive::TxLink;
use varve_archive::history::{Batch, Connected, HistoryOptions, HistoryReader, HistoryTable};
use varve_io::Storage;
use varve_io::faulty::FaultyStorage;
use varve_runs::Compaction;
use varve_types::{BlockHash, Height};

use super::rig::{KEY, Owner, TINY, script};

#[derive(Clone, Copy, Debug)]
enum Step {
    Connect(usize),
    /// The last blocks are replaced by one more.
    Reorganise(usize),
    /// The last blocks go, and come back.
    Return(usize),
    Settle,
    Tidy,
    Finish,
    /// A clean end and a new beginning.
    Rest,
    /// The process is killed.
    Kill,
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1..8_usize).prop_map(Step::Connect),
        2 => (1..5_usize).prop_map(Step::Reorganise),
        1 => (5..40_usize).prop_map(Step::Reorganise),
        1 => (1..20_usize).prop_map(Step::Return),
        4 => Just(Step::Settle),
        1 => Just(Step::Tidy),
        1 => Just(Step::Finish),
        1 => Just(Step::Rest),
        1 => Just(Step::Kill),
        1 => Just(Step::Check),
    ]
}

fn options() -> impl Strategy<Value = HistoryOptions> {
    let compaction = prop_oneof![Just(Compaction::Inline), Just(Compaction::Threads)];
    let memory = prop_oneof![Just(16 << 10), Just(1 << 20)];
    (compaction, 2..4_usize, memory, 1..12_usize).prop_map(
        |(compaction, fan_in, memory, flush_blocks)| HistoryOptions {
            compaction,
            fan_in,
            memory,
            flush_blocks,
            ..TINY
        },
    )
}

fn live(options: HistoryOptions, weak: bool, steps: &[Step]) {
    let mut storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(1, weak);
    let mut table = owner.open(storage.clone(), options).unwrap();
    for step in steps {
        match step {
            Step::Connect(blocks) => {
                (0..*blocks).for_each(|_| owner.make_block());
                owner.follow(&mut table).unwrap();
            }
            Step::Reorganise(blocks) => {
                let kept = owner.chain.len().saturating_sub(*blocks);
                owner.chain.truncate(kept);
                (0..=*blocks).for_each(|_| owner.make_block());
                owner.follow(&mut table).unwrap();
            }
            Step::Return(blocks) => {
                let kept = owner.chain.len().saturating_sub(*blocks).max(1);
                let whole = owner.chain.clone();
                owner.chain.truncate(kept);
                owner.follow(&mut table).unwrap();
                owner.check(&table.reader().view()).unwrap();
                owner.chain = whole;
                owner.follow(&mut table).unwrap();
            }
            Step::Settle => table.settle().unwrap(),
            Step::Tidy => drop(table.tidy().unwrap()),
            Step::Finish => table.finish().unwrap(),
            Step::Check => owner.check(&table.reader().view()).unwrap(),
            Step::Rest => {
                table.settle().unwrap();
                table.rest().unwrap();
                drop(table);
                storage = Arc::new(storage.reopen());
                let resting: Arc<dyn Storage> = storage.clone();
                let reader = HistoryReader::at_rest(&resting, owner.keys).unwrap();
                owner.check(&reader.view()).unwrap();
                table = owner.open(storage.clone(), options).unwrap();
                assert_eq!(table.tip().map(|tip| tip.hash), owner.chain.last().copied());
            }
            Step::Kill => {
                drop(table);
                storage = Arc::new(storage.reopen());
                table = owner.open(storage.clone(), options).unwrap();
                owner.follow(&mut table).unwrap();
            }
        }
    }
    owner.check(&table.reader().view()).unwrap();
    table.settle().unwrap();
    table.tidy().unwrap();
    table.finish().unwrap();
    table.verify().unwrap();
    owner.check(&table.reader().view()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_answer_is_that_of_a_walk_over_the_chain(
        options in options(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        live(options, false, &steps);
    }

    #[test]
    fn also_with_fingerprints_of_one_byte(
        options in options(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        live(options, true, &steps);
    }
}

/// Blocks that were in runs, and merged, are taken back; everything is as if they had never been.
#[test]
fn a_reorganisation_deeper_than_memory_is_exact() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(5, false);
    let mut table = owner.open(storage, TINY).unwrap();
    for _ in 0..60 {
        owner.make_block();
        owner.follow(&mut table).unwrap();
        table.settle().unwrap();
    }
    let reader = table.reader();
    let (before, old) = (reader.view(), owner.clone());
    assert!(table.watermark().unwrap().height > Height::new(45), "most blocks are in runs");
    owner.chain.truncate(10);
    (0..55).for_each(|_| owner.make_block());
    owner.follow(&mut table).unwrap();
    owner.check(&reader.view()).unwrap();
    old.check(&before).unwrap();
    table.settle().unwrap();
    table.tidy().unwrap();
    table.finish().unwrap();
    assert_eq!(table.size().runs, 1);
    owner.check(&reader.view()).unwrap();
    // Down to nothing.
    owner.chain.clear();
    owner.follow(&mut table).unwrap();
    assert_eq!(table.tip(), None);
    let view = table.reader().view();
    assert_eq!(view.sums(&[script(0)]).unwrap()[0].txs, 0);
}

#[test]
fn a_reorganisation_in_memory_writes_nothing() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(6, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    (0..30).for_each(|_| owner.make_block());
    owner.follow(&mut table).unwrap();
    table.settle().unwrap();
    let operations = storage.operations();
    owner.chain.truncate(owner.chain.len() - 3);
    owner.make_block();
    let (reader, mut size) = (table.reader(), table.size().young);
    owner.follow(&mut table).unwrap();
    size -= 2;
    assert_eq!((table.size().young, storage.operations()), (size, operations));
    owner.check(&reader.view()).unwrap();
}

#[test]
fn blocks_come_in_order_and_ordinals_follow_one_another() {
    let storage = Arc::new(FaultyStorage::new(1));
    let owner = Owner::new(1, false);
    let mut table = owner.open(storage, TINY).unwrap();
    let hash = |byte| BlockHash::from_bytes([byte; 32]);
    let block = |height, byte, count| Connected {
        height: Height::new(height),
        hash: hash(byte),
        parent: hash(byte - 1),
        count,
    };
    assert!(table.connect(&block(1, 1, 5), Batch::default()).is_err(), "not the first block");
    table.connect(&block(0, 1, 5), Batch::default()).unwrap();
    for wrong in [block(2, 2, 5), block(1, 3, 5), block(0, 1, 5)] {
        let refused = table.connect(&wrong, Batch::default()).unwrap_err();
        assert!(refused.to_string().contains("in order"), "{refused}");
    }
    table.connect(&block(1, 2, 9), Batch::default()).unwrap();
    assert_eq!(table.tip().unwrap().end, TxLink::new(14));
}

#[test]
fn a_table_of_another_store_is_refused() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(3, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    (0..40).for_each(|_| owner.make_block());
    owner.follow(&mut table).unwrap();
    table.rest().unwrap();
    drop(table);
    let other = varve_runs::StoreKey { id: varve_io::StoreId([9; 16]), ..KEY };
    let keys = varve_archive::history::HistoryKeys::new(other);
    let refused = HistoryTable::open(storage, keys, TINY).unwrap_err();
    assert!(refused.to_string().contains("another store"), "{refused}");
}
