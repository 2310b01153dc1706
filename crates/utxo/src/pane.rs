//! A pane: the steps of one flush interval, split into shards by the hash of the outpoint.
//!
//! ```text
//!              shard 0     shard 1     …   shard 15         one writer thread at most a shard
//!  step 512    ▪ batch     ▪ batch         ▪ batch
//!  step 513    ▪ batch     ▪ batch         ▪ batch
//!  …
//!  step 767    ▪ batch     ▪ batch         ▪ batch          then the pane is sealed
//! ```
//!
//! A pane fills, is sealed, is made into a run in the background, and leaves the window as a whole
//! when the run replaces it. Its memory is freed when no version holds it any longer.

mod flush;

use std::fmt;

use crate::shard::{Shard, Table};
use crate::sync::Arc;

pub(crate) use flush::Flush;
use varve_runs::Sequence;
use varve_types::Height;

/// Which pane of a window: panes are numbered in the order in which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaneId(u32);

impl PaneId {
    pub(crate) const FIRST: Self = Self(0);

    pub(crate) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// How many panes later than `other` this one began; `None` when it was earlier.
    pub(crate) fn since(self, other: Self) -> Option<usize> {
        self.0.checked_sub(other.0).map(|distance| distance as usize)
    }
}

/// The shared part of a pane.
pub(crate) struct Pane {
    id: PaneId,
    shards: Box<[Shard]>,
}

impl Pane {
    pub(crate) fn new(id: PaneId, shards: usize, cells: usize) -> Self {
        Self { id, shards: (0..shards).map(|_| Shard::new(cells)).collect() }
    }

    pub(crate) const fn id(&self) -> PaneId {
        self.id
    }

    /// The shard with this number.
    #[inline]
    pub(crate) fn shard(&self, number: usize) -> &Shard {
        self.shards.get(number).expect("numbers are hashes reduced to the number of shards")
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }
}

impl fmt::Debug for Pane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pane").field(&self.id).finish()
    }
}

/// A pane as a version sees it: with the tables of the version's moment.
#[derive(Clone, Debug)]
pub(crate) struct PaneView {
    pub(crate) pane: Arc<Pane>,
    pub(crate) tables: Box<[Arc<Table>]>,
}

/// What decisions about a pane are based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneInfo {
    /// Which pane.
    pub id: PaneId,
    /// Its first step; [`Sequence::MAX`] when it has none yet.
    pub first: Sequence,
    /// Its last step; [`Sequence::ZERO`] when it has none yet.
    pub last: Sequence,
    /// The greatest height that a step in it reached.
    pub height: Height,
    /// How many steps it has.
    pub steps: usize,
    /// Whether it takes no more steps.
    pub sealed: bool,
    /// The sequence at which it is being flushed; `None` when it is not.
    pub flushing: Option<Sequence>,
    /// Entries that have not died: coins and deletes.
    pub living: usize,
    /// Bytes of memory, the dead included.
    pub memory: usize,
}
