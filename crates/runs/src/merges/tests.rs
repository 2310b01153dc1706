//! Merges of small runs: planned, started, taken in, failed.

use super::*;
use crate::buffers::Buffers;
use crate::fixture::{KEY, Row, Tiny, TinyError, collect, disk, write_run};
use crate::run_error::RunError;

/// Runs 1 to `count`, the youngest first, of one row each, with different keys.
fn runs(storage: &Arc<dyn Storage>, count: u64) -> Runs<Tiny> {
    (1..=count).fold(Runs::empty(KEY), |runs, number| {
        runs.with_youngest(write_run(storage, number, None, &[(number, 1)]))
    })
}

fn merges(storage: &Arc<dyn Storage>, stop: &Stop, compaction: Compaction) -> Merges<Tiny> {
    Merges::new(storage, stop, compaction, ["main", "beside"]).unwrap()
}

fn into(number: u64) -> MergeInto {
    let (number, buffers) = (RunNumber(number), Buffers::SMALL);
    MergeInto { number, whole: false, filter: None, buffers }
}

fn numbers(runs: &Runs<Tiny>) -> Vec<u64> {
    runs.infos().iter().map(|info| info.number.0).collect()
}

/// Every row of the runs, in the order of keys.
fn rows(runs: &Runs<Tiny>) -> Vec<Row> {
    collect(runs.rows().unwrap()).unwrap()
}

fn never(_: &[RunInfo], _: Busy) -> Choice {
    Choice::Nothing
}

#[test]
fn a_merge_takes_the_place_of_its_inputs() {
    let (_dir, storage) = disk();
    let mut merges = merges(&storage, &Stop::never(), Compaction::Inline);
    let mut runs = runs(&storage, 5);
    let plan = merges.next(&runs.infos(), |_| Choice::Merge(1..4), never).unwrap();
    assert_eq!(plan.range, 1..4);
    merges.start(&runs, plan, into(6));
    assert_eq!(merges.outputs().collect::<Vec<_>>(), [RunNumber(6)]);
    assert!(merges.index() > 0 && merges.buffers() > Buffers::WRITER_LEN);
    let merged = merges.take(&mut runs, false).unwrap().unwrap();
    assert_eq!(merged.inputs, [4, 3, 2].map(RunNumber));
    assert_eq!(merged.output.map(|info| (info.number, info.adds)), Some((RunNumber(6), 3)));
    assert_eq!(numbers(&runs), [5, 6, 1]);
    assert_eq!(rows(&runs), [1, 2, 3, 4, 5].map(|key| (key, 1)));
    assert_eq!((merges.outputs().count(), merges.index(), merges.buffers()), (0, 0, 0));
    assert_eq!(merges.take(&mut runs, true).unwrap(), None);
}

/// While the main merge is in progress, the second rule chooses among the runs younger than its
/// inputs; after that, neither rule is consulted until both merges are taken in, wherever their
/// inputs are by then.
#[test]
fn a_short_merge_goes_on_beside_the_main_one() {
    let (_dir, storage) = disk();
    let mut merges = merges(&storage, &Stop::never(), Compaction::Threads);
    let mut runs = runs(&storage, 6);
    let infos = runs.infos();
    let plan = merges.next(&infos, |_| Choice::Merge(3..6), never).unwrap();
    merges.start(&runs, plan, into(7));
    let mut asked = None;
    let plan = merges.next(
        &infos,
        |_| panic!("the main lane is taken"),
        |_, busy| {
            asked = Some(busy);
            Choice::Merge(0..2)
        },
    );
    let pages = infos[3..].iter().map(|info| info.pages).sum();
    assert_eq!(asked, Some(Busy { first: 3, pages }));
    merges.start(&runs, plan.unwrap(), into(8));
    let all = |_: &[RunInfo]| Choice::Merge(0..1);
    assert_eq!(merges.next(&runs.infos(), all, |_, _| Choice::Merge(0..1)), None);
    runs = runs.with_youngest(write_run(&storage, 9, None, &[(9, 1)]));
    assert!(merges.end().is_some());
    assert!(merges.take(&mut runs, true).unwrap().is_some());
    assert_eq!(numbers(&runs), [9, 6, 5, 4, 7]);
    assert_eq!(merges.next(&runs.infos(), all, never), None, "the short one is waited for");
    assert!(merges.take(&mut runs, true).unwrap().is_some());
    assert_eq!(numbers(&runs), [9, 8, 4, 7]);
    assert_eq!(rows(&runs), [1, 2, 3, 4, 5, 6, 9].map(|key| (key, 1)));
    assert!(merges.next(&runs.infos(), all, never).is_some());
}

#[test]
fn a_merge_that_fails_changes_nothing_and_is_planned_again() {
    let (_dir, storage) = disk();
    let stop = Stop::default();
    stop.set();
    let mut merges = merges(&storage, &stop, Compaction::Inline);
    let mut runs = runs(&storage, 3);
    let next = |merges: &Merges<Tiny>, runs: &Runs<Tiny>| {
        merges.next(&runs.infos(), |_| Choice::Merge(0..3), never)
    };
    let plan = next(&merges, &runs).unwrap();
    merges.start(&runs, plan.clone(), into(4));
    let failed = merges.take(&mut runs, false);
    assert!(matches!(failed, Err(TinyError::Run(RunError::Stopped))));
    assert_eq!(numbers(&runs), [3, 2, 1]);
    assert_eq!(next(&merges, &runs), Some(plan));
}
