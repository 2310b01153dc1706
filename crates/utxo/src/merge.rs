//! Merges sources of entries into one, cancelling what cancels.
//!
//! 1. Every source stands at its lowest entry. The lowest outpoint and birth among them is next.
//! 2. All entries of that outpoint and birth count, an add +1, a delete −1. The sum says what is left: +1 the
//!    coin, 0 nothing, −1 a delete of a coin that lies in something older.
//! 3. If everything older takes part (`whole`), there is nothing a delete could wait for: −1 means
//!    that the coin it deletes is lost, and any other sum means the same. That is damage.
//!
//! The sources must be neighbours in time, without a gap; their order does not matter. A
//! merge is itself a source, so the set can be walked in key order without writing it anywhere.

use varve_types::Outpoint;

use crate::cursor::Source;
use crate::run::Record;
use crate::run_error::RunError;
use crate::sequence::Sequence;

/// Sources merged into one.
#[derive(Debug)]
pub struct Merge<S> {
    sources: Vec<S>,
    /// The first 8 bytes of every source's outpoint, the highest number at its end. Nearly every
    /// comparison ends with them.
    prefixes: Vec<u64>,
    whole: bool,
    /// The source that has the entry it stands at.
    head: Option<usize>,
}

impl<S: Source> Merge<S> {
    /// Merges `sources`; `whole` when nothing is older than all of them.
    pub fn new(sources: Vec<S>, whole: bool) -> Result<Self, RunError> {
        let prefixes = sources.iter().map(prefix).collect();
        let mut merge = Self { sources, prefixes, whole, head: None };
        merge.settle()?;
        Ok(merge)
    }

    /// Goes on until it stands at an entry that is left after cancelling, or at the end.
    fn settle(&mut self) -> Result<(), RunError> {
        self.head = None;
        while let Some(lowest) = self.lowest() {
            if let Some(left) = self.count(lowest)? {
                self.head = Some(left);
                break;
            }
        }
        Ok(())
    }

    /// A source that stands lowest, and whether others may stand at the same entry.
    fn lowest(&self) -> Option<Lowest> {
        let least = self.prefixes.iter().min()?;
        let mut tied = (0..).zip(&self.prefixes).filter(|(_, prefix)| *prefix == least);
        let (source, _) = tied.next()?;
        if tied.next().is_none() && *least != u64::MAX {
            return Some(Lowest { source, alone: true });
        }
        let tied = (0..).zip(&self.prefixes).filter(|(_, prefix)| *prefix == least);
        let keys = tied.filter_map(|(source, _)| Some((self.key(source)?, source)));
        let (_, source) = keys.min()?;
        Some(Lowest { source, alone: false })
    }

    fn key(&self, source: usize) -> Option<(Outpoint, Sequence)> {
        let head = self.sources.get(source)?.head()?;
        Some((head.outpoint, head.birth))
    }

    /// Counts the entries of the lowest key and moves past them, except one that stands for what is left.
    fn count(&mut self, lowest: Lowest) -> Result<Option<usize>, RunError> {
        let Some(Record { outpoint, birth, coin }) =
            self.sources.get(lowest.source).and_then(Source::head)
        else {
            return Ok(None);
        };
        if lowest.alone && (coin.is_some() || !self.whole) {
            return Ok(Some(lowest.source));
        }
        let key = (outpoint, birth);
        let (mut count, mut add, mut delete) = (0, None, None);
        for (index, source) in self.sources.iter().enumerate() {
            match source.head() {
                Some(head) if (head.outpoint, head.birth) == key => match head.coin {
                    Some(_) => (count, add) = (count + 1, Some(index)),
                    None => (count, delete) = (count - 1, Some(index)),
                },
                _ => {}
            }
        }
        let left = match count {
            0 => None,
            1 => add,
            -1 if !self.whole => delete,
            _ => return Err(RunError::Count { outpoint, birth, count }),
        };
        for index in 0..self.sources.len() {
            if Some(index) != left && self.key(index) == Some(key) {
                self.step(index)?;
            }
        }
        Ok(left)
    }

    /// Moves one source on.
    fn step(&mut self, index: usize) -> Result<(), RunError> {
        let places = self.sources.get_mut(index).zip(self.prefixes.get_mut(index));
        if let Some((source, place)) = places {
            source.advance()?;
            *place = prefix(source);
        }
        Ok(())
    }
}

impl<S: Source> Source for Merge<S> {
    fn head(&self) -> Option<Record<'_>> {
        self.sources.get(self.head?)?.head()
    }

    fn advance(&mut self) -> Result<(), RunError> {
        if let Some(head) = self.head {
            self.step(head)?;
            self.settle()?;
        }
        Ok(())
    }
}

/// A source that stands lowest.
#[derive(Clone, Copy, Debug)]
struct Lowest {
    source: usize,
    /// No other source stands at the same outpoint.
    alone: bool,
}

/// The first 8 bytes of the outpoint at which a source stands.
fn prefix(source: &impl Source) -> u64 {
    let head = source.head();
    let bytes = head.as_ref().and_then(|head| head.outpoint.txid.as_bytes().first_chunk());
    bytes.map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests;
