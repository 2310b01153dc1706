//! The directory of a run: which leaves a key can be in.
//!
//! For every leaf it keeps the prefix of its first key, 8 bytes. A key is in the last leaf whose
//! first key is not above it. The search has three steps:
//!
//! 1. The *radix* table says, for the top bits of a prefix, between which leaves it lies: about
//!    four when keys are spread evenly.
//! 2. A binary search among those. If an adversary chose keys so that all leaves fall into one part
//!    of the table, this is a binary search over all leaves.
//! 3. Equal prefixes: a leaf whose first prefix is also the last prefix of the leaf before (keys
//!    chosen to collide, or many of one transaction) is a *tie*, and its whole first key is kept.
//!    Among ties, a binary search over those.
//!
//! So every key has exactly one leaf, found in logarithmic time whatever the keys.
//!
//! **Keys that repeat.** Where the rows of a key may fill many leaves, the prefix is the whole key
//! and there are no ties. A key then has a *range* of leaves: from the last that begins below it,
//! at whose end its first rows may be, to the last that does not begin above it.
//!
//! ```text
//!  section   │ prefixes, u64 each │ ties, 4 + k bytes each │ jumps, 12 bytes each │
//!
//!  tie       │ leaf u32 │ first key, k bytes │
//!  jump      │ leaf u32 │ pages u64 │    spilled pages that lie before this leaf, in all
//! ```
//!
//! Leaf number i is page 1 + i + the pages of the last jump at or before i.

use std::ops::Range;

use varve_io::{FormatError, PageNumber};

use crate::codec::Keys;

const JUMP_LEN: usize = size_of::<u32>() + size_of::<u64>();
const _: () = assert!(JUMP_LEN == 12);

/// The length of a tie.
const fn tie_len<K: Keys>() -> usize {
    size_of::<u32>() + K::KEY_LEN
}

/// The number of a leaf in its run, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LeafNumber(pub(crate) u32);

/// The directory of one run.
#[derive(Debug)]
pub(crate) struct Directory<K: Keys> {
    prefixes: Vec<u64>,
    /// For every value of the top bits, the number of leaves whose prefix has a smaller one.
    radix: Vec<u32>,
    shift: u32,
    ties: Vec<Tie<K::Key>>,
    jumps: Vec<Jump>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tie<K> {
    leaf: u32,
    first: K,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jump {
    leaf: u32,
    pages: u64,
}

/// How many entries the parts of a directory have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) leaves: u32,
    pub(crate) ties: u32,
    pub(crate) jumps: u32,
}

impl Counts {
    /// The length of the section; a key has `key_len` bytes.
    pub(crate) const fn encoded_len(&self, key_len: usize) -> u64 {
        self.leaves as u64 * 8
            + self.ties as u64 * (size_of::<u32>() + key_len) as u64
            + self.jumps as u64 * JUMP_LEN as u64
    }
}

impl<K: Keys> Directory<K> {
    pub(crate) fn counts(&self) -> Counts {
        let count = |len| u32::try_from(len).expect("counted when they were pushed or decoded");
        Counts {
            leaves: count(self.prefixes.len()),
            ties: count(self.ties.len()),
            jumps: count(self.jumps.len()),
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(self.prefixes.as_slice())
            + size_of_val(self.radix.as_slice())
            + size_of_val(self.ties.as_slice())
            + size_of_val(self.jumps.as_slice())
    }

    /// The range of leaves to which the radix table narrows a key. One memory access.
    #[inline]
    pub(crate) fn bounds(&self, key: &K::Key) -> (u32, u32) {
        let top = usize::try_from(K::prefix(key) >> self.shift).unwrap_or(usize::MAX);
        match self.radix.get(top..) {
            Some([low, high, ..]) => (*low, *high),
            _ => (0, 0),
        }
    }

    /// The last leaf that can hold a key with these bounds, and the only one unless keys repeat;
    /// `None` when the key is below the first leaf.
    #[inline]
    pub(crate) fn leaf(&self, key: &K::Key, bounds: (u32, u32)) -> Option<LeafNumber> {
        let wanted = K::prefix(key);
        let (low, high) = (bounds.0 as usize, bounds.1 as usize);
        let between = self.prefixes.get(low..high).unwrap_or_default();
        let leaf = (low + between.partition_point(|found| *found <= wanted)).checked_sub(1)?;
        let number = u32::try_from(leaf).ok()?;
        if K::IS_PREFIX || self.ties.is_empty() || self.prefixes.get(leaf) != Some(&wanted) {
            return Some(LeafNumber(number));
        }
        Some(self.among_ties(key, number))
    }

    /// The leaves that can hold a key that may repeat, of which `last` is the last.
    pub(crate) fn leaves(&self, key: &K::Key, last: LeafNumber) -> Range<u32> {
        let (wanted, end) = (K::prefix(key), last.0.saturating_add(1));
        if self.prefixes.get(last.0 as usize).is_none_or(|prefix| *prefix < wanted) {
            return last.0..end;
        }
        let before = self.prefixes.get(..end as usize).unwrap_or_default();
        let below = before.partition_point(|prefix| *prefix < wanted);
        u32::try_from(below.saturating_sub(1)).unwrap_or(last.0)..end
    }

    /// The first leaf that can hold a row with this key or one above it.
    pub(crate) fn first_leaf(&self, key: &K::Key) -> LeafNumber {
        let wanted = K::prefix(key);
        let below = self.prefixes.partition_point(|prefix| *prefix < wanted);
        LeafNumber(u32::try_from(below.saturating_sub(1)).expect("leaves are counted in 32 bits"))
    }

    /// The leaf of a key that has the prefix of `leaf`, the last leaf with that prefix.
    fn among_ties(&self, key: &K::Key, leaf: u32) -> LeafNumber {
        let wanted = K::prefix(key);
        let after = self.ties.partition_point(|tie| tie.first.cmp(key).is_le());
        let same = |tie: &&Tie<K::Key>| K::prefix(&tie.first) == wanted;
        let before = after.checked_sub(1).and_then(|index| self.ties.get(index)).filter(same);
        if let Some(tie) = before {
            return LeafNumber(tie.leaf);
        }
        // Below the first tie of this prefix: the leaf before it holds the beginning. Without
        // ties of this prefix, `leaf` is the only one.
        let next = self.ties.get(after).filter(same);
        LeafNumber(next.map_or(leaf, |tie| tie.leaf.saturating_sub(1)))
    }

    /// The page of a leaf.
    #[must_use]
    #[inline]
    pub(crate) fn page(&self, leaf: LeafNumber) -> PageNumber {
        let skipped = match self.jumps.partition_point(|jump| jump.leaf <= leaf.0).checked_sub(1) {
            Some(index) => self.jumps.get(index).map_or(0, |jump| jump.pages),
            None => 0,
        };
        PageNumber(1 + u64::from(leaf.0) + skipped)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let len = usize::try_from(self.counts().encoded_len(K::KEY_LEN)).unwrap_or_default();
        let mut out = Vec::with_capacity(len);
        out.extend(self.prefixes.iter().flat_map(|prefix| prefix.to_le_bytes()));
        for tie in &self.ties {
            out.extend_from_slice(&tie.leaf.to_le_bytes());
            K::encode_key(&tie.first, &mut out);
        }
        for jump in &self.jumps {
            out.extend_from_slice(&jump.leaf.to_le_bytes());
            out.extend_from_slice(&jump.pages.to_le_bytes());
        }
        out
    }

    /// Decodes a section with these counts, which must fit its length.
    pub(crate) fn decode(section: &[u8], counts: Counts) -> Result<Self, FormatError> {
        let damaged = |at, what| FormatError::Damaged { at, what };
        if section.len() as u64 != counts.encoded_len(K::KEY_LEN) {
            return Err(damaged(0, "the directory has another length than it should"));
        }
        let (prefixes, rest) = section.split_at(counts.leaves as usize * size_of::<u64>());
        let (ties, jumps) = rest.split_at(counts.ties as usize * tie_len::<K>());
        let prefixes: Vec<u64> =
            prefixes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let ties: Option<Vec<Tie<K::Key>>> =
            ties.chunks(tie_len::<K>()).map(decode_tie::<K>).collect();
        let ties = ties.ok_or(damaged(0, "a tie of the directory is not a key"))?;
        let jumps: Vec<Jump> = jumps.as_chunks().0.iter().map(decode_jump).collect();
        let sorted = prefixes.is_sorted()
            && ties.is_sorted_by(|a, b| a.leaf < b.leaf && a.first < b.first)
            && jumps.is_sorted_by(|a, b| a.leaf < b.leaf && a.pages < b.pages)
            && ties.iter().all(|tie| (1..counts.leaves).contains(&tie.leaf))
            && jumps.iter().all(|jump| jump.leaf < counts.leaves);
        if !sorted {
            return Err(damaged(0, "the directory is out of order"));
        }
        Ok(Self::assemble(prefixes, ties, jumps))
    }

    fn assemble(prefixes: Vec<u64>, ties: Vec<Tie<K::Key>>, jumps: Vec<Jump>) -> Self {
        let bits = (prefixes.len() / 4).max(2).ilog2();
        let shift = u64::BITS - bits;
        let mut radix = Vec::with_capacity((1 << bits) + 1);
        let mut leaf = 0_u32;
        let mut rest = prefixes.iter().peekable();
        for top in 0..1_u64 << bits {
            while rest.next_if(|prefix| **prefix >> shift < top).is_some() {
                leaf += 1;
            }
            radix.push(leaf);
        }
        radix.push(leaf + u32::try_from(rest.count()).expect("leaves are counted in 32 bits"));
        Self { prefixes, radix, shift, ties, jumps }
    }
}

fn decode_tie<K: Keys>(bytes: &[u8]) -> Option<Tie<K::Key>> {
    let (leaf, first) = bytes.split_first_chunk()?;
    Some(Tie { leaf: u32::from_le_bytes(*leaf), first: K::decode_key(first)? })
}

fn decode_jump(bytes: &[u8; JUMP_LEN]) -> Jump {
    let (leaf, pages) = bytes.split_first_chunk().expect("a jump is longer");
    let pages = pages.first_chunk().expect("a jump is a leaf and a count");
    Jump { leaf: u32::from_le_bytes(*leaf), pages: u64::from_le_bytes(*pages) }
}

/// Builds a directory leaf by leaf.
#[derive(Debug)]
pub(crate) struct DirectoryBuilder<K: Keys> {
    prefixes: Vec<u64>,
    ties: Vec<Tie<K::Key>>,
    jumps: Vec<Jump>,
    last: Option<K::Key>,
}

impl<K: Keys> Default for DirectoryBuilder<K> {
    fn default() -> Self {
        Self { prefixes: Vec::new(), ties: Vec::new(), jumps: Vec::new(), last: None }
    }
}

impl<K: Keys> DirectoryBuilder<K> {
    /// The number that the next leaf gets, or `None` when there are too many.
    pub(crate) fn next(&self) -> Option<LeafNumber> {
        u32::try_from(self.prefixes.len()).ok().filter(|leaf| *leaf < u32::MAX).map(LeafNumber)
    }

    /// Adds a leaf with its first and last key and its page, as number [`DirectoryBuilder::next`].
    pub(crate) fn push(&mut self, leaf: LeafNumber, first: K::Key, last: K::Key, page: PageNumber) {
        assert_eq!(self.next(), Some(leaf), "leaves are numbered in the order of their pages");
        assert!(page.0 > u64::from(leaf.0), "a leaf lies after the header page and earlier leaves");
        if !K::IS_PREFIX && self.last.is_some_and(|last| K::prefix(&last) == K::prefix(&first)) {
            self.ties.push(Tie { leaf: leaf.0, first });
        }
        self.prefixes.push(K::prefix(&first));
        let pages = page.0.saturating_sub(1 + u64::from(leaf.0));
        if pages != self.jumps.last().map_or(0, |jump| jump.pages) {
            self.jumps.push(Jump { leaf: leaf.0, pages });
        }
        self.last = Some(last);
    }

    pub(crate) fn finish(self) -> Directory<K> {
        let Self { mut prefixes, mut ties, mut jumps, .. } = self;
        prefixes.shrink_to_fit();
        ties.shrink_to_fit();
        jumps.shrink_to_fit();
        Directory::assemble(prefixes, ties, jumps)
    }
}

#[cfg(test)]
mod tests;
