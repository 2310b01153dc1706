//! Double spends: who lost, who wins after all, and what builds on them.

use serde_json::{Value, json};
use varve_records::conflicts::{self, CLOSURE_BUDGET, ConflictBlock, ConflictError};
use varve_records::intent::Intent;
use varve_records::operation::Unspend;
use varve_records::record::BlockId;
use varve_records::spending_data::PLACEHOLDER;
use varve_records::store::{ConflictingParents, Store, StoreError};
use varve_records::{ErrorCode, RecordError};
use varve_types::{BlockHash, Txid};

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
    let intent = |intent: &Intent| {
        let mut parts = intent.txids.split(|txid| *txid == PLACEHOLDER);
        json!({
            "id": BlockHash::from_bytes(intent.id().0).to_string(),
            "block_height": intent.height.to_u32(),
            "block_hash": intent.block.to_string(),
            "created_at": intent.created_at,
            "winners": txids(parts.next().unwrap_or_default()),
            "losers": txids(parts.next().unwrap_or_default()),
        })
    };
    Ok(session.store.engine().intents()?.iter().map(intent).collect())
}

/// Why a walk or a resolution failed.
pub(super) fn failure(error: ConflictError) -> Failure {
    let message = error.to_string();
    let coded = |code| Failure::Refused { code, message: message.clone() };
    match error {
        ConflictError::Store(error) => error.into(),
        ConflictError::Stuck { error, .. } => coded(RecordError::cause(&error)),
        ConflictError::Frozen { .. } | ConflictError::FrozenChild(_) => {
            coded(ErrorCode::UtxoFrozen)
        }
        ConflictError::NoSuchOutput(_) => coded(ErrorCode::UtxoNotFound),
        _ => coded(ErrorCode::Processing),
    }
}

/// Does again what was begun and cut off, as every opening of a store must.
pub(in crate::command::records) fn replay(store: &Store) -> Result<usize, StoreError> {
    match conflicts::replay(store) {
        Ok(count) => Ok(count),
        Err(ConflictError::Store(error)) => Err(error),
        // The note stays, and its records stay locked; `conflict_intents` shows it.
        Err(_) => Ok(0),
    }
}
