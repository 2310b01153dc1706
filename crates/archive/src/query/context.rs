//! What the rules need to know of a place in the chain: bits, versions, times, work.

use varve_consensus::Work;
use varve_types::{BlockHash, Height};

use crate::backend::Tables;
use crate::error::Result;
use crate::link::HeaderLink;
use crate::row::HeaderRow;
use crate::snapshot::Snapshot;

/// The state of a chain at one block: the context of the block that comes next. For retargeting
/// and upgrades the rules walk the headers themselves, through [`Branch`](super::Branch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainState {
    /// The block.
    pub link: HeaderLink,
    /// Its hash.
    pub hash: BlockHash,
    /// Its height.
    pub height: Height,
    /// Its version.
    pub version: i32,
    /// Its time.
    pub time: u32,
    /// Its target.
    pub bits: u32,
    /// The median time past, of it and the ten below.
    pub median_time: u32,
    /// The work of all blocks up to it.
    pub work: Work,
}

impl<T: Tables> Snapshot<T> {
    /// The state of the chain at a block.
    pub fn chain_state(&self, link: HeaderLink) -> Result<ChainState> {
        let HeaderRow { hash, height, version, time, bits, median_time, work, .. } =
            self.header(link)?;
        Ok(ChainState { link, hash, height, version, time, bits, median_time, work })
    }

    /// The state of the chain at the block with this hash.
    pub fn chain_state_at_hash(&self, hash: BlockHash) -> Result<Option<ChainState>> {
        self.to_header(hash)?.map(|link| self.chain_state(link)).transpose()
    }

    /// The state of the candidate chain at a height.
    pub fn candidate_state(&self, height: Height) -> Result<Option<ChainState>> {
        self.to_candidate(height).map(|link| self.chain_state(link)).transpose()
    }

    /// The last `count` states up to a block, upward: versions for signals, times for medians.
    pub fn chain_states(&self, tip: HeaderLink, count: u32) -> Result<Vec<ChainState>> {
        self.ancestry(tip, count)?.into_iter().map(|link| self.chain_state(link)).collect()
    }

    /// The work of one block.
    pub fn work(&self, link: HeaderLink) -> Result<Work> {
        Ok(Work::of_bits(self.header(link)?.bits))
    }

    /// The work of all blocks up to this one.
    pub fn branch_work(&self, tip: HeaderLink) -> Result<Work> {
        Ok(self.header(tip)?.work)
    }
}
