//! Decisions over sizes.

use super::*;
use crate::fixture::{Changes, KEY, disk, outpoint, owned, span, write_run};

fn run(pages: u64, adds: u64, deletes: u64) -> RunInfo {
    RunInfo { number: RunNumber(1), span: span(1, 2), adds, deletes, pages, digest: 0 }
}

fn runs(pages: &[u64]) -> Vec<RunInfo> {
    pages.iter().map(|pages| run(*pages, pages * 60, 0)).collect()
}

#[test]
fn alike_neighbours_are_merged_youngest_first() {
    let policy = Parameters::default().tiers();
    let chosen = |pages: &[u64]| choose(&runs(pages), &policy);
    assert_eq!(chosen(&[]), Choice::Nothing);
    assert_eq!(chosen(&[10, 10, 10]), Choice::Nothing);
    assert_eq!(chosen(&[10, 12, 19, 11]), Choice::Merge(0..4));
    assert_eq!(chosen(&[10, 12, 21, 11]), Choice::Nothing, "one is more than twice another");
    assert_eq!(chosen(&[10, 40, 41, 42, 43, 900]), Choice::Merge(1..5));
    assert_eq!(chosen(&[10, 10, 10, 10, 40, 40, 40, 40]), Choice::Merge(0..4));
}

#[test]
fn a_dying_oldest_run_takes_everything_with_it() {
    let policy = Parameters::default().tiers();
    let third = [run(5, 100, 200), run(9, 100, 134), run(1000, 1000, 0)];
    assert_eq!(choose(&third, &policy), Choice::Merge(0..3));
    let less = [run(5, 100, 200), run(9, 100, 133), run(1000, 1000, 0)];
    assert_eq!(choose(&less, &policy), Choice::Nothing);
    assert_eq!(choose(&[run(5, 0, 0)], &policy), Choice::Nothing, "it is alone");
}

#[test]
fn too_many_runs_are_merged_where_it_costs_least() {
    let policy = Tiers { fan_in: 4, max_probed: 3 };
    let pages = [10, 100, 1000, 20_000, 400_000];
    assert_eq!(choose(&runs(&pages), &policy), Choice::Merge(0..3));
    assert_eq!(choose(&runs(&[1000, 20, 300, 20_000]), &policy), Choice::Merge(1..3));
}

/// While the runs from a place on are being merged, those before it go on being merged, when that
/// takes much less.
#[test]
fn young_runs_are_merged_beside_a_long_merge() {
    let policy = Parameters::default().tiers();
    let beside = |pages: &[u64], busy| {
        let merging = pages[busy..].iter().sum();
        choose_beside(&runs(pages), (busy, merging), &policy)
    };
    assert_eq!(beside(&[10, 10, 10, 10, 9_000], 4), Choice::Merge(0..4));
    assert_eq!(beside(&[10, 10, 10, 9_000], 3), Choice::Nothing, "fewer than the fan-in");
    assert_eq!(beside(&[9, 10, 10, 10, 10, 9_000], 3), Choice::Nothing, "the fourth is busy");
    assert_eq!(beside(&[10, 10, 10, 10, 150], 4), Choice::Nothing, "that one is done soon");
    // Ten runs are being merged; with the thirteenth there are too many to probe.
    let mut pages = vec![40, 30];
    pages.extend([9_000; 10]);
    assert_eq!(beside(&pages, 2), Choice::Nothing);
    pages.insert(0, 10);
    assert_eq!(beside(&pages, 3), Choice::Merge(0..2), "the cheapest");
    pages.insert(0, 5);
    assert_eq!(beside(&pages, 4), Choice::Merge(0..3));
    assert_eq!(beside(&[9_000; 14], 1), Choice::Nothing, "there is only one");
    assert_eq!(beside(&[9_000; 14], 0), Choice::Nothing, "there is none");
}

#[test]
fn choosing_ends() {
    for fan_in in [2, 3, 4, 8] {
        for max_probed in [1, 4, 12] {
            let policy = Tiers { fan_in, max_probed };
            let mut pages: Vec<u64> = Vec::new();
            for flush in 0..300 {
                pages.insert(0, 40 + flush * 7 % 11);
                while let Choice::Merge(range) = choose(&runs(&pages), &policy) {
                    assert!(range.len() >= 2, "every merge makes fewer runs");
                    let merged = pages[range.clone()].iter().sum();
                    pages.splice(range, [merged]);
                }
                assert!(pages.len() <= max_probed.max(1), "{pages:?}");
            }
        }
    }
}

#[test]
fn a_merge_that_is_stopped_leaves_no_file() {
    let (_dir, storage) = disk();
    let changes: Changes = (0..500).map(|n| ((outpoint(n), 1), Some(owned(n)))).collect();
    let run = Arc::new(write_run(&storage, 1, span(1, 1), &changes).unwrap());
    let stop = Stop::default();
    stop.set();
    let merged =
        merge_unless(&stop, &storage, (KEY, Buffers::LARGE), (RunNumber(2), (&[run], true)));
    assert!(matches!(merged, Err(RunError::Stopped)));
    assert_eq!(storage.list().unwrap(), ["0000000001.run"]);
}

#[test]
fn the_debt_is_what_all_due_merges_write() {
    let policy = Parameters::default().tiers();
    let debt = |pages: &[u64]| merge_debt(&runs(pages), &policy) / 4096;
    assert_eq!(debt(&[10, 10, 10]), 0);
    assert_eq!(debt(&[10, 10, 10, 10]), 40);
    assert_eq!(debt(&[10, 10, 10, 10, 40, 40, 40]), 40 + 160, "one merge brings the next");
    assert_eq!(merge_debt(&[run(5, 10, 400), run(1000, 1000, 0)], &policy) / 4096, 1005);
}
