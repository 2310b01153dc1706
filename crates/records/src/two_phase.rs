//! Admission of a new transaction: spend, create locked, pass to block assembly, unlock.
//!
//! ```text
//!  check ─► spend + create, locked ─► block assembly ─► unlock
//!              │ one step                  │
//!              │                           └─ fails: the record stays locked; a restart finds it
//!              └─ inputs taken: refused, or kept as conflicting when the caller wants that
//! ```
//!
//! The record is locked until block assembly has the transaction: no other transaction builds on
//! what may never be in a block. Being mined unlocks too, so a record that was left locked does
//! not stay so.
//!
//! 1. A coinbase is refused, and so is a transaction that is not final in the next block.
//! 2. The outputs that it spends are looked up, unless it carries them, and the caller's rules
//!    look at it.
//! 3. One unit spends its inputs and creates its record. A transaction that has a record is not
//!    passed on again.
//! 4. When an input is spent by another or belongs to a conflicting transaction, and the caller
//!    keeps conflicts, a conflicting record is created, not locked, that spends nothing.
//! 5. Block assembly gets it, and it is unlocked.

use varve_consensus::lock_time::is_final;
use varve_types::{Height, Txid};

use crate::error::{ErrorCode, RecordError};
use crate::extended::Transaction;
use crate::operation::SpendRules;
use crate::prepare::CreateOptions;
use crate::record::Record;
use crate::store::{Store, StoreError};

/// Where accepted transactions go.
pub trait BlockAssembly {
    /// Takes a transaction into the next blocks. An error leaves its record locked.
    fn add(&self, tx: &Transaction, record: &Record) -> Result<(), AssemblyError>;
}

/// Block assembly did not take a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block assembly did not take the transaction: {0}")]
pub struct AssemblyError(pub String);

/// How a transaction is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmitOptions {
    /// When it came, in milliseconds.
    pub created_at: u64,
    /// Whether the outputs of locked transactions can be spent: for transactions of a block.
    pub ignore_locked: bool,
    /// Whether a double spend is kept as a conflicting record.
    pub create_conflicting: bool,
    /// Whether it goes to block assembly, and so begins locked.
    pub assemble: bool,
}

/// A transaction that has a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It is new and can be spent.
    New(Box<Record>),
    /// It was here already, and was not passed on again.
    Known(Box<Record>),
}

/// Why a transaction is not admitted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdmitError {
    /// The store does not know its tip yet.
    #[error("the height and median time of the tip are not known yet; set them first")]
    NotReady,
    /// A coinbase comes with its block alone.
    #[error("{0} is a coinbase")]
    Coinbase(Txid),
    /// Its lock time is not over in the next block.
    #[error("{0} is not final in the next block")]
    NotFinal(Txid),
    /// The rules of the caller refuse it.
    #[error("{txid} is not valid: {reason}")]
    Invalid {
        /// The transaction.
        txid: Txid,
        /// Why.
        reason: String,
    },
    /// It double spends, and was kept as conflicting.
    #[error("{txid} double spends and was kept as conflicting: {cause}")]
    Conflicting {
        /// The transaction.
        txid: Txid,
        /// What it met.
        cause: RecordError,
    },
    /// Its record was created and stays locked.
    #[error("{txid} stays locked: {error}")]
    LeftLocked {
        /// The transaction.
        txid: Txid,
        /// What block assembly said.
        error: AssemblyError,
    },
    /// The store refuses it, or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AdmitError {
    /// The public code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NotReady | Self::LeftLocked { .. } => ErrorCode::Processing,
            Self::Coinbase(_) | Self::Invalid { .. } => ErrorCode::TxInvalid,
            Self::NotFinal(_) => ErrorCode::TxLockTime,
            Self::Conflicting { .. } => ErrorCode::TxConflicting,
            Self::Store(error) => error.code(),
        }
    }
}

/// Admits a transaction. `check` holds the rules of the caller: scripts, fees, policy.
pub fn admit(
    store: &Store,
    tx: &Transaction,
    options: AdmitOptions,
    check: &dyn Fn(&Transaction) -> Result<(), String>,
    assembly: &dyn BlockAssembly,
) -> Result<Admitted, AdmitError> {
    let txid = tx.txid();
    let height = next_height(store, tx)?;
    let tx = extended(store, tx)?;
    check(&tx).map_err(|reason| AdmitError::Invalid { txid, reason })?;
    let rules = SpendRules { ignore_locked: options.ignore_locked, ..SpendRules::at(height) };
    let create = CreateOptions {
        height,
        created_at: options.created_at,
        locked: options.assemble,
        ..CreateOptions::default()
    };
    match store.spend_and_create(&tx, rules, &create) {
        Ok(_) => {}
        Err(StoreError::Record(RecordError::TxExists { .. })) => {
            return Ok(Admitted::Known(Box::new(store.get_meta(txid)?)));
        }
        Err(StoreError::Record(cause)) if options.create_conflicting && is_conflict(&cause) => {
            return Err(keep_conflicting(store, &tx, create, cause)?);
        }
        Err(error) => return Err(error.into()),
    }
    let mut record = store.get_meta(txid)?;
    if options.assemble {
        let left_locked = |error| AdmitError::LeftLocked { txid, error };
        assembly.add(&tx, &record).map_err(left_locked)?;
        store.set_locked(&[txid], false)?;
        record.locked = false;
    }
    Ok(Admitted::New(Box::new(record)))
}

/// The height of the next block, in which the transaction must be final.
fn next_height(store: &Store, tx: &Transaction) -> Result<Height, AdmitError> {
    let (txid, state) = (tx.txid(), store.block_state());
    if tx.view().is_coinbase() {
        return Err(AdmitError::Coinbase(txid));
    }
    if state.height == Height::GENESIS || state.median_time == 0 {
        return Err(AdmitError::NotReady);
    }
    let height = state.height.checked_add(1).ok_or(AdmitError::NotReady)?;
    if !is_final(&tx.view(), height, state.median_time) {
        return Err(AdmitError::NotFinal(txid));
    }
    Ok(height)
}

fn extended(store: &Store, tx: &Transaction) -> Result<Transaction, StoreError> {
    let found = store.previous_outputs_decorate(std::slice::from_ref(tx))?.pop();
    Ok(found.expect("one transaction, one answer")?)
}

/// Whether another transaction is in the way of a spend.
fn is_conflict(error: &RecordError) -> bool {
    let codes = error.items().iter().filter_map(|item| item.code());
    codes.into_iter().any(|code| matches!(code, ErrorCode::UtxoSpent | ErrorCode::TxConflicting))
}

fn keep_conflicting(
    store: &Store,
    tx: &Transaction,
    options: CreateOptions,
    cause: RecordError,
) -> Result<AdmitError, StoreError> {
    let options = CreateOptions { conflicting: true, locked: false, ..options };
    match store.create(tx, &options) {
        Ok(()) | Err(StoreError::Record(RecordError::TxExists { .. })) => {
            Ok(AdmitError::Conflicting { txid: tx.txid(), cause })
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
