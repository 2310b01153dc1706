//! Decisions over what is dead, and a merge that is stopped.

use super::*;
use crate::fixture::{Changes, KEY, disk, outpoint, owned, span, write_run};
use crate::manifest::Parameters;

fn run(pages: u64, adds: u64, deletes: u64) -> RunInfo {
    RunInfo { number: RunNumber(1), span: span(1, 2), adds, deletes, pages, digest: 0 }
}

/// The other rules are tested where they are.
#[test]
fn a_dying_oldest_run_takes_everything_with_it() {
    let tiers = Parameters::default().tiers();
    let third = [run(5, 100, 200), run(9, 100, 134), run(1000, 1000, 0)];
    assert_eq!(choose(&third, &tiers), Choice::Merge(0..3));
    let less = [run(5, 100, 200), run(9, 100, 133), run(1000, 1000, 0)];
    assert_eq!(choose(&less, &tiers), Choice::Nothing);
    assert_eq!(choose(&[run(5, 0, 0)], &tiers), Choice::Nothing, "it is alone");
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
fn the_debt_has_the_rewriting_of_a_dying_run() {
    let tiers = Parameters::default().tiers();
    let alike = [run(10, 60, 0); 4];
    assert_eq!(merge_debt(&alike, &tiers) / 4096, 40);
    assert_eq!(merge_debt(&[run(5, 10, 400), run(1000, 1000, 0)], &tiers) / 4096, 1005);
}
