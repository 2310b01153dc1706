//! The writer of the archive.
//!
//! What is written, in this order:
//!
//! 1. **Headers** ([`Archive::set_headers`]), each on a known parent, on any branch. The row gets
//!    height, median time and the work of the chain up to it.
//! 2. **Blocks** ([`Archive::set_block`]), in any order, when their bytes are in the block store:
//!    rows for the transactions and for every point they spend, and last the block row, which makes
//!    them count.
//! 3. **Chains** ([`Archive::set_chain`]): the candidate chain follows the headers with the most
//!    work, the confirmed chain the validated blocks. A reorganisation changes nothing else. A
//!    transaction is confirmed when its block is the confirmed one at its height.
//! 4. **Checkpoint** ([`Archive::checkpoint`]) makes it durable, under the commit sequence that the
//!    archive has reached. After a crash the owner replays from there; rows that exist are not
//!    written twice.
//! 5. **Catching up** ([`Archive::catch_up`]), once after opening: the search rows of the youngest
//!    blocks are in no checkpoint and are rebuilt from the blocks.
//!
//! The expensive part of a block, hashing and sorting its search keys, does not touch the archive
//! and runs in any thread ([`BlockPreparer`]).
//!
//! There is one writer. Readers take a [`Snapshot`]; the writer never waits for them.

mod insert;
mod prepare;

use std::sync::Arc;

use varve_types::{Height, Network};

use crate::backend::{Backend, Chain, Indexes, Mark, Saved, TableSize};
use crate::cow::CowVec;
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::row::{BlockRow, BlockState, FilterRow, HeaderRow, TxState};
use crate::snapshot::{Snapshot, height_of};

pub use prepare::{BlockPreparer, PreparedBlock};

/// The chain and the tables of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveConfig {
    /// The chain.
    pub network: Network,
    /// The optional tables.
    pub indexes: Indexes,
}

/// The archive, as its one writer sees it.
#[derive(Debug)]
pub struct Archive<B: Backend> {
    backend: B,
    /// The current state: what [`Archive::snapshot`] clones.
    now: Snapshot<B::Tables>,
    sequence: u64,
}

impl<B: Backend> Archive<B> {
    /// Opens the archive as the last checkpoint left it.
    pub fn open(backend: B, config: ArchiveConfig) -> Result<Self> {
        let Saved { mark, bounds, candidate, confirmed, states } = backend.saved()?;
        if let Some(mark) = &mark {
            check_same(config, mark, B::ADDS_PUSHDATA)?;
        }
        let ArchiveConfig { network, indexes } = config;
        let now = Snapshot {
            tables: backend.tables(),
            network,
            indexes,
            base: mark.and_then(|mark| mark.base),
            bounds,
            candidate: CowVec::from_iter(candidate),
            confirmed: CowVec::from_iter(confirmed),
            states: CowVec::from_iter(states),
            intervals: Arc::default(),
        };
        let sequence = mark.map_or(0, |mark| mark.sequence);
        Ok(Self { backend, now, sequence })
    }

    /// Prepares blocks in other threads.
    #[must_use]
    pub fn preparer(&self) -> BlockPreparer<B::Maker> {
        BlockPreparer::new(self.backend.maker(), self.now.indexes)
    }

    /// The commit sequence of the last checkpoint: replay starts after it.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The archive at this moment, for readers.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<B::Tables> {
        self.now.clone()
    }

    /// The archive at this moment, for the writer itself.
    #[must_use]
    pub const fn now(&self) -> &Snapshot<B::Tables> {
        &self.now
    }

    pub(crate) const fn backend(&self) -> &B {
        &self.backend
    }

    pub(crate) const fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// The size of every table, as of the last checkpoint.
    pub fn sizes(&self) -> Result<Vec<TableSize>> {
        Ok(self.backend.sizes()?)
    }

    /// Verifies the checksums of everything that the last checkpoint has on disk.
    pub fn verify(&self) -> Result<()> {
        Ok(self.backend.verify()?)
    }

    /// Declares that the store starts from a snapshot of the unspent set at this height: blocks up
    /// to it will never be archived. The next checkpoint saves it.
    pub fn set_base(&mut self, base: Height) {
        self.now.base = Some(base);
    }

    /// Cuts a chain to its first `keep` headers and pushes these, which must follow one another. On
    /// the confirmed chain blocks above the base must be archived.
    pub fn set_chain(&mut self, chain: Chain, keep: u32, links: &[HeaderLink]) -> Result<()> {
        let kept = (keep as usize).min(self.now.heights(chain).len());
        let mut top = kept.checked_sub(1).and_then(|index| self.now.heights(chain).get(index));
        for (height, link) in (kept..).zip(links) {
            let row = self.header(*link)?;
            if row.parent != top || row.height != height_of(height) {
                return Err(ArchiveError::NotNext { hash: row.hash });
            }
            let below_base = self.now.base.is_some_and(|base| row.height <= base);
            if chain == Chain::Confirmed && !below_base && self.block(*link)?.is_none() {
                return Err(ArchiveError::NotArchived { hash: row.hash });
            }
            top = Some(*link);
        }
        self.backend.set_chain(chain, height_of(kept).to_u32(), links)?;
        let heights = match chain {
            Chain::Candidate => &mut self.now.candidate,
            Chain::Confirmed => &mut self.now.confirmed,
        };
        heights.truncate(kept);
        links.iter().for_each(|link| heights.push(*link));
        Ok(())
    }

    pub(crate) fn push(&mut self, chain: Chain, link: HeaderLink) -> Result<()> {
        let len = height_of(self.now.heights(chain).len());
        self.set_chain(chain, len.to_u32(), &[link])
    }

    /// Records what validation found about blocks.
    pub fn set_block_states(&mut self, states: &[(HeaderLink, BlockState)]) -> Result<()> {
        self.backend.set_block_states(states)?;
        for (link, state) in states {
            self.now.states.set(link.index(), *state);
        }
        Ok(())
    }

    /// Records what validation found about transaction rows.
    pub fn set_tx_states(&mut self, states: &[(TxLink, TxState)]) -> Result<()> {
        Ok(self.backend.set_tx_states(states)?)
    }

    /// Stores the filters of blocks; a block that has one keeps it.
    pub fn set_filters(&mut self, filters: &[(HeaderLink, FilterRow)]) -> Result<()> {
        if !self.now.indexes.filters {
            return Err(ArchiveError::NoIndex { index: "filter" });
        }
        let links: Vec<_> = filters.iter().map(|(link, _)| *link).collect();
        let mut known = Vec::new();
        crate::backend::Tables::filters(&self.now.tables, &links, &mut known)?;
        let new = filters.iter().zip(&known).filter(|(_, known)| known.is_none());
        let new: Vec<_> = new.map(|(filter, _)| filter.clone()).collect();
        Ok(self.backend.set_filters(&new)?)
    }

    /// Makes everything so far durable, under this commit sequence.
    pub fn checkpoint(&mut self, sequence: u64) -> Result<()> {
        let Snapshot { network, indexes, base, .. } = self.now;
        self.backend.checkpoint(&Mark { network, indexes, sequence, base })?;
        self.sequence = sequence;
        Ok(())
    }

    /// The same, for the last checkpoint of a writer: the next opening has no work to do, and
    /// [`Snapshot::at_rest`] opens the archive as it is now.
    pub fn rest(&mut self, sequence: u64) -> Result<()> {
        let Snapshot { network, indexes, base, .. } = self.now;
        self.backend.rest(&Mark { network, indexes, sequence, base })?;
        self.sequence = sequence;
        Ok(())
    }

    fn header(&self, link: HeaderLink) -> Result<HeaderRow> {
        self.now.header(link)
    }

    fn block(&self, link: HeaderLink) -> Result<Option<BlockRow>> {
        self.now.block(link)
    }
}

/// Filters may be added: they are computed one by one, and a query says when one is missing.
/// Pushdata may be added where the back end catches up with older blocks.
fn check_same(wanted: ArchiveConfig, found: &Mark, adds_pushdata: bool) -> Result<()> {
    let pushdata = wanted.indexes.pushdata;
    let lacks_rows = pushdata.is_some() && pushdata != found.indexes.pushdata;
    if wanted.network == found.network && (adds_pushdata || !lacks_rows) {
        return Ok(());
    }
    let name = |network: Network, indexes: Indexes| {
        let pushdata = indexes.pushdata.map(|rule| format!(" with {rule} pushdata"));
        let filters = if indexes.filters { " with filters" } else { "" };
        format!("{network}{}{filters}", pushdata.unwrap_or_default())
    };
    let found = name(found.network, found.indexes);
    Err(ArchiveError::Other { found, wanted: name(wanted.network, wanted.indexes) })
}
