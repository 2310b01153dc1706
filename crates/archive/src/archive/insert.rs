//! Turning headers and blocks into rows.

use std::num::NonZeroUsize;

use varve_consensus::{BlockAt, MEDIAN_SPAN, Work, median_time};
use varve_types::{Block, BlockHash, Header, Height};

use super::{Archive, BlockPreparer, PreparedBlock};
use crate::backend::{Backend, Chain, RowsOf, Unindexed};
use crate::error::{ArchiveError, Result};
use crate::link::HeaderLink;
use crate::row::{BlockState, HeaderRow, NewBlock};
use crate::source::{BlockNumber, BlockSource};
use crate::view::View;

/// Blocks a thread prepares between two rounds of indexing.
const BLOCKS_EACH: usize = 8;

impl<B: Backend> Archive<B> {
    /// Archives one header.
    pub fn set_header(&mut self, header: Header<'_>) -> Result<HeaderLink> {
        let hash = header.hash();
        if let Some(link) = self.now.to_header(hash)? {
            return Ok(link);
        }
        let row = self.header_row(hash, header)?;
        let link = self.backend.append_headers(&[row])?;
        self.now.bounds = self.backend.bounds();
        Ok(link)
    }

    fn header_row(&self, hash: BlockHash, header: Header<'_>) -> Result<HeaderRow> {
        let previous = header.previous();
        let parent = match previous {
            BlockHash::ZERO => None,
            _ => {
                let link = self.now.to_header(previous)?;
                Some(link.ok_or(ArchiveError::UnknownParent { hash, previous })?)
            }
        };
        let below = parent.map(|link| self.header(link)).transpose()?;
        let height = below.map_or(Some(Height::GENESIS), |row| row.height.checked_add(1));
        let height = height.ok_or(ArchiveError::Damaged { what: "a height above 2^32" })?;
        let work = below.map_or(Work::ZERO, |row| row.work);
        Ok(HeaderRow {
            hash,
            parent,
            height,
            median_time: self.median_time(header.time(), below)?,
            version: header.version(),
            merkle_root: header.merkle_root(),
            time: header.time(),
            bits: header.bits(),
            nonce: header.nonce(),
            work: work.plus(Work::of_bits(header.bits())),
        })
    }

    /// The median of a time and those of the ten headers below.
    fn median_time(&self, time: u32, mut below: Option<HeaderRow>) -> Result<u32> {
        let mut times = vec![time];
        for _ in 1..MEDIAN_SPAN {
            let Some(row) = below else { break };
            times.push(row.time);
            below = row.parent.map(|link| self.header(link)).transpose()?;
        }
        Ok(median_time(times).expect("the header itself at least"))
    }

    /// Archives a block whose header is known and whose bytes are in the block store. Does nothing
    /// for a block that is archived already.
    pub fn set_block(&mut self, block: &BlockAt<'_>, number: BlockNumber) -> Result<HeaderLink> {
        let hash = block.hash();
        let header = self.now.to_header(hash)?.ok_or(ArchiveError::UnknownHeader { hash })?;
        if self.block(header)?.is_some() {
            return Ok(header);
        }
        self.set_prepared(self.preparer().prepare(block)?, number)
    }

    /// The same for a prepared block.
    pub fn set_prepared(
        &mut self,
        block: PreparedBlock<RowsOf<B>>,
        number: BlockNumber,
    ) -> Result<HeaderLink> {
        let PreparedBlock { hash, size, base_size, inputs, outputs, offsets, rows } = block;
        let header = self.now.to_header(hash)?.ok_or(ArchiveError::UnknownHeader { hash })?;
        if self.block(header)?.is_some() {
            return Ok(header);
        }
        let offsets = offsets.as_slice();
        let new = NewBlock { header, number, size, base_size, inputs, outputs, offsets };
        self.backend.append_block(&new, rows)?;
        self.now.bounds = self.backend.bounds();
        Ok(header)
    }

    /// Rebuilds missing search rows from the blocks' bytes, in `threads` threads. `progress` gets
    /// the number of blocks done and their total.
    pub fn catch_up<S: BlockSource + Sync>(
        &mut self,
        source: S,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let (view, preparer) = (View::new(self.now.clone(), source), self.preparer());
        let prepare = |preparer: &BlockPreparer<B::Maker>, header: &HeaderLink| -> Result<_> {
            let height = view.header(*header)?.height;
            let prepare = |block: &Block<'_>| preparer.prepare(&BlockAt::new(height, block));
            let gap = ArchiveError::Damaged { what: "transactions of a block that has not come" };
            view.with_block(*header, prepare)?.ok_or(gap)?
        };
        let mut done = 0;
        loop {
            let Unindexed { next, count } =
                self.backend.unindexed(BLOCKS_EACH.saturating_mul(threads.get()))?;
            if next.is_empty() {
                return Ok(());
            }
            let all = done + count;
            for prepared in preparer.prepare_many(&next, threads, prepare) {
                self.backend.index_block(prepared?.rows)?;
                done += 1;
                progress(done, all);
            }
        }
    }

    /// Archives the genesis block and makes it the first of both chains. Idempotent.
    pub fn initialize(&mut self, genesis: &BlockAt<'_>, number: BlockNumber) -> Result<HeaderLink> {
        let link = self.set_header(genesis.block().header())?;
        self.set_block(genesis, number)?;
        for chain in [Chain::Candidate, Chain::Confirmed] {
            if self.now.top(chain).is_none() {
                self.push(chain, link)?;
            }
        }
        self.set_block_states(&[(link, BlockState::Confirmable)])?;
        Ok(link)
    }
}
