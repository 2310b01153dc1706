//! One moment of the archive.
//!
//! Rows are only appended, so a snapshot of them is their number ([`Bounds`]). What changes in
//! place is small and shared copy-on-write: the heights of the two chains and the states of blocks.
//! A snapshot holds all of it, costs a few reference counts, blocks no one and never changes while
//! the writer appends and reorganises.

use std::sync::Arc;

use varve_types::{Height, Network};

use crate::backend::{Chain, Indexes, Tables};
use crate::cow::CowVec;
use crate::interval::IntervalRoots;
use crate::link::{Bounds, HeaderLink};
use crate::row::BlockState;

/// The archive at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<T> {
    pub(crate) tables: T,
    pub(crate) network: Network,
    pub(crate) indexes: Indexes,
    pub(crate) base: Option<Height>,
    pub(crate) bounds: Bounds,
    pub(crate) candidate: CowVec<HeaderLink>,
    pub(crate) confirmed: CowVec<HeaderLink>,
    pub(crate) states: CowVec<BlockState>,
    pub(crate) intervals: Arc<IntervalRoots>,
}

impl<T: Tables> Snapshot<T> {
    /// The numbers of rows that the snapshot sees.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The chain.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// Which optional tables there are.
    #[must_use]
    pub const fn indexes(&self) -> Indexes {
        self.indexes
    }

    /// The height of the unspent set's snapshot that the store started from.
    #[must_use]
    pub const fn base(&self) -> Option<Height> {
        self.base
    }

    /// The header at this height of a chain.
    #[must_use]
    pub fn at(&self, chain: Chain, height: Height) -> Option<HeaderLink> {
        self.heights(chain).get(height.to_u32() as usize)
    }

    /// The highest header of a chain, and its height; `None` before genesis.
    #[must_use]
    pub fn top(&self, chain: Chain) -> Option<(Height, HeaderLink)> {
        let link = self.heights(chain).last()?;
        Some((height_of(self.heights(chain).len() - 1), link))
    }

    /// The state of a block.
    #[must_use]
    pub fn block_state(&self, link: HeaderLink) -> BlockState {
        self.states.get(link.index()).unwrap_or_default()
    }

    pub(crate) const fn heights(&self, chain: Chain) -> &CowVec<HeaderLink> {
        match chain {
            Chain::Candidate => &self.candidate,
            Chain::Confirmed => &self.confirmed,
        }
    }
}

/// The height of the entry at this index of a chain.
pub(crate) fn height_of(index: usize) -> Height {
    Height::new(u32::try_from(index).expect("heights are u32"))
}
