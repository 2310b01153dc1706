//! Which runs are merged, and which have a filter.
//!
//! Rows are spread over runs by age alone, so a key is looked for in all of them. A filter keeps a
//! lookup away from nearly every run that does not have the key, at 1.2 bytes a row. The largest
//! run has none: found by its directory it costs one page, and it has most of the keys anyway. So
//! an absent key costs one page, and one of the other runs' pages in 256 for each of them; a key
//! that is there costs another page when it is not in the largest run.
//!
//! Two rules, the first that applies:
//!
//! 1. *The younger runs outgrow their filters*: they have more rows than the oldest run, and than
//!    their share of memory has room to filter. Merge everything. Since the oldest run doubles
//!    each time, its rows are written twice on average, however large the table grows. Until then
//!    those runs for whose filters there is no memory have none.
//! 2. *`fan_in` neighbours are alike* ([`Tiers`]): merge them. A row is written once more whenever
//!    its run becomes `fan_in` times as large.
//!
//! When nothing is being synced any more, [`Policy::tidy`] merges everything once: then the largest
//! run has nearly all keys until the table has grown by an eighth.

use varve_runs::{Choice, RunInfo, Tiers, Width};

/// More runs than this are never probed: beyond it, merges go first.
const PROBED_MAX: usize = 40;

/// When runs are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// How many alike neighbours are merged into one.
    pub(super) fan_in: usize,
    /// Rows of the younger runs that there is memory to filter.
    pub(super) filtered: u64,
}

impl Policy {
    pub(super) const fn tiers(&self) -> Tiers {
        Tiers { fan_in: self.fan_in, max_probed: PROBED_MAX }
    }

    /// Decides what to merge next among `runs`, youngest first.
    pub(super) fn choose(&self, runs: &[RunInfo]) -> Choice {
        let (oldest, younger) = weigh(runs);
        if younger > oldest && younger > self.filtered {
            return Choice::Merge(0..runs.len());
        }
        self.tiers().choose(runs)
    }

    /// The same when there is time: the largest run gets everything, unless it nearly has.
    pub(super) fn tidy(&self, runs: &[RunInfo]) -> Choice {
        let (oldest, younger) = weigh(runs);
        if younger > oldest / 8 { Choice::Merge(0..runs.len()) } else { self.choose(runs) }
    }

    /// The filter of a run with so many rows, when `others` are the runs that stay beside it.
    pub(super) fn filter<'a>(
        &self,
        rows: u64,
        others: impl Iterator<Item = &'a RunInfo>,
    ) -> Option<Width> {
        let (mut sum, mut largest) = (0, 0);
        for info in others {
            sum += info.adds;
            largest = largest.max(info.adds);
        }
        // All but the largest have one.
        let is_largest = rows > largest;
        let filtered = sum - largest + rows;
        (!is_largest && filtered <= self.filtered).then_some(Width::One)
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
    fn alike_runs_are_merged() {
        assert_eq!(POLICY.choose(&[]), Choice::Nothing);
        assert_eq!(POLICY.choose(&runs(&[5; 7])), Choice::Nothing);
        assert_eq!(POLICY.choose(&runs(&[5; 8])), Choice::Merge(0..8));
        let with_old = [&[5; 8][..], &[40; 3], &[900]].concat();
        assert_eq!(POLICY.choose(&runs(&with_old)), Choice::Merge(0..8));
    }

    #[test]
    fn runs_that_outgrow_their_filters_are_merged_into_the_oldest() {
        assert_eq!(POLICY.choose(&runs(&[60, 70, 130])), Choice::Nothing);
        assert_eq!(POLICY.choose(&runs(&[60, 71, 130])), Choice::Merge(0..3));
        assert_eq!(POLICY.choose(&runs(&[40, 60, 50])), Choice::Nothing, "there is memory");
    }

    #[test]
    fn with_time_the_oldest_gets_nearly_everything() {
        assert_eq!(POLICY.tidy(&runs(&[60, 60, 960])), Choice::Nothing);
        assert_eq!(POLICY.tidy(&runs(&[60, 61, 960])), Choice::Merge(0..3));
        assert_eq!(POLICY.tidy(&runs(&[960])), Choice::Nothing);
        assert_eq!(POLICY.tidy(&[]), Choice::Nothing);
    }

    #[test]
    fn all_but_the_largest_have_a_filter_while_there_is_memory() {
        let others = runs(&[10, 20, 500]);
        assert_eq!(POLICY.filter(60, others.iter()), Some(Width::One));
        assert_eq!(POLICY.filter(70, others.iter()), Some(Width::One));
        assert_eq!(POLICY.filter(71, others.iter()), None, "there is no memory");
        assert_eq!(POLICY.filter(501, others.iter()), None, "it is the largest");
        assert_eq!(POLICY.filter(1, [].iter()), None);
    }

    /// Bytes written for each byte at the end, and the share of rows in the oldest run.
    fn grow(policy: &Policy, flushes: u64) -> (f64, f64) {
        let (mut sizes, mut written) = (Vec::new(), 0);
        for _ in 0..flushes {
            sizes.insert(0, 4);
            written += 4;
            while let Choice::Merge(range) = policy.choose(&runs(&sizes)) {
                let merged = sizes.splice(range, []).collect::<Vec<u64>>();
                let place = sizes.iter().take_while(|size| **size < 1).count();
                let _ = place;
                written += merged.iter().sum::<u64>();
                sizes.insert(0, merged.iter().sum());
            }
        }
        let all: u64 = sizes.iter().sum();
        (written as f64 / all as f64, sizes[sizes.len() - 1] as f64 / all as f64)
    }

    #[test]
    fn little_is_written_however_large_it_grows() {
        for flushes in [50, 100, 250, 340, 840] {
            let (written, _) = grow(&Policy { fan_in: 8, filtered: 400 }, flushes);
            assert!(written < 4.0, "{written} after {flushes}");
        }
    }
}
