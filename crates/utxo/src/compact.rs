//! Decides which runs to merge, then merges them.
//!
//! **Deciding** is a pure function over what is known about the runs, youngest first. Three
//! rules, the first that applies:
//!
//! 1. *A third of the oldest run is dead*: the younger runs hold a third as many deletes as it has
//!    coins. Merge everything. That is the only rule that rewrites the oldest run when it is large,
//!    and what keeps the disk below 1.5 times the living coins.
//! 2. *`fan_in` neighbours are alike*: the largest has at most √`fan_in` times the pages of the
//!    smallest. Merge the youngest such. Their merge is about `fan_in` times as large and no longer
//!    like them, even when half of its entries cancelled.
//! 3. *More runs than a lookup should probe*: merge those neighbours that cost least and bring the
//!    number down.
//!
//! With flushes of 256 blocks and a fan-in of 4, merges write about 0.17 bytes for every byte of
//! block data (`forecast`). Writing less often means probing more runs.
//!
//! **Doing** merges the chosen runs into one new file. Runs are neighbours in time, so entries that
//! cancel within them cancel for good; deletes are dropped when the oldest run takes part.

use std::ops::Range;
use std::sync::Arc;

use varve_io::{PAGE_LEN, Storage};

use crate::budget::Buffers;
use crate::compacter::Stop;
use crate::cursor::{Cursor, Source as _};
use crate::footer::{RunNumber, Span};
use crate::merge::Merge;
use crate::run::{Access, Run, RunInfo};
use crate::run_error::RunError;
use crate::run_writer::{RunWriter, StoreKey};

/// When to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How many alike neighbours are merged into one; at least 2.
    pub fan_in: usize,
    /// The most runs that a lookup probes.
    pub max_probed: usize,
}

impl Default for Policy {
    /// Four and twelve: see the module's figures and `forecast.rs`.
    fn default() -> Self {
        Self { fan_in: 4, max_probed: 12 }
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The runs are well as they are.
    Nothing,
    /// Merge the runs in these places.
    Merge(Range<usize>),
}

/// Decides what to merge next among `runs`, youngest first.
#[must_use]
pub fn choose(runs: &[RunInfo], policy: &Policy) -> Choice {
    let fan_in = policy.fan_in.max(2);
    if oldest_is_dying(runs) {
        return Choice::Merge(0..runs.len());
    }
    let alike = runs.windows(fan_in).position(|window| are_alike(window, fan_in));
    if let Some(start) = alike {
        return Choice::Merge(start..start + fan_in);
    }
    let excess = runs.len().saturating_sub(policy.max_probed.max(1));
    if excess == 0 {
        return Choice::Nothing;
    }
    Choice::Merge(cheapest(runs, excess + 1))
}

/// Decides what to merge while the runs from place `busy` on are being merged or wait for that:
/// only those before it, which are younger, are free. So a merge of the whole set, which takes
/// minutes, does not keep the young runs from being merged.
///
/// Rules 2 and 3, over the free runs. A merge is only worth a thread beside the other when it is
/// done long before it, so it has at most a `fan_in`-th of its `pages`.
#[must_use]
pub(crate) fn choose_beside(
    runs: &[RunInfo],
    (busy, pages): (usize, u64),
    policy: &Policy,
) -> Choice {
    let fan_in = policy.fan_in.max(2);
    let free = runs.get(..busy).unwrap_or_default();
    let alike = free.windows(fan_in).position(|window| are_alike(window, fan_in));
    let excess = runs.len().saturating_sub(policy.max_probed.max(1));
    let range = match alike {
        Some(start) => start..start + fan_in,
        None if excess > 0 => cheapest(free, free.len().min(excess + 1)),
        None => 0..0,
    };
    let cost = cost(free.get(range.clone()).unwrap_or_default());
    let is_short = cost.saturating_mul(fan_in as u64) <= pages;
    if range.len() < 2 || !is_short { Choice::Nothing } else { Choice::Merge(range) }
}

fn cost(runs: &[RunInfo]) -> u64 {
    runs.iter().map(|run| run.pages).sum()
}

/// The `count` neighbours that cost least.
fn cheapest(runs: &[RunInfo], count: usize) -> Range<usize> {
    let windows = runs.windows(count.max(1)).enumerate();
    let cheapest = windows.min_by_key(|(_, window)| cost(window));
    cheapest.map_or(0..0, |(start, _)| start..start + count)
}

/// Whether the younger runs delete a third of the oldest. Some of their deletes are of coins in
/// runs between; those are counted too, being waste as well.
fn oldest_is_dying(runs: &[RunInfo]) -> bool {
    let Some((oldest, younger)) = runs.split_last() else { return false };
    let deletes: u64 = younger.iter().map(|run| run.deletes).sum();
    !younger.is_empty() && deletes.saturating_mul(3) >= oldest.adds
}

fn are_alike(runs: &[RunInfo], fan_in: usize) -> bool {
    let pages = || runs.iter().map(|run| u128::from(run.pages));
    let (least, most) = (pages().min().unwrap_or(0), pages().max().unwrap_or(0));
    most * most <= fan_in as u128 * least * least
}

/// The bytes that the merges now due would write, if nothing cancelled: what is still to be paid
/// for the runs as they are.
#[must_use]
pub fn merge_debt(runs: &[RunInfo], policy: &Policy) -> u64 {
    let (mut runs, mut pages) = (runs.to_vec(), 0);
    while let Choice::Merge(range) = choose(&runs, policy) {
        let whole = range.end == runs.len();
        let chosen = runs.get(range.clone()).unwrap_or_default();
        let Some(first) = chosen.first().copied() else { break };
        let sum = |of: fn(&RunInfo) -> u64| chosen.iter().map(of).sum::<u64>();
        let deletes = if whole { 0 } else { sum(|run| run.deletes) };
        let merged =
            RunInfo { pages: sum(|run| run.pages), adds: sum(|run| run.adds), deletes, ..first };
        pages += merged.pages;
        runs.splice(range, [merged]);
    }
    pages.saturating_mul(PAGE_LEN as u64)
}

/// Merges neighbouring runs into the new run `number`; `whole` when the oldest of all is among
/// them. `None` when everything cancelled, and then there is no file.
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
    (key, sizes): (StoreKey, Buffers),
    (number, (runs, whole)): (RunNumber, (&[Arc<Run>], bool)),
) -> Result<Option<Run>, RunError> {
    let infos: Vec<RunInfo> = runs.iter().map(|run| run.info()).collect();
    let spans = || infos.iter().map(|info| info.span);
    let first = spans().map(|span| span.first).min().unwrap_or_default();
    let last = spans().map(|span| span.last).max().unwrap_or_default();
    let expected = infos.iter().map(|info| info.adds).sum();
    let cursor = |run: &Arc<Run>| Cursor::new(Arc::clone(run), sizes.ahead);
    let cursors = runs.iter().map(cursor).collect::<Result<_, _>>()?;
    let mut merge = Merge::new(cursors, whole)?;
    let mut writer = RunWriter::create(storage, key, (number, Span { first, last }), expected)?;
    writer.set_chunk_keys(sizes.chunk_keys);
    while let Some(record) = merge.head() {
        if stop.is_set() {
            return Err(RunError::Stopped);
        }
        writer.push_record(&record)?;
        merge.advance()?;
    }
    if writer.entries() == 0 {
        return Ok(None);
    }
    let run = writer.finish()?;
    // What was in the cache is not to be cold only because it was merged.
    if runs.iter().all(|run| run.access() == Access::Mapped) {
        run.warm()?;
    }
    Ok(Some(run))
}

#[cfg(test)]
mod tests;
