//! Questions about the two chains: tops, forks, ranges, locators, and what is still to come.

use varve_types::{BlockHash, Header, Height};

use crate::backend::{Chain, Tables};
use crate::error::{ArchiveError, Result};
use crate::link::HeaderLink;
use crate::row::BlockState;
use crate::snapshot::{Snapshot, height_of};

/// How far the first hashes of a locator follow one another before the steps double.
const LOCATOR_DENSE: usize = 10;

impl<T: Tables> Snapshot<T> {
    /// Whether there is a genesis block.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.confirmed.len() > 0 && self.candidate.len() > 0
    }

    /// The height of the highest block that both chains have: above it they differ.
    #[must_use]
    pub fn fork(&self) -> Option<Height> {
        let shared = self.candidate.len().min(self.confirmed.len());
        let mut shared = (0..shared).rev();
        shared
            .find(|height| self.candidate.get(*height) == self.confirmed.get(*height))
            .map(height_of)
    }

    /// Whether the candidate chain is the confirmed one, as far as that goes.
    #[must_use]
    pub fn is_coalesced(&self) -> bool {
        let top = self.confirmed.len().checked_sub(1);
        top.is_some() && self.fork() == top.map(height_of)
    }

    /// The candidates above the fork that are valid so far, upward: what may be confirmed next.
    /// It ends below the first block that has not come, is not validated, or is invalid.
    pub fn validated_fork(&self) -> Result<Vec<HeaderLink>> {
        let mut links = Vec::new();
        let from = self.fork().map_or(0, |height| height.to_u32() as usize + 1);
        for height in from..self.candidate.len() {
            let Some(link) = self.candidate.get(height) else { break };
            let valid =
                matches!(self.block_state(link), BlockState::Valid | BlockState::Confirmable);
            if !valid || self.block(link)?.is_none() {
                break;
            }
            links.push(link);
        }
        Ok(links)
    }

    /// The candidates above the fork, upward.
    #[must_use]
    pub fn candidate_fork(&self) -> Vec<HeaderLink> {
        self.above_fork(Chain::Candidate)
    }

    /// The confirmed blocks above the fork, upward: what a reorganisation to the candidates pops.
    #[must_use]
    pub fn confirmed_fork(&self) -> Vec<HeaderLink> {
        self.above_fork(Chain::Confirmed)
    }

    fn above_fork(&self, chain: Chain) -> Vec<HeaderLink> {
        let from = self.fork().map_or(0, |height| height.to_u32() as usize + 1);
        let heights = self.heights(chain);
        (from..heights.len()).filter_map(|height| heights.get(height)).collect()
    }

    /// The highest candidate, from `from` on, such that all blocks up to it have come.
    pub fn top_associated_from(&self, from: Height) -> Result<Option<Height>> {
        let mut top = None;
        for index in from.to_u32() as usize..self.candidate.len() {
            let Some(link) = self.candidate.get(index) else { break };
            if self.block(link)?.is_none() {
                break;
            }
            top = Some(height_of(index));
        }
        Ok(top)
    }

    /// Candidates above `above` whose blocks have not come, upward: at most `limit` of them, and
    /// none above `last`.
    pub fn unassociated(
        &self,
        above: Height,
        last: Height,
        limit: usize,
    ) -> Result<Vec<(Height, HeaderLink)>> {
        let mut missing = Vec::new();
        let end = self.candidate.len().min((last.to_u32() as usize).saturating_add(1));
        for index in (above.to_u32() as usize).saturating_add(1)..end {
            if missing.len() == limit {
                break;
            }
            let Some(link) = self.candidate.get(index) else { break };
            if self.block(link)?.is_none() {
                missing.push((height_of(index), link));
            }
        }
        Ok(missing)
    }

    /// How many candidates above `above` have not come.
    pub fn unassociated_count(&self, above: Height) -> Result<usize> {
        Ok(self.unassociated(above, Height::new(u32::MAX), usize::MAX)?.len())
    }

    /// The hashes of a chain at these heights; heights above its top are left out.
    pub fn hashes(
        &self,
        chain: Chain,
        heights: impl IntoIterator<Item = Height>,
    ) -> Result<Vec<BlockHash>> {
        let links: Vec<_> =
            heights.into_iter().filter_map(|height| self.at(chain, height)).collect();
        let mut rows = Vec::with_capacity(links.len());
        self.tables.headers(&links, &mut rows)?;
        Ok(rows.into_iter().map(|row| row.hash).collect())
    }

    /// Up to `count` hashes of a chain from a height on.
    pub fn hashes_from(&self, chain: Chain, from: Height, count: u32) -> Result<Vec<BlockHash>> {
        let end = height_of(self.heights(chain).len()).to_u32();
        let end = end.min(from.to_u32().saturating_add(count));
        self.hashes(chain, (from.to_u32()..end).map(Height::new))
    }

    /// Up to `count` serialised headers of a chain from a height on.
    pub fn headers_from(
        &self,
        chain: Chain,
        from: Height,
        count: u32,
    ) -> Result<Vec<[u8; Header::LEN]>> {
        let end = from.to_u32().saturating_add(count);
        let heights = from.to_u32()..end;
        let links: Vec<_> =
            heights.map_while(|height| self.at(chain, Height::new(height))).collect();
        let mut rows = Vec::with_capacity(links.len());
        self.tables.headers(&links, &mut rows)?;
        let mut previous = match rows.first().and_then(|row| row.parent) {
            Some(parent) => self.header(parent)?.hash,
            None => BlockHash::ZERO,
        };
        Ok(rows
            .into_iter()
            .map(|row| row.to_bytes(std::mem::replace(&mut previous, row.hash)))
            .collect())
    }

    /// The height of a block if it is confirmed.
    pub fn confirmed_height(&self, link: HeaderLink) -> Result<Option<Height>> {
        let height = self.header(link)?.height;
        Ok((self.to_confirmed(height) == Some(link)).then_some(height))
    }

    /// Hashes by which a peer finds where its chain leaves ours: the last ten, then in doubling
    /// steps down to genesis.
    pub fn locator(&self, chain: Chain) -> Result<Vec<BlockHash>> {
        let Some((top, _)) = self.top(chain) else { return Ok(Vec::new()) };
        let mut heights = Vec::new();
        let (mut height, mut step) = (top, 1);
        while height != Height::GENESIS {
            heights.push(height);
            if heights.len() >= LOCATOR_DENSE {
                step *= 2;
            }
            height = height.checked_sub(step).unwrap_or(Height::GENESIS);
        }
        heights.push(Height::GENESIS);
        self.hashes(chain, heights)
    }

    /// The height of the first hash of a locator that is on a chain; genesis when none is.
    pub fn locate(&self, chain: Chain, locator: &[BlockHash]) -> Result<Height> {
        let mut found = Vec::with_capacity(locator.len());
        self.tables.find_headers(locator, &mut found)?;
        for link in found.into_iter().flatten().filter(|link| self.bounds.has_header(*link)) {
            let height = self.header(link)?.height;
            if self.at(chain, height) == Some(link) {
                return Ok(height);
            }
        }
        Ok(Height::GENESIS)
    }

    /// The hashes that a peer with this locator asks for: above the first one that we share, at
    /// most `count`, up to `stop`.
    pub fn hashes_after(
        &self,
        locator: &[BlockHash],
        stop: BlockHash,
        count: u32,
    ) -> Result<Vec<BlockHash>> {
        let from = self.after(locator)?;
        let mut hashes = self.hashes_from(Chain::Confirmed, from, count)?;
        if let Some(end) = hashes.iter().position(|hash| *hash == stop) {
            hashes.truncate(end + 1);
        }
        Ok(hashes)
    }

    /// The headers that a peer with this locator asks for, in the same way.
    pub fn headers_after(
        &self,
        locator: &[BlockHash],
        stop: BlockHash,
        count: u32,
    ) -> Result<Vec<[u8; Header::LEN]>> {
        let from = self.after(locator)?;
        let mut headers = self.headers_from(Chain::Confirmed, from, count)?;
        let is_stop = |header: &[u8; Header::LEN]| Header::new(header).hash() == stop;
        if let Some(end) = headers.iter().position(is_stop) {
            headers.truncate(end + 1);
        }
        Ok(headers)
    }

    fn after(&self, locator: &[BlockHash]) -> Result<Height> {
        let from = self.locate(Chain::Confirmed, locator)?.checked_add(1);
        from.ok_or(ArchiveError::Damaged { what: "a chain of 2^32 blocks" })
    }

    /// The confirmed tip and every block that no header stands on, with its height and how far it
    /// is above the confirmed chain (0 for the confirmed tip): Core's chain tips. Reads all
    /// headers.
    pub fn chain_tips(&self) -> Result<Vec<(Height, HeaderLink, u32)>> {
        let links: Vec<_> = (0..self.bounds.headers).map(HeaderLink::new).collect();
        let mut rows = Vec::with_capacity(links.len());
        self.tables.headers(&links, &mut rows)?;
        let mut is_tip = vec![true; rows.len()];
        for parent in rows.iter().filter_map(|row| row.parent) {
            if let Some(tip) = is_tip.get_mut(parent.index()) {
                *tip = false;
            }
        }
        let top = self.top(Chain::Confirmed).map(|(_, link)| link.index());
        if let Some(tip) = top.and_then(|index| is_tip.get_mut(index)) {
            *tip = true;
        }
        let tips = links.into_iter().zip(rows).zip(is_tip).filter(|(_, tip)| *tip);
        tips.map(|((link, row), _)| {
            let branch = self.branch(link)?.above().len();
            Ok((row.height, link, u32::try_from(branch).expect("heights are u32")))
        })
        .collect()
    }
}
