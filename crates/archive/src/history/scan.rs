//! The rows of one script in order, from either end, without collecting them.
//!
//! A busy script has millions of rows, in leaves that follow one another in each run. The scan
//! stands in every pane and every run at the next row of the script and takes the lowest, or the
//! highest, of them; rows of one key meet there, and their weights are added up. Of a run it has
//! the rows of one leaf in memory. The leaf to begin with is found by the directory, so a page of
//! an answer from the middle costs what one from the beginning does.

use std::ops::Range;

use varve_runs::Run;

use super::codec::History;
use super::combine::Total;
use super::error::Result;
use super::identity::Identity;
use super::leaf::Leaf;
use super::pane::{OURS, Pane};
use super::row::{Key, Place, Row};
use crate::search::Order;

/// Where rows are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shelf<'a> {
    Pane(&'a Pane),
    Run(&'a Run<History>),
}

/// Rows of one script.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    identity: Identity,
    places: Range<Place>,
    order: Order,
    parts: Vec<Part<'a>>,
}

/// Rows of one pane or run.
#[derive(Debug)]
struct Part<'a> {
    shelf: Shelf<'a>,
    /// The leaf to be looked at next.
    next: Option<u32>,
    /// Rows that come next, the first of them last.
    waiting: Vec<Row>,
}

impl<'a> Scan<'a> {
    /// The rows of a script with places in this range.
    pub(super) fn new(
        shelves: impl IntoIterator<Item = Shelf<'a>>,
        (identity, places): (Identity, Range<Place>),
        order: Order,
    ) -> Self {
        let from = match order {
            Order::Ascending => places.start,
            Order::Descending => Place(places.end.0.saturating_sub(1)),
        };
        let key = Key { identity, place: from };
        let part = |shelf: Shelf<'a>| {
            let first = (order == Order::Ascending).then_some(0);
            Part { shelf, next: shelf.locate(&key).or(first), waiting: Vec::new() }
        };
        let is_empty = places.start >= places.end;
        let parts = shelves.into_iter().map(part).filter(|_| !is_empty).collect();
        Self { identity, places, order, parts }
    }

    /// The next row that counts; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Row>> {
        loop {
            let mut best: Option<Place> = None;
            for part in &mut self.parts {
                part.fill(self.identity, &self.places, self.order)?;
                let Some(place) = part.head() else { continue };
                best = Some(match (best, self.order) {
                    (None, _) => place,
                    (Some(best), Order::Ascending) => best.min(place),
                    (Some(best), Order::Descending) => best.max(place),
                });
            }
            let Some(best) = best else { return Ok(None) };
            let mut total: Option<Total> = None;
            for part in self.parts.iter_mut().filter(|part| part.head() == Some(best)) {
                let Some(row) = part.waiting.pop() else { continue };
                match &mut total {
                    Some(total) => total.add(&row),
                    None => total = Some(Total::of(&row)),
                }
            }
            let left = total.and_then(|total| total.row()).filter(|row| row.weight() > 0);
            if left.is_some() {
                return Ok(left);
            }
        }
    }
}

impl Part<'_> {
    fn head(&self) -> Option<Place> {
        self.waiting.last().map(|row| row.key.place)
    }

    /// Takes the rows of the next leaf when none are waiting.
    fn fill(&mut self, identity: Identity, places: &Range<Place>, order: Order) -> Result<()> {
        while let Some(number) = self.next.filter(|_| self.waiting.is_empty()) {
            let waiting = &mut self.waiting;
            let found = self.shelf.find(number, identity, |row| {
                if places.contains(&row.key.place) {
                    waiting.push(row);
                }
            })?;
            let goes_on = found.filter(|found| match order {
                Order::Ascending => found.is_last,
                Order::Descending => found.continues,
            });
            self.next = goes_on.and_then(|_| match order {
                Order::Ascending => number.checked_add(1).filter(|next| *next < self.shelf.count()),
                Order::Descending => number.checked_sub(1),
            });
            if order == Order::Ascending {
                self.waiting.reverse();
            }
        }
        Ok(())
    }
}

impl<'a> Shelf<'a> {
    /// The leaf that has the last row not above `key`.
    fn locate(self, key: &Key) -> Option<u32> {
        match self {
            Self::Pane(pane) => pane.locate(key).and_then(|leaf| u32::try_from(leaf).ok()),
            Self::Run(run) => run.leaves(key).end.checked_sub(1),
        }
    }

    fn count(self) -> u32 {
        match self {
            Self::Pane(pane) => u32::try_from(pane.leaf_count()).unwrap_or(u32::MAX),
            Self::Run(run) => run.leaves(&Key::MAX).end,
        }
    }

    /// The rows of a script in one leaf.
    fn find(
        self,
        number: u32,
        identity: Identity,
        each: impl FnMut(Row),
    ) -> Result<Option<super::leaf::Found>> {
        match self {
            Self::Pane(pane) if number >= self.count() => {
                debug_assert_eq!(pane.leaf_count(), 0, "only an empty pane has no first leaf");
                Ok(None)
            }
            Self::Pane(pane) => Ok(pane.leaf(number as usize).find(identity, each).expect(OURS)),
            Self::Run(run) => {
                let (payload, at) = run.leaf(number)?;
                let found = Leaf::parse(payload, 0).and_then(|leaf| leaf.find(identity, each));
                found.map_err(|error| at.error(error))
            }
        }
    }
}
