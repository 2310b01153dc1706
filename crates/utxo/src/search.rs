//! Looks keys up at one version, in steps, so that a worker need not wait for the disk.
//!
//! 1. [`Search::new`] looks into the window. Keys without a coin there are sorted and resolved to
//!    pages of the runs, with the births that the window knows to be deleted. Nothing is read.
//! 2. The pages that are not in memory are read: all at once by [`Search::fetch`], or by a worker
//!    that takes the [requests](Search::requests) and returns the [completions](Search::accept).
//! 3. [`Search::finish`] looks into the pages. The coins are in the order of the keys.

use varve_io::{BatchReader, Completion, ReadRequest};
use varve_runs::{Keys as _, PageBuffers, Sequence};
use varve_types::Outpoint;

use crate::codec::CoinCodec;
use crate::coins::Coins;
use crate::query::Query;
use crate::run_error::RunError;
use crate::version::Version;
use crate::window::Lookup;

/// Keys being looked up.
#[derive(Debug)]
pub(crate) struct Search {
    coins: Coins,
    /// The keys to look up in the runs, sorted, and their places.
    query: Option<Query>,
    places: Vec<u32>,
}

impl Search {
    /// Looks into the window of `version`, and resolves the rest to pages of its runs.
    pub(crate) fn new(version: &Version, keys: &[Outpoint]) -> Self {
        let mut coins = Coins::unknown(keys.len());
        // The first bytes of the key, which nearly always decide the order, and its place.
        let mut left: Vec<(u64, u32)> = Vec::new();
        let mut deleted: Vec<(u32, Vec<Sequence>)> = Vec::new();
        version.window().lookup_since(None, keys, |place, found| {
            let number = u32::try_from(place).expect("a block has fewer inputs and outputs");
            if let Lookup::Found(found) = found {
                coins.set(place, found.birth, found.coin, found.location);
                return;
            }
            left.push((keys.get(place).map_or(0, CoinCodec::prefix), number));
            if let Lookup::Deleted(births) = found {
                deleted.push((number, births));
            }
        });
        if left.is_empty() || version.run_count() == 0 {
            return Self { coins, query: None, places: Vec::new() };
        }
        let key = |place: &u32| keys.get(*place as usize);
        left.sort_unstable_by(|(a, at_a), (b, at_b)| {
            a.cmp(b).then_with(|| key(at_a).cmp(&key(at_b))).then(at_a.cmp(at_b))
        });
        let places: Vec<u32> = left.into_iter().map(|(_, place)| place).collect();
        let sorted = places.iter().filter_map(key).copied().collect();
        let mut query = Query::new(&version.runs, sorted);
        if !deleted.is_empty() {
            for (number, place) in places.iter().enumerate() {
                if let Ok(at) = deleted.binary_search_by_key(place, |(place, _)| *place) {
                    let births = deleted.get(at).map_or(&[][..], |(_, births)| births);
                    query.pass_over(number, births);
                }
            }
        }
        Self { coins, query: Some(query), places }
    }

    /// The number of pages that must be read before [`Search::finish`].
    pub(crate) fn unread(&self) -> usize {
        self.query.as_ref().map_or(0, Query::unread)
    }

    /// The reads of those pages, tagged for [`Search::accept`]. Call it once.
    pub(crate) fn requests(&self, buffers: &mut PageBuffers) -> Result<Vec<ReadRequest>, RunError> {
        self.query.as_ref().map_or(Ok(Vec::new()), |query| query.requests(buffers))
    }

    /// Takes a completed read.
    pub(crate) fn accept(&mut self, completion: Completion) -> Result<(), RunError> {
        self.query.as_mut().map_or(Ok(()), |query| query.accept(completion))
    }

    /// Reads the pages and waits for them. `reader` must have nothing pending.
    pub(crate) fn fetch(
        &mut self,
        reader: &mut BatchReader,
        buffers: &mut PageBuffers,
    ) -> Result<(), RunError> {
        self.query.as_mut().map_or(Ok(()), |query| query.fetch(reader, buffers))
    }

    /// Looks into the pages, and returns their memory.
    pub(crate) fn finish(self, buffers: &mut PageBuffers) -> Result<Coins, RunError> {
        let Self { mut coins, query, places } = self;
        if let Some(query) = query {
            let place = |key| places.get(key).map_or(usize::MAX, |place| *place as usize);
            query.join(&mut coins, place)?;
            query.release(buffers);
        }
        Ok(coins)
    }
}
