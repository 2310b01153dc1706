//! Turning headers and blocks into rows.

use varve_consensus::{BlockAt, Work, block_base_size};
use varve_types::{BlockHash, Header, Height, Outpoint, Txid};

use super::Archive;
use crate::backend::{Backend, Chain};
use crate::error::{ArchiveError, Result};
use crate::link::HeaderLink;
use crate::row::{BlockState, HeaderRow, NewBlock, ScriptHash};
use crate::source::BlockNumber;

/// The rows of one block, in memory that is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Rows {
    txs: Vec<(Txid, u32)>,
    spends: Vec<(Outpoint, u32)>,
    scripts: Vec<(ScriptHash, u32)>,
    inputs: u32,
    outputs: u32,
}

/// How many headers the median time is taken of.
const MEDIAN_OF: usize = 11;

impl<B: Backend> Archive<B> {
    /// Archives headers, each standing on one that is known or that comes before it here, and
    /// returns their links. Those that are known already keep theirs.
    pub fn set_headers(&mut self, headers: &[Header<'_>]) -> Result<Vec<HeaderLink>> {
        headers.iter().map(|header| self.set_header(*header)).collect()
    }

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
        while let Some(row) = below.filter(|_| times.len() < MEDIAN_OF) {
            times.push(row.time);
            below = row.parent.map(|link| self.header(link)).transpose()?;
        }
        times.sort_unstable();
        Ok(*times.get(times.len() / 2).expect("the header itself at least"))
    }

    /// Archives a block whose header is known and whose bytes are in the block store. A block that
    /// is there already stays as it is.
    pub fn set_block(&mut self, block: &BlockAt<'_>, number: BlockNumber) -> Result<HeaderLink> {
        let hash = block.hash();
        let header = self.now.to_header(hash)?.ok_or(ArchiveError::UnknownHeader { hash })?;
        if self.block(header)?.is_some() {
            return Ok(header);
        }
        let bytes = block.block().bytes().len();
        let size = u32::try_from(bytes);
        let size = size.map_err(|_| ArchiveError::TooLarge { hash, size: bytes as u64 })?;
        self.rows.fill(block, self.now.indexes.scripts);
        let base_size = u32::try_from(block_base_size(block.block())).unwrap_or(size);
        let Rows { txs, spends, scripts, inputs, outputs } = &self.rows;
        let (inputs, outputs) = (*inputs, *outputs);
        let new =
            NewBlock { header, number, size, base_size, inputs, outputs, txs, spends, scripts };
        self.backend.append_block(&new)?;
        self.now.bounds = self.backend.bounds();
        Ok(header)
    }

    /// Archives the genesis block and makes it the first of both chains. Does nothing when that
    /// was done before.
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

impl Rows {
    fn fill(&mut self, block: &BlockAt<'_>, with_scripts: bool) {
        let Self { txs, spends, scripts, inputs, outputs } = self;
        txs.clear();
        spends.clear();
        scripts.clear();
        (*inputs, *outputs) = (0, 0);
        let places = block.txids().iter().zip(block.block().txs_with_offsets());
        for (position, (txid, (offset, tx))) in (0..).zip(places) {
            let offset = u32::try_from(offset).expect("the block is below 4 GiB");
            txs.push((*txid, offset));
            let points = tx.inputs().map(|input| input.outpoint);
            *inputs += count(points.len());
            spends.extend(points.filter(|point| !point.is_null()).map(|point| (point, position)));
            *outputs += count(tx.outputs().len());
            if with_scripts {
                let first = scripts.len();
                let paid = tx.outputs().map(|output| (ScriptHash::of(output.script), position));
                scripts.extend(paid);
                sort_and_dedup(scripts, first);
            }
        }
    }
}

/// A count of things in a block below 4 GiB.
fn count(things: usize) -> u32 {
    u32::try_from(things).expect("fewer than the bytes of the block")
}

/// Keeps each of the scripts from `first` on once.
fn sort_and_dedup(scripts: &mut Vec<(ScriptHash, u32)>, first: usize) {
    let mut paid = scripts.split_off(first);
    paid.sort_unstable();
    paid.dedup();
    scripts.append(&mut paid);
}
