//! The filter of a run: "this outpoint is surely not in here", without reading.
//!
//! A fuse filter is built from all its keys at once, in about 20 bytes of memory a key. For a run of 170
//! million coins that would be 3.4 GB, so the run's keys are cut into *chunks* of about 131,072 in
//! key order, each with a filter of its own. It is built when the chunk is complete, in the
//! CPU's cache, while the run is being written. A chunk ends with a leaf, and all entries of an outpoint are
//! in one leaf, so the chunk of an outpoint is the last one whose first outpoint is not above it. Sorted
//! keys walk through the chunks in step.
//!
//! ```text
//!  section   │ chunk heads │ fingerprints of all chunks, one after the other │
//!
//!  head      0                  36       44          48       52
//!            ┌──────────────────┬────────┬───────────┬────────┐
//!            │ first outpoint   │ seed   │ segment   │ starts │
//!            │ txid 32, vout u32│ u64    │ bits u32  │ u32    │
//!            └──────────────────┴────────┴───────────┴────────┘
//! ```
//!
//! The number of chunks, the width of a fingerprint and the length of the section are in the
//! run's footer; a chunk has (starts + 2 · 2^bits) fingerprints, and none when `starts` is 0.

use varve_io::FormatError;
use varve_types::Outpoint;

use crate::fuse::{FuseBuilder, Probe, Shape, Width, agrees};

/// A chunk is complete with this many keys. Larger chunks save memory (1.17 fingerprints a key
/// here, 1.15 with twice as many), smaller ones are built in a smaller cache.
const CHUNK_KEYS: usize = 1 << 17;

const HEAD_LEN: usize = Outpoint::LEN + Shape::ENCODED_LEN;
const _: () = assert!(HEAD_LEN == 52);

/// The filter of one run.
#[derive(Debug)]
pub(crate) struct Filter {
    width: Width,
    chunks: Vec<Chunk>,
    fingerprints: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    first: Outpoint,
    shape: Shape,
    start: usize,
}

/// A key's question to one chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Question {
    chunk: u32,
    probe: Probe,
}

impl Filter {
    /// The number of chunks.
    pub(crate) fn chunks(&self) -> u32 {
        u32::try_from(self.chunks.len()).expect("a chunk is many pages")
    }

    /// The bytes of memory it takes.
    pub(crate) fn memory(&self) -> usize {
        self.fingerprints.len() + size_of_val(self.chunks.as_slice())
    }

    /// Prepares the question whether `outpoint` with this keyed hash may be here; `None` when it is not.
    /// `near` is the chunk of the key before and becomes this key's, so that sorted keys are
    /// quick; keys in any order are answered right.
    #[inline]
    pub(crate) fn question(
        &self,
        near: &mut usize,
        outpoint: &Outpoint,
        hash: u64,
    ) -> Option<Question> {
        let here = self.chunks.get(*near).is_some_and(|chunk| chunk.first <= *outpoint);
        let behind = self.chunks.get(*near + 1).is_none_or(|next| *outpoint < next.first);
        if !(here && behind) {
            *near = self.chunks.partition_point(|chunk| chunk.first <= *outpoint).checked_sub(1)?;
        }
        let probe = self.chunks.get(*near)?.shape.probe(hash);
        Some(Question { chunk: u32::try_from(*near).ok()?, probe })
    }

    /// Answers the question: false when the outpoint is surely not here.
    #[inline]
    pub(crate) fn may_hold(&self, question: &Question) -> bool {
        let Some(chunk) = self.chunks.get(question.chunk as usize) else { return true };
        let end = chunk.start + chunk.shape.places() * self.width.len();
        let fingerprints = self.fingerprints.get(chunk.start..end);
        agrees(fingerprints.unwrap_or_default(), self.width, &question.probe)
    }

    /// The length of the section.
    pub(crate) fn encoded_len(&self) -> u64 {
        (self.chunks.len() * HEAD_LEN + self.fingerprints.len()) as u64
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.chunks.len() * HEAD_LEN + self.fingerprints.len());
        for chunk in &self.chunks {
            out.extend_from_slice(&chunk.first.to_bytes());
            chunk.shape.encode(&mut out);
        }
        out.extend_from_slice(&self.fingerprints);
        out
    }

    /// Decodes a section of so many chunks.
    pub(crate) fn decode(
        mut section: Vec<u8>,
        chunks: u32,
        width: Width,
    ) -> Result<Self, FormatError> {
        let damaged = |at, what| FormatError::Damaged { at, what };
        let count = usize::try_from(chunks).unwrap_or(usize::MAX);
        let heads_len = count.saturating_mul(HEAD_LEN);
        let heads = section.get(..heads_len);
        let heads = heads.ok_or(damaged(0, "the filter has fewer chunks than it should"))?;
        let mut chunks: Vec<Chunk> = Vec::with_capacity(count);
        let mut start = 0_usize;
        for (index, head) in heads.as_chunks::<HEAD_LEN>().0.iter().enumerate() {
            let (first, shape) = head.split_first_chunk().expect("a head is longer");
            let shape = shape.first_chunk().expect("a head is an outpoint and a shape");
            let chunk =
                Chunk { first: Outpoint::from_bytes(first), shape: Shape::decode(shape)?, start };
            if chunks.last().is_some_and(|last| last.first >= chunk.first) {
                return Err(damaged(index * HEAD_LEN, "the filter's chunks are out of order"));
            }
            start = start.saturating_add(chunk.shape.places() * width.len());
            chunks.push(chunk);
        }
        if section.len() - heads_len != start {
            return Err(damaged(heads_len, "the filter has another length than its chunks"));
        }
        section.drain(..heads_len);
        Ok(Self { width, chunks, fingerprints: section })
    }
}

/// Builds a filter leaf by leaf.
#[derive(Debug)]
pub(crate) struct FilterBuilder {
    filter: Filter,
    fuse: FuseBuilder,
    hashes: Vec<u64>,
    first: Option<Outpoint>,
}

impl FilterBuilder {
    pub(crate) fn new(width: Width) -> Self {
        let filter = Filter { width, chunks: Vec::new(), fingerprints: Vec::new() };
        Self { filter, fuse: FuseBuilder::default(), hashes: Vec::new(), first: None }
    }

    /// Adds a leaf: its first outpoint and the keyed hashes of its entries, in their order.
    pub(crate) fn push_leaf(&mut self, first: Outpoint, hashes: impl Iterator<Item = u64>) {
        self.first.get_or_insert(first);
        for hash in hashes {
            // Two entries of one outpoint are neighbours.
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
        if self.hashes.len() >= CHUNK_KEYS {
            self.close_chunk();
        }
    }

    fn close_chunk(&mut self) {
        let Some(first) = self.first.take() else { return };
        let Filter { width, chunks, fingerprints } = &mut self.filter;
        let start = fingerprints.len();
        let shape = self.fuse.build(&mut self.hashes, *width, fingerprints);
        chunks.push(Chunk { first, shape, start });
        self.hashes.clear();
    }

    pub(crate) fn finish(mut self) -> Filter {
        self.close_chunk();
        self.filter.fingerprints.shrink_to_fit();
        self.filter.chunks.shrink_to_fit();
        self.filter
    }
}

#[cfg(test)]
mod tests {
    use varve_types::Txid;

    use super::*;
    use crate::secret::Secret;

    fn outpoint(number: u32) -> Outpoint {
        let mut txid = [0; 32];
        txid[..4].copy_from_slice(&number.to_be_bytes());
        Outpoint::new(Txid::from_bytes(txid), number % 3)
    }

    fn build(count: u32, width: Width) -> Filter {
        let mut builder = FilterBuilder::new(width);
        for leaf in (0..count).collect::<Vec<_>>().chunks(70) {
            let hashes = leaf.iter().map(|n| Secret::new([5; 16]).hash(&outpoint(2 * n)));
            builder.push_leaf(outpoint(2 * leaf[0]), hashes);
        }
        builder.finish()
    }

    fn asks(filter: &Filter, near: &mut usize, number: u32) -> bool {
        let key = outpoint(number);
        let question = filter.question(near, &key, Secret::new([5; 16]).hash(&key));
        question.is_some_and(|question| filter.may_hold(&question))
    }

    #[test]
    fn chunks_answer_for_their_keys_and_survive_the_disk() {
        let count = 300_000;
        let built = build(count, Width::One);
        assert_eq!(built.chunks(), 3);
        let filter = Filter::decode(built.encode(), 3, Width::One).unwrap();
        assert_eq!(built.encode(), filter.encode());
        let (mut near, mut jump) = (0, 0);
        for number in (0..count).step_by(7) {
            assert!(asks(&filter, &mut near, 2 * number), "sorted");
            let far = 2 * ((number * 7919) % count);
            assert!(asks(&filter, &mut jump, far), "in any order");
        }
        if cfg!(not(feature = "weak-hash")) {
            let wrong = (0..count).filter(|n| asks(&filter, &mut near, 2 * n + 1)).count();
            assert!(wrong < 2 * 300_000 / 256, "{wrong}");
        }
    }

    #[test]
    fn damaged_sections_are_refused() {
        let section = build(1000, Width::Two).encode();
        assert!(Filter::decode(section.clone(), 1, Width::Two).is_ok());
        assert!(Filter::decode(section.clone(), 2, Width::Two).is_err());
        assert!(Filter::decode(section.clone(), u32::MAX, Width::Two).is_err());
        assert!(Filter::decode(section.clone(), 1, Width::One).is_err());
        assert!(Filter::decode(section[1..].to_vec(), 1, Width::Two).is_err());
        let empty = Filter::decode(Vec::new(), 0, Width::One).unwrap();
        assert!(!asks(&empty, &mut 0, 1), "nothing is in nothing");
    }
}
