//! Finds the pages of many keys in the runs, all at once.
//!
//! Three steps, so that a worker can do other work while the disk is busy:
//!
//! 1. [`Query::new`] resolves sorted keys to pages, without reading any. Keys go in groups of
//!    [`GROUP`], and each stage (chunk of the filter, fingerprints, radix table, prefixes) is done
//!    for the whole group before the next: the loads of a stage do not wait for one another, so the
//!    CPU handles dozens of cache misses at once instead of one.
//! 2. [`Query::fetch`] reads the pages of runs with direct access (`residence`) in
//!    one submission. A worker that must not block takes the [requests](Query::requests) and
//!    returns the [completions](Query::accept).
//! 3. The owner *joins*: for each key ([`Query::by_key`]) it looks into the
//!    [payloads](Query::payload), from the youngest run to the oldest, best in groups as well.
//!
//! A filter gives a false positive once in 65,536, 256 or 16 times; the keys in the page decide.

mod plan;

use varve_io::{AlignedBuffer, BatchReader, Completion, PAGE_LEN, PageNumber, ReadRequest};

use crate::codec::Codec;
use crate::leaf_place::LeafPlace;
use crate::residence::PROBES;
use crate::run::Run;
use crate::run_error::RunError;
use crate::runs::Runs;
use plan::RunPlan;

/// Keys that go through a stage together. A core handles at most ten to twenty cache misses at
/// once, and a key has three in the filter, so larger groups would not help.
const GROUP: usize = 32;
/// The page is in no buffer: it is read from the map.
const MAPPED: u32 = u32::MAX;
/// The most pages that are read into buffers, 128 MiB: more than any block of Bitcoin needs. Beyond
/// that, a query with millions of keys reads pages from the map, one after another but in memory
/// that the system can reclaim. (Fewer in tests, so that they reach the limit.)
const READS_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 15 };

/// A page that may hold a key.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    key: u32,
    run: u32,
    page: PageNumber,
    /// The buffer with the page, or [`MAPPED`].
    buffer: u32,
}

impl Candidate {
    /// The place of the key among those of the query.
    #[inline]
    #[must_use]
    pub const fn key(&self) -> usize {
        self.key as usize
    }

    /// The place of its run among those of the query.
    #[inline]
    #[must_use]
    pub const fn run(&self) -> usize {
        self.run as usize
    }
}

/// Keys being looked up in the runs of one version.
#[derive(Debug)]
pub struct Query<C: Codec> {
    runs: Runs<C>,
    keys: Vec<C::Key>,
    hashes: Vec<u64>,
    /// Sorted by key, then from the youngest run to the oldest, then by leaf.
    candidates: Vec<Candidate>,
    /// The pages to be read.
    reads: Vec<PageRead>,
}

/// A page to be read: its run and number, and its bytes once they are there.
type PageRead = (u32, PageNumber, Option<AlignedBuffer>);

impl<C: Codec> Query<C> {
    /// Resolves `keys`, which should be sorted, to pages of `runs`. Reads nothing.
    #[must_use]
    pub fn new(runs: &Runs<C>, keys: Vec<C::Key>) -> Self {
        let hashes = keys.iter().map(|key| C::hash(runs.hasher(), key)).collect();
        let (candidates, reads) = (Vec::new(), Vec::new());
        let mut query = Self { runs: runs.clone(), keys, hashes, candidates, reads };
        query.resolve();
        query
    }

    fn resolve(&mut self) {
        let runs = self.runs.clone();
        let plans = (0..).zip(runs.as_slice()).map(|(index, run)| RunPlan::new(index, run));
        let mut plans: Vec<RunPlan<'_, C>> = plans.collect();
        self.candidates.reserve(self.keys.len() + self.keys.len() / 8);
        // Filters take keys in order; out of order, each is probed alone.
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

    /// Samples whether the pages that this query reads are in memory, for later queries.
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

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &[C::Key] {
        &self.keys
    }

    /// Pages that must be read before their payloads are available.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.reads.iter().filter(|(_, _, buffer)| buffer.is_none()).count()
    }

    /// The reads of all missing pages, tagged for [`Query::accept`]. Call it once.
    pub fn requests(&self, buffers: &mut PageBuffers) -> Result<Vec<ReadRequest>, C::Error> {
        let unread = (0_u64..).zip(&self.reads).filter(|(_, (_, _, buffer))| buffer.is_none());
        let requests =
            unread.map(|(tag, (run, page, _))| self.run(*run).request(*page, tag, buffers.take()));
        requests.collect()
    }

    /// Takes a completed read.
    pub fn accept(&mut self, completion: Completion) -> Result<(), C::Error> {
        let Completion { tag, result } = completion;
        let buffer = result.map_err(RunError::from)?;
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
    ) -> Result<(), C::Error> {
        if self.reads.is_empty() {
            return Ok(());
        }
        reader.submit(self.requests(buffers)?);
        let mut failed = None;
        while let Some(completion) = reader.next() {
            // All completions are taken, even after an error, so that the reader is left empty.
            if let Err(error) = self.accept(completion) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The pages of every key that has any, in the order of the keys: from the youngest run to the
    /// oldest, and within a run in the order of the leaves.
    pub fn by_key(&self) -> impl Iterator<Item = &[Candidate]> {
        self.candidates.chunk_by(|a, b| a.key == b.key)
    }

    /// The payload of a page.
    ///
    /// # Panics
    ///
    /// When the page is still unread.
    #[inline]
    pub fn payload(&self, candidate: &Candidate) -> Result<&[u8], C::Error> {
        let run = self.run(candidate.run);
        if candidate.buffer == MAPPED {
            return run.resident(candidate.page);
        }
        let read = self.reads.get(candidate.buffer as usize);
        let buffer = read.and_then(|(_, _, buffer)| buffer.as_ref());
        run.verified(candidate.page, buffer.expect("all pages are fetched before the join"))
    }

    /// The leaf that a page is.
    #[inline]
    #[must_use]
    pub fn place(&self, candidate: &Candidate) -> LeafPlace<'_, C> {
        LeafPlace::new(self.run(candidate.run), candidate.page)
    }

    /// The key that a page may hold.
    #[inline]
    #[must_use]
    pub fn key(&self, candidate: &Candidate) -> &C::Key {
        self.keys.get(candidate.key as usize).expect("candidates name keys of this query")
    }

    /// The hash of that key.
    #[inline]
    #[must_use]
    pub fn hash(&self, candidate: &Candidate) -> u64 {
        self.hashes.get(candidate.key as usize).copied().unwrap_or_default()
    }

    /// Returns the pages' memory for the next query.
    pub fn release(self, buffers: &mut PageBuffers) {
        let room = PageBuffers::KEPT.saturating_sub(buffers.0.len());
        let pages = self.reads.into_iter().filter_map(|(_, _, buffer)| buffer);
        buffers.0.extend(pages.take(room));
    }

    #[inline]
    fn run(&self, index: u32) -> &Run<C> {
        self.runs.as_slice().get(index as usize).expect("candidates name runs of this query")
    }
}

/// Memory for pages, kept from one query to the next, at most 2 MiB. Make one per thread.
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
