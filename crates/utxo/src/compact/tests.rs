//! The debt of merges.

use super::*;
use crate::fixture::span;
use crate::manifest::Parameters;

fn run(pages: u64, adds: u64, deletes: u64) -> RunInfo {
    RunInfo { number: RunNumber(1), span: span(1, 2), adds, deletes, pages, digest: 0 }
}

fn debt(runs: &[RunInfo]) -> u64 {
    merge_debt(runs, &Parameters::default().tiers()) / 4096
}

#[test]
fn the_debt_is_what_all_due_merges_write() {
    let small = run(10, 60, 0);
    let large = run(40, 240, 0);
    assert_eq!(debt(&[small; 3]), 0);
    assert_eq!(debt(&[small; 4]), 40);
    let runs = [small, small, small, small, large, large, large];
    assert_eq!(debt(&runs), 40 + 160, "one merge brings the next");
}

#[test]
fn the_debt_has_the_rewriting_of_a_dying_run() {
    assert_eq!(debt(&[run(5, 10, 400), run(1000, 1000, 0)]), 1005);
}
