//! How runs of coins are merged.
//!
//! [`Tiers::choose_with_rewrites`] decides which runs: coins die, so the oldest run is rewritten
//! when a third of it is dead. With flushes of 256 blocks and a fan-in of 4, merges write about
//! 0.17 bytes for every byte of block data.
//!
//! A merge has inputs that are neighbours in time, so entries that cancel within them cancel for
//! good; deletes are dropped when the oldest run takes part.

#[cfg(feature = "test-suite")]
pub(crate) use suite::merge_debt;
#[cfg(feature = "test-suite")]
pub use suite::merge_runs;
use varve_runs::{Buffers, MergeInto, RunInfo, RunNumber, Span};

use crate::run_writer::width_of;

/// How to merge `inputs` into the run `number`. `whole` when the oldest run of all is an input.
pub(crate) fn merge_into(
    number: RunNumber,
    inputs: &[RunInfo],
    whole: bool,
    buffers: Buffers,
) -> MergeInto {
    let expected = inputs.iter().map(|info| info.adds).sum();
    let filter = Some(width_of(expected, Span::of(inputs)));
    MergeInto { number, whole, filter, buffers }
}

/// Merges outside a database.
#[cfg(feature = "test-suite")]
mod suite {
    use std::sync::Arc;

    use varve_io::{PAGE_LEN, Storage};
    use varve_runs::{Buffers, Choice, RunInfo, RunNumber, Stop, StoreKey, Tiers};

    use super::merge_into;
    use crate::codec::Run;
    use crate::run_error::RunError;

    /// Merges all of these runs into the run `number`; `whole` when nothing is older. `None` when
    /// everything cancelled, and then there is no file.
    pub fn merge_runs(
        storage: &Arc<dyn Storage>,
        key: StoreKey,
        number: RunNumber,
        runs: &[Arc<Run>],
        whole: bool,
    ) -> Result<Option<Run>, RunError> {
        let infos: Vec<RunInfo> = runs.iter().map(|run| run.info()).collect();
        let into = merge_into(number, &infos, whole, Buffers::LARGE);
        varve_runs::merge_runs(&Stop::never(), storage, key, runs, &into)
    }

    /// The bytes that the merges now due would write if nothing cancelled.
    pub(crate) fn merge_debt(runs: &[RunInfo], tiers: &Tiers) -> u64 {
        let (mut runs, mut pages) = (runs.to_vec(), 0);
        while let Choice::Merge(range) = tiers.choose_with_rewrites(&runs) {
            let whole = range.end == runs.len();
            let chosen = runs.get(range.clone()).unwrap_or_default();
            let Some(first) = chosen.first().copied() else { break };
            let sum = |of: fn(&RunInfo) -> u64| chosen.iter().map(of).sum::<u64>();
            let deletes = if whole { 0 } else { sum(|run| run.deletes) };
            let (added, adds) = (sum(|run| run.pages), sum(|run| run.adds));
            pages += added;
            runs.splice(range, [RunInfo { pages: added, adds, deletes, ..first }]);
        }
        pages.saturating_mul(PAGE_LEN as u64)
    }
}

#[cfg(test)]
mod tests;
