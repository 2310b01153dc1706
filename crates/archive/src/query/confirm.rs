//! Is it confirmed?
//!
//! There is one definition: a block is confirmed when it is the one at its height in the confirmed
//! chain. A transaction is confirmed when one of its rows is in a confirmed block, an output when
//! its transaction is, a spend when the spending transaction is. Nothing is stored for it, so a
//! reorganisation has nothing to rewrite.

use varve_consensus::{BlockAt, CheckError, Params, SpendError, Spending, check_spends};
use varve_types::Block;

use crate::backend::{Chain, Tables};
use crate::block_coins::BlockCoins;
use crate::error::{ArchiveError, Result};
use crate::link::HeaderLink;
use crate::snapshot::Snapshot;
use crate::source::BlockSource;
use crate::view::View;

impl<T: Tables> Snapshot<T> {
    /// Whether the block is confirmed.
    pub fn is_confirmed_block(&self, link: HeaderLink) -> Result<bool> {
        Ok(self.at(Chain::Confirmed, self.header(link)?.height) == Some(link))
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// Whether the spends of a block hold on its own branch: every prevout is there and not spent,
    /// coinbases are mature, relative lock times have passed, amounts add up. The same rules that
    /// run over the unspent set run here over the archive.
    ///
    /// `None` when the block has not been archived. The outer error means that the archive could
    /// not decide, the inner one that the block cannot be confirmed.
    pub fn block_confirmable(
        &self,
        params: &Params,
        link: HeaderLink,
    ) -> Result<Option<std::result::Result<Spending, SpendError>>> {
        let Some(row) = self.stored(link)? else { return Ok(None) };
        let bytes = self.bytes(link, row.number, 0..row.size)?;
        let header = self.header(link)?;
        let block = Block::parse(bytes.as_ref(), self.network().format());
        let block =
            block.map_err(|source| ArchiveError::Decode { height: header.height, source })?;
        let block = BlockAt::new(header.height, &block);
        let branch = self.branch(link)?;
        let coins = BlockCoins::load(self, header.parent, &block)?;
        match check_spends(params, &block, &branch, &coins) {
            Ok(spending) => Ok(Some(Ok(spending))),
            Err(CheckError::Invalid(error)) => Ok(Some(Err(error))),
            Err(CheckError::View(never)) => match never {},
        }
    }
}
