//! Adds up the rows of one key from several sources.
//!
//! ```text
//!  pane or run ─► Tagged ─┐
//!  pane or run ─► Tagged ─┼─► Merge ─► Combine ─► one row for each key that has anything left
//!  pane or run ─► Tagged ─┘
//! ```
//!
//! [`Tagged`] numbers the rows of its source, so that a merge keeps all of one key, side by side.
//! [`Combine`] adds their weights, or their sums. A row whose weight comes to zero is dropped. Sums
//! stay even when they come to zero: a script's group begins with them, and that is how a lookup
//! finds it.

use varve_runs::{Merge, Source};

use super::codec::History;
use super::error::Result;
use super::row::{Body, Row, Weight};

/// Rows of all sources in order, one for each key.
pub(super) type Combined<S> = Combine<Merge<History, Tagged<S>>>;

/// Adds up what `sources` have.
pub(super) fn combine<S: Source<History>>(sources: Vec<S>) -> Result<Combined<S>> {
    let tagged = (0..).zip(sources).map(|(number, source)| Tagged::new(source, number)).collect();
    Combine::new(Merge::new(tagged, true)?)
}

/// A source whose rows carry its number.
#[derive(Debug)]
pub(super) struct Tagged<S> {
    source: S,
    number: u32,
    row: Option<Row>,
}

impl<S: Source<History>> Tagged<S> {
    fn new(source: S, number: u32) -> Self {
        let mut tagged = Self { source, number, row: None };
        tagged.copy();
        tagged
    }

    #[inline]
    fn copy(&mut self) {
        self.row = self.source.head().map(|row| Row { source: self.number, ..*row });
    }
}

impl<S: Source<History>> Source<History> for Tagged<S> {
    #[inline]
    fn head(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.source.advance()?;
        self.copy();
        Ok(())
    }
}

/// A source in which every key has one row.
#[derive(Debug)]
pub(super) struct Combine<S> {
    source: S,
    row: Option<Row>,
}

impl<S: Source<History>> Combine<S> {
    fn new(source: S) -> Result<Self> {
        let mut combine = Self { source, row: None };
        combine.advance()?;
        Ok(combine)
    }
}

impl<S: Source<History>> Source<History> for Combine<S> {
    #[inline]
    fn head(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    fn advance(&mut self) -> Result<()> {
        self.row = None;
        while let Some(first) = self.source.head() {
            let mut total = Total::of(first);
            self.source.advance()?;
            while let Some(next) = self.source.head().filter(|next| next.key == total.row.key) {
                total.add(next);
                self.source.advance()?;
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
    pub(super) row: Row,
    weight: i32,
}

impl Total {
    #[inline]
    pub(super) fn of(row: &Row) -> Self {
        Self { row: Row { source: 0, ..*row }, weight: row.weight() }
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
