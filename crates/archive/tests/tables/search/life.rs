//! Random lives of a table: appends, promises, ends clean and not, against the set.

use std::sync::Arc;

use proptest::prelude::*;
use varve_archive::TxLink;
use varve_archive::search::{SearchOptions, SearchReader, Settled};
use varve_io::Storage;
use varve_io::faulty::FaultyStorage;
use varve_runs::Compaction;

use super::rig::{KEY, Owner, TINY};

#[derive(Clone, Copy, Debug)]
enum Step {
    Append(usize),
    Settle,
    Tidy,
    Finish,
    /// A clean end and a new beginning.
    Rest,
    /// The process is killed. The owner loses what it did not save.
    Kill,
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..12_usize).prop_map(Step::Append),
        4 => Just(Step::Settle),
        1 => Just(Step::Tidy),
        1 => Just(Step::Finish),
        1 => Just(Step::Rest),
        1 => Just(Step::Kill),
        1 => Just(Step::Check),
    ]
}

fn options() -> impl Strategy<Value = SearchOptions> {
    let compaction = prop_oneof![Just(Compaction::Inline), Just(Compaction::Threads)];
    (compaction, 2..4_usize, prop_oneof![Just(1 << 10), Just(1 << 20)], 1..200_usize).prop_map(
        |(compaction, fan_in, memory, flush_rows)| SearchOptions {
            compaction,
            fan_in,
            memory,
            flush_rows,
            ..TINY
        },
    )
}

fn live(options: SearchOptions, weak: bool, steps: &[Step]) {
    let mut storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(1, weak);
    let mut table = owner.open(storage.clone(), options).unwrap();
    let mut settled = 0;
    for step in steps {
        match step {
            Step::Append(blocks) => {
                (0..*blocks).for_each(|_| owner.make_block());
                owner.catch_up(&mut table).unwrap();
            }
            Step::Settle => owner.settle(&mut table, &mut settled).unwrap(),
            Step::Tidy => drop(table.tidy().unwrap()),
            Step::Finish => table.finish().unwrap(),
            Step::Check => owner.check(&table.reader()).unwrap(),
            Step::Rest => {
                owner.saved = owner.blocks.len();
                table.rest().unwrap();
                drop(table);
                storage = Arc::new(storage.reopen());
                let resting: Arc<dyn Storage> = storage.clone();
                owner.check(&SearchReader::at_rest(&resting, KEY, owner.end()).unwrap()).unwrap();
                table = owner.open(storage.clone(), options).unwrap();
                assert_eq!(table.end(), owner.end(), "nothing is to be appended again");
                settled = Owner::settled(&table);
            }
            Step::Kill => {
                owner.crash();
                drop(table);
                storage = Arc::new(storage.reopen());
                table = owner.open(storage.clone(), options).unwrap();
                owner.catch_up(&mut table).unwrap();
                settled = Owner::settled(&table);
            }
        }
    }
    owner.check(&table.reader()).unwrap();
    table.finish().unwrap();
    table.verify().unwrap();
    owner.check(&table.reader()).unwrap();
    assert_eq!(table.size().rows, owner.rows().len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_table_has_the_rows_that_were_appended(
        options in options(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        live(options, false, &steps);
    }

    #[test]
    fn also_with_fingerprints_of_one_byte(
        options in options(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        live(options, true, &steps);
    }
}

#[test]
fn runs_stay_few_and_rows_of_stale_branches_lie_apart() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(9, false);
    let mut table = owner.open(storage, TINY).unwrap();
    let mut settled = 0;
    for _ in 0..400 {
        owner.make_block();
        owner.catch_up(&mut table).unwrap();
        owner.settle(&mut table, &mut settled).unwrap();
        assert!(table.size().runs < 16);
    }
    assert!(table.size().young < 400, "{:?}", table.size());
    assert!(table.watermark().0 > owner.end_of(340));
    table.tidy().unwrap();
    table.finish().unwrap();
    assert!(table.size().runs <= 3, "one of the chain, few of stale branches: {:?}", table.size());
    owner.check(&table.reader()).unwrap();
}

#[test]
fn a_table_whose_rows_do_not_fit_flushes_what_is_not_deep() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(5, false);
    let options = SearchOptions { memory: 4 << 10, flush_rows: usize::MAX, ..TINY };
    let options = SearchOptions { flush_links: u64::MAX, ..options };
    let mut table = owner.open(storage, options).unwrap();
    (0..60).for_each(|_| owner.make_block());
    owner.catch_up(&mut table).unwrap();
    assert!(table.is_crowded(), "{:?}", table.memory());
    owner.saved = owner.blocks.len();
    let (durable, deep) = (owner.end(), TxLink::new(0));
    table.settle(&Settled { durable, deep, stale: &[], owner: &[] }).unwrap();
    assert!(!table.is_crowded());
    assert_eq!(table.watermark().0, owner.end(), "all of it, down to the tip");
    owner.check(&table.reader()).unwrap();
}

#[test]
fn blocks_come_in_order() {
    let storage = Arc::new(FaultyStorage::new(1));
    let owner = Owner::new(1, false);
    let mut table = owner.open(storage, TINY).unwrap();
    let link = TxLink::new;
    table.append(link(0), 5, Default::default()).unwrap();
    for first in [0, 4, 6] {
        let refused = table.append(link(first), 1, Default::default()).unwrap_err();
        assert!(refused.to_string().contains("append them in order"), "{refused}");
    }
    assert_eq!(table.end(), link(5));
}
