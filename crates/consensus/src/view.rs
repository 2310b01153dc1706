//! What a rule may query of a set of unspent outputs.
//!
//! The rules do not know how a set is kept. They see it through [`UnspentOutputsView`]: the set as
//! it is *below* one block, that is with every block of its branch connected and the block itself
//! not. Every call takes the whole block, so that an engine can sort the keys and fetch them in
//! one go, and every closure is a type parameter, so that there is no virtual call for each key.
//!
//! [`CheckError`] separates two kinds of failure: the block breaks a rule, which is a final
//! verdict; or the set could not answer, which says nothing about the block.
//!
//! # The contract
//!
//! 1. A transaction can spend outputs of the transactions before it in the same block, never those
//!    of itself or of later ones.
//! 2. An output that two inputs of the block spend is refused; the error names both transactions.
//! 3. A prevout that is not there is refused; the error names it and its spender, and where the
//!    engine knows it the transaction that spent it before.
//! 4. Outputs that [`varve_types::unspendable`] says can never be spent are never in the set, and
//!    neither is the coinbase of the genesis block.
//! 5. Connecting a block whose transaction has the txid of an older one replaces the outputs of
//!    that one which are still unspent (BIP30: this happened twice). Disconnecting it brings them
//!    back, so that the set depends on the branch alone.
//! 6. A refused block changes nothing.
//!
//! An engine proves that it keeps the contract with `contract::check`, a suite of tests behind the
//! feature `test-suite`.

use std::borrow::Cow;
use std::ops::ControlFlow;

use varve_types::{Coin, Outpoint, TxIn, Txid};

use crate::block_at::BlockAt;

/// A set of unspent outputs, as it is below a block.
pub trait UnspentOutputsView {
    /// Why the set could not answer: a failed read, a wrong checksum.
    type Error;

    /// Whether every output that the block spends exists and is unspent, with regard to the
    /// order of its transactions.
    fn query_prevouts_unspent(
        &self,
        block: &BlockAt<'_>,
    ) -> Result<(), CheckError<PrevoutError, Self::Error>>;

    /// Calls `each` with every spend of the block, in block order: every input of every
    /// transaction except the coinbase. A `Break` ends the walk and is returned.
    ///
    /// What a spend borrows lives as long as the view, so that the spends of a block can be
    /// gathered and their scripts be checked in several threads.
    fn for_each_spend<'v, B, F>(
        &'v self,
        block: &'v BlockAt<'v>,
        each: F,
    ) -> Result<ControlFlow<B>, CheckError<PrevoutError, Self::Error>>
    where
        F: FnMut(Spend<'v>) -> ControlFlow<B>;

    /// Some output of the block's transactions that is already in the set: for BIP30.
    fn find_repeated_output(&self, block: &BlockAt<'_>) -> Result<Option<Outpoint>, Self::Error>;
}

/// A borrowed view is a view.
impl<V: UnspentOutputsView> UnspentOutputsView for &V {
    type Error = V::Error;

    fn query_prevouts_unspent(
        &self,
        block: &BlockAt<'_>,
    ) -> Result<(), CheckError<PrevoutError, Self::Error>> {
        (**self).query_prevouts_unspent(block)
    }

    fn for_each_spend<'v, B, F>(
        &'v self,
        block: &'v BlockAt<'v>,
        each: F,
    ) -> Result<ControlFlow<B>, CheckError<PrevoutError, Self::Error>>
    where
        F: FnMut(Spend<'v>) -> ControlFlow<B>,
    {
        (**self).for_each_spend(block, each)
    }

    fn find_repeated_output(&self, block: &BlockAt<'_>) -> Result<Option<Outpoint>, Self::Error> {
        (**self).find_repeated_output(block)
    }
}

/// An input of a block, with the output that it spends.
///
/// A relative lock time also takes the median time of the block that made the output. The set does
/// not know it: the rules look it up among the headers, by the height of the coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spend<'a> {
    /// The place of the spending transaction in the block.
    pub tx: usize,
    /// The place of the input in that transaction.
    pub vin: usize,
    /// The input.
    pub input: TxIn<'a>,
    /// The output, with the height of its block and whether a coinbase made it.
    pub coin: Coin<'a>,
}

/// A prevout that cannot be spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrevoutError {
    /// It is not in the set.
    #[error("{spender} spends {outpoint}, which {}", missing(*.spent_by))]
    Missing {
        /// The prevout.
        outpoint: Outpoint,
        /// The transaction that wants to spend it.
        spender: Txid,
        /// The transaction that spent it in an earlier block, where that is known.
        spent_by: Option<Txid>,
    },
    /// Two transactions of the block spend it.
    #[error("{first} and {second} of the same block spend {outpoint}")]
    SpentTwice {
        /// The prevout.
        outpoint: Outpoint,
        /// The transaction that comes first in the block.
        first: Txid,
        /// The one that comes later, or the same one again.
        second: Txid,
    },
}

fn missing(spent_by: Option<Txid>) -> Cow<'static, str> {
    match spent_by {
        Some(txid) => Cow::Owned(format!("{txid} has spent before")),
        None => Cow::Borrowed("does not exist or is spent"),
    }
}

impl PrevoutError {
    /// The reason as Core gives it.
    #[must_use]
    pub fn reject_reason(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed("bad-txns-inputs-missingorspent"))
    }
}

/// Why a check over a view did not pass: `V` is the verdict, `E` the failure of the view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError<V, E> {
    /// The block breaks a rule.
    #[error(transparent)]
    Invalid(V),
    /// The set could not answer. This says nothing about the block.
    #[error("the unspent set could not answer: {0}")]
    View(E),
}

impl<V, E> CheckError<V, E> {
    /// The same error with the verdict converted.
    pub fn map<W>(self, wrap: impl FnOnce(V) -> W) -> CheckError<W, E> {
        match self {
            Self::Invalid(verdict) => CheckError::Invalid(wrap(verdict)),
            Self::View(error) => CheckError::View(error),
        }
    }
}
