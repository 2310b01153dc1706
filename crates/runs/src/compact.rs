//! Decides which runs to merge, then merges them.
//!
//! **Deciding** is a pure function of the owner over what is known about the runs, youngest first.
//! [`Tiers`] holds the two rules that suit every store; the first that applies is taken:
//!
//! 1. *`fan_in` neighbours are of similar size*: the largest has at most √`fan_in` times the pages
//!    of the smallest. Merge the youngest such group. Their merge is about `fan_in` times as large
//!    and no longer similar, even when half of its rows cancelled. So a row is written once more
//!    whenever its run becomes `fan_in` times as large: three times until a run has `fan_in`²
//!    flushes.
//! 2. *More runs than a lookup should probe*: merge those neighbours that cost least and bring the
//!    number down.
//!
//! Merging less often writes less and means probing more runs.
//!
//! A store whose rows delete others puts a third rule first ([`Tiers::choose_with_rewrites`]): *a
//! third of the oldest run is dead*. Only this rule rewrites the oldest run when it is large; it
//! keeps the disk below 1.5 times the living rows.
//!
//! **Doing** merges the chosen runs into one new file. Runs are neighbours in time, so rows that
//! cancel among them need not be kept for any other run.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use varve_io::Storage;

use crate::buffers::Buffers;
use crate::codec::Codec;
use crate::cursor::{Cursor, Source};
use crate::footer::{RunInfo, RunNumber, Span};
use crate::fuse::Width;
use crate::lane::Stop;
use crate::merge::Merge;
use crate::run::Run;
use crate::run_error::RunError;
use crate::run_writer::{NewRun, RunWriter};
use crate::store_key::StoreKey;

/// When runs of similar size are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// How many neighbours of similar size are merged into one; at least 2.
    pub fan_in: usize,
    /// The most runs that a lookup probes.
    pub max_probed: usize,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The runs may stay as they are.
    Nothing,
    /// Merge the runs at these places.
    Merge(Range<usize>),
}

/// A merge in progress, as far as it limits another beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The place of its youngest input among the runs.
    pub first: usize,
    /// Pages of all its inputs.
    pub pages: u64,
}

impl Tiers {
    /// Decides what to merge next among `runs`, youngest first.
    #[must_use]
    pub fn choose(&self, runs: &[RunInfo]) -> Choice {
        let fan_in = self.fan_in.max(2);
        let alike = runs.windows(fan_in).position(|window| are_alike(window, fan_in));
        if let Some(start) = alike {
            return Choice::Merge(start..start + fan_in);
        }
        let excess = runs.len().saturating_sub(self.max_probed.max(1));
        if excess == 0 {
            return Choice::Nothing;
        }
        Choice::Merge(cheapest(runs, excess + 1))
    }

    /// Decides as [`Tiers::choose`], but first merges all runs when the younger ones delete a third
    /// of the oldest. Some of their deletes concern rows in the runs between; those count too,
    /// because they are waste as well.
    #[must_use]
    pub fn choose_with_rewrites(&self, runs: &[RunInfo]) -> Choice {
        let Some((oldest, younger)) = runs.split_last() else { return Choice::Nothing };
        let deletes: u64 = younger.iter().map(|run| run.deletes).sum();
        if !younger.is_empty() && deletes.saturating_mul(3) >= oldest.adds {
            return Choice::Merge(0..runs.len());
        }
        self.choose(runs)
    }

    /// Decides what to merge beside a merge in progress: only the runs younger than its inputs are
    /// free. So a merge of all runs, which takes minutes, does not block merges of the young runs.
    ///
    /// The same rules, over the free runs. A merge is worth a second thread only when it ends long
    /// before the other, so its inputs have at most a `fan_in`-th of the other's pages.
    #[must_use]
    pub fn choose_beside(&self, runs: &[RunInfo], busy: Busy) -> Choice {
        let fan_in = self.fan_in.max(2);
        let free = runs.get(..busy.first).unwrap_or_default();
        let alike = free.windows(fan_in).position(|window| are_alike(window, fan_in));
        let excess = runs.len().saturating_sub(self.max_probed.max(1));
        let range = match alike {
            Some(start) => start..start + fan_in,
            None if excess > 0 => cheapest(free, free.len().min(excess + 1)),
            None => 0..0,
        };
        let cost = cost(free.get(range.clone()).unwrap_or_default());
        let is_short = cost.saturating_mul(fan_in as u64) <= busy.pages;
        if range.len() < 2 || !is_short { Choice::Nothing } else { Choice::Merge(range) }
    }
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

fn are_alike(runs: &[RunInfo], fan_in: usize) -> bool {
    let pages = || runs.iter().map(|run| u128::from(run.pages));
    let (least, most) = (pages().min().unwrap_or(0), pages().max().unwrap_or(0));
    most * most <= fan_in as u128 * least * least
}

/// The run that a merge writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeInto {
    /// The number of the new file.
    pub number: RunNumber,
    /// Whether the oldest run of all is an input.
    pub whole: bool,
    /// The width of the filter's fingerprints; `None` for no filter.
    pub filter: Option<Width>,
    /// The sizes of the buffers.
    pub buffers: Buffers,
}

/// Merges neighbouring runs, youngest first, into a new one, until `stop` is set. `None` when
/// nothing is left of their rows; then there is no file.
pub fn merge_runs<C: Codec>(
    stop: &Stop,
    storage: &Arc<dyn Storage>,
    key: StoreKey,
    runs: &[Arc<Run<C>>],
    into: &MergeInto,
) -> Result<Option<Run<C>>, C::Error> {
    let whole = into.whole;
    let rows = |cursors| Merge::<C, Cursor<C>>::new(cursors, whole);
    let watch = MergeWatch { stop: stop.clone(), ..MergeWatch::default() };
    merge_runs_with(&watch, (storage, key), runs, into, rows)
}

/// What a merge looks at and shows while it works.
#[derive(Clone, Debug, Default)]
pub(crate) struct MergeWatch {
    pub(crate) stop: Stop,
    /// Rows that are written, as of the last [`WATCHED_ROWS`].
    pub(crate) rows: Arc<AtomicU64>,
}

/// Rows between two looks at a merge.
const WATCHED_ROWS: u64 = 1 << 12;

/// The same for a store that has its own way to make one row of equal ones: `merged` is given a
/// cursor at the beginning of every run.
pub(crate) fn merge_runs_with<C: Codec, S: Source<C>>(
    watch: &MergeWatch,
    (storage, key): (&Arc<dyn Storage>, StoreKey),
    runs: &[Arc<Run<C>>],
    into: &MergeInto,
    merged: impl FnOnce(Vec<Cursor<C>>) -> Result<S, C::Error>,
) -> Result<Option<Run<C>>, C::Error> {
    let MergeInto { number, filter, buffers, .. } = *into;
    let infos: Vec<RunInfo> = runs.iter().map(|run| run.info()).collect();
    assert!(
        infos.is_sorted_by(|young, old| young.span.first > old.span.last),
        "runs are merged youngest first"
    );
    let expected = infos.iter().map(|info| info.adds).sum();
    let cursor = |run: &Arc<Run<C>>| Cursor::new(Arc::clone(run), buffers.ahead);
    let mut merge = merged(runs.iter().map(cursor).collect::<Result<_, _>>()?)?;
    let (span, chunk_keys) = (Span::of(&infos), buffers.chunk_keys);
    let new = NewRun { number, span, expected, filter, chunk_keys };
    let mut writer = RunWriter::<C>::create(storage, key, &new)?;
    while let Some(row) = merge.head() {
        if watch.stop.is_set() {
            return Err(RunError::Stopped.into());
        }
        writer.push(&row)?;
        if writer.rows().is_multiple_of(WATCHED_ROWS) {
            watch.rows.store(writer.rows(), Ordering::Relaxed);
        }
        merge.advance()?;
    }
    if writer.rows() == 0 {
        return Ok(None);
    }
    let run = writer.finish()?;
    let rows = |info: &RunInfo| info.adds + info.deletes;
    let most = infos.iter().map(rows).sum();
    assert!(rows(&run.info()) <= most, "a merge leaves no more rows than it was given");
    assert_eq!(run.info().span, span, "a merge holds the steps of its parts");
    run.warm_after(runs)?;
    Ok(Some(run))
}

#[cfg(test)]
mod tests;
