//! Finds the coins of a block's inputs in the runs, all at once.
//!
//! Three steps, so that a worker can do something else while the disk is busy:
//!
//! 1. [`Query::new`] resolves sorted outpoints to pages, without reading any. Keys go in groups of
//!    [`GROUP`], and each stage (chunk of the filter, fingerprints, radix table, prefixes) is done
//!    for the whole group before the next: the loads of a stage do not wait for one another, so the
//!    CPU has dozens of cache misses under way instead of one.
//! 2. [`Query::fetch`] reads the pages of runs with [`Access::Direct`](crate::Access::Direct) in
//!    one submission. A worker that does not want to wait takes the requests
//!    ([`Query::requests`]) and brings the completions ([`Query::accept`]).
//! 3. [`Query::join`] looks into the pages, again in stages, and unpacks the coins into a list of
//!    [`Coins`], in which the window's may be already. For each outpoint the pages are asked from
//!    the youngest run to the oldest, and the first coin whose birth was not deleted by then is
//!    the answer.
//!
//! Filters let a wrong page through once in 65,536, 256 or 16 times; the outpoints there decide.

mod plan;

use varve_io::{AlignedBuffer, BatchReader, Completion, PAGE_LEN, PageNumber, ReadRequest};
use varve_types::Outpoint;

use crate::coins::Coins;
use crate::packed::PackedCoin;
use crate::page::{Body, Leaf, LeafEntry, tag};
use crate::residence::PROBES;
use crate::run::Run;
use crate::run_error::RunError;
use crate::runs::Runs;
use crate::sequence::Sequence;
use plan::RunPlan;

/// Keys that go through a stage together. A core has ten to twenty cache misses under way at most,
/// and a key has three in the filter, so more would not help.
const GROUP: usize = 32;
/// The page is in no buffer: it is read from the map.
const MAPPED: u32 = u32::MAX;
/// Pages that are read into buffers at most, 128 MiB: more than a block of Bitcoin can ask for.
/// Those of a block with millions of inputs beyond that are read from the map, one after another
/// but in memory that the system can take back. (Tests come to so many with fewer.)
const READS_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 15 };

/// A page that may hold a key.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    key: u32,
    run: u32,
    page: PageNumber,
    /// The buffer with the page, or [`MAPPED`].
    buffer: u32,
}

/// Outpoints being looked up in the runs of one version.
#[derive(Debug)]
pub struct Query {
    runs: Runs,
    keys: Vec<Outpoint>,
    hashes: Vec<u64>,
    /// Births that are gone already, by key.
    deleted: Vec<(u32, Sequence)>,
    /// Sorted by key, then from the youngest run to the oldest.
    candidates: Vec<Candidate>,
    /// The pages to be read.
    reads: Vec<PageRead>,
}

/// A page to be read: which run and page, and the bytes once they have come.
type PageRead = (u32, PageNumber, Option<AlignedBuffer>);

impl Query {
    /// Resolves `keys`, which should be sorted, to pages of `runs`. Reads nothing.
    #[must_use]
    pub fn new(runs: &Runs, keys: Vec<Outpoint>) -> Self {
        let hashes = keys.iter().map(|key| runs.hasher().hash(key).bits()).collect();
        let (deleted, candidates, reads) = (Vec::new(), Vec::new(), Vec::new());
        let mut query = Self { runs: runs.clone(), keys, hashes, deleted, candidates, reads };
        query.resolve();
        query
    }

    fn resolve(&mut self) {
        let runs = self.runs.clone();
        let mut plans: Vec<RunPlan<'_>> = (0..).zip(runs.as_slice()).map(RunPlan::new).collect();
        self.candidates.reserve(self.keys.len() + self.keys.len() / 8);
        // Filters take keys in order; out of order, each goes alone.
        let size = if self.keys.is_sorted() { GROUP } else { 1 };
        let groups = self.keys.chunks(size).zip(self.hashes.chunks(size));
        for (first, (keys, hashes)) in (0_u32..).step_by(size).zip(groups) {
            let start = self.candidates.len();
            for plan in &mut plans {
                plan.resolve(keys, hashes, |key, page, plan| {
                    let key = first + key;
                    let (run, buffer) = (plan.index, plan.buffer(page, &mut self.reads));
                    self.candidates.push(Candidate { key, run, page, buffer });
                });
            }
            // Stable: the runs of a key stay in their order.
            let group = self.candidates.get_mut(start..).unwrap_or_default();
            group.sort_by_key(|candidate| candidate.key);
        }
        self.probe();
    }

    /// Lets every run measure, for the queries to come, whether what is asked of it is in memory:
    /// by pages of some keys in the middle.
    fn probe(&self) {
        let (_, asked) = self.candidates.split_at(self.candidates.len() / 2);
        let mut probes = vec![0; self.runs.as_slice().len()];
        for candidate in asked.iter().take(4 * GROUP) {
            let probed = probes.get_mut(candidate.run as usize);
            if let Some(probed) = probed.filter(|probed| **probed < PROBES) {
                *probed += 1;
                self.run(candidate.run).probe(candidate.page);
            }
        }
    }

    /// Says that coins of these births are gone at the key in this place, whatever the runs have:
    /// what is younger than the runs deleted them. Keys come in order.
    pub fn pass_over(&mut self, key: usize, births: &[Sequence]) {
        let key = u32::try_from(key).expect("a block has fewer inputs");
        debug_assert!(self.deleted.last().is_none_or(|(last, _)| *last <= key));
        self.deleted.extend(births.iter().map(|birth| (key, *birth)));
    }

    /// The outpoints, in the order of the answers.
    #[must_use]
    pub fn keys(&self) -> &[Outpoint] {
        &self.keys
    }

    /// The number of pages that must be read before [`Query::join`].
    #[must_use]
    pub fn unread(&self) -> usize {
        self.reads.iter().filter(|(_, _, buffer)| buffer.is_none()).count()
    }

    /// The reads of all pages that have not come yet, tagged for [`Query::accept`]. Call it once.
    pub fn requests(&self, buffers: &mut PageBuffers) -> Result<Vec<ReadRequest>, RunError> {
        let unread = (0_u64..).zip(&self.reads).filter(|(_, (_, _, buffer))| buffer.is_none());
        let requests =
            unread.map(|(tag, (run, page, _))| self.run(*run).request(*page, tag, buffers.take()));
        requests.collect()
    }

    /// Takes a completed read.
    pub fn accept(&mut self, completion: Completion) -> Result<(), RunError> {
        let Completion { tag, result } = completion;
        let buffer = result?;
        let place = usize::try_from(tag).ok().and_then(|index| self.reads.get_mut(index));
        let (_, _, place) = place.expect("the tag is that of a request of this query");
        *place = Some(buffer);
        Ok(())
    }

    /// Reads the pages that are not mapped, in one submission, and waits for them. `reader` must
    /// have nothing pending.
    pub fn fetch(
        &mut self,
        reader: &mut BatchReader,
        buffers: &mut PageBuffers,
    ) -> Result<(), RunError> {
        if self.reads.is_empty() {
            return Ok(());
        }
        reader.submit(self.requests(buffers)?);
        let mut failed = None;
        while let Some(completion) = reader.next() {
            // All completions are taken, also after an error: the reader is left empty.
            if let Err(error) = self.accept(completion) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Looks into the pages, and puts the coin of the key number `n` into `coins` at `place(n)`.
    /// Keys without a coin leave their places as they are.
    ///
    /// # Panics
    ///
    /// When pages are still unread.
    pub fn join(&self, coins: &mut Coins, place: impl Fn(usize) -> usize) -> Result<(), RunError> {
        let mut of_keys = self.candidates.chunk_by(|a, b| a.key == b.key);
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
            self.join_group(group.get(..count).unwrap_or_default(), (coins, &place))?;
        }
    }

    /// Gives the pages' memory back for the next block.
    pub fn release(self, buffers: &mut PageBuffers) {
        let room = PageBuffers::KEPT.saturating_sub(buffers.0.len());
        let pages = self.reads.into_iter().filter_map(|(_, _, buffer)| buffer);
        buffers.0.extend(pages.take(room));
    }

    /// Answers the keys of a group, each with the pages that may hold it.
    fn join_group(
        &self,
        group: &[&[Candidate]],
        (coins, to): (&mut Coins, &impl Fn(usize) -> usize),
    ) -> Result<(), RunError> {
        let mut payloads: [&[u8]; GROUP] = [&[]; GROUP];
        let mut touched = 0;
        for (payload, candidates) in payloads.iter_mut().zip(group) {
            if let Some(candidate) = candidates.first() {
                *payload = self.payload(candidate)?;
                touched ^= touch_start(payload);
            }
        }
        let mut leaves: [Option<Leaf<'_>>; GROUP] = [None; GROUP];
        for ((leaf, payload), candidates) in leaves.iter_mut().zip(payloads).zip(group) {
            if let Some(candidate) = candidates.first() {
                *leaf = Some(self.run(candidate.run).leaf(candidate.page, payload)?);
            }
        }
        let mut places: [Option<usize>; GROUP] = [None; GROUP];
        for ((place, leaf), candidates) in places.iter_mut().zip(&leaves).zip(group) {
            if let (Some(leaf), Some(candidate)) = (leaf, candidates.first()) {
                *place = leaf.tagged(tag(self.hash(candidate)), 0);
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
                let mut deleted = self.deleted(candidate.key);
                let found = leaf.find_from(*place, self.key(candidate), &mut deleted);
                let found = found.map_err(|error| self.error(candidate, error))?;
                match found {
                    Some(entry) => self.answer(candidate, &entry, (coins, to))?,
                    None => self.join_older(candidates, deleted, (coins, to))?,
                }
            }
        }
        Ok(())
    }

    /// The births of a key that are gone already.
    fn deleted(&self, key: u32) -> Vec<Sequence> {
        let start = self.deleted.partition_point(|(other, _)| *other < key);
        let of_key = self.deleted.iter().skip(start).take_while(|(other, _)| *other == key);
        of_key.map(|(_, birth)| *birth).collect()
    }

    /// Answers a key whose coin is not in the first of its pages.
    fn join_older(
        &self,
        pages: &[Candidate],
        mut deleted: Vec<Sequence>,
        (coins, to): (&mut Coins, &impl Fn(usize) -> usize),
    ) -> Result<(), RunError> {
        for candidate in pages.iter().skip(1) {
            let leaf = self.run(candidate.run).leaf(candidate.page, self.payload(candidate)?)?;
            let found = leaf.find(self.hash(candidate), self.key(candidate), &mut deleted);
            if let Some(entry) = found.map_err(|error| self.error(candidate, error))? {
                return self.answer(candidate, &entry, (coins, to));
            }
        }
        Ok(())
    }

    /// Notes what an entry says about its key.
    fn answer(
        &self,
        candidate: &Candidate,
        entry: &LeafEntry<'_>,
        (coins, to): (&mut Coins, &impl Fn(usize) -> usize),
    ) -> Result<(), RunError> {
        let mut spilled = Vec::new();
        let packed = match entry.body {
            Body::Deleted => return Ok(()),
            Body::Packed(coin) => coin,
            Body::Spilled(spill) => {
                self.run(candidate.run).read_spill(candidate.page, spill, &mut spilled)?;
                PackedCoin::new(&spilled)
            }
        };
        let unpacked = coins.set_packed(to(candidate.key as usize), (entry.birth, packed));
        unpacked.map_err(|_| {
            self.run(candidate.run).damage(candidate.page, 0, "a coin does not unpack")
        })
    }

    #[inline]
    fn payload(&self, candidate: &Candidate) -> Result<&[u8], RunError> {
        let run = self.run(candidate.run);
        if candidate.buffer == MAPPED {
            return run.resident(candidate.page);
        }
        let read = self.reads.get(candidate.buffer as usize);
        let buffer = read.and_then(|(_, _, buffer)| buffer.as_ref());
        run.verified(candidate.page, buffer.expect("all pages are fetched before the join"))
    }

    fn run(&self, index: u32) -> &Run {
        self.runs.as_slice().get(index as usize).expect("candidates name runs of this query")
    }

    fn key(&self, candidate: &Candidate) -> &Outpoint {
        self.keys.get(candidate.key as usize).expect("candidates name keys of this query")
    }

    fn hash(&self, candidate: &Candidate) -> u64 {
        self.hashes.get(candidate.key as usize).copied().unwrap_or_default()
    }

    fn error(&self, candidate: &Candidate, error: varve_io::FormatError) -> RunError {
        self.run(candidate.run).in_page(candidate.page, error)
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

/// Memory for pages, kept from one block to the next, at most 2 MiB. Make one per thread.
#[derive(Debug, Default)]
pub struct PageBuffers(Vec<AlignedBuffer>);

impl PageBuffers {
    /// Pages that are kept.
    const KEPT: usize = 512;

    fn take(&mut self) -> AlignedBuffer {
        self.0.pop().unwrap_or_else(|| AlignedBuffer::zeroed(PAGE_LEN))
    }
}

#[cfg(test)]
mod tests;
