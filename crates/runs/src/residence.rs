//! Whether a run is read through its map or past the cache: a measured rule.
//!
//! A page in the cache costs 0.2 µs through the map and about 8 µs by a direct read. A page that is
//! not costs a direct read the same 8 µs, because many are in flight at once; but a fault on the
//! map stops the thread for the 100 µs of a whole access. So the map wins as long as fewer than one
//! page in twelve is cold.
//!
//! Every query asks the system about a few of the pages that it is about to read ([`PROBES`], half
//! a microsecond each), and the share of cold ones is kept as a moving average over the last
//! [`MEMORY`] or so. Above one in eight the run's pages are read directly, below one in sixteen
//! through the map; in between nothing changes. While no recent probe was cold, one query in
//! [`CALM`] probes: lookups of single keys are the ones that feel a system call.
//!
//! Direct reads bring nothing into the cache, so a cold run stays cold. It becomes resident by
//! [`Run::warm`](crate::Run::warm), which flushes and merges call for runs made of what was
//! resident.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use varve_io::PageFile;

use crate::run::Access;

/// Pages of each run that a query probes.
pub(crate) const PROBES: usize = 2;
/// The weight of the moving average: a probe has mostly lost its influence after this many.
const MEMORY: u32 = 32;
/// Queries of a run without cold pages for one that probes.
const CALM: u32 = 8;
/// The fixed-point representation of 1.
const WHOLE: u32 = 1 << 16;
const DIRECT_ABOVE: u32 = WHOLE / 8;
const MAPPED_BELOW: u32 = WHOLE / 16;

/// How a run is read: as measured, or as fixed by a caller.
#[derive(Debug)]
pub(crate) struct Residence {
    /// Moving average of the share of cold pages.
    cold: AtomicU32,
    /// Counts the queries that could have probed.
    asked: AtomicU32,
    mode: AtomicU8,
}

const MAPPED: u8 = 0;
const DIRECT: u8 = 1;
/// The mode was fixed and is not measured.
const FIXED: u8 = 2;

impl Residence {
    pub(crate) const fn new() -> Self {
        let (cold, asked) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { cold, asked, mode: AtomicU8::new(MAPPED) }
    }

    /// The residence of a file, whose pages are read in no order from now on. A file that cannot be
    /// mapped is always read directly.
    pub(crate) fn of(file: &PageFile) -> Self {
        let residence = Self::new();
        if file.expect_random_access().is_err() {
            residence.fix(Access::Direct);
        }
        residence
    }

    pub(crate) fn access(&self) -> Access {
        if self.mode.load(Ordering::Relaxed) & DIRECT == 0 {
            Access::Mapped
        } else {
            Access::Direct
        }
    }

    /// Fixes the mode; probes no longer change it.
    pub(crate) fn fix(&self, access: Access) {
        let mode = if access == Access::Direct { DIRECT } else { MAPPED };
        self.mode.store(mode | FIXED, Ordering::Relaxed);
    }

    /// Whether a query should probe.
    pub(crate) fn wants_probe(&self) -> bool {
        self.mode.load(Ordering::Relaxed) & FIXED == 0
            && (self.cold.load(Ordering::Relaxed) > 0
                || self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(CALM))
    }

    /// Records a probe. Threads may overwrite one another's: it is an estimate.
    pub(crate) fn note(&self, is_cached: bool) {
        let cold = self.cold.load(Ordering::Relaxed);
        let probe = if is_cached { 0 } else { WHOLE };
        let cold = (cold * (MEMORY - 1) + probe) / MEMORY;
        self.cold.store(cold, Ordering::Relaxed);
        let mode = match cold {
            DIRECT_ABOVE.. => DIRECT,
            0..=MAPPED_BELOW => MAPPED,
            _ => return,
        };
        // Only a measured mode is replaced.
        let _ = self.mode.compare_exchange(mode ^ 1, mode, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_cools_is_read_directly_and_one_that_warms_by_its_map() {
        let residence = Residence::new();
        assert_eq!(residence.access(), Access::Mapped);
        let cold = (0..).take_while(|_| {
            residence.note(false);
            residence.access() == Access::Mapped
        });
        assert_eq!(cold.count(), 4, "five cold pages on end are enough");
        (0..MEMORY).for_each(|_| residence.note(false));
        let warm = (0..).take_while(|_| {
            residence.note(true);
            residence.access() == Access::Direct
        });
        assert!((60..90).contains(&warm.count()), "and some twenty queries of warm ones");
    }

    #[test]
    fn a_few_cold_pages_change_nothing() {
        let residence = Residence::new();
        for probe in 0..10_000 {
            residence.note(probe % 16 != 0);
            assert_eq!(residence.access(), Access::Mapped);
        }
    }

    #[test]
    fn a_calm_run_is_probed_now_and_then_and_a_cooling_one_always() {
        let residence = Residence::new();
        let probed = |queries: u32| (0..queries).filter(|_| residence.wants_probe()).count();
        assert_eq!(probed(8 * CALM), 8);
        residence.note(false);
        assert_eq!(probed(100), 100);
    }

    #[test]
    fn what_is_fixed_is_not_measured() {
        let residence = Residence::new();
        residence.fix(Access::Direct);
        (0..1000).for_each(|_| residence.note(true));
        assert_eq!((residence.access(), residence.wants_probe()), (Access::Direct, false));
    }
}
