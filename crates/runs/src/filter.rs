//! The filter of a run: "this key is surely not in here", without reading.
//!
//! A fuse filter is built from all its keys at once, in about 20 bytes of memory a key. For a run
//! of 170 million keys that would be 3.4 GB, so the run's keys are cut into *chunks* of about
//! 131,072 (32,768 when memory is short) in key order, each with its filter. It is built when the
//! chunk is complete, in the CPU's cache, while the run is being written. A chunk begins and ends
//! with a leaf, and the chunk of a key is the last one whose first key is not above it. That also
//! holds for a key whose rows span several chunks: it is the first key of the last of them. Sorted
//! keys visit the chunks in order.
//!
//! A run may have no filter, where it would cost more memory than the reads it saves are worth.
//! Then every key counts as possibly present.
//!
//! ```text
//!  section   │ chunk heads │ fingerprints of all chunks, one after the other │
//!
//!  head      0             k        k+8         k+12     k+16
//!            ┌─────────────┬────────┬───────────┬────────┐
//!            │ first key   │ seed   │ segment   │ starts │
//!            │ k bytes     │ u64    │ bits u32  │ u32    │
//!            └─────────────┴────────┴───────────┴────────┘
//! ```
//!
//! The number of chunks, the width of a fingerprint and the length of the section are in the
//! run's footer; a chunk has (starts + 2 · 2^bits) fingerprints, and none when `starts` is 0.

use std::mem::take;

use varve_io::FormatError;

use crate::codec::Keys;
use crate::fuse::{FuseBuilder, Shape, Width, ask};

/// The length of a chunk's head.
const fn head_len<K: Keys>() -> usize {
    K::KEY_LEN + Shape::ENCODED_LEN
}

/// The filter of one run.
#[derive(Debug)]
pub(crate) struct Filter<K: Keys> {
    /// The width of a fingerprint; `None` when the run has no filter.
    width: Option<Width>,
    chunks: Vec<Chunk<K>>,
    fingerprints: Vec<u8>,
}

#[derive(Debug)]
struct Chunk<K: Keys> {
    first: K::Key,
    shape: Shape,
    start: usize,
}

impl<K: Keys> Chunk<K> {
    /// Whether the chunk starts at `key` or before it.
    #[inline]
    fn starts_by(&self, key: &K::Key) -> bool {
        let (own, other) = (K::prefix(&self.first), K::prefix(key));
        own < other || own == other && (K::IS_PREFIX || self.first <= *key)
    }
}

impl<K: Keys> Filter<K> {
    /// The number of chunks.
    pub(crate) fn chunks(&self) -> u32 {
        u32::try_from(self.chunks.len()).expect("a chunk is many pages")
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.fingerprints.len() + size_of_val(self.chunks.as_slice())
    }

    /// Probes sorted `keys` with their keyed hashes: `may` becomes false for those that are not in
    /// the run. `near` is the chunk of the key before and becomes that of the last, so that a walk
    /// over sorted keys is quick.
    pub(crate) fn ask(
        &self,
        near: &mut usize,
        mut keys: &[K::Key],
        mut hashes: &[u64],
        mut may: &mut [bool],
    ) {
        debug_assert!(keys.len() == hashes.len() && keys.len() == may.len());
        let Some(width) = self.width else { return may.fill(true) };
        if self.chunks.is_empty() {
            return may.fill(false);
        }
        while let (Some(first), Some(last)) = (keys.first(), keys.last()) {
            let chunk = self.chunk(near, first);
            let next = self.chunks.get(*near + 1).filter(|next| next.starts_by(last));
            let count =
                next.map_or(keys.len(), |next| keys.partition_point(|key| !next.starts_by(key)));
            let (asked, later) = hashes.split_at(count);
            let (answers, rest) = may.split_at_mut(count);
            let end = chunk.start + width.bytes(chunk.shape.places());
            let fingerprints = self.fingerprints.get(chunk.start..end).unwrap_or_default();
            ask(&chunk.shape, width, fingerprints, asked, answers);
            (keys, hashes, may) = (keys.get(count..).unwrap_or_default(), later, rest);
        }
    }

    /// The chunk of a key, searched near the chunk before. A key below all chunks probes the first;
    /// the directory excludes it.
    fn chunk(&self, near: &mut usize, key: &K::Key) -> &Chunk<K> {
        let here = self.chunks.get(*near).is_some_and(|own| own.starts_by(key));
        let behind = self.chunks.get(*near + 1).is_none_or(|next| !next.starts_by(key));
        if !(here && behind) {
            let after = self.chunks.partition_point(|chunk| chunk.starts_by(key));
            *near = after.saturating_sub(1);
        }
        self.chunks.get(*near).expect("there are chunks, and one was found among them")
    }

    /// The length of the section.
    pub(crate) fn encoded_len(&self) -> u64 {
        (self.chunks.len() * head_len::<K>() + self.fingerprints.len()) as u64
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let len = self.chunks.len() * head_len::<K>() + self.fingerprints.len();
        let mut out = Vec::with_capacity(len);
        for chunk in &self.chunks {
            K::encode_key(&chunk.first, &mut out);
            chunk.shape.encode(&mut out);
        }
        out.extend_from_slice(&self.fingerprints);
        out
    }

    /// Decodes a section of this many chunks.
    pub(crate) fn decode(
        mut section: Vec<u8>,
        chunks: u32,
        width: Option<Width>,
    ) -> Result<Self, FormatError> {
        let damaged = |at, what| FormatError::Damaged { at, what };
        let Some(width) = width else {
            if chunks == 0 && section.is_empty() {
                return Ok(Self { width, chunks: Vec::new(), fingerprints: section });
            }
            return Err(damaged(0, "a run without a filter has bytes of one"));
        };
        let count = usize::try_from(chunks).unwrap_or(usize::MAX);
        let heads_len = count.saturating_mul(head_len::<K>());
        let heads = section.get(..heads_len);
        let heads = heads.ok_or(damaged(0, "the filter has fewer chunks than it should"))?;
        let mut chunks: Vec<Chunk<K>> = Vec::with_capacity(count);
        let mut start = 0_usize;
        for (index, head) in heads.chunks(head_len::<K>()).enumerate() {
            let at = index * head_len::<K>();
            let chunk =
                decode_head(head, start).ok_or(damaged(at, "a chunk's head is not a key"))??;
            // Equal only where the rows of a key may fill many leaves, and harmless elsewhere.
            if chunks.last().is_some_and(|last| last.first > chunk.first) {
                return Err(damaged(at, "the filter's chunks are out of order"));
            }
            start = start.saturating_add(width.bytes(chunk.shape.places()));
            chunks.push(chunk);
        }
        if section.len() - heads_len != start {
            return Err(damaged(heads_len, "the filter has another length than its chunks"));
        }
        section.drain(..heads_len);
        Ok(Self { width: Some(width), chunks, fingerprints: section })
    }
}

/// The chunk of a head, whose fingerprints start there.
fn decode_head<K: Keys>(head: &[u8], start: usize) -> Option<Result<Chunk<K>, FormatError>> {
    let (first, shape) = head.split_at_checked(K::KEY_LEN)?;
    let first = K::decode_key(first)?;
    Some(Shape::decode(shape.first_chunk()?).map(|shape| Chunk { first, shape, start }))
}

/// Builds a filter leaf by leaf.
#[derive(Debug)]
pub(crate) struct FilterBuilder<K: Keys> {
    filter: Filter<K>,
    fuse: FuseBuilder,
    hashes: Vec<u64>,
    first: Option<K::Key>,
    chunk_keys: usize,
}

impl<K: Keys> FilterBuilder<K> {
    /// `chunk_keys` are the keys of a chunk.
    pub(crate) fn new(width: Option<Width>, chunk_keys: usize) -> Self {
        let filter = Filter { width, chunks: Vec::new(), fingerprints: Vec::new() };
        let fuse = FuseBuilder::default();
        Self { filter, fuse, hashes: Vec::new(), first: None, chunk_keys }
    }

    /// Adds a leaf: its first key and the keyed hashes of its rows, in their order.
    pub(crate) fn push_leaf(&mut self, first: K::Key, hashes: impl IntoIterator<Item = u64>) {
        if self.filter.width.is_none() {
            return;
        }
        self.first.get_or_insert(first);
        for hash in hashes {
            // Rows of one key are neighbours.
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
        if self.hashes.len() >= self.chunk_keys {
            self.close_chunk();
        }
    }

    fn close_chunk(&mut self) {
        let Filter { width, chunks, fingerprints } = &mut self.filter;
        let (Some(first), Some(width)) = (self.first.take(), *width) else { return };
        let start = fingerprints.len();
        let shape = self.fuse.build(&mut self.hashes, width, fingerprints);
        chunks.push(Chunk { first, shape, start });
        self.hashes.clear();
    }

    /// The filter of all leaves so far. The builder is empty afterwards.
    pub(crate) fn finish(&mut self) -> Filter<K> {
        self.close_chunk();
        let Filter { width, chunks, fingerprints } = &mut self.filter;
        let (mut chunks, mut fingerprints) = (take(chunks), take(fingerprints));
        fingerprints.shrink_to_fit();
        chunks.shrink_to_fit();
        Filter { width: *width, chunks, fingerprints }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Tiny, mix};

    const CHUNK_KEYS: usize = 1 << 17;

    fn key(number: u64) -> u64 {
        number << 40
    }

    fn build(count: u64, width: Option<Width>) -> Filter<Tiny> {
        let mut builder = FilterBuilder::new(width, CHUNK_KEYS);
        for leaf in (0..count).collect::<Vec<_>>().chunks(70) {
            let hashes = leaf.iter().map(|n| mix(key(2 * n)));
            builder.push_leaf(key(2 * leaf[0]), hashes);
        }
        builder.finish()
    }

    fn decode(
        section: &[u8],
        chunks: u32,
        width: impl Into<Option<Width>>,
    ) -> Result<Filter<Tiny>, FormatError> {
        Filter::decode(section.to_vec(), chunks, width.into())
    }

    fn asks(filter: &Filter<Tiny>, near: &mut usize, number: u64) -> bool {
        let key = key(number);
        let mut may = [true];
        filter.ask(near, &[key], &[mix(key)], &mut may);
        may[0]
    }

    #[test]
    fn chunks_answer_for_their_keys_and_survive_the_disk() {
        let count = 300_000;
        let built = build(count, Some(Width::One));
        assert_eq!(built.chunks(), 3);
        let filter = decode(&built.encode(), 3, Width::One).unwrap();
        assert_eq!(built.encode(), filter.encode());
        let (mut near, mut jump) = (0, 0);
        for number in (0..count).step_by(7) {
            assert!(asks(&filter, &mut near, 2 * number), "sorted");
            let far = 2 * ((number * 7919) % count);
            assert!(asks(&filter, &mut jump, far), "in any order");
        }
        let keys: Vec<u64> = (0..count).map(|number| key(2 * number)).collect();
        let hashes: Vec<u64> = keys.iter().copied().map(mix).collect();
        let mut may = vec![false; keys.len()];
        filter.ask(&mut 2, &keys, &hashes, &mut may);
        assert!(may.iter().all(|may| *may), "all at once, over all chunks");
        let wrong = (0..count).filter(|n| asks(&filter, &mut near, 2 * n + 1)).count();
        assert!(wrong < 2 * 300_000 / 256, "{wrong}");
    }

    #[test]
    fn damaged_sections_are_refused() {
        let section = build(1000, Some(Width::Two)).encode();
        assert!(decode(&section, 1, Width::Two).is_ok());
        assert!(decode(&section, 2, Width::Two).is_err());
        assert!(decode(&section, u32::MAX, Width::Two).is_err());
        assert!(decode(&section, 1, Width::One).is_err());
        assert!(decode(&section, 1, None).is_err());
        assert!(decode(&section[1..], 1, Width::Two).is_err());
        let mut chunks = build(300_000, Some(Width::Half)).encode();
        let (first, second) = chunks.split_at_mut(8 + Shape::ENCODED_LEN);
        first.swap_with_slice(&mut second[..8 + Shape::ENCODED_LEN]);
        assert!(decode(&chunks, 3, Width::Half).is_err(), "chunks out of order");
        let empty = decode(&[], 0, Width::One).unwrap();
        assert!(!asks(&empty, &mut 0, 1), "nothing is in nothing");
    }

    #[test]
    fn without_a_filter_everything_may_be_there() {
        let none = build(1000, None);
        assert_eq!((none.chunks(), none.encoded_len(), none.memory()), (0, 0, 0));
        let none = decode(&none.encode(), 0, None).unwrap();
        assert!(asks(&none, &mut 0, 0) && asks(&none, &mut 0, 1));
    }

    /// A key whose rows fill many leaves is put in once a chunk, and found in the last chunk that
    /// begins with it; the keys before and after it are found as well.
    #[test]
    fn a_key_may_go_on_from_chunk_to_chunk() {
        let mut builder = FilterBuilder::<Tiny>::new(Some(Width::Two), 4);
        let leaves: [&[u64]; 6] =
            [&[1, 2, 3, 7], &[7, 7], &[7, 7, 7], &[7, 8, 9, 10], &[10, 10], &[11]];
        for leaf in leaves {
            builder.push_leaf(key(leaf[0]), leaf.iter().map(|number| mix(key(*number))));
        }
        let built = builder.finish();
        assert_eq!(built.chunks(), 3);
        let filter = decode(&built.encode(), 3, Width::Two).unwrap();
        for number in [1, 2, 3, 7, 8, 9, 10, 11] {
            assert!(asks(&filter, &mut 0, number), "{number}");
        }
    }
}
