//! Decisions over sizes, and merges.

use super::*;
use crate::fixture::{DELETE, KEY, Row, Tiny, TinyError, collect, disk, span, write_run};

const TIERS: Tiers = Tiers { fan_in: 4, max_probed: 12 };

fn runs(pages: &[u64]) -> Vec<RunInfo> {
    let run = |pages: &u64| RunInfo {
        number: RunNumber(1),
        span: span(1, 2),
        adds: pages * 60,
        deletes: 0,
        pages: *pages,
        digest: 0,
    };
    pages.iter().map(run).collect()
}

#[test]
fn alike_neighbours_are_merged_youngest_first() {
    let chosen = |pages: &[u64]| TIERS.choose(&runs(pages));
    assert_eq!(chosen(&[]), Choice::Nothing);
    assert_eq!(chosen(&[10, 10, 10]), Choice::Nothing);
    assert_eq!(chosen(&[10, 12, 19, 11]), Choice::Merge(0..4));
    assert_eq!(chosen(&[10, 12, 21, 11]), Choice::Nothing, "one is more than twice another");
    assert_eq!(chosen(&[10, 40, 41, 42, 43, 900]), Choice::Merge(1..5));
    assert_eq!(chosen(&[10, 10, 10, 10, 40, 40, 40, 40]), Choice::Merge(0..4));
}

#[test]
fn too_many_runs_are_merged_where_it_costs_least() {
    let tiers = Tiers { fan_in: 4, max_probed: 3 };
    let pages = [10, 100, 1000, 20_000, 400_000];
    assert_eq!(tiers.choose(&runs(&pages)), Choice::Merge(0..3));
    assert_eq!(tiers.choose(&runs(&[1000, 20, 300, 20_000])), Choice::Merge(1..3));
}

#[test]
fn a_dying_oldest_run_takes_everything_with_it() {
    let run = |(pages, adds, deletes): &(u64, u64, u64)| RunInfo {
        adds: *adds,
        deletes: *deletes,
        ..runs(&[*pages])[0]
    };
    let chosen = |sizes: &[(u64, u64, u64)]| {
        TIERS.choose_with_rewrites(&sizes.iter().map(run).collect::<Vec<_>>())
    };
    assert_eq!(chosen(&[(5, 100, 200), (9, 100, 134), (1000, 1000, 0)]), Choice::Merge(0..3));
    assert_eq!(chosen(&[(5, 100, 200), (9, 100, 133), (1000, 1000, 0)]), Choice::Nothing);
    assert_eq!(chosen(&[(5, 0, 0)]), Choice::Nothing, "it is alone");
    assert_eq!(chosen(&[(10, 60, 0); 4]), Choice::Merge(0..4), "the other rules still hold");
}

/// While old runs are being merged, younger ones can be merged beside them if that takes much less.
#[test]
fn young_runs_are_merged_beside_a_long_merge() {
    let beside = |pages: &[u64], busy| {
        let merging = pages[busy..].iter().sum();
        TIERS.choose_beside(&runs(pages), Busy { first: busy, pages: merging })
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

/// Flushes of one size: what is written in all, over what is there at the end.
#[test]
fn choosing_ends_and_writes_a_logarithm() {
    for fan_in in [2, 3, 4, 8] {
        for max_probed in [1, 4, 12, 40] {
            let tiers = Tiers { fan_in, max_probed };
            let (mut pages, mut written): (Vec<u64>, u64) = (Vec::new(), 0);
            for flush in 0..300 {
                pages.insert(0, 40 + flush * 7 % 11);
                written += 40 + flush * 7 % 11;
                while let Choice::Merge(range) = tiers.choose(&runs(&pages)) {
                    assert!(range.len() >= 2, "every merge makes fewer runs");
                    let merged = pages[range.clone()].iter().sum();
                    written += merged;
                    pages.splice(range, [merged]);
                }
                assert!(pages.len() <= max_probed, "{pages:?}");
            }
            let amplification = written as f64 / pages.iter().sum::<u64>() as f64;
            if (fan_in, max_probed) == (8, 40) {
                assert!((2.5..3.1).contains(&amplification), "{amplification}");
            }
        }
    }
}

fn into(number: u64, whole: bool) -> MergeInto {
    let (number, filter) = (RunNumber(number), Some(Width::One));
    MergeInto { number, whole, filter, buffers: Buffers::SMALL }
}

#[test]
fn a_merge_is_the_union_in_order_of_what_the_codec_leaves() {
    let (_dir, storage) = disk();
    let old: Vec<Row> = (0_u32..9_000).map(|n| (u64::from(n / 3) * 8, n % 3)).collect();
    let young: Vec<Row> = (0_u32..5_000).map(|n| (u64::from(n) * 2, n % 2 * DELETE)).collect();
    let runs =
        [write_run(&storage, 2, None, &young), write_run(&storage, 1, Some(Width::Two), &old)];
    for (number, whole) in [(3, false), (4, true)] {
        let merged = merge_runs(&Stop::never(), &storage, KEY, &runs, &into(number, whole));
        let merged = Arc::new(merged.unwrap().unwrap());
        let mut expected = std::collections::BTreeMap::new();
        expected.extend(old.iter().map(|row| (Tiny::order(row), *row)));
        expected.extend(young.iter().map(|row| (Tiny::order(row), *row)));
        expected.retain(|_, row| !(whole && Tiny::is_delete(row)));
        let info = merged.info();
        assert_eq!(info.span, span(1, 2));
        assert_eq!(info.adds + info.deletes, expected.len() as u64);
        assert_eq!(info.deletes > 0, !whole);
        let rows = collect(merged.cursor().unwrap()).unwrap();
        assert!(rows.into_iter().eq(expected.into_values()));
    }
}

#[test]
fn a_merge_that_leaves_nothing_leaves_no_file() {
    let (_dir, storage) = disk();
    let runs =
        [write_run(&storage, 2, None, &[(7, 1 | DELETE)]), write_run(&storage, 1, None, &[(7, 1)])];
    let merged = merge_runs(&Stop::never(), &storage, KEY, &runs, &into(3, true)).unwrap();
    assert!(merged.is_none());
    assert_eq!(storage.list().unwrap(), ["0000000001.run", "0000000002.run"]);
}

#[test]
fn a_merge_that_is_stopped_leaves_no_file() {
    let (_dir, storage) = disk();
    let rows: Vec<Row> = (0..500).map(|key| (key, 1)).collect();
    let run = write_run(&storage, 1, None, &rows);
    let stop = Stop::default();
    stop.set();
    let merged = merge_runs(&stop, &storage, KEY, &[run], &into(2, true));
    assert!(matches!(merged, Err(TinyError::Run(RunError::Stopped))));
    assert_eq!(storage.list().unwrap(), ["0000000001.run"]);
}
