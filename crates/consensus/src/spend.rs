//! The rules of spending: what a block does to the set of unspent outputs.
//!
//! 1. No transaction has the txid of an older one with unspent outputs (BIP30), except in two
//!    blocks of 2010. Between the height of BIP34 and 1,983,702 this cannot happen on the known
//!    chain, so it is not checked there.
//! 2. Every prevout exists unspent, in the order of the transactions.
//! 3. For every transaction in turn: coinbases that it spends are old enough, its inputs are worth
//!    as much as its outputs, the difference being the fee, and its relative lock times have
//!    passed (BIP68).
//! 4. All signature operations together, including those of the spent scripts, do not cost too
//!    much.
//! 5. The coinbase claims no more than the subsidy and the fees.
//!
//! The spent outputs come from a view in one walk; only sums are kept.

mod tally;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::ControlFlow;

use varve_types::{Amount, Height, Outpoint, Txid};

use crate::ancestors::{Ancestors, MissingAncestorError};
use crate::block_at::BlockAt;
use crate::params::Params;
use crate::view::{CheckError, PrevoutError, UnspentOutputsView};
use tally::Tally;

/// Why the spends of a block are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpendError {
    /// A header below is not available. No verdict.
    #[error(transparent)]
    MissingAncestor(#[from] MissingAncestorError),
    /// A prevout does not exist unspent.
    #[error(transparent)]
    Prevout(#[from] PrevoutError),
    /// A transaction repeats an older one (BIP30).
    #[error("a transaction of the block makes {outpoint}, which exists and is unspent")]
    RepeatedTransaction {
        /// An output that both have.
        outpoint: Outpoint,
    },
    /// A coinbase is spent too early.
    #[error(
        "{spender} spends the coinbase output {outpoint} {depth} blocks after it, and {maturity} \
         are needed"
    )]
    ImmatureCoinbase {
        /// The spending transaction.
        spender: Txid,
        /// The output.
        outpoint: Outpoint,
        /// How many blocks lie between.
        depth: u32,
        /// How many must.
        maturity: u32,
    },
    /// The inputs of a transaction are worth more than can exist.
    #[error("the inputs of {txid} are worth more than can exist")]
    InputsTooLarge {
        /// The transaction.
        txid: Txid,
    },
    /// The outputs are worth more than the inputs.
    #[error("{txid} spends {inputs} and creates {outputs}")]
    Overspent {
        /// The transaction.
        txid: Txid,
        /// What its inputs are worth.
        inputs: Amount,
        /// What its outputs are worth.
        outputs: Amount,
    },
    /// All fees together are more than can exist.
    #[error("the fees of the block are more than can exist")]
    FeesTooLarge,
    /// A relative lock time has not passed (BIP68).
    #[error("input {vin} of {txid} is locked relative to the output that it spends")]
    RelativelyLocked {
        /// The transaction.
        txid: Txid,
        /// The input.
        vin: usize,
    },
    /// Too many signature operations.
    #[error("signature operations cost {cost}, but at most {limit} is allowed")]
    Sigops {
        /// What they cost.
        cost: u64,
        /// The limit.
        limit: u64,
    },
    /// BSV: too many signature operations in a transaction, with those of the spent scripts.
    #[error("{txid} has {count} signature operations, more than a transaction may have")]
    TransactionSigops {
        /// The transaction.
        txid: Txid,
        /// How many.
        count: u64,
    },
    /// The coinbase claims too much.
    #[error("the coinbase claims {taken}, but subsidy and fees are {allowed}")]
    CoinbaseTooLarge {
        /// What it claims.
        taken: Amount,
        /// What it may claim.
        allowed: Amount,
    },
}

impl SpendError {
    /// The reason as Core gives it, or `None` when the block could not be checked.
    #[must_use]
    pub fn reject_reason(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::MissingAncestor(_) => return None,
            Self::Prevout(error) => return error.reject_reason(),
            Self::RepeatedTransaction { .. } => "bad-txns-BIP30",
            Self::ImmatureCoinbase { .. } => "bad-txns-premature-spend-of-coinbase",
            Self::InputsTooLarge { .. } => "bad-txns-inputvalues-outofrange",
            Self::Overspent { .. } => "bad-txns-in-belowout",
            Self::FeesTooLarge => "bad-txns-accumulated-fee-outofrange",
            Self::RelativelyLocked { .. } => "bad-txns-nonfinal",
            Self::Sigops { .. } => "bad-blk-sigops",
            Self::TransactionSigops { .. } => "bad-txn-sigops",
            Self::CoinbaseTooLarge { .. } => "bad-cb-amount",
        }))
    }
}

/// Totals of a block's spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The fees of all transactions.
    pub fees: Amount,
    /// What all signature operations cost.
    pub sigop_cost: u64,
    /// The number of inputs, without the coinbase's.
    pub inputs: u64,
}

/// Checks the spends of a block. The view is that of the set below the block, and `ancestors` are
/// the headers of the same branch.
pub fn check_spends<V, A>(
    params: &Params,
    block: &BlockAt<'_>,
    ancestors: &A,
    view: &V,
) -> Result<Spending, CheckError<SpendError, V::Error>>
where
    V: UnspentOutputsView,
    A: Ancestors + ?Sized,
{
    // The outputs of the genesis block never enter the set. A block without transactions spends
    // nothing; `check_block` refuses it.
    if block.height() == Height::GENESIS || block.txids().is_empty() {
        return Ok(Spending { fees: Amount::ZERO, sigop_cost: 0, inputs: 0 });
    }
    if asks_bip30(params, block, ancestors) {
        let repeated = view.find_repeated_output(block).map_err(CheckError::View)?;
        if let Some(outpoint) = repeated {
            return Err(CheckError::Invalid(SpendError::RepeatedTransaction { outpoint }));
        }
    }
    view.query_prevouts_unspent(block).map_err(|error| error.map(SpendError::Prevout))?;
    let mut tally = Tally::new(params, block, ancestors).map_err(CheckError::Invalid)?;
    let walk = view
        .for_each_spend(block, |spend| match tally.add(&spend) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        })
        .map_err(|error| error.map(SpendError::Prevout))?;
    match walk {
        ControlFlow::Break(error) => Err(CheckError::Invalid(error)),
        ControlFlow::Continue(()) => tally.finish().map_err(CheckError::Invalid),
    }
}

/// Whether a block must be checked for repeated transactions.
fn asks_bip30<A: Ancestors + ?Sized>(params: &Params, block: &BlockAt<'_>, ancestors: &A) -> bool {
    let excepted = params.bip30_exceptions.contains(&(block.height(), block.hash()));
    let again = block.height() >= params.bip30_again;
    again || (can_repeat(params, block.height(), ancestors) && !excepted)
}

/// Whether a transaction of a valid block at this height, on this branch, can have the txid of an
/// older one. From BIP34 on coinbases differ by their height, so on the known chain nothing can
/// repeat until the heights that some coinbases before BIP34 happen to encode. A set that knows
/// this need not look for coins that a block overwrites.
pub fn can_repeat<A: Ancestors + ?Sized>(params: &Params, height: Height, ancestors: &A) -> bool {
    let bip34 = params.heights.bip34;
    let is_known = || {
        params.bip34_hash.is_some()
            && ancestors.ancestor(bip34).map(|ancestor| ancestor.hash) == params.bip34_hash
    };
    !(height > bip34 && height < params.bip30_again && is_known())
}
