//! Puts headers that come in any order into one in which parents come first.
//!
//! Nodes write blocks as they arrive, a few hundred ahead of their parents at times. The linker
//! remembers which hashes have been passed on. A header whose parent is among them is passed on,
//! and then all that waited for it; any other waits under the hash of its parent. The receiver may
//! know that parent from elsewhere, so the first header that waits for it makes the linker ask.
//!
//! ```text
//! in    1  2  5  4  3  6              waiting, by parent
//! out   1  2        3 4 5  6          4: [5], then 3: [4]
//! ```
//!
//! `T` is what waits beside the header, and `K` what is kept of it afterwards: both the location
//! in a file; or the block itself, and nothing, for a pipe.
//!
//! A block can be there more than once, and one copy good where another is torn: a node that was
//! killed while it wrote a block fetches it again. All copies are kept, and each time that the
//! block is asked for the next one is given, beginning with the last that came.

use std::collections::{BTreeMap, HashMap, VecDeque};

use varve_types::{BlockHash, Header};

use super::HeaderBytes;

/// A header with its hash and what belongs to it.
pub(super) struct Found<T> {
    pub(super) hash: BlockHash,
    pub(super) header: HeaderBytes,
    pub(super) with: T,
}

/// What has been passed on, and what waits.
pub(super) struct Linker<T, K> {
    linked: HashMap<BlockHash, Option<K>>,
    /// The other copies of blocks that there are several of, the next to be given last.
    copies: BTreeMap<BlockHash, VecDeque<K>>,
    waiting: BTreeMap<BlockHash, Vec<Found<T>>>,
    count: usize,
    keep: fn(&T) -> K,
}

impl<T: PartialEq, K: Copy + PartialEq> Linker<T, K> {
    /// Bytes of memory that the blocks take whose places are known: about those of a table that is
    /// between half full and seven eighths.
    pub(super) fn memory(&self) -> u64 {
        (self.linked.capacity() * 8 / 7 * (size_of::<(BlockHash, Option<K>)>() + 1)) as u64
    }

    /// Only the genesis block is known.
    pub(super) fn new(genesis: BlockHash, keep: fn(&T) -> K) -> Self {
        let linked = HashMap::from([(genesis, None)]);
        Self { linked, copies: BTreeMap::new(), waiting: BTreeMap::new(), count: 0, keep }
    }

    /// The receiver knows this block. What waited for it goes to `out`.
    pub(super) fn root(&mut self, hash: BlockHash, out: &mut Vec<Found<T>>) {
        self.linked.entry(hash).or_insert(None);
        self.rise(hash, out);
    }

    /// Whether the receiver knows this header.
    pub(super) fn is_linked(&self, hash: &BlockHash) -> bool {
        self.linked.contains_key(hash)
    }

    /// Takes a header. It and what it completes go to `out`; one seen before goes nowhere, and one
    /// that waits already, with the same belongings, does not wait twice. Returns the parent when
    /// this is the first header that waits for it: the receiver may know it.
    pub(super) fn push(&mut self, found: Found<T>, out: &mut Vec<Found<T>>) -> Option<BlockHash> {
        if self.is_linked(&found.hash) {
            self.keep_copy(&found);
            return None;
        }
        let previous = Header::new(&found.header).previous();
        if !self.is_linked(&previous) {
            let waiting = self.waiting.entry(previous).or_default();
            let is_first = waiting.is_empty();
            if !waiting.iter().any(|other| other.hash == found.hash && other.with == found.with) {
                waiting.push(found);
                self.count += 1;
            }
            return is_first.then_some(previous);
        }
        let hash = found.hash;
        self.pass(found, out);
        self.rise(hash, out);
        None
    }

    /// What was kept of a block that was passed on: of the next copy, if there are several.
    pub(super) fn kept(&mut self, hash: &BlockHash) -> Option<K> {
        let kept = self.linked.get_mut(hash)?.as_mut()?;
        let given = *kept;
        if let Some(others) = self.copies.get_mut(hash) {
            others.push_front(given);
            *kept = others.pop_back().unwrap_or(given);
        }
        Some(given)
    }

    /// How many wait.
    pub(super) const fn waiting(&self) -> usize {
        self.count
    }

    /// Keeps a root, or one more copy. The last comes first: a file that is written over has no
    /// other.
    fn keep_copy(&mut self, found: &Found<T>) {
        let copy = (self.keep)(&found.with);
        let Some(before) = self.linked.insert(found.hash, Some(copy)).flatten() else { return };
        let others = self.copies.get(&found.hash);
        if before != copy && !others.is_some_and(|others| others.contains(&before)) {
            self.copies.entry(found.hash).or_default().push_back(before);
        }
    }

    fn pass(&mut self, found: Found<T>, out: &mut Vec<Found<T>>) {
        self.linked.insert(found.hash, Some((self.keep)(&found.with)));
        out.push(found);
    }

    fn rise(&mut self, hash: BlockHash, out: &mut Vec<Found<T>>) {
        let mut risen = vec![hash];
        while let Some(hash) = risen.pop() {
            for found in self.waiting.remove(&hash).unwrap_or_default() {
                self.count -= 1;
                if self.is_linked(&found.hash) {
                    self.keep_copy(&found);
                    continue;
                }
                risen.push(found.hash);
                self.pass(found, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A header above `previous`; the number makes it different from its siblings.
    fn found(previous: BlockHash, number: u8) -> Found<()> {
        let mut header = [number; Header::LEN];
        header[4..36].copy_from_slice(previous.as_bytes());
        Found { hash: Header::new(&header).hash(), header, with: () }
    }

    #[test]
    fn parents_come_first_whatever_the_order() {
        let genesis = BlockHash::from_bytes([1; 32]);
        let (mut chain, mut below) = (Vec::new(), genesis);
        for number in 0..6 {
            let next = found(below, number);
            below = next.hash;
            chain.push(next.header);
        }
        let stale = found(Header::new(&chain[2]).hash(), 77).header;
        for order in [[0, 1, 4, 3, 2, 5, 6], [6, 5, 4, 3, 2, 1, 0], [3, 3, 0, 6, 1, 5, 2]] {
            let all: Vec<_> = chain.iter().chain([&stale]).collect();
            let (mut linker, mut out) = (Linker::new(genesis, |()| ()), Vec::new());
            for at in order {
                let header = *all[at];
                let hash = Header::new(&header).hash();
                linker.push(Found { hash, header, with: () }, &mut out);
            }
            let mut known = HashSet::from([genesis]);
            for found in &out {
                assert!(known.contains(&Header::new(&found.header).previous()));
                assert!(known.insert(found.hash), "given twice");
            }
            // The third order leaves out the block at 4, so 5 waits for it.
            let waits = usize::from(order[0] == 3);
            assert_eq!((out.len(), linker.waiting()), (7 - 2 * waits, waits));
        }
    }

    /// A block in a file that was written over is where it was found last, whether it waited for
    /// its parent meanwhile or not.
    #[test]
    fn the_last_copy_stays() {
        let genesis = BlockHash::from_bytes([1; 32]);
        let (mut linker, mut out) = (Linker::new(genesis, |place| *place), Vec::new());
        let first = found(genesis, 1);
        let second = found(first.hash, 2);
        let at = |found: &Found<()>, with| Found { hash: found.hash, header: found.header, with };
        linker.push(at(&second, 10), &mut out);
        linker.push(at(&second, 20), &mut out);
        // A file that is walked over again brings the same ones again.
        for _ in 0..3 {
            linker.push(at(&second, 10), &mut out);
            linker.push(at(&second, 20), &mut out);
        }
        assert_eq!((out.len(), linker.waiting()), (0, 2));
        linker.push(at(&first, 30), &mut out);
        assert_eq!((linker.kept(&first.hash), linker.kept(&second.hash)), (Some(30), Some(20)));
        linker.push(at(&second, 40), &mut out);
        assert_eq!((out.len(), linker.kept(&second.hash)), (2, Some(40)));
    }

    #[test]
    fn a_root_frees_what_waits_for_it() {
        let (root, mut out) = (BlockHash::from_bytes([9; 32]), Vec::new());
        let mut linker = Linker::new(BlockHash::ZERO, |()| ());
        assert_eq!(linker.push(found(root, 1), &mut out), Some(root), "is it known?");
        assert_eq!(linker.push(found(root, 2), &mut out), None, "it was asked for");
        assert_eq!((out.len(), linker.waiting()), (0, 2));
        linker.root(root, &mut out);
        assert_eq!((out.len(), linker.waiting()), (2, 0));
    }
}
