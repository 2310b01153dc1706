//! Finds the coins of a block's inputs in the runs, all at once.
//!
//! 1. [`Query::new`] resolves sorted outpoints to pages, without reading any.
//! 2. [`Query::fetch`] reads the pages of runs with direct access in
//!    one submission. A worker that must not block takes the [requests](Query::requests) and
//!    returns the [completions](Query::accept).
//! 3. [`Query::join`] looks into the pages, in groups of [`GROUP`] keys and in stages, so that the
//!    CPU handles dozens of cache misses at once instead of one. It unpacks the coins into a list
//!    of [`Coins`], which may already hold the window's. For each outpoint the pages are searched
//!    from the youngest run to the oldest, and the first coin whose birth was not deleted by then
//!    is the answer.
//!
//! The first two are those of `varve-runs`. A filter gives a false positive once in 65,536, 256 or
//! 16 times; the outpoints in the page decide.

use varve_io::{BatchReader, Completion, ReadRequest};
use varve_runs::{Candidate, PageBuffers, Sequence};
use varve_types::Outpoint;

use crate::codec::{CoinCodec, Runs};
use crate::coins::Coins;
use crate::packed::PackedCoin;
use crate::page::{Body, Leaf, LeafEntry, tag};
use crate::run_error::RunError;

/// Keys that go through a stage together. A core handles at most ten to twenty cache misses at
/// once, so larger groups would not help.
const GROUP: usize = 32;

/// Outpoints being looked up in the runs of one version.
#[derive(Debug)]
pub struct Query {
    pages: varve_runs::Query<CoinCodec>,
    /// Births known to be deleted, by key.
    deleted: Vec<(usize, Sequence)>,
}

impl Query {
    /// Resolves `keys`, which should be sorted, to pages of `runs`. Reads nothing.
    #[must_use]
    pub fn new(runs: &Runs, keys: Vec<Outpoint>) -> Self {
        Self { pages: varve_runs::Query::new(runs, keys), deleted: Vec::new() }
    }

    /// Excludes coins of these births at the key in this place: something younger than the runs
    /// deleted them. Call it in the order of keys.
    pub(crate) fn pass_over(&mut self, key: usize, births: &[Sequence]) {
        debug_assert!(self.deleted.last().is_none_or(|(last, _)| *last <= key));
        self.deleted.extend(births.iter().map(|birth| (key, *birth)));
    }

    /// The outpoints, in the order of the answers.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub fn keys(&self) -> &[Outpoint] {
        self.pages.keys()
    }

    /// The number of pages that must be read before [`Query::join`].
    #[must_use]
    pub fn unread(&self) -> usize {
        self.pages.unread()
    }

    /// The reads of all unread pages, tagged for [`Query::accept`]. Call it once.
    pub fn requests(&self, buffers: &mut PageBuffers) -> Result<Vec<ReadRequest>, RunError> {
        self.pages.requests(buffers)
    }

    /// Takes a completed read.
    pub fn accept(&mut self, completion: Completion) -> Result<(), RunError> {
        self.pages.accept(completion)
    }

    /// Reads the pages that are not mapped, in one submission, and waits for them. `reader` must
    /// have nothing pending.
    pub fn fetch(
        &mut self,
        reader: &mut BatchReader,
        buffers: &mut PageBuffers,
    ) -> Result<(), RunError> {
        self.pages.fetch(reader, buffers)
    }

    /// Looks into the pages, and puts the coin of the key number `n` into `coins` at `place(n)`.
    /// Keys without a coin leave their places as they are.
    ///
    /// # Panics
    ///
    /// When pages are still unread.
    pub fn join(&self, coins: &mut Coins, place: impl Fn(usize) -> usize) -> Result<(), RunError> {
        let mut of_keys = self.pages.by_key();
        let mut group: [&[Candidate]; GROUP] = [&[]; GROUP];
        loop {
            let mut count = 0;
            for (place, candidates) in group.iter_mut().zip(&mut of_keys) {
                *place = candidates;
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            self.join_group(group.get(..count).unwrap_or_default(), coins, &place)?;
        }
    }

    /// Returns the pages' memory for the next block.
    pub fn release(self, buffers: &mut PageBuffers) {
        self.pages.release(buffers);
    }

    /// Finds the coins of a group of keys, each with the pages that may hold it.
    fn join_group(
        &self,
        group: &[&[Candidate]],
        coins: &mut Coins,
        to: &impl Fn(usize) -> usize,
    ) -> Result<(), RunError> {
        let mut payloads: [&[u8]; GROUP] = [&[]; GROUP];
        let mut touched = 0;
        for (payload, candidates) in payloads.iter_mut().zip(group) {
            if let Some(candidate) = candidates.first() {
                *payload = self.pages.payload(candidate)?;
                touched ^= touch_start(payload);
            }
        }
        let mut leaves: [Option<Leaf<'_>>; GROUP] = [None; GROUP];
        for ((leaf, payload), candidates) in leaves.iter_mut().zip(payloads).zip(group) {
            if let Some(candidate) = candidates.first() {
                *leaf = Some(self.leaf(candidate, payload)?);
            }
        }
        let mut places: [Option<usize>; GROUP] = [None; GROUP];
        for ((place, leaf), candidates) in places.iter_mut().zip(&leaves).zip(group) {
            if let (Some(leaf), Some(candidate)) = (leaf, candidates.first()) {
                *place = leaf.tagged(tag(self.pages.hash(candidate)), 0);
            }
        }
        for (place, leaf) in places.iter().zip(&leaves) {
            if let (Some(leaf), Some(place)) = (leaf, place) {
                touched ^= leaf.touch(*place);
            }
        }
        std::hint::black_box(touched);
        for ((place, leaf), candidates) in places.iter().zip(&leaves).zip(group) {
            if let (Some(leaf), Some(candidate)) = (leaf, candidates.first()) {
                let mut deleted = self.deleted(candidate.key());
                let found = leaf.find_from(*place, self.pages.key(candidate), &mut deleted);
                let found = found.map_err(|error| self.error(candidate, error))?;
                match found {
                    Some(entry) => self.answer(candidate, &entry, coins, to)?,
                    None => self.join_older(candidates, deleted, coins, to)?,
                }
            }
        }
        Ok(())
    }

    /// The births of a key that are known to be deleted.
    fn deleted(&self, key: usize) -> Vec<Sequence> {
        let start = self.deleted.partition_point(|(other, _)| *other < key);
        let of_key = self.deleted.iter().skip(start).take_while(|(other, _)| *other == key);
        of_key.map(|(_, birth)| *birth).collect()
    }

    /// Finds the coin of a key that is not in the first of its pages.
    fn join_older(
        &self,
        pages: &[Candidate],
        mut deleted: Vec<Sequence>,
        coins: &mut Coins,
        to: &impl Fn(usize) -> usize,
    ) -> Result<(), RunError> {
        for candidate in pages.iter().skip(1) {
            let leaf = self.leaf(candidate, self.pages.payload(candidate)?)?;
            let (hash, key) = (self.pages.hash(candidate), self.pages.key(candidate));
            let found = leaf.find(hash, key, &mut deleted);
            if let Some(entry) = found.map_err(|error| self.error(candidate, error))? {
                return self.answer(candidate, &entry, coins, to);
            }
        }
        Ok(())
    }

    /// Records what an entry says about its key.
    fn answer(
        &self,
        candidate: &Candidate,
        entry: &LeafEntry<'_>,
        coins: &mut Coins,
        to: &impl Fn(usize) -> usize,
    ) -> Result<(), RunError> {
        let mut spilled = Vec::new();
        let packed = match entry.body {
            Body::Deleted => return Ok(()),
            Body::Packed(coin) => coin,
            Body::Spilled(spill) => {
                self.pages.place(candidate).read_spill(spill.first, spill.len, &mut spilled)?;
                PackedCoin::new(&spilled)
            }
        };
        let unpacked = coins.set_packed(to(candidate.key()), entry.birth, packed);
        unpacked.map_err(|_| self.pages.place(candidate).damage(0, "a coin does not unpack"))
    }

    /// Interprets a page as a leaf.
    #[inline]
    fn leaf<'a>(&self, candidate: &Candidate, payload: &'a [u8]) -> Result<Leaf<'a>, RunError> {
        Leaf::parse(payload).map_err(|error| self.error(candidate, error))
    }

    fn error(&self, candidate: &Candidate, error: varve_io::FormatError) -> RunError {
        self.pages.place(candidate).error(error)
    }
}

/// Loads the cache lines in which a leaf of common size has its tags and slots.
#[inline]
fn touch_start(payload: &[u8]) -> u8 {
    match payload.first_chunk::<256>() {
        Some(start) => start[0] ^ start[64] ^ start[128] ^ start[192],
        None => 0,
    }
}

#[cfg(test)]
mod tests;
