//! Looking back along a branch.
//!
//! From height h a step goes to the parent, h − 1, or to the skip, h with its lowest set bit
//! cleared. A walk takes the skip as long as that is not below where it wants to go:
//!
//! ```text
//! 1000 ─► 992 ─► 960 ─► 896 ─► 895 ─► 894 ─► 892 ─► 888 ─► 887 … 885
//!      skip   skip   skip  parent  skip   skip   skip
//! ```
//!
//! Each parent step is followed by steps that double, so a walk over n heights takes at most about
//! log₂² n / 2 of them.

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
            // Equal heights have equal skip heights, so both walks stay level.
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
