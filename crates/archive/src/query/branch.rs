//! The chain below any block, by height.
//!
//! ```text
//! confirmed   0 ── 1 ── 2 ── 3 ── 4 ── 5
//!                        └── 3'── 4'          the branch of 4': [0 1 2] from the confirmed
//!                                             heights, [3' 4'] by following parents
//! ```
//!
//! Most branches are the confirmed chain, and the others leave it near its top. So a branch is the
//! confirmed heights up to the fork point, and a short list above it.

use varve_consensus::{Ancestor, Ancestors};
use varve_types::Height;

use crate::backend::{Chain, Tables};
use crate::error::Result;
use crate::link::HeaderLink;
use crate::snapshot::{Snapshot, height_of};

/// A block and all blocks below it.
#[derive(Clone, Debug)]
pub struct Branch<'a, T> {
    snapshot: &'a Snapshot<T>,
    /// How many blocks are shared with the confirmed chain.
    shared: usize,
    /// The blocks above those, upward.
    above: Vec<HeaderLink>,
}

impl<T: Tables> Snapshot<T> {
    /// The branch that ends with this block.
    pub fn branch(&self, tip: HeaderLink) -> Result<Branch<'_, T>> {
        self.branch_above(Chain::Confirmed, tip)
    }

    /// The branch that ends with this block, over its fork from a chain. Answers are the same for
    /// both chains; only the list above the fork differs.
    fn branch_above(&self, chain: Chain, tip: HeaderLink) -> Result<Branch<'_, T>> {
        let mut above = Vec::new();
        let mut next = Some(tip);
        let mut shared = 0;
        while let Some(link) = next {
            let row = self.header(link)?;
            if self.at(chain, row.height) == Some(link) {
                shared = row.height.to_u32() as usize + 1;
                break;
            }
            above.push(link);
            next = row.parent;
        }
        above.reverse();
        Ok(Branch { snapshot: self, shared, above })
    }

    /// The headers from above the fork with a chain up to this one: what would be pushed, upward,
    /// and the height of the fork point (`None` when not even genesis is shared).
    pub fn fork_from(
        &self,
        chain: Chain,
        tip: HeaderLink,
    ) -> Result<(Option<Height>, Vec<HeaderLink>)> {
        let Branch { shared, above, .. } = self.branch_above(chain, tip)?;
        Ok((shared.checked_sub(1).map(height_of), above))
    }
}

impl<T: Tables> Branch<'_, T> {
    /// The header at this height.
    #[must_use]
    pub fn at(&self, height: Height) -> Option<HeaderLink> {
        let index = height.to_u32() as usize;
        match index.checked_sub(self.shared) {
            None => self.snapshot.confirmed.get(index),
            Some(index) => self.above.get(index).copied(),
        }
    }

    /// How many blocks it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared + self.above.len()
    }

    /// Whether it has no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The height of the highest block that is confirmed too.
    #[must_use]
    pub fn fork(&self) -> Option<Height> {
        self.shared.checked_sub(1).map(height_of)
    }

    /// The blocks above the fork, upward.
    #[must_use]
    pub fn above(&self) -> &[HeaderLink] {
        &self.above
    }
}

/// The headers of the branch, for the rules. A header that cannot be read is missing to them, which
/// says nothing of the block.
impl<T: Tables> Ancestors for Branch<'_, T> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let row = self.snapshot.header(self.at(height)?).ok()?;
        Some(Ancestor { hash: row.hash, time: row.time, bits: row.bits })
    }
}
