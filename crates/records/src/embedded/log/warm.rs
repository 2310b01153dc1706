//! Prefetching of log entries, so that a batch does not stop for each of them.
//!
//! Entries are read through maps, which costs nothing as long as the system has their pages. When
//! it has not, every access would fault and wait for the disk, one after the other. So a batch
//! names the entries it will touch, and those that are not cached are read in one submission into a
//! scratch buffer: the point is that the system then has the pages.
//!
//! Asking about a page costs half a microsecond. A batch asks about a few first, and about all only
//! when one of those was missing. What is missed that way, and the rest of long entries, comes in
//! when the entries are touched, one after the other; no lock is held then either (`fetch`).

use std::sync::{Arc, Mutex, PoisonError};

use varve_io::{AlignedBuffer, BLOCK, BatchReader, FileOffset, GlobalOffset, ReadRequest};

use super::segment::Segment;
use super::{Log, find};

/// Entries asked about to decide whether to ask about all.
const PROBES: usize = 16;
/// What is read for an entry; most are shorter.
const USUAL_ENTRY: u64 = 512;
/// Reads that have a buffer at once: a transaction may spend from millions of records.
const TOGETHER: usize = 4_096;
/// Reads under way at once.
const DEPTH: u16 = 128;

/// Idle readers, each with its own ring.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Warmer {
    idle: Mutex<Vec<BatchReader>>,
}

impl Warmer {
    /// Makes sure that the entries at these positions are in memory, as far as can be. Failures
    /// are ignored: reading the entry reports them.
    pub(in crate::embedded) fn warm(&self, log: &Log, positions: &[GlobalOffset]) {
        let segments = log.segments.load();
        let full = segments.last().map_or(GlobalOffset::ZERO, |tail| tail.start);
        let step = positions.len().div_ceil(PROBES).max(1);
        let probes = positions.iter().step_by(step).filter(|at| **at < full);
        let mut probes = probes.filter_map(|at| Some((find(&segments, *at)?, *at)));
        if probes.all(|(segment, at)| is_cached(segment, at)) {
            return;
        }
        let mut pages: Vec<_> = positions
            .iter()
            .filter_map(|at| Some((find(&segments, *at)?, *at)))
            .filter(|(segment, at)| !is_cached(segment, *at))
            .map(|(segment, at)| (segment, page_of(segment, at)))
            .collect();
        pages.sort_unstable_by_key(|(segment, page)| (segment.number, page.0));
        pages.dedup_by_key(|(segment, page)| (segment.number, page.0));
        let request = |(segment, (offset, len)): &(&Arc<Segment>, (u64, usize))| {
            let file = Arc::clone(&segment.file);
            let (offset, buffer) = (FileOffset::new(*offset), AlignedBuffer::zeroed(*len));
            ReadRequest { tag: 0, file, offset, buffer }
        };
        let mut reader = self.take();
        for some in pages.chunks(TOGETHER) {
            reader.submit(some.iter().map(request));
            while reader.next().is_some() {}
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }

    fn take(&self) -> BatchReader {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| BatchReader::new(DEPTH))
    }
}

fn is_cached(segment: &Segment, at: GlobalOffset) -> bool {
    let Some(map) = segment.map().filter(|_| !segment.is_in_memory()) else { return true };
    let start = usize::try_from(at.since(segment.start).unwrap_or(0)).unwrap_or(usize::MAX);
    map.is_cached(start..start.saturating_add(1).min(map.len()))
}

/// The pages of the file that an entry of usual length touches: where they begin and how long
/// they are.
fn page_of(segment: &Segment, at: GlobalOffset) -> (u64, usize) {
    let block = BLOCK as u64;
    let start = segment.place(at).get();
    let end = segment.place(at).plus(USUAL_ENTRY).min(segment.file_end()).get();
    let first = start / block * block;
    let len = end.saturating_sub(first).max(1);
    (first, usize::try_from(len).unwrap_or(BLOCK))
}
