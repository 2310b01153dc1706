//! Double spends: losers, late winners, and what builds on them.

use serde_json::{Value, json};
use varve::records::conflicts::{self, CLOSURE_BUDGET, ConflictBlock, ConflictError, Retry};
use varve::records::conflicts::{Intent, IntentId};
use varve::records::operation::Unspend;
use varve::records::record::BlockId;
use varve::records::store::{ConflictingParents, Store};
use varve::records::{ErrorCode, RecordError};
use varve::{BlockHash, Txid};

use super::all_or_failure;
use crate::command::records::arguments::{Arguments, HEIGHT, required};
use crate::command::records::failure::{Failure, place, refusal, spending_data};
use crate::command::records::session::Session;
use crate::command::records::shape::txids;

pub(super) fn set_conflicting(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let wanted = arguments.txids()?;
    let value = arguments.flag(&["conflicting", "value"])?.unwrap_or(true);
    let results = session.store.set_conflicting(&wanted, value)?;
    let parent = |spend: &Unspend| {
        let mut item = place(spend.slot.outpoint);
        item.insert("utxo_hash".into(), spend.slot.hash.to_string().into());
        item.insert("spending_data".into(), spending_data(&spend.by));
        Value::Object(item)
    };
    let item = |(txid, result): (&Txid, Result<ConflictingParents, _>)| match result {
        Ok(found) => json!({
            "txid": txid.to_string(),
            "parents": found.parents.iter().map(parent).collect::<Value>(),
            "spenders": txids(&found.spenders),
        }),
        Err(error) => refusal(&error),
    };
    all_or_failure("txs", wanted.iter().zip(results).map(item).collect())
}

pub(super) fn remove_from_conflicting_children(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let pair = |item: &Arguments<'_>| {
        let parent = item.txid(&["txid", "parent", "parent_txid"])?;
        let child = item.txid(&["child", "child_txid"])?;
        Ok((required("txid", parent)?, required("child", child)?))
    };
    let pairs = match arguments.objects(&["pairs"])? {
        Some(list) => list.iter().map(pair).collect::<Result<Vec<_>, Failure>>()?,
        None => vec![pair(arguments)?],
    };
    session.store.remove_conflicting_children(&pairs)?;
    Ok(json!({ "removed": pairs.len() }))
}

pub(super) fn get_conflicting_children(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    walk(session, arguments, conflicts::get_conflicting_children)
}

pub(super) fn get_counter_conflicting(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    walk(session, arguments, conflicts::get_counter_conflicting)
}

pub(super) fn get_and_lock_children(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    walk(session, arguments, conflicts::get_and_lock_children)
}

type Walk = fn(&Store, Txid, usize) -> Result<Vec<Txid>, ConflictError>;

fn walk(session: &Session, arguments: &Arguments<'_>, walk: Walk) -> Result<Value, Failure> {
    let txid = required("txid", arguments.txid(&["txid", "hash"])?)?;
    let found = walk(&session.store, txid, budget(arguments)?).map_err(failure)?;
    Ok(txids(&found))
}

fn budget(arguments: &Arguments<'_>) -> Result<usize, Failure> {
    let budget = arguments.u32(&["budget"])?.and_then(|budget| usize::try_from(budget).ok());
    Ok(budget.unwrap_or(CLOSURE_BUDGET))
}

pub(super) fn process_conflicting(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let winners = arguments.txids()?;
    let ancestors = arguments.numbers(&["ancestor_block_ids"])?.unwrap_or_default();
    let height = arguments.height(HEIGHT)?.unwrap_or(session.store.block_state().height);
    let hash = match arguments.text(&["block_hash"])? {
        Some(text) => text.parse().map_err(|error| Failure::argument("block_hash", error))?,
        None => BlockHash::from_bytes([0; 32]),
    };
    let block = ConflictBlock {
        height,
        hash,
        now_ms: Session::now(),
        budget: budget(arguments)?,
        is_ancestor: &|block: BlockId| ancestors.contains(&block.0),
    };
    let losers = conflicts::process_conflicting(&session.store, &winners, &block);
    Ok(json!({ "losers": txids(&losers.map_err(failure)?) }))
}

pub(super) fn conflict_intents(session: &Session, _: &Arguments<'_>) -> Result<Value, Failure> {
    Ok(session.store.intents()?.iter().map(shown).collect())
}

pub(super) fn retry_conflict_intent(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let ancestors = arguments.numbers(&["ancestor_block_ids"])?.unwrap_or_default();
    let with = Retry {
        now_ms: Session::now(),
        budget: budget(arguments)?,
        is_ancestor: &|block: BlockId| ancestors.contains(&block.0),
    };
    let losers = conflicts::retry(&session.store, intent_id(arguments)?, &with);
    Ok(json!({ "losers": txids(&losers.map_err(failure)?) }))
}

pub(super) fn abandon_conflict_intent(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let abandoned = conflicts::abandon(&session.store, intent_id(arguments)?);
    Ok(json!({ "abandoned": shown(&abandoned.map_err(failure)?) }))
}

fn intent_id(arguments: &Arguments<'_>) -> Result<IntentId, Failure> {
    let text = required("id", arguments.text(&["id", "intent_id"])?)?;
    text.parse().map_err(|error| Failure::argument("id", error))
}

fn shown(intent: &Intent) -> Value {
    json!({
        "id": intent.id().to_string(),
        "block_height": intent.height.to_u32(),
        "block_hash": intent.block.to_string(),
        "created_at": intent.created_at,
        "winners": txids(intent.winners()),
        "losers": txids(intent.losers()),
    })
}

/// Why a walk or a resolution failed.
pub(super) fn failure(error: ConflictError) -> Failure {
    match error {
        ConflictError::Store(error) => error.into(),
        error => Failure::Refused { code: code(&error), message: error.to_string() },
    }
}

fn code(error: &ConflictError) -> ErrorCode {
    match error {
        ConflictError::Store(error) => error.code(),
        ConflictError::Stuck { error, .. } => RecordError::cause(error),
        ConflictError::Frozen { .. } | ConflictError::FrozenChild(_) => ErrorCode::UtxoFrozen,
        ConflictError::NoSuchOutput(_) => ErrorCode::UtxoNotFound,
        ConflictError::Unspendable { error, .. } => error.code(),
        ConflictError::NoSuchIntent(_) => ErrorCode::NotFound,
        ConflictError::Pending { error, .. } => code(error),
        _ => ErrorCode::Processing,
    }
}

/// Resumes resolutions that were cut off, as every opening of a store does. A resolution that is
/// stuck is reported, and stays until it is retried or abandoned.
pub(in crate::command::records) fn replay(store: &Store) -> Result<(), Failure> {
    let replayed = conflicts::replay(store).map_err(failure)?;
    for (id, error) in replayed.stuck {
        eprintln!(
            "conflict resolution {id} is stuck: {error}. `varve records intents` shows it, \
             `varve records retry {id}` tries again, `varve records abandon {id}` gives it up"
        );
    }
    Ok(())
}

/// A resolution that is stuck, and why.
pub(super) fn stuck((id, error): &(IntentId, ConflictError)) -> Value {
    json!({ "id": id.to_string(), "message": error.to_string() })
}
