//! Is it confirmed?
//!
//! There is one definition: a block is confirmed when it is the one at its height in the confirmed
//! chain. A transaction is confirmed when one of its rows is in a confirmed block, an output when
//! its transaction is, a spend when the spending transaction is. Nothing is stored for it, so a
//! reorganisation has nothing to rewrite.

use varve_consensus::{BlockAt, CheckError, Params, SpendError, Spending, check_spends};
use varve_types::{Block, Outpoint};

use super::View;
use crate::backend::{Chain, Tables};
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::snapshot::Snapshot;
use crate::source::BlockSource;
use crate::view::BlockCoins;

impl<T: Tables> Snapshot<T> {
    /// Whether the header is on the candidate chain.
    pub fn is_candidate(&self, link: HeaderLink) -> Result<bool> {
        Ok(self.at(Chain::Candidate, self.header(link)?.height) == Some(link))
    }

    /// Whether the block is confirmed.
    pub fn is_confirmed_block(&self, link: HeaderLink) -> Result<bool> {
        Ok(self.at(Chain::Confirmed, self.header(link)?.height) == Some(link))
    }

    /// Whether this row is in a confirmed block. Another row of the same transaction may be.
    pub fn is_confirmed_row(&self, tx: TxLink) -> Result<bool> {
        Ok(self.row_place(tx)?.is_some_and(|row| row.confirmed))
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// Whether the output exists on the confirmed chain.
    pub fn is_confirmed_output(&self, point: Outpoint) -> Result<bool> {
        Ok(self.output(point)?.is_some_and(|output| output.tx.confirmed))
    }

    /// Whether an input of a transaction row is on the confirmed chain.
    pub fn is_confirmed_input(&self, tx: TxLink, vin: u32) -> Result<bool> {
        Ok(self.point(tx, vin)?.is_some() && self.is_confirmed_row(tx)?)
    }

    /// Whether every output that the block spends is confirmed or made by the block itself. No when
    /// the block has not come.
    pub fn is_confirmed_all_prevouts(&self, link: HeaderLink) -> Result<bool> {
        let Some(prevouts) = self.block_prevouts(link)? else { return Ok(false) };
        let confirmed = |tx: &super::TxPlace| tx.confirmed || tx.block == link;
        Ok(prevouts.iter().all(|output| output.as_ref().is_some_and(|out| confirmed(&out.tx))))
    }

    /// Whether any input of any block spends the output.
    pub fn is_spent(&self, point: Outpoint) -> Result<bool> {
        Ok(!self.spenders(point)?.is_empty())
    }

    /// Whether an input of the confirmed chain spends the output.
    pub fn is_confirmed_spent(&self, point: Outpoint) -> Result<bool> {
        Ok(self.confirmed_spender(point)?.is_some())
    }

    /// Whether only inputs that are not confirmed spend the output.
    pub fn is_unconfirmed_spent(&self, point: Outpoint) -> Result<bool> {
        let spenders = self.spenders(point)?;
        Ok(!spenders.is_empty() && spenders.iter().all(|spender| !spender.tx.confirmed))
    }

    /// Whether the spends of a block hold on its own branch: every prevout is there and not spent,
    /// coinbases are mature, relative lock times have passed, amounts add up. The same rules that
    /// run over the unspent set run here over the archive.
    ///
    /// `None` when the block has not come. The outer error says that the archive could not tell,
    /// the inner one that the block cannot be confirmed.
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
