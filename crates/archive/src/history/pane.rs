//! A pane: what one block changed, in memory.
//!
//! A pane never changes. The rows of a connected block count links from its first transaction,
//! those of a negation from zero.

use std::sync::Arc;

use varve_runs::Source;
use varve_types::{BlockHash, Height};

use super::codec::History;
use super::error::Result;
use super::leaf::Leaf;
use super::leaves::Leaves;
use super::row::{Key, Place, Row};
use crate::link::TxLink;

/// A state of the table: the block up to which it has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The height of the block.
    pub height: Height,
    /// The block.
    pub hash: BlockHash,
    /// The link behind its last transaction.
    pub end: TxLink,
}

/// The rows of one block.
#[derive(Debug)]
pub(super) struct Pane {
    base: u64,
    leaves: Leaves,
    /// The state with this pane; `None` when the first block of all was taken back.
    pub(super) mark: Option<Mark>,
    /// It takes a block back instead of connecting one.
    pub(super) negates: bool,
}

impl Pane {
    pub(super) const fn connected(base: TxLink, leaves: Leaves, mark: Mark) -> Self {
        Self { base: base.to_u64(), leaves, mark: Some(mark), negates: false }
    }

    pub(super) const fn negated(leaves: Leaves, mark: Option<Mark>) -> Self {
        Self { base: 0, leaves, mark, negates: true }
    }

    pub(super) const fn leaf_count(&self) -> usize {
        self.leaves.count()
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.leaves.memory()
    }

    /// The leaf that has the last row not above `key`.
    pub(super) fn locate(&self, key: &Key) -> Option<usize> {
        let place = key.place;
        let own = TxLink::new(place.low().saturating_sub(self.base));
        let place = if place.is_tx() { Place::tx(own) } else { place };
        self.leaves.locate(&Key { place, ..*key })
    }

    /// The first key of a leaf; `None` behind the last.
    pub(super) fn first(&self, number: usize) -> Option<&Key> {
        self.leaves.first(number)
    }

    pub(super) fn leaf(&self, number: usize) -> Leaf<'_> {
        self.leaves.leaf(number, self.base).expect(OURS)
    }
}

/// Leaves in memory were encoded by this process.
pub(super) const OURS: &str = "a leaf in memory decodes as it was encoded";

/// Goes through the rows of a pane.
#[derive(Debug)]
pub(super) struct PaneSource {
    pane: Arc<Pane>,
    rows: Vec<Row>,
    /// The row it stands at, and the next leaf.
    at: usize,
    next: usize,
}

impl PaneSource {
    pub(super) fn new(pane: Arc<Pane>) -> Self {
        let mut source = Self { pane, rows: Vec::new(), at: 0, next: 0 };
        source.enter();
        source
    }

    /// Decodes the next leaf, if the one before is done.
    fn enter(&mut self) {
        while self.at >= self.rows.len() && self.next < self.pane.leaf_count() {
            self.pane.leaf(self.next).decode(&mut self.rows).expect(OURS);
            self.at = 0;
            self.next += 1;
        }
    }
}

impl Source<History> for PaneSource {
    #[inline]
    fn head(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        self.enter();
        Ok(())
    }
}
