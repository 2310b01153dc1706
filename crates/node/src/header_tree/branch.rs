//! Looking back along a branch.
//!
//! A row points to its parent and to a skip. The distances of the skips are those of Myers' random
//! access stack: when the last two skips below have the same length, the next one joins them, else
//! it is a step to the parent.
//!
//! ```text
//! height      0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//! skips to    0   0   1   0   3   4   3   0   7   8   7  10  11  10   7   0
//! ```
//!
//! A walk takes the skip as long as that is not below where it wants to go, else the parent; that
//! is at most about three steps for each doubling of the distance. The distances depend on the
//! height alone, so two walks from the same height stay level.

use std::cell::Cell;

use varve_consensus::{Ancestor, Ancestors};
use varve_types::{BlockHash, Height};

use super::{HeaderId, HeaderTree};

/// How many headers below the tip a locator names one by one.
const DENSE: u32 = 10;

/// The headers below and including one of them, by height: what the rules ask for.
pub struct Branch<'a> {
    tree: &'a HeaderTree,
    tip: HeaderId,
    /// The last one asked for. Rules look at neighbours, so the next is not far from it.
    last: Cell<HeaderId>,
}

impl Ancestors for Branch<'_> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let near = self.last.get();
        let from = if self.tree.height(near) >= height { near } else { self.tip };
        let id = self.tree.ancestor(from, height)?;
        self.last.set(id);
        let row = self.tree.row(id);
        Some(Ancestor { hash: row.hash, time: row.time, bits: row.bits })
    }
}

impl HeaderTree {
    /// The branch that ends with `tip`.
    #[must_use]
    pub const fn branch(&self, tip: HeaderId) -> Branch<'_> {
        Branch { tree: self, tip, last: Cell::new(tip) }
    }

    /// The header at `height` on the branch that ends with `tip`; `None` above the tip.
    #[must_use]
    pub fn ancestor(&self, tip: HeaderId, height: Height) -> Option<HeaderId> {
        let mut at = tip;
        if height > self.height(at) {
            return None;
        }
        while self.height(at) > height {
            let row = self.row(at);
            at = if self.height(row.skip) >= height { row.skip } else { row.parent };
        }
        Some(at)
    }

    /// Where the skip of a header above `parent` goes.
    pub(super) fn skip_above(&self, parent: HeaderId) -> HeaderId {
        let below = |id: HeaderId| (self.row(id).skip, self.height(id).to_u32());
        let (first, from) = below(parent);
        let (second, middle) = below(first);
        let to = self.height(second).to_u32();
        if from - middle == middle - to { second } else { parent }
    }

    /// Whether `id` is on the branch that ends with `tip`.
    #[must_use]
    pub fn is_on_branch(&self, id: HeaderId, tip: HeaderId) -> bool {
        self.ancestor(tip, self.height(id)) == Some(id)
    }

    /// The highest header that two branches share.
    #[must_use]
    pub fn fork_point(&self, one: HeaderId, other: HeaderId) -> HeaderId {
        let height = self.height(one).min(self.height(other));
        let level = |tip| self.ancestor(tip, height).expect("not above the tip");
        let (mut one, mut other) = (level(one), level(other));
        while one != other {
            let (left, right) = (self.row(one), self.row(other));
            (one, other) = match left.skip == right.skip {
                true => (left.parent, right.parent),
                false => (left.skip, right.skip),
            };
        }
        one
    }

    /// At most `count` headers of the branch that ends with `tip`, from `first` upwards.
    #[must_use]
    pub fn window(&self, tip: HeaderId, first: Height, count: u32) -> Vec<HeaderId> {
        let Some(above) = count.checked_sub(1) else { return Vec::new() };
        let last = Height::new(first.to_u32().saturating_add(above)).min(self.height(tip));
        let Some(mut at) = self.ancestor(tip, last).filter(|_| first <= last) else {
            return Vec::new();
        };
        let mut window = vec![at];
        while self.height(at) > first {
            at = self.row(at).parent;
            window.push(at);
        }
        window.reverse();
        window
    }

    /// The blocks of the branch that ends with `tip` that are not stored: of at most `count`
    /// heights from the lowest of them upwards, in their order. These are the ones to fetch.
    #[must_use]
    pub fn to_fetch(&self, tip: HeaderId, count: u32) -> Vec<HeaderId> {
        // All below a whole block are whole, so the lowest that is not is found by halving.
        let (mut whole, mut first) = (0, self.height(tip).to_u32().saturating_add(1));
        while whole + 1 < first {
            let middle = whole.midpoint(first);
            match self.ancestor(tip, Height::new(middle)).is_some_and(|id| self.is_whole(id)) {
                true => whole = middle,
                false => first = middle,
            }
        }
        let mut window = self.window(tip, Height::new(first), count);
        window.retain(|id| !self.is_stored(*id));
        window
    }

    /// The hashes that tell another node where a branch is: the tip and the eleven below it, then
    /// with steps that double, and genesis.
    #[must_use]
    pub fn locator(&self, tip: HeaderId) -> Vec<BlockHash> {
        let mut locator = Vec::new();
        let (mut at, mut step) = (tip, 1);
        loop {
            locator.push(self.hash(at));
            let height = self.height(at);
            if height == Height::GENESIS {
                return locator;
            }
            let below = height.checked_sub(step).unwrap_or(Height::GENESIS);
            at = self.ancestor(at, below).expect("a lower height");
            if locator.len() > DENSE as usize {
                step *= 2;
            }
        }
    }
}
