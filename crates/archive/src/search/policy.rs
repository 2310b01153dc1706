//! Which runs are merged, and which have a filter.
//!
//! Rows are spread over runs by age alone, so a key is looked for in all of them. A filter keeps a
//! lookup away from nearly every run that does not have the key, at 1.2 bytes a row. The largest
//! run has none: found by its directory it costs one page, and it has most of the keys anyway. So
//! an absent key costs one page, and 1/256 of a page for each other run; a present key costs one
//! page more when it is not in the largest run.
//!
//! Runs are merged when `fan_in` neighbours are alike ([`Tiers`]): a row is written once more
//! whenever its run becomes `fan_in` times as large. While a chain is synced there are then several
//! large runs, and those for whose filters there is no memory have none. When it is synced,
//! [`Policy::tidy`] merges everything into one run, once: that run has nearly all keys until the
//! table has grown by an eighth, which takes a chain years.
//!
//! With runs of eight million rows, 400 million rows are written 2.0 times until then and 3.0 times
//! with it, a billion 2.5 and 3.5 times.

use varve_runs::{Choice, RunInfo, Tiers, Width};

/// More runs than this are never probed: beyond it, merges go first.
const PROBED_MAX: usize = 40;

/// When runs are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// How many alike neighbours are merged into one.
    pub(crate) fan_in: usize,
    /// Rows of the younger runs that there is memory to filter.
    pub(crate) filtered: u64,
}

impl Policy {
    pub(crate) const fn tiers(&self) -> Tiers {
        Tiers { fan_in: self.fan_in, max_probed: PROBED_MAX }
    }

    /// Decides what to merge next among `runs`, youngest first, when there is time: everything
    /// into the oldest run, unless that has nearly all rows.
    pub(crate) fn tidy(&self, runs: &[RunInfo]) -> Choice {
        let (oldest, younger) = weigh(runs);
        if younger > oldest / 8 { Choice::Merge(0..runs.len()) } else { self.tiers().choose(runs) }
    }

    /// The filter of a run flushed with `rows` rows beside `others`: such runs are small, so it has
    /// one if there is memory.
    pub(crate) fn flush_filter(&self, rows: u64, others: &[RunInfo]) -> Option<Width> {
        let sum: u64 = others.iter().map(|info| info.adds).sum();
        let largest = others.iter().map(|info| info.adds).max().unwrap_or(0);
        // Those of the others but for the largest, and this one.
        (sum - largest + rows <= self.filtered).then_some(Width::One)
    }

    /// The filter of a run that is merged, when `others` stay beside it. One that has more rows
    /// than all of them has none.
    pub(crate) fn merge_filter(&self, rows: u64, others: &[RunInfo]) -> Option<Width> {
        let sum: u64 = others.iter().map(|info| info.adds).sum();
        if rows > sum { None } else { self.flush_filter(rows, others) }
    }
}

/// The rows of the oldest run and of all others.
fn weigh(runs: &[RunInfo]) -> (u64, u64) {
    let rows = |run: &RunInfo| run.adds;
    let oldest = runs.last().map_or(0, rows);
    (oldest, runs.iter().map(rows).sum::<u64>() - oldest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_runs::{RunNumber, Sequence, Span};

    const POLICY: Policy = Policy { fan_in: 8, filtered: 100 };

    fn runs(rows: &[u64]) -> Vec<RunInfo> {
        let info = |(age, rows): (u32, &u64)| {
            let step = Sequence::new(1_000 - age);
            let span = Span { first: step, last: step };
            let number = RunNumber(u64::from(age));
            RunInfo { number, span, adds: *rows, deletes: 0, pages: *rows, digest: 0 }
        };
        (0..).zip(rows).map(info).collect()
    }

    #[test]
    fn with_time_the_oldest_gets_nearly_everything() {
        assert_eq!(POLICY.tidy(&runs(&[60, 60, 960])), Choice::Nothing);
        assert_eq!(POLICY.tidy(&runs(&[60, 61, 960])), Choice::Merge(0..3));
        assert_eq!(POLICY.tidy(&runs(&[960])), Choice::Nothing);
        assert_eq!(POLICY.tidy(&[]), Choice::Nothing);
    }

    #[test]
    fn a_run_with_most_of_the_rows_has_no_filter_nor_one_without_memory() {
        let others = runs(&[10, 20, 500]);
        for filter in [Policy::flush_filter, Policy::merge_filter] {
            assert_eq!(filter(&POLICY, 70, &others), Some(Width::One));
            assert_eq!(filter(&POLICY, 71, &others), None, "there is no memory");
        }
        let roomy = Policy { filtered: 1_000, ..POLICY };
        assert_eq!(roomy.merge_filter(530, &others), Some(Width::One));
        assert_eq!(roomy.merge_filter(531, &others), None, "it has most of the rows");
        assert_eq!(roomy.flush_filter(531, &others), Some(Width::One), "it will be merged soon");
        assert_eq!(POLICY.merge_filter(1, &[]), None);
    }

    /// Bytes written for each byte at the end, after `flushes` flushes and a last merge of all.
    fn grow(flushes: u64) -> f64 {
        let (mut sizes, mut written) = (Vec::new(), 0);
        let mut merge = |sizes: &mut Vec<u64>, choice| {
            let Choice::Merge(range) = choice else { return false };
            let merged: u64 = sizes.drain(range.clone()).sum();
            sizes.insert(range.start, merged);
            written += merged;
            true
        };
        for _ in 0..flushes {
            sizes.insert(0, 4);
            while {
                let choice = POLICY.tiers().choose(&runs(&sizes));
                merge(&mut sizes, choice)
            } {}
        }
        let choice = POLICY.tidy(&runs(&sizes));
        merge(&mut sizes, choice);
        (written + 4 * flushes) as f64 / sizes.iter().sum::<u64>() as f64
    }

    #[test]
    fn little_is_written_however_large_it_grows() {
        for (flushes, most) in [(50, 3.0), (125, 3.5), (420, 4.0), (840, 4.7)] {
            let written = grow(flushes);
            assert!(written <= most && written > most - 0.3, "{written} after {flushes}");
        }
    }
}
