//! The verdict on a block: what is wrong with it, or nothing.
//!
//! 1. *Before a block is stored*, in a checker: is it what its header commits to, and does it hold
//!    by itself and at its height? A block whose bytes are not those of the header says nothing
//!    about the header: it is refused, and the header is not remembered as invalid.
//! 2. *When the set has taken it*, in a worker: are its spends allowed, and, if that is asked for,
//!    do its scripts hold? Blocks that were good before are not checked again.

use std::num::NonZeroUsize;
use std::sync::Arc;

use varve_consensus::{
    Ancestors, BlockAt, BlockError, CheckError, CoreTx, CoreVerifier, Params, ScriptChecks,
    check_block, check_block_context, check_signet_solution, check_spends,
};
use varve_types::BlockHash;
use varve_utxo::DatabaseView;

use super::Verify;
use super::script_board::ScriptBoard;
use crate::chain::SharedChain;
use crate::error::Error;
use crate::header_tree::{HeaderId, HeaderTree};

/// Why a block is not taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It breaks a rule, for ever.
    Invalid(String),
    /// These bytes are not the block that the header commits to.
    Mutated(String),
    /// It could not be checked.
    Failed(Error),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid(reason) | Self::Mutated(reason) => f.write_str(reason),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Checks a block before it is stored, on the headers below it.
pub(crate) fn check_bytes(
    params: &Params,
    block: &BlockAt<'_>,
    below: &impl Ancestors,
) -> Result<(), Refusal> {
    check_block(params, block)
        .and_then(|()| check_block_context(params, block, below))
        .and_then(|()| check_signet_solution(params, block, &CoreVerifier))
        .map_err(|error| refusal_of(block.hash(), &error))
}

fn refusal_of(hash: BlockHash, error: &BlockError) -> Refusal {
    match error.reject_reason() {
        None => Refusal::Failed(Error::Unchecked { hash, what: error.to_string() }),
        Some(name) if error.is_mutation() => Refusal::Mutated(reason(&name, error)),
        Some(name) => Refusal::Invalid(reason(&name, error)),
    }
}

/// Core's name of what is wrong, and what it is.
pub(crate) fn reason(name: &str, error: &dyn std::fmt::Display) -> String {
    format!("{name}: {error}")
}

impl Verify {
    /// How many threads check scripts when there are this many workers.
    pub(super) const fn script_threads(self, workers: NonZeroUsize) -> NonZeroUsize {
        match self {
            Self::Spends => NonZeroUsize::MIN,
            Self::Scripts => workers,
        }
    }
}

/// Checks blocks that the set has taken.
pub(crate) struct Judge {
    pub(crate) chain: SharedChain,
    pub(crate) verify: Verify,
    pub(crate) assume_valid: Option<BlockHash>,
    /// Where the workers and their helpers check scripts.
    pub(crate) board: ScriptBoard<CoreTx>,
}

impl Judge {
    /// The verdict on a block whose spends are in `view`.
    pub(crate) fn check(&self, block: &BlockAt<'_>, view: &DatabaseView) -> Result<(), Refusal> {
        let hash = block.hash();
        let unchecked = |what: String| Refusal::Failed(Error::Unchecked { hash, what });
        let (params, parent, id) = {
            let chain = self.chain.read();
            let tree = &chain.tree;
            let id = tree.find(&hash).ok_or_else(|| unchecked("its header is lost".to_owned()))?;
            let Some(parent) = tree.parent(id).filter(|_| !chain.is_valid(id)) else {
                return Ok(());
            };
            (tree.params().clone(), parent, id)
        };
        match check_spends(&params, block, &self.chain.branch(parent), view) {
            Ok(_) => {}
            Err(CheckError::View(error)) => return Err(unchecked(error.to_string())),
            Err(CheckError::Invalid(error)) => {
                return Err(match error.reject_reason() {
                    Some(name) => Refusal::Invalid(reason(&name, &error)),
                    None => unchecked(error.to_string()),
                });
            }
        }
        if !self.wants_scripts(&self.chain.read().tree, id) {
            return Ok(());
        }
        let checked = ScriptChecks::new(&params, block, view, &CoreVerifier).and_then(|checks| {
            let checks = Arc::new(checks);
            self.board.run(block.height(), &checks);
            checks.verdict(block).map_err(CheckError::Invalid)
        });
        match checked {
            Ok(()) => Ok(()),
            Err(CheckError::View(error)) => Err(unchecked(error.to_string())),
            Err(CheckError::Invalid(error)) => Err(match error.reject_reason() {
                Some(name) => Refusal::Invalid(reason(&name, &error)),
                None => unchecked(error.to_string()),
            }),
        }
    }

    /// Whether the scripts of a block are to be checked.
    fn wants_scripts(&self, tree: &HeaderTree, id: HeaderId) -> bool {
        if self.verify == Verify::Spends {
            return false;
        }
        let best = tree.best_header();
        let assumed = self.assume_valid.and_then(|hash| tree.find(&hash));
        !assumed.is_some_and(|assumed| {
            tree.is_on_branch(id, assumed) && tree.is_on_branch(assumed, best)
        })
    }
}
