//! Why a line was refused, as JSON.
//!
//! ```text
//! {"error": NAME, "code": NUMBER, "message": SENTENCE, …}
//! ```
//!
//! Names and numbers are the public ones of `varve::records::ErrorCode`, and `INVALID_ARGUMENT`
//! (1) for a line that cannot be understood. Where one output is at fault, `reason` is the name of
//! the check that failed. Where several things were asked for in one line, the name is that of the
//! first that failed, and a list has each result.

use serde_json::{Map, Value, json};
use varve::Outpoint;
use varve::records::blob::BlobError;
use varve::records::record::SpendingData;
use varve::records::store::StoreError;
use varve::records::{ErrorCode, RecordError, SlotError, SpendItem};

use super::shape::txids;

/// Why a line was refused.
#[derive(Debug)]
pub(super) enum Failure {
    /// The line cannot be understood.
    Argument(String),
    /// The store refused it, or failed.
    Store(StoreError),
    /// Some of the things that were asked for failed; the others were done.
    Partly {
        /// The name of the list.
        list: &'static str,
        /// What became of each, in order.
        items: Vec<Value>,
    },
    /// Something above the store refused it.
    Refused {
        /// The public code.
        code: ErrorCode,
        /// Why.
        message: String,
    },
    /// The tip could not be written.
    Tip(varve::Error),
}

impl<E: Into<StoreError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

impl Failure {
    /// A line that cannot be understood because of this argument.
    pub(super) fn argument(name: &str, what: impl std::fmt::Display) -> Self {
        Self::Argument(format!("`{name}`: {what}"))
    }

    /// Whether the storage itself failed, so that nothing more can be done.
    pub(super) const fn is_fatal(&self) -> bool {
        match self {
            Self::Store(StoreError::Engine(_) | StoreError::Blob(BlobError::Bucket(_)))
            | Self::Tip(_) => true,
            Self::Store(_) | Self::Argument(_) | Self::Partly { .. } | Self::Refused { .. } => {
                false
            }
        }
    }

    /// The answer.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Argument(message) => invalid(message),
            Self::Refused { code, message } => coded(*code, message).into(),
            Self::Tip(error) => coded(ErrorCode::StorageError, &error.to_string()).into(),
            Self::Store(StoreError::Record(error)) => refusal(error),
            Self::Store(StoreError::ZeroHeight(error)) => invalid(&error.to_string()),
            Self::Store(error) => {
                let mut answer = coded(error.code(), &error.to_string());
                if let StoreError::Missing { first, .. } = error {
                    answer.insert("missing".into(), txids(first));
                }
                answer.into()
            }
            Self::Partly { list, items } => partly(list, items),
        }
    }
}

/// The answer when some of several things failed: the first failure, and a list of all results.
fn partly(list: &str, items: &[Value]) -> Value {
    let mut failed = items.iter().filter_map(|item| {
        item.get("error")?;
        item.as_object()
    });
    let mut answer = failed.next().cloned().unwrap_or_default();
    if items.len() > 1 {
        let count = failed.count() + 1;
        answer.retain(|name, _| ["error", "code", "reason"].contains(&name.as_str()));
        let message = format!("{count} of {} failed; the others are done", items.len());
        answer.insert("message".into(), message.into());
    }
    answer.insert(list.to_owned(), items.to_vec().into());
    answer.into()
}

/// The answer to what an operation refused.
pub(super) fn refusal(error: &RecordError) -> Value {
    let mut answer = coded(error.cause(), &error.to_string());
    match error {
        RecordError::TxNotFound { txid }
        | RecordError::TxExists { txid }
        | RecordError::Processing { txid, .. }
        | RecordError::TooBig { txid, .. } => {
            answer.insert("txid".into(), txid.to_string().into());
        }
        RecordError::Slot { outpoint, error } => {
            answer.extend(place(*outpoint));
            answer.extend(at_fault(*error));
        }
        RecordError::Spend(items) => {
            if let Some((outpoint, fault)) =
                items.iter().find_map(|item| Some((item.outpoint, item.error?)))
            {
                let message = format!("{error}; {outpoint}: {fault}");
                answer.insert("message".into(), message.into());
                answer.extend(at_fault(fault));
            }
            answer.insert("wrapped_in".into(), error.code().name().into());
            answer.insert("spends".into(), items.iter().map(spend_item).collect());
        }
    }
    answer.into()
}

/// One input of a spend that failed.
pub(super) fn spend_item(item: &SpendItem) -> Value {
    let mut answer = match (item.code(), item.error) {
        (Some(code), Some(error)) => {
            let mut answer = coded(code, &error.to_string());
            answer.extend(at_fault(error));
            answer
        }
        _ => Map::from_iter([("ok".to_owned(), true.into())]),
    };
    answer.extend(place(item.outpoint));
    answer.into()
}

/// What is known of a fault.
fn at_fault(error: SlotError) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("reason".into(), reason(error).into());
    match error {
        SlotError::Spent { by } => {
            answer.insert("spending_data".into(), spending_data(&by));
            answer.insert("conflicting_txid".into(), by.txid.to_string().into());
        }
        SlotError::CoinbaseImmature { spendable } | SlotError::FrozenUntil { spendable } => {
            answer.insert("spendable_in".into(), spendable.to_u32().into());
        }
        _ => {}
    }
    answer
}

/// An output.
pub(super) fn place(outpoint: Outpoint) -> Map<String, Value> {
    Map::from_iter([
        ("txid".to_owned(), outpoint.txid.to_string().into()),
        ("vout".to_owned(), outpoint.vout.into()),
    ])
}

/// A spender.
pub(super) fn spending_data(data: &SpendingData) -> Value {
    json!({ "txid": data.txid.to_string(), "vin": data.vin })
}

fn invalid(message: &str) -> Value {
    json!({ "error": "INVALID_ARGUMENT", "code": 1, "message": message })
}

fn coded(code: ErrorCode, message: &str) -> Map<String, Value> {
    Map::from_iter([
        ("error".to_owned(), code.name().into()),
        ("code".to_owned(), code.number().into()),
        ("message".to_owned(), message.into()),
    ])
}

/// The name of the check that failed.
const fn reason(error: SlotError) -> &'static str {
    match error {
        SlotError::TxNotFound => "TX_NOT_FOUND",
        SlotError::Creating => "CREATING",
        SlotError::Conflicting => "CONFLICTING",
        SlotError::Locked => "LOCKED",
        SlotError::CoinbaseImmature { .. } => "COINBASE_IMMATURE",
        SlotError::UtxosNotFound => "UTXOS_NOT_FOUND",
        SlotError::UtxoNotFound => "UTXO_NOT_FOUND",
        SlotError::HashMismatch => "UTXO_HASH_MISMATCH",
        SlotError::FrozenUntil { .. } => "FROZEN_UNTIL",
        SlotError::InvalidSpend => "INVALID_SPEND",
        SlotError::Frozen => "FROZEN",
        SlotError::Spent { .. } => "SPENT",
        SlotError::AlreadyFrozen => "ALREADY_FROZEN",
        SlotError::InvalidSize => "UTXO_INVALID_SIZE",
        SlotError::NotFrozen => "UTXO_NOT_FROZEN",
    }
}
