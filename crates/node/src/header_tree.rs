//! All headers that are known, on every branch, and which of them is best.
//!
//! Headers are rows of one table in the order in which they came, so a parent always has a lower
//! number than its children. A row points to its parent, to its first child and its next sibling,
//! and to a *skip*, an ancestor further below (see `branch`).
//!
//! ```text
//! row 104 B   │ hash 32 │ work 32 │ parent │ skip │ child │ sibling │ height │ time │ bits │
//!             │ rank │ state │                                        nine fields of 4 bytes
//! table ≤12 B │ keyed hash of the block hash ─► row number │
//! ```
//!
//! * [`insert`](HeaderTree::insert) checks a header by the rules on its own branch and adds it.
//!   The merkle root, the version and the nonce are not kept: the blocks have them.
//! * *Best header*: the most work among headers with no invalid block below; of two with the same
//!   work the first seen. It says which blocks to fetch.
//! * *Best chain*: the same among headers whose block, and every block below it, has been stored.
//!   Of two with the same work the one that was whole first, as in Core. It says which block should
//!   be the tip. A giver of headers that keeps their blocks back cannot hold it up.
//! * A block that turns out invalid is marked with the reason; all above it inherit the mark, and
//!   both bests move to the next candidate.
//!
//! A million headers take 114 MB, and an eighth more while the rows grow. Walking back a million
//! blocks takes at most about sixty steps.

mod branch;
mod insert_error;
mod marks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::sync::Arc;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;
use varve_consensus::{Params, Work, check_header};
use varve_types::{BlockHash, Header, Height};

pub(crate) use insert_error::InsertError;
pub(crate) use marks::INVALIDATED;
pub use marks::Invalid;

/// The number of a header in the order of arrival. Genesis is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct HeaderId(u32);

impl HeaderId {
    /// The genesis block.
    pub const GENESIS: Self = Self(0);
    /// What stands where there is no header.
    const NONE: Self = Self(u32::MAX);

    /// The number: 0 for genesis, 1 for the first header that was inserted.
    #[must_use]
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// This header, or `None` when it stands for no header.
    fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// What is known of one header.
#[derive(Clone, Debug)]
struct Row {
    hash: BlockHash,
    /// The work of the whole chain up to here.
    work: Work,
    parent: HeaderId,
    skip: HeaderId,
    first_child: HeaderId,
    next_sibling: HeaderId,
    height: Height,
    time: u32,
    bits: u32,
    /// When the chain up to here became whole: a count of such events, 0 before.
    rank: u32,
    state: State,
}

const _: () = assert!(size_of::<Row>() == 104);

/// The marks of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// The bytes of its block have been stored.
    stored: bool,
    /// Its block, or one below, breaks the rules.
    invalid: bool,
}

/// One line of `getchaintips`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainTip {
    /// Its height.
    pub height: Height,
    /// Its hash.
    pub hash: BlockHash,
    /// How many blocks it is above the active chain: 0 for the tip of that.
    pub branch_length: u32,
}

/// The headers of a chain and of its branches.
pub struct HeaderTree {
    params: Params,
    rows: Vec<Row>,
    by_hash: HashTable<HeaderId>,
    key: [u8; 16],
    best_header: HeaderId,
    best_chain: HeaderId,
    /// How many chains have become whole: the last rank given.
    ranks: u32,
    /// The blocks that are invalid themselves, and why.
    reasons: BTreeMap<HeaderId, Arc<str>>,
    /// The last bits whose work was computed: headers of a period share them.
    last_work: (u32, Work),
}

impl HeaderTree {
    /// A tree of the genesis block alone, which counts as stored.
    ///
    /// `key` is a secret of this process: nobody outside can choose hashes that collide under it.
    #[must_use]
    pub fn new(params: Params, key: [u8; 16]) -> Self {
        let block = params.network.genesis_block();
        let header = Header::new(block.first_chunk().expect("a block begins with its header"));
        let work = Work::of_bits(header.bits());
        let mut tree = Self {
            params,
            rows: Vec::new(),
            by_hash: HashTable::new(),
            key,
            best_header: HeaderId::GENESIS,
            best_chain: HeaderId::GENESIS,
            ranks: 0,
            reasons: BTreeMap::new(),
            last_work: (header.bits(), work),
        };
        tree.push(header, header.hash(), None);
        tree.mark_stored(HeaderId::GENESIS);
        tree
    }

    /// The rules by which headers are checked.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// A key that nobody outside can guess, another one for each number.
    pub(crate) fn secret(&self, number: u64) -> [u8; 16] {
        let half = |half: u8| {
            let mut hasher = SipHasher13::new_with_key(&self.key);
            hasher.write(&number.to_le_bytes());
            hasher.write(&[half]);
            hasher.finish()
        };
        ((u128::from(half(0)) << 64) | u128::from(half(1))).to_le_bytes()
    }

    /// Checks a header at the time `now` and adds it. One that is known is found again.
    pub fn insert(&mut self, header: Header<'_>, now: u32) -> Result<HeaderId, InsertError> {
        let hash = header.hash();
        if let Some(known) = self.find(&hash) {
            return match self.invalid(known) {
                Some(invalid) => Err(InsertError::Invalid { hash, invalid }),
                None => Ok(known),
            };
        }
        let previous = header.previous();
        let parent = self.find(&previous).ok_or(InsertError::Orphan { hash, previous })?;
        if let Some(invalid) = self.invalid(parent) {
            return Err(InsertError::Invalid { hash, invalid });
        }
        let height = self.height_above(parent);
        check_header(&self.params, header, height, &self.branch(parent), now)
            .map_err(|source| InsertError::Refused { hash, source })?;
        Ok(self.add(header, hash, parent))
    }

    /// Adds a header that was checked before, when rows of a store are loaded again: parents
    /// first, and in the order of their first arrival, which decides between equals.
    pub fn restore(
        &mut self,
        header: Header<'_>,
        hash: BlockHash,
    ) -> Result<HeaderId, InsertError> {
        if let Some(known) = self.find(&hash) {
            return Ok(known);
        }
        let previous = header.previous();
        let parent = self.find(&previous).ok_or(InsertError::Orphan { hash, previous })?;
        Ok(self.add(header, hash, parent))
    }

    /// The header with this hash.
    #[must_use]
    pub fn find(&self, hash: &BlockHash) -> Option<HeaderId> {
        let is_it = |id: &HeaderId| self.row(*id).hash == *hash;
        self.by_hash.find(place(&self.key, hash), is_it).copied()
    }

    /// Bytes of memory that headers and their table take.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<Row>() + self.by_hash.allocation_size()
    }

    /// How many headers there are, genesis among them.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "genesis is always there")]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The hash of a header.
    #[must_use]
    pub fn hash(&self, id: HeaderId) -> BlockHash {
        self.row(id).hash
    }

    /// The height of a header.
    #[must_use]
    pub fn height(&self, id: HeaderId) -> Height {
        self.row(id).height
    }

    /// The work of the whole chain up to a header.
    #[must_use]
    pub fn work(&self, id: HeaderId) -> Work {
        self.row(id).work
    }

    /// The header below, except of genesis.
    #[must_use]
    pub fn parent(&self, id: HeaderId) -> Option<HeaderId> {
        self.row(id).parent.some()
    }

    /// The headers directly above, the latest first.
    pub fn children(&self, id: HeaderId) -> impl Iterator<Item = HeaderId> {
        let next = |child: &HeaderId| self.row(*child).next_sibling.some();
        std::iter::successors(self.row(id).first_child.some(), next)
    }

    /// The header with the most work of those that are not known to be invalid.
    #[must_use]
    pub const fn best_header(&self) -> HeaderId {
        self.best_header
    }

    /// The header with the most work of those whose blocks are all stored and not known to be
    /// invalid.
    #[must_use]
    pub const fn best_chain(&self) -> HeaderId {
        self.best_chain
    }

    /// Every header without one above it, and `active`, the tip of the active chain.
    #[must_use]
    pub fn chain_tips(&self, active: HeaderId) -> Vec<ChainTip> {
        self.chain_tips_among(active, u32::MAX)
    }

    /// The same as of a moment when there were `count` headers.
    pub(crate) fn chain_tips_among(&self, active: HeaderId, count: u32) -> Vec<ChainTip> {
        let is_known = |id: &HeaderId| id.to_u32() < count;
        let is_tip = |id: &HeaderId| *id == active || !self.children(*id).any(|id| is_known(&id));
        let tip = |id: HeaderId| {
            let fork = self.height(self.fork_point(id, active)).to_u32();
            let height = self.height(id);
            ChainTip { height, hash: self.hash(id), branch_length: height.to_u32() - fork }
        };
        self.ids().take_while(is_known).filter(is_tip).map(tip).collect()
    }

    /// All headers, in the order of arrival.
    pub fn ids(&self) -> impl Iterator<Item = HeaderId> + use<> {
        (0..self.rows.len()).map(id_at)
    }

    fn height_above(&self, parent: HeaderId) -> Height {
        self.height(parent).checked_add(1).expect("no chain has 2^32 headers")
    }

    fn add(&mut self, header: Header<'_>, hash: BlockHash, parent: HeaderId) -> HeaderId {
        let id = self.push(header, hash, Some(parent));
        if self.row(parent).state.invalid {
            self.row_mut(id).state.invalid = true;
        } else if self.work(id) > self.work(self.best_header) {
            self.best_header = id;
        }
        id
    }

    /// Appends a row and links it.
    fn push(&mut self, header: Header<'_>, hash: BlockHash, parent: Option<HeaderId>) -> HeaderId {
        let id = id_at(self.rows.len());
        let height = parent.map_or(Height::GENESIS, |parent| self.height_above(parent));
        let below = parent.map_or(Work::ZERO, |parent| self.work(parent));
        let work = below.plus(self.block_work(header.bits()));
        let skip = parent.map_or(HeaderId::GENESIS, |parent| self.skip_above(parent));
        let next_sibling = match parent {
            Some(parent) => std::mem::replace(&mut self.row_mut(parent).first_child, id),
            None => HeaderId::NONE,
        };
        if self.rows.len() == self.rows.capacity() {
            // An eighth, not the double: the rows are most of the memory.
            self.rows.reserve_exact(self.rows.len() / 8 + 1024);
        }
        self.rows.push(Row {
            hash,
            work,
            parent: parent.unwrap_or(HeaderId::NONE),
            skip,
            first_child: HeaderId::NONE,
            next_sibling,
            height,
            time: header.time(),
            bits: header.bits(),
            rank: 0,
            state: State::default(),
        });
        let (rows, key) = (&self.rows, self.key);
        let place_of = |id: &HeaderId| place(&key, &row(rows, *id).hash);
        self.by_hash.insert_unique(place(&key, &hash), id, place_of);
        id
    }

    fn block_work(&mut self, bits: u32) -> Work {
        if self.last_work.0 != bits {
            self.last_work = (bits, Work::of_bits(bits));
        }
        self.last_work.1
    }

    fn row(&self, id: HeaderId) -> &Row {
        row(&self.rows, id)
    }

    fn row_mut(&mut self, id: HeaderId) -> &mut Row {
        self.rows.get_mut(id.0 as usize).expect("ids are given for rows that exist")
    }
}

fn row(rows: &[Row], id: HeaderId) -> &Row {
    rows.get(id.0 as usize).expect("ids are given for rows that exist")
}

fn id_at(index: usize) -> HeaderId {
    let id = u32::try_from(index).ok().filter(|id| *id != u32::MAX);
    HeaderId(id.expect("4 billion headers do not fit in memory"))
}

/// Where a hash is in the table.
fn place(key: &[u8; 16], hash: &BlockHash) -> u64 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write(hash.as_bytes());
    hasher.finish()
}
