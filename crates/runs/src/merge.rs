//! Merges sources of rows into one.
//!
//! 1. Every source is at its lowest row. The lowest order among them is next.
//! 2. The codec decides ([`Codec::settle`]) what is left of all rows of that order, at most one
//!    from each source: one of them, or nothing. If everything older takes part (`whole`), a delete
//!    has nothing left to delete and is dropped.
//!
//! The sources must be neighbours in time, without a gap; whether their order matters is up to the
//! codec. A merge is itself a source, so a store can be walked in order without writing anything.
//!
//! There are few sources, so the lowest is found by a linear scan of their prefixes, which lie side
//! by side in memory and nearly always decide.

use std::marker::PhantomData;

use crate::codec::Codec;
use crate::cursor::Source;

/// Sources merged into one.
#[derive(Debug)]
pub struct Merge<C, S> {
    sources: Vec<S>,
    /// The prefix of every source's current key, `u64::MAX` at its end. They decide nearly every
    /// comparison.
    prefixes: Vec<u64>,
    whole: bool,
    /// The source of the current row.
    head: Option<usize>,
    codec: PhantomData<C>,
}

impl<C: Codec, S: Source<C>> Merge<C, S> {
    /// Merges `sources`; `whole` when nothing is older than all of them.
    pub fn new(sources: Vec<S>, whole: bool) -> Result<Self, C::Error> {
        let prefixes = sources.iter().map(prefix).collect();
        let mut merge = Self { sources, prefixes, whole, head: None, codec: PhantomData };
        merge.settle()?;
        Ok(merge)
    }

    /// Advances to the next row that is left, or to the end.
    fn settle(&mut self) -> Result<(), C::Error> {
        self.head = None;
        while let Some(lowest) = self.lowest() {
            if let Some(left) = self.left(lowest)? {
                self.head = Some(left);
                break;
            }
        }
        Ok(())
    }

    /// A source whose row is lowest, and whether others may have an equal row.
    fn lowest(&self) -> Option<Lowest> {
        let least = self.prefixes.iter().min()?;
        let mut tied = (0..).zip(&self.prefixes).filter(|(_, prefix)| *prefix == least);
        let (source, _) = tied.next()?;
        if tied.next().is_none() && *least != u64::MAX {
            return Some(Lowest { source, alone: true });
        }
        let tied = (0..).zip(&self.prefixes).filter(|(_, prefix)| *prefix == least);
        let orders = tied.filter_map(|(source, _)| Some((self.order(source)?, source)));
        let (_, source) = orders.min()?;
        Some(Lowest { source, alone: false })
    }

    fn order(&self, source: usize) -> Option<C::Order> {
        self.sources.get(source)?.head().as_ref().map(C::order)
    }

    /// What is left of the lowest rows. Advances past all of them but the one that stays.
    fn left(&mut self, lowest: Lowest) -> Result<Option<usize>, C::Error> {
        let Some(row) = self.sources.get(lowest.source).and_then(Source::head) else {
            return Ok(None);
        };
        if lowest.alone {
            let left = C::settle(std::iter::once((lowest.source, row)), self.whole)?;
            if left.is_none() {
                self.step(lowest.source)?;
            }
            return Ok(left);
        }
        let order = C::order(&row);
        let heads = self.sources.iter().enumerate();
        let heads = heads.filter_map(|(index, source)| Some((index, source.head()?)));
        let left = C::settle(heads.filter(|(_, row)| C::order(row) == order), self.whole)?;
        assert!(
            left.is_none_or(|left| self.order(left) == Some(order)),
            "what is left is one of the rows that were settled"
        );
        for index in 0..self.sources.len() {
            if Some(index) != left && self.order(index) == Some(order) {
                self.step(index)?;
            }
        }
        Ok(left)
    }

    /// Advances one source.
    fn step(&mut self, index: usize) -> Result<(), C::Error> {
        let places = self.sources.get_mut(index).zip(self.prefixes.get_mut(index));
        if let Some((source, place)) = places {
            source.advance()?;
            *place = prefix(source);
        }
        Ok(())
    }
}

impl<C: Codec, S: Source<C>> Source<C> for Merge<C, S> {
    fn head(&self) -> Option<C::Row<'_>> {
        self.sources.get(self.head?)?.head()
    }

    fn advance(&mut self) -> Result<(), C::Error> {
        if let Some(head) = self.head {
            let before = self.order(head);
            self.step(head)?;
            self.settle()?;
            debug_assert!(
                self.head.is_none_or(|head| self.order(head) > before),
                "rows leave a merge in order"
            );
        }
        Ok(())
    }
}

/// A source whose row is lowest.
#[derive(Clone, Copy, Debug)]
struct Lowest {
    source: usize,
    /// No other source has a row of the same key.
    alone: bool,
}

/// The prefix of the key of a source's current row.
fn prefix<C: Codec>(source: &impl Source<C>) -> u64 {
    source.head().map_or(u64::MAX, |row| C::prefix(&C::key(&row)))
}
