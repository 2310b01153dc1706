//! Asks the history about a block that the unspent set refuses.
//!
//! The set and the history answer the same question in different ways: the set has the coins that
//! are left, the history finds outputs and their spenders among the rows of all blocks. A damaged
//! set would refuse good blocks, mark each of them, and never return to the best chain. So before a
//! mark is written the history is asked, with the same rules over its own answers:
//!
//! | the history says | then |
//! |---|---|
//! | the block breaks a rule | it is marked |
//! | it cannot tell: blocks that it would read are pruned | it is marked, on the set's word |
//! | the block is good | nothing is marked; the sync ends with [`Error::Contradiction`] |
//!
//! It takes a proof of work to make a node ask, and one question costs what one block does.

use std::num::NonZeroUsize;

use varve_archive::{ArchiveError, BlockCoins, HeaderLink, View};
use varve_consensus::{CheckError, CoreVerifier, ScriptError, check_scripts};
use varve_types::BlockHash;
use varve_utxo::AsBlock as _;

use crate::error::Error;
use crate::header_tree::HeaderId;
use crate::owned_block::OwnedBlock;
use crate::snapshot::ArchiveView;
use crate::stores::Stores;

impl Stores {
    /// Fails when the history finds nothing wrong with a block that was refused for `reason`.
    /// `scripts` says whether scripts were checked.
    pub(crate) fn confirm_refusal(
        &self,
        id: HeaderId,
        reason: &str,
        scripts: Option<NonZeroUsize>,
    ) -> Result<(), Error> {
        match self.is_good_by_history(id, scripts) {
            Ok(true) => {
                let hash = self.chain.read().tree.hash(id);
                Err(Error::Contradiction { hash, reason: reason.to_owned() })
            }
            Ok(false) | Err(Error::Pruned { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn is_good_by_history(
        &self,
        id: HeaderId,
        scripts: Option<NonZeroUsize>,
    ) -> Result<bool, Error> {
        let view = self.view();
        let (params, hash) = {
            let tree = &self.chain.read().tree;
            (tree.params().clone(), tree.hash(id))
        };
        let link = header_link(&view, hash)?;
        let spends = view.block_confirmable(&params, link)?;
        if spends.is_none_or(|verdict| verdict.is_err()) {
            return Ok(false);
        }
        match scripts {
            Some(threads) => {
                let block = self.read(id)?;
                Ok(self.check_scripts_by_history(&view, &block, threads)?.is_ok())
            }
            None => Ok(true),
        }
    }

    /// Checks the scripts of a stored block with the outputs that the history finds for it.
    pub(crate) fn check_scripts_by_history(
        &self,
        view: &ArchiveView,
        block: &OwnedBlock,
        threads: NonZeroUsize,
    ) -> Result<Result<(), ScriptError>, Error> {
        let params = self.chain.read().tree.params().clone();
        let link = header_link(view, block.as_block().hash())?;
        let parent = view.header(link)?.parent;
        let coins = BlockCoins::load_spent(view, parent, block.as_block())?;
        match check_scripts(&params, block.as_block(), &coins, &CoreVerifier, threads) {
            Ok(()) => Ok(Ok(())),
            Err(CheckError::Invalid(error)) => Ok(Err(error)),
            Err(CheckError::View(never)) => match never {},
        }
    }

    /// The history as it is now, with the bytes of the blocks.
    pub(crate) fn view(&self) -> ArchiveView {
        View::new(self.archive.snapshot(), self.blocks.reader())
    }
}

fn header_link(view: &ArchiveView, hash: BlockHash) -> Result<HeaderLink, Error> {
    let found: Result<Option<HeaderLink>, ArchiveError> = view.to_header(hash);
    let what = || Error::Disagree { what: format!("block {hash} is not archived") };
    found?.ok_or_else(what)
}
