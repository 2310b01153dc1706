//! Decides which runs to merge, then merges them.
//!
//! **Deciding** is a pure function over what is known about the runs, youngest first. Three
//! rules, the first that applies:
//!
//! 1. *A third of the oldest run is dead*: the younger runs hold a third as many deletes as it has
//!    coins. Merge everything. That is the only rule that rewrites the oldest run when it is large,
//!    and what keeps the disk below 1.5 times the living coins.
//! 2. *`fan_in` neighbours are alike*, and
//! 3. *more runs than a lookup should probe*: both are those of [`Tiers`], as for every store.
//!
//! With flushes of 256 blocks and a fan-in of 4, merges write about 0.17 bytes for every byte of
//! block data (`forecast`). Writing less often means probing more runs.
//!
//! **Doing** merges the chosen runs into one new file. Runs are neighbours in time, so entries that
//! cancel within them cancel for good; deletes are dropped when the oldest run takes part.

use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{Buffers, Choice, MergeInto, RunInfo, RunNumber, Span, Stop, StoreKey, Tiers};

use crate::codec::Run;
use crate::run_error::RunError;
use crate::run_writer::width_of;

/// Decides what to merge next among `runs`, youngest first.
pub(crate) fn choose(runs: &[RunInfo], tiers: &Tiers) -> Choice {
    if oldest_is_dying(runs) {
        return Choice::Merge(0..runs.len());
    }
    tiers.choose(runs)
}

/// Whether the younger runs delete a third of the oldest. Some of their deletes are of coins in
/// runs between; those are counted too, being waste as well.
fn oldest_is_dying(runs: &[RunInfo]) -> bool {
    let Some((oldest, younger)) = runs.split_last() else { return false };
    let deletes: u64 = younger.iter().map(|run| run.deletes).sum();
    !younger.is_empty() && deletes.saturating_mul(3) >= oldest.adds
}

/// The bytes that the merges now due would write, if nothing cancelled: what is still to be paid
/// for the runs as they are.
#[cfg(feature = "test-suite")]
pub(crate) fn merge_debt(runs: &[RunInfo], tiers: &Tiers) -> u64 {
    varve_runs::merge_debt(runs, |runs| choose(runs, tiers))
}

/// Merges neighbouring runs into the new run `number`; `whole` when the oldest of all is among
/// them. `None` when everything cancelled, and then there is no file.
#[cfg(feature = "test-suite")]
pub fn merge_runs(
    storage: &Arc<dyn Storage>,
    key: StoreKey,
    number: RunNumber,
    chosen: (&[Arc<Run>], bool),
) -> Result<Option<Run>, RunError> {
    merge_unless(&Stop::never(), storage, (key, Buffers::LARGE), (number, chosen))
}

/// Merges as [`merge_runs`] does, unless told to stop.
pub(crate) fn merge_unless(
    stop: &Stop,
    storage: &Arc<dyn Storage>,
    (key, buffers): (StoreKey, Buffers),
    (number, (runs, whole)): (RunNumber, (&[Arc<Run>], bool)),
) -> Result<Option<Run>, RunError> {
    let infos: Vec<RunInfo> = runs.iter().map(|run| run.info()).collect();
    let expected = infos.iter().map(|info| info.adds).sum();
    let filter = Some(width_of(expected, Span::of(&infos)));
    varve_runs::merge_runs(stop, storage, key, runs, &MergeInto { number, whole, filter, buffers })
}

#[cfg(test)]
mod tests;
