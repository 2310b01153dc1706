//! Why a call on a store failed.

use varve_types::{DecodeError, Txid};

use crate::blob::BlobError;
use crate::block_state::ZeroHeightError;
use crate::engine::EngineError;
use crate::error::{ErrorCode, RecordError};

/// Why a call on a store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// What was asked for is refused.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A blob cannot be read or written.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The bytes of a transaction in a blob do not parse, although their checksum is right.
    #[error("the blob of {txid} is no transaction: {error}; create the transaction again")]
    BadTransaction {
        /// The transaction.
        txid: Txid,
        /// What is wrong with the bytes.
        error: DecodeError,
    },
    /// Transactions that must be there are not.
    #[error("{count} transactions have no record, among them {}", list(.first))]
    Missing {
        /// How many.
        count: usize,
        /// The first ten of them.
        first: Vec<Txid>,
    },
    /// A height of 0 was given.
    #[error(transparent)]
    ZeroHeight(#[from] ZeroHeightError),
}

impl StoreError {
    /// The public code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Record(error) => error.code(),
            Self::Engine(_) | Self::BadTransaction { .. } => ErrorCode::StorageError,
            Self::Blob(BlobError::NotFound { .. }) => ErrorCode::BlobNotFound,
            Self::Blob(_) => ErrorCode::StorageError,
            Self::Missing { .. } => ErrorCode::TxNotFound,
            Self::ZeroHeight(_) => ErrorCode::Processing,
        }
    }

    /// The refusal, when the store itself is sound.
    #[must_use]
    pub const fn record(&self) -> Option<&RecordError> {
        match self {
            Self::Record(error) => Some(error),
            _ => None,
        }
    }

    /// How many transactions an error names.
    pub(super) const NAMED: usize = 10;
}

pub(super) fn list(txids: &[Txid]) -> String {
    let names: Vec<String> = txids.iter().map(Txid::to_string).collect();
    names.join(", ")
}
