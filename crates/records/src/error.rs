//! Why an operation on a record is refused.
//!
//! Three layers, from the inside out:
//!
//! - [`SlotError`]: what is wrong with one output, or with the record that has it. Its order in
//!   the list is the order in which a spend looks: the first that holds is the answer.
//! - [`RecordError`]: why one operation changed nothing.
//! - [`EngineError`](crate::engine::EngineError): the storage itself failed, and nothing is known
//!   about any operation of the batch.
//!
//! Outside, errors have the names and numbers of [`ErrorCode`].

use varve_types::{Height, Outpoint, Txid};

use crate::spending_data::SpendingData;

/// The public name and number of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// Something asked for does not exist.
    NotFound = 3,
    /// The request cannot be processed as it is.
    Processing = 4,
    /// No such transaction or output.
    TxNotFound = 30,
    /// The transaction is not valid.
    TxInvalid = 31,
    /// The transaction has a record.
    TxExists = 33,
    /// The transaction is not final.
    TxLockTime = 35,
    /// The transaction lost a double spend.
    TxConflicting = 36,
    /// The outputs of the transaction cannot be spent yet.
    TxLocked = 37,
    /// A coinbase is too young.
    TxCoinbaseImmature = 38,
    /// The record is being written.
    TxCreating = 41,
    /// The storage refused.
    StorageError = 69,
    /// The output is spent by another input.
    UtxoSpent = 70,
    /// The output is not final.
    UtxoNonFinal = 71,
    /// The output is frozen.
    UtxoFrozen = 72,
    /// No such output.
    UtxoNotFound = 73,
    /// The output is another than the caller believes.
    UtxoMismatch = 74,
    /// The slot has a wrong length.
    UtxoInvalidSize = 75,
    /// Something is wrong with an output, or with several.
    UtxoError = 79,
    /// The blob exists.
    BlobExists = 90,
    /// No such blob.
    BlobNotFound = 91,
}

impl ErrorCode {
    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The name, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::Processing => "PROCESSING",
            Self::TxNotFound => "TX_NOT_FOUND",
            Self::TxInvalid => "TX_INVALID",
            Self::TxExists => "TX_EXISTS",
            Self::TxLockTime => "TX_LOCK_TIME",
            Self::TxConflicting => "TX_CONFLICTING",
            Self::TxLocked => "TX_LOCKED",
            Self::TxCoinbaseImmature => "TX_COINBASE_IMMATURE",
            Self::TxCreating => "TX_CREATING",
            Self::StorageError => "STORAGE_ERROR",
            Self::UtxoSpent => "UTXO_SPENT",
            Self::UtxoNonFinal => "UTXO_NON_FINAL",
            Self::UtxoFrozen => "UTXO_FROZEN",
            Self::UtxoNotFound => "UTXO_NOT_FOUND",
            Self::UtxoMismatch => "UTXO_MISMATCH",
            Self::UtxoInvalidSize => "UTXO_INVALID_SIZE",
            Self::UtxoError => "UTXO_ERROR",
            Self::BlobExists => "BLOB_EXISTS",
            Self::BlobNotFound => "BLOB_NOT_FOUND",
        }
    }
}

/// What is wrong with one output or its record, in the order in which a spend looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// 1. There is no record of the transaction.
    #[error("no record of the transaction")]
    TxNotFound,
    /// 2. The record is being written.
    #[error("the record is being written; try again")]
    Creating,
    /// 3. The transaction lost a double spend.
    #[error("the transaction is conflicting")]
    Conflicting,
    /// 4. The outputs of the transaction cannot be spent yet.
    #[error("the transaction is locked")]
    Locked,
    /// 5. A coinbase is too young.
    #[error("the coinbase can be spent from height {spendable} on")]
    CoinbaseImmature {
        /// The first height at which it can be spent.
        spendable: Height,
    },
    /// 6. The record has no outputs.
    #[error("the record has no outputs")]
    UtxosNotFound,
    /// 7. The record has no slot for the output.
    #[error("no such output, or one that can never be spent")]
    UtxoNotFound,
    /// 8. The output is another than the caller believes.
    #[error("the hash of the output is another")]
    HashMismatch,
    /// 9. The output was reassigned and rests.
    #[error("the output can be spent from height {spendable} on")]
    FrozenUntil {
        /// The first height at which it can be spent.
        spendable: Height,
    },
    /// 10a. The same spend as before, by a transaction whose record was pruned and is not there.
    #[error("the spending transaction was pruned and cannot come again")]
    InvalidSpend,
    /// 10b. The output bears the mark of a frozen one, or a freeze window covers the height.
    #[error("the output is frozen")]
    Frozen,
    /// 10c. The output is spent by another input.
    #[error("the output is spent by input {} of {}", .by.vin, .by.txid)]
    Spent {
        /// Who spent it.
        by: SpendingData,
    },
    /// Freezing what is frozen.
    #[error("the output is frozen already")]
    AlreadyFrozen,
    /// Unfreezing or reassigning what is unspent: its slot has no room for the mark.
    #[error("the output is not frozen: its slot has 32 bytes, and 68 are needed")]
    InvalidSize,
    /// Unfreezing or reassigning what is spent.
    #[error("the output is not frozen")]
    NotFrozen,
}

impl SlotError {
    /// The public code. An output that does not exist is [`ErrorCode::UtxoNotFound`] here; a
    /// spend reports it as [`ErrorCode::TxNotFound`], see [`SpendItem::code`].
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::TxNotFound => ErrorCode::TxNotFound,
            Self::Creating => ErrorCode::TxCreating,
            Self::Conflicting => ErrorCode::TxConflicting,
            Self::Locked => ErrorCode::TxLocked,
            Self::CoinbaseImmature { .. } => ErrorCode::TxCoinbaseImmature,
            Self::UtxosNotFound | Self::UtxoNotFound => ErrorCode::UtxoNotFound,
            Self::HashMismatch => ErrorCode::UtxoMismatch,
            Self::FrozenUntil { .. } | Self::Frozen | Self::AlreadyFrozen => ErrorCode::UtxoFrozen,
            Self::InvalidSpend | Self::NotFrozen => ErrorCode::UtxoError,
            Self::Spent { .. } => ErrorCode::UtxoSpent,
            Self::InvalidSize => ErrorCode::UtxoInvalidSize,
        }
    }
}

/// One input of a spend that failed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendItem {
    /// The output that it wanted.
    pub outpoint: Outpoint,
    /// What is wrong with it; `None` when this input alone would have succeeded.
    pub error: Option<SlotError>,
}

impl SpendItem {
    /// The public code of the error.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.error.map(|error| match error {
            SlotError::UtxoNotFound => ErrorCode::TxNotFound,
            error => error.code(),
        })
    }

    /// The transaction that holds the output, when another one does.
    #[must_use]
    pub fn conflicting_txid(&self) -> Option<Txid> {
        match self.error {
            Some(SlotError::Spent { by }) => Some(by.txid),
            _ => None,
        }
    }
}

/// Why one operation changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// There is no record of the transaction.
    #[error("no record of transaction {txid}")]
    TxNotFound {
        /// The transaction.
        txid: Txid,
    },
    /// The transaction has a record. When the operation also spent, the spends stand: they belong
    /// to the transaction that has the record.
    #[error("transaction {txid} has a record already")]
    TxExists {
        /// The transaction.
        txid: Txid,
    },
    /// Some inputs cannot be spent, so none was.
    #[error("{} of {} inputs cannot be spent", failed(.0), .0.len())]
    Spend(Vec<SpendItem>),
    /// One output cannot be frozen, unfrozen, reassigned or unspent.
    #[error("output {outpoint}: {error}")]
    Slot {
        /// The output.
        outpoint: Outpoint,
        /// What is wrong with it.
        #[source]
        error: SlotError,
    },
    /// The request cannot be processed as it is.
    #[error("cannot process transaction {txid}: {reason}")]
    Processing {
        /// The transaction.
        txid: Txid,
        /// What is wrong with the request.
        reason: &'static str,
    },
    /// The engine does not take records of this size; keep the transaction as an external blob.
    #[error("the record of {txid} takes {size} bytes, more than {limit}; store it externally")]
    TooBig {
        /// The transaction.
        txid: Txid,
        /// The size of the record.
        size: u64,
        /// The limit of the engine.
        limit: u64,
    },
}

impl RecordError {
    /// The public code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::TxNotFound { .. } => ErrorCode::TxNotFound,
            Self::TxExists { .. } => ErrorCode::TxExists,
            Self::Spend(_) => ErrorCode::UtxoError,
            Self::Slot { error, .. } => error.code(),
            Self::Processing { .. } => ErrorCode::Processing,
            Self::TooBig { .. } => ErrorCode::StorageError,
        }
    }

    /// The code of what is behind: for a spend that of the first input that failed.
    #[must_use]
    pub fn cause(&self) -> ErrorCode {
        match self {
            Self::Spend(items) => items.iter().find_map(SpendItem::code).unwrap_or(self.code()),
            _ => self.code(),
        }
    }

    /// The inputs of a failed spend, each with what is wrong with it.
    #[must_use]
    pub fn items(&self) -> &[SpendItem] {
        match self {
            Self::Spend(items) => items,
            _ => &[],
        }
    }
}

fn failed(items: &[SpendItem]) -> usize {
    items.iter().filter(|item| item.error.is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_public_numbers_and_names() {
        assert_eq!(ErrorCode::UtxoSpent.number(), 70);
        assert_eq!(ErrorCode::UtxoSpent.name(), "UTXO_SPENT");
        assert_eq!(ErrorCode::TxCreating.number(), 41);
        assert_eq!(ErrorCode::BlobNotFound.number(), 91);
    }

    #[test]
    fn a_failed_spend_names_its_first_cause() {
        let outpoint = Outpoint::new(Txid::ZERO, 0);
        let by = SpendingData::new(Txid::from_bytes([1; 32]), 0);
        let items = vec![
            SpendItem { outpoint, error: None },
            SpendItem { outpoint, error: Some(SlotError::UtxoNotFound) },
            SpendItem { outpoint, error: Some(SlotError::Spent { by }) },
        ];
        let error = RecordError::Spend(items);
        assert_eq!(error.code(), ErrorCode::UtxoError);
        assert_eq!(error.cause(), ErrorCode::TxNotFound, "as a spend reports it");
        assert_eq!(error.items()[2].conflicting_txid(), Some(by.txid));
        assert_eq!(error.to_string(), "2 of 3 inputs cannot be spent");
        let slot = RecordError::Slot { outpoint, error: SlotError::UtxoNotFound };
        assert_eq!(slot.code(), ErrorCode::UtxoNotFound);
    }
}
