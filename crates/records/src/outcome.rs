//! The result of an operation.

use std::sync::Arc;

use varve_types::{Height, Txid};

use crate::engine::Question;
use crate::error::RecordError;
use crate::operation::Unspend;
use crate::record::BlockId;

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its answer.
    pub result: Result<Reply, Failure>,
    /// What it means for the blobs of external records, in the order of the changes.
    pub effects: Vec<Effect>,
}

/// Why an operation did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A rule forbids it. Nothing was changed, with one exception: [`RecordError::TxExists`].
    #[error(transparent)]
    Refused(#[from] RecordError),
    /// It was sent, and the connection broke before the answer came.
    /// [`Engine::fate`](crate::Engine::fate) says what became of it.
    #[error("the answer was lost: {}", .0.cause)]
    Unknown(Box<Unknown>),
    /// The engine cannot be reached. The operation was not done.
    #[error("the records cannot be reached: {cause}")]
    Unavailable {
        /// What happened.
        cause: Arc<str>,
    },
    /// Others had the records for so long that the engine gave up. The operation was not done.
    #[error("other clients keep the records busy: {by}")]
    Busy {
        /// Who, as far as the engine knows.
        by: Arc<str>,
    },
}

impl Failure {
    /// The refusal, when it is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&RecordError> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }
}

/// An operation whose answer was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What to ask the engine.
    pub question: Question,
    /// The answer of the operation if it was done.
    pub answer: Result<Reply, RecordError>,
    /// Its effects if it was done.
    pub effects: Vec<Effect>,
    /// What happened to the connection.
    pub cause: Arc<str>,
}

/// The answer of an operation that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing more.
    Done,
    /// Of a unit: what its spends did, in their order; empty when it only created.
    Unit(Vec<Spent>),
    /// Of taking back spends: whether each was there to be taken back.
    Unspent(Vec<bool>),
    /// Of setting or unsetting a block: the blocks that the record has.
    Blocks(Vec<BlockId>),
    /// Of marking a transaction as conflicting, or unmarking it.
    Conflicting {
        /// What it may have spent: one item an input whose parent has a record and a slot.
        parents: Vec<Unspend>,
        /// The transactions that spend its outputs, each once, in the order of the outputs.
        spenders: Vec<Txid>,
    },
    /// Of pruning.
    Pruned(Pruned),
}

/// One spend that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// How.
    pub how: SpentHow,
    /// The blocks that have the parent.
    pub parent_blocks: Vec<BlockId>,
}

/// How a spend succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpentHow {
    /// The output was unspent.
    Written,
    /// The same input had spent it before.
    Again,
    /// The parent has no record, but the spender has one: the parent was pruned.
    ParentGone,
}

/// What pruning did with a record, and why it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruned {
    /// It is gone, and its parents know.
    Removed,
    /// There is no record.
    Missing,
    /// It is not due at this height, or preserved.
    NotDue,
    /// Some output can still be spent. It is no longer scheduled.
    Unspent,
    /// It is in no block of the longest chain and did not lose a double spend.
    Unmined,
    /// This unmined transaction refers to it.
    NeededBy(Txid),
    /// It wins or loses in a conflict resolution that is not finished. The pruner reports this
    /// without asking the engine.
    Pending,
}

/// What an operation means for the blob of an external record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It may be removed from this height on.
    DeleteAt {
        /// The transaction.
        txid: Txid,
        /// The height.
        height: Height,
    },
    /// It is no longer scheduled for removal.
    KeepOn {
        /// The transaction.
        txid: Txid,
    },
    /// It must be kept to this height.
    PreserveUntil {
        /// The transaction.
        txid: Txid,
        /// The height.
        height: Height,
    },
    /// Its record is gone.
    Deleted {
        /// The transaction.
        txid: Txid,
    },
}
