//! Adds up the rows of one key from several sources.
//!
//! ```text
//!  pane or run ─┐
//!  pane or run ─┼─► Combine ─► one row for each key that has anything left
//!  pane or run ─┘
//! ```
//!
//! A flush has hundreds of panes, so the source that stands lowest is found by a heap. The rows of
//! one key come out one after the other, and their weights, or their sums, are added. A row whose
//! weight comes to zero is dropped. Sums stay even when they come to zero: a script's group begins
//! with them, and that is how a lookup finds it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use varve_runs::Source;

use super::codec::History;
use super::error::Result;
use super::row::{Body, Key, Row, Weight};

/// Adds up what `sources` have.
pub(super) fn combine<S: Source<History>>(sources: Vec<S>) -> Result<Combine<S>> {
    let head = |(at, source): (usize, &S)| Some(Reverse((source.head()?.key, at)));
    let heads = sources.iter().enumerate().filter_map(head).collect();
    let mut combine = Combine { sources, heads, row: None };
    combine.advance()?;
    Ok(combine)
}

/// A source of rows in order, in which every key has one row.
#[derive(Debug)]
pub(crate) struct Combine<S> {
    sources: Vec<S>,
    /// The key at which each source stands, the lowest first.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    row: Option<Row>,
}

impl<S: Source<History>> Combine<S> {
    /// Takes the row of the source that stands lowest, and moves that source on.
    fn pop(&mut self) -> Result<Option<Row>> {
        let Some(mut lowest) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((_, at)) = *lowest;
        let source = self.sources.get_mut(at).expect("heads are those of sources");
        let row = source.head().copied();
        source.advance()?;
        match source.head() {
            Some(next) => *lowest = Reverse((next.key, at)),
            None => drop(PeekMut::pop(lowest)),
        }
        Ok(row)
    }
}

impl<S: Source<History>> Source<History> for Combine<S> {
    #[inline]
    fn head(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    fn advance(&mut self) -> Result<()> {
        self.row = None;
        while let Some(first) = self.pop()? {
            let mut total = Total::of(&first);
            while self.heads.peek().is_some_and(|Reverse((key, _))| *key == first.key) {
                if let Some(next) = self.pop()? {
                    total.add(&next);
                }
            }
            self.row = total.row();
            if self.row.is_some() {
                break;
            }
        }
        Ok(())
    }
}

/// Rows of one key, added up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    row: Row,
    weight: i32,
}

impl Total {
    #[inline]
    pub(super) fn of(row: &Row) -> Self {
        Self { row: *row, weight: row.weight() }
    }

    #[inline]
    pub(super) fn add(&mut self, other: &Row) {
        debug_assert_eq!(self.row.key, other.key, "rows of one key are added up");
        self.weight += other.weight();
        match (&mut self.row.body, other.body) {
            (Body::Sums(sums), Body::Sums(more)) => sums.add(&more),
            (Body::Output(added), Body::Output(more)) => *added = added.or(more),
            _ => {}
        }
    }

    /// What is left, if anything.
    #[inline]
    pub(super) fn row(&self) -> Option<Row> {
        let body = match self.row.body {
            Body::Sums(_) => return Some(self.row),
            _ if self.weight == 0 => return None,
            Body::Tx(_) if self.weight > 0 => Body::Tx(Weight::Add),
            Body::Tx(_) => Body::Tx(Weight::Remove),
            Body::Output(added) if self.weight > 0 => Body::Output(added),
            Body::Output(_) => Body::Output(None),
        };
        Some(Row { body, ..self.row })
    }
}
