//! The rows of one key, one after the other, without collecting them.
//!
//! A busy script has millions of rows, in thousands of leaves that follow one another in each run.
//! The cursor stands in every pane and every run at the next link of the key and takes the lowest,
//! or the highest, of them; it holds the links of one leaf of each run in memory. It keeps the
//! version it was created with, so flushes and merges do not disturb it.
//!
//! It finds its first leaf by binary search, so a page of results in the middle of the rows costs
//! about ten leaves of each large run.

use std::ops::Range;
use std::sync::Arc;

use super::error::Result;
use super::leaf::Leaf;
use super::row::Fingerprint;
use super::version::Version;
use crate::link::TxLink;

/// The order of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The lowest first: as they were appended.
    Ascending,
    /// The highest first.
    Descending,
}

/// A place among the rows of one key.
#[derive(Debug)]
pub struct Cursor {
    version: Arc<Version>,
    key: Fingerprint,
    links: Range<TxLink>,
    order: Order,
    parts: Vec<Part>,
}

/// The rows of the key in one pane or run, from the next on. Kept in the order in which they come
/// last first, so that the next is popped.
#[derive(Debug)]
struct Part {
    waiting: Vec<TxLink>,
    rest: Rest,
}

/// Rows that are not in `waiting` yet.
#[derive(Debug)]
enum Rest {
    /// Rows of a pane, in these places.
    Pane(usize, Range<usize>),
    /// Leaves of a run.
    Run(usize, Range<u32>),
}

/// Rows of a pane that are taken at once.
const STRIDE: usize = 256;

impl Cursor {
    pub(super) fn new(
        version: Arc<Version>,
        key: Fingerprint,
        links: Range<TxLink>,
        order: Order,
    ) -> Result<Self> {
        let links = links.start..links.end.min(version.end);
        let mut cursor = Self { version, key, links, order, parts: Vec::new() };
        for (index, pane) in cursor.version.panes.iter().enumerate() {
            let (start, end) =
                (pane.seek(key, cursor.links.start), pane.seek(key, cursor.links.end));
            let rest = Rest::Pane(index, start..end);
            cursor.parts.push(Part { waiting: Vec::new(), rest });
        }
        for index in 0..cursor.version.runs.as_slice().len() {
            let rest = Rest::Run(index, cursor.leaves(index)?);
            cursor.parts.push(Part { waiting: Vec::new(), rest });
        }
        Ok(cursor)
    }

    /// The link of the next row; `None` behind the last.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<TxLink>> {
        let mut best: Option<TxLink> = None;
        for index in 0..self.parts.len() {
            let Some(link) = self.head(index)? else { continue };
            best = Some(match (best, self.order) {
                (None, _) => link,
                (Some(best), Order::Ascending) => best.min(link),
                (Some(best), Order::Descending) => best.max(link),
            });
        }
        // What was flushed since a rest is in its file of young rows, too.
        for part in &mut self.parts {
            if best.is_some() && part.waiting.last().copied() == best {
                part.waiting.pop();
            }
        }
        Ok(best)
    }

    /// The next link of a part, for which more rows are taken when none are waiting.
    fn head(&mut self, index: usize) -> Result<Option<TxLink>> {
        let Some(part) = self.parts.get_mut(index) else { return Ok(None) };
        while part.waiting.is_empty() {
            match &mut part.rest {
                Rest::Pane(_, places) if Range::is_empty(places) => return Ok(None),
                Rest::Run(_, leaves) if Range::is_empty(leaves) => return Ok(None),
                Rest::Pane(pane, places) => {
                    let taken = take(places, STRIDE, self.order);
                    let pane = self.version.panes.get(*pane);
                    let rows = taken.filter_map(|place| pane?.row(place));
                    part.waiting.extend(rows.map(|row| row.link));
                }
                Rest::Run(run, leaves) => {
                    let leaf = take(leaves, 1, self.order).start;
                    let (run, key) = (self.version.runs.as_slice().get(*run), self.key);
                    let Some(run) = run else { return Ok(None) };
                    let (payload, at) = run.leaf(leaf)?;
                    let parsed = Leaf::parse(payload).map_err(|error| at.error(error))?;
                    let wanted = |link: &TxLink| self.links.contains(link);
                    part.waiting.extend(parsed.find(key).filter(wanted));
                }
            }
            if self.order == Order::Ascending {
                part.waiting.reverse();
            }
        }
        Ok(part.waiting.last().copied())
    }

    /// The leaves of a run that have rows of the key in the wanted range of links.
    fn leaves(&self, run: usize) -> Result<Range<u32>> {
        let Some(run) = self.version.runs.as_slice().get(run) else { return Ok(0..0) };
        let Range { start, end } = run.leaves(&self.key);
        // The first leaf whose last row of the key is not below `from`. The first of all may have
        // none of its rows, and then comes before.
        let seek = |from: TxLink, mut low: u32, mut high: u32| -> Result<u32> {
            while low < high {
                let middle = low + (high - low) / 2;
                let (payload, at) = run.leaf(middle)?;
                let leaf = Leaf::parse(payload).map_err(|error| at.error(error))?;
                if leaf.find(self.key).next_back().is_none_or(|last| last < from) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            Ok(low)
        };
        if end - start < 2 {
            return Ok(start..end);
        }
        let first = seek(self.links.start, start, end)?;
        let last = seek(self.links.end, first, end)?;
        Ok(first..end.min(last + 1))
    }
}

/// Takes up to `count` from the front, or from the back, of a range.
fn take<T>(range: &mut Range<T>, count: T, order: Order) -> Range<T>
where
    T: Copy + Ord + std::ops::Add<Output = T> + std::ops::Sub<Output = T>,
{
    let count = count.min(range.end - range.start);
    match order {
        Order::Ascending => {
            let taken = range.start..range.start + count;
            range.start = taken.end;
            taken
        }
        Order::Descending => {
            let taken = range.end - count..range.end;
            range.end = taken.start;
            taken
        }
    }
}
