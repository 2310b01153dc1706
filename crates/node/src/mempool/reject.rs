//! Why a transaction is not taken, and why a step could not be made.

use varve_consensus::{MissingAncestorError, SpendError, TransactionError, VerifyError};
use varve_records::{RecordError, StoreError};
use varve_types::{Amount, DecodeError, Outpoint, Txid};

use super::chain::ChainError;

/// Why a transaction is not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Reject {
    /// The bytes are no transaction.
    #[error("the bytes are no transaction: {0}")]
    Decode(#[from] DecodeError),
    /// It is in the mempool.
    #[error("{0} is in the mempool")]
    Here(Txid),
    /// It is in a block.
    #[error("{0} is confirmed")]
    Confirmed(Txid),
    /// A coinbase comes with its block alone.
    #[error("{0} is a coinbase")]
    Coinbase(Txid),
    /// It breaks a rule that needs no other transaction.
    #[error("{txid} is not valid: {error}")]
    Transaction {
        /// The transaction.
        txid: Txid,
        /// The rule.
        error: TransactionError,
    },
    /// Its lock time is not over in the next block.
    #[error("{0} is not final in the next block")]
    NotFinal(Txid),
    /// Outputs that it spends are not known. It waits for them, within limits.
    #[error("{txid} spends {missing}, which is not known; it waits for its parent")]
    Orphan {
        /// The transaction.
        txid: Txid,
        /// The first of them.
        missing: Outpoint,
    },
    /// The unconfirmed parent has no such output.
    #[error("{txid} spends {outpoint}, which its unconfirmed parent does not have")]
    NoSuchOutput {
        /// The transaction.
        txid: Txid,
        /// The output.
        outpoint: Outpoint,
    },
    /// It breaks a rule of spending.
    #[error(transparent)]
    Spend(#[from] SpendError),
    /// A script does not come out true.
    #[error("input {vin} of {txid} does not answer its script: {error}")]
    Script {
        /// The transaction.
        txid: Txid,
        /// The input.
        vin: usize,
        /// What the verifier says.
        error: VerifyError,
    },
    /// It pays too little.
    #[error("{txid} pays {paid}, and {needed} is the least that is relayed")]
    Fee {
        /// The transaction.
        txid: Txid,
        /// Its fee, or that of its package.
        paid: Amount,
        /// The least fee for its size.
        needed: Amount,
    },
    /// It is heavier than what is relayed.
    #[error("{txid} has a weight of {weight}, and {limit} is the most that is relayed")]
    TooHeavy {
        /// The transaction.
        txid: Txid,
        /// Its weight.
        weight: u64,
        /// The limit.
        limit: u64,
    },
    /// It has more signature operations than what is relayed.
    #[error("{txid} has signature operations of cost {cost}, more than is relayed")]
    TooManySigops {
        /// The transaction.
        txid: Txid,
        /// Their cost.
        cost: u64,
    },
    /// It would have too many unconfirmed relatives.
    #[error("{txid} would make a chain of unconfirmed transactions longer than {limit}")]
    TooManyRelatives {
        /// The transaction.
        txid: Txid,
        /// The limit that it breaks: transactions or virtual bytes.
        limit: u64,
    },
    /// It spends what another unconfirmed transaction spends, and may not replace it.
    #[error("{txid} cannot replace {holder}: {error}")]
    Replace {
        /// The transaction.
        txid: Txid,
        /// A transaction in its way.
        holder: Txid,
        /// The output that both spend.
        outpoint: Outpoint,
        /// The rule.
        error: ReplaceError,
    },
    /// It is larger than the whole memory share, or pays less than all that is here.
    #[error("the mempool is full, and {0} pays least")]
    Full(Txid),
    /// The records refuse it: an output is frozen or locked by order.
    #[error("the records refuse {txid}: {error}")]
    Record {
        /// The transaction.
        txid: Txid,
        /// What they say.
        error: RecordError,
    },
    /// A transaction of the same package is refused.
    #[error("{0} is refused with its package")]
    Package(Txid),
    /// The transactions are no package: a child and its unconfirmed parents, the child last.
    #[error("these {0} transactions are no package of a child with its parents")]
    NoPackage(usize),
}

impl Reject {
    /// Whether no honest node relays such a transaction: it is wrong by itself, whatever the tip.
    #[must_use]
    pub(crate) const fn is_offence(&self) -> bool {
        matches!(
            self,
            Self::Decode(_) | Self::Coinbase(_) | Self::Transaction { .. } | Self::Script { .. }
        )
    }
}

/// Which rule of replacement fails (BIP125).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// Rule 1: the original does not say that it can be replaced.
    #[error("it does not signal that it can be replaced")]
    NotSignaled,
    /// Rule 2: a new unconfirmed input.
    #[error("the replacement spends an unconfirmed output that the original did not")]
    NewUnconfirmedInput,
    /// Rules 3 and 4: it pays less than all that it replaces and its own relay together.
    #[error("it must pay {needed}")]
    Fee {
        /// The least fee.
        needed: Amount,
    },
    /// Rule 5: too many would be replaced.
    #[error("{count} transactions would be replaced")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// Its rate is not higher than that of what it replaces.
    #[error("its fee rate is not higher")]
    Rate,
    /// It builds on what it replaces.
    #[error("the replacement builds on it")]
    BuildsOnIt,
}

/// A step was not made; the mempool is as it was before. It may be tried again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MempoolError {
    /// The unspent set failed.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The records failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A header that a lock time needs is not there.
    #[error(transparent)]
    Ancestor(#[from] MissingAncestorError),
    /// A transaction of a block does not parse alone.
    #[error("a transaction of a block does not parse: {0}")]
    Block(#[from] DecodeError),
}

/// What is wrong with one transaction, or with everything.
#[derive(Debug)]
pub(super) enum Refusal {
    Reject(Reject),
    Failed(MempoolError),
}

impl<E: Into<Reject>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Reject(error.into())
    }
}

impl From<MempoolError> for Refusal {
    fn from(error: MempoolError) -> Self {
        Self::Failed(error)
    }
}
