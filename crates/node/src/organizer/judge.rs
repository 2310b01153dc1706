//! The verdict on a block: what is wrong with it, or nothing.
//!
//! 1. *Before a block is stored*, in a checker: is it what its header commits to, and does it hold
//!    by itself and at its height? A block whose bytes are not those of the header says nothing
//!    about the header: it is refused, and the header is not remembered as invalid.
//! 2. *When the set has taken it*, in a worker: are its spends allowed, and, if that is asked for,
//!    do its scripts hold? What was checked before is not checked again. A good block returns what
//!    it connects, for the indexes.
//!
//! **Assume-valid.** Scripts are not checked of a block that is an ancestor both of the block that
//! is assumed to be valid and of the best header, when the best header has the least work that the
//! network is known to have, and is two weeks of work above the block. These are Bitcoin Core's
//! conditions: the last one keeps a forged branch from hiding behind the assumption, because it
//! would take two weeks of the network's work.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use varve_consensus::{
    Ancestors, BlockAt, BlockError, CheckError, CoreTx, CoreVerifier, Params, ScriptChecks,
    UnspentOutputsView as _, Work, check_block, check_block_context, check_signet_solution,
    check_spends,
};
use varve_types::{BlockHash, Height};
use varve_utxo::DatabaseView;

use super::Verify;
use super::script_board::ScriptBoard;
use crate::chain::SharedChain;
use crate::checked::Checked;
use crate::connected::{Connected, Spent, Wanted};
use crate::error::Error;
use crate::header_tree::{HeaderId, HeaderTree};

/// How much work, in seconds, must be above a block whose scripts are not checked.
const TWO_WEEKS: u64 = 14 * 24 * 60 * 60;

/// Why a block is not taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It breaks a rule. The verdict is final.
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
    /// What the indexes want to know of the blocks that are found good.
    pub(crate) wanted: Wanted,
    /// Where the workers and their helpers check scripts.
    pub(crate) board: ScriptBoard<CoreTx>,
}

/// A good block.
#[derive(Debug)]
pub(crate) struct Good {
    /// How much of it was checked, by now.
    pub(crate) checked: Checked,
    /// What the indexes take of it; `None` when there are none.
    pub(crate) connected: Option<Connected>,
}

impl Judge {
    /// The verdict on a block whose spends are in `view`.
    pub(crate) fn check(&self, block: &BlockAt<'_>, view: &DatabaseView) -> Result<Good, Refusal> {
        let checked = self.verdict(block, view)?;
        let connected = if self.wanted.is_nothing() {
            None
        } else {
            let connected = connect(self.wanted, self.chain.read().tree.params(), block, view);
            Some(connected.map_err(Refusal::Failed)?)
        };
        Ok(Good { checked, connected })
    }

    fn verdict(&self, block: &BlockAt<'_>, view: &DatabaseView) -> Result<Checked, Refusal> {
        let hash = block.hash();
        let unchecked = |what: String| Refusal::Failed(Error::Unchecked { hash, what });
        let (params, parent, known, wanted) = {
            let chain = self.chain.read();
            let tree = &chain.tree;
            let id = tree.find(&hash).ok_or_else(|| unchecked("its header is lost".to_owned()))?;
            let Some(parent) = tree.parent(id) else { return Ok(Checked::Scripts) };
            (tree.params().clone(), parent, chain.checked(id), self.to_check(tree, id))
        };
        if known < Checked::Spends {
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
        }
        if wanted <= known || wanted < Checked::Scripts {
            return Ok(known.max(wanted));
        }
        let checked = ScriptChecks::new(&params, block, view, &CoreVerifier).and_then(|checks| {
            let checks = Arc::new(checks);
            self.board.run(block.height(), &checks);
            checks.verdict(block).map_err(CheckError::Invalid)
        });
        match checked {
            Ok(()) => Ok(Checked::Scripts),
            Err(CheckError::View(error)) => Err(unchecked(error.to_string())),
            Err(CheckError::Invalid(error)) => Err(match error.reject_reason() {
                Some(name) => Refusal::Invalid(reason(&name, &error)),
                None => unchecked(error.to_string()),
            }),
        }
    }

    /// How much of a block is to be checked.
    fn to_check(&self, tree: &HeaderTree, id: HeaderId) -> Checked {
        if self.verify == Verify::Spends {
            return Checked::Spends;
        }
        let assumed = self.assumed_branch(tree);
        let is_assumed = assumed.is_some_and(|top| tree.is_on_branch(id, top));
        if is_assumed && is_buried(tree, id) { Checked::Assumed } else { Checked::Scripts }
    }

    /// The highest block of the branch of `tip` whose scripts need not be checked.
    pub(crate) fn assumed_up_to(&self, tree: &HeaderTree, tip: HeaderId) -> Option<Height> {
        let mut at = tree.fork_point(self.assumed_branch(tree)?, tip);
        while !is_buried(tree, at) {
            at = tree.parent(at)?;
        }
        Some(tree.height(at))
    }

    /// The highest block that is on the branches of both the assume-valid block and the best
    /// header, when that has enough work.
    fn assumed_branch(&self, tree: &HeaderTree) -> Option<HeaderId> {
        let (assumed, best) = (tree.find(&self.assume_valid?)?, tree.best_header());
        let is_enough = tree.work(best) >= tree.params().minimum_work;
        is_enough.then(|| tree.fork_point(assumed, best))
    }
}

/// What a block connects to the set that `view` was asked of.
pub(crate) fn connect(
    wanted: Wanted,
    params: &Params,
    block: &BlockAt<'_>,
    view: &DatabaseView,
) -> Result<Connected, Error> {
    with_spends(params, block, view, |block, spent, replaced| {
        Connected::of(wanted, params.network, block, spent, replaced)
    })
}

/// Runs `run` on a block, what it spends of the set that `view` was asked of, and what its outputs
/// overwrite there.
pub(super) fn with_spends<R>(
    params: &Params,
    block: &BlockAt<'_>,
    view: &DatabaseView,
    run: impl FnOnce(&BlockAt<'_>, &[Spent<'_>], &[Spent<'_>]) -> R,
) -> Result<R, Error> {
    let hash = block.hash();
    let mut spent =
        Vec::with_capacity(block.block().txs().iter().map(|tx| tx.inputs().len()).sum());
    let walk = view.for_each_spend(block, |spend| {
        spent.push(Spent { point: spend.input.outpoint, coin: spend.coin });
        ControlFlow::<()>::Continue(())
    });
    let _done = walk.map_err(|error| Error::Unchecked { hash, what: error.to_string() })?;
    let is_repeated = params.bip30_exceptions.contains(&(block.height(), hash));
    let replaced = view.overwritten().filter(|_| is_repeated);
    let replaced: Vec<Spent<'_>> = replaced.map(|(point, coin)| Spent { point, coin }).collect();
    Ok(run(block, &spent, &replaced))
}

/// Whether the best header is more than two weeks of work above a block.
fn is_buried(tree: &HeaderTree, id: HeaderId) -> bool {
    let best = tree.best_header();
    let bits = tree.branch(best).ancestor(tree.height(best)).map(|header| header.bits);
    let rate = Work::of_bits(bits.unwrap_or_default());
    let above = tree.work(best).seconds_above(tree.work(id), rate, tree.params().pow.spacing);
    above > TWO_WEEKS
}
