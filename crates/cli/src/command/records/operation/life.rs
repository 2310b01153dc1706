//! What happens to a record between its creation and its removal.

use serde_json::{Map, Value, json};
use varve::records::engine::SlotView;
use varve::records::operation::{MinedBlockInfo, SlotRef, Unspend};
use varve::records::record::BlockId;
use varve::records::record::SpendingData;
use varve::records::record::UtxoHash;
use varve::records::{RecordError, StoreError};
use varve::{Outpoint, Txid};

use super::all_or_failure;
use crate::command::records::arguments::{Arguments, HEIGHT, required};
use crate::command::records::failure::{Failure, place, refusal, spend_item};
use crate::command::records::session::Session;
use crate::command::records::shape::txids;
use crate::command::records::unit::{UnitLine, slot_ref};

/// Spends outputs for many transactions, each by itself: those that pass are spent.
pub(super) fn spend_multi(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let answers = session.perform_units(UnitLine::of_each(arguments, session)?)?;
    let item = |answer: Result<Value, Failure>| match answer {
        Ok(mut answer) => {
            answer.get_mut("spends").and_then(|spends| spends.get_mut(0)).map(Value::take)
        }
        Err(Failure::Store(StoreError::Record(RecordError::Spend(items)))) => {
            items.first().map(spend_item)
        }
        Err(failure) => Some(failure.to_json()),
    };
    all_or_failure("spends", answers.into_iter().filter_map(item).collect())
}

pub(super) fn unspend(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let spends = unspends(session, arguments)?;
    let lock = arguments.flag(&["lock_parents", "flag_as_locked"])?.unwrap_or(false);
    let outpoints: Vec<Outpoint> = spends.iter().map(|spend| spend.slot.outpoint).collect();
    let taken = session.store.unspend(spends, lock)?;
    let item = |(outpoint, taken): (Outpoint, bool)| {
        let mut item = place(outpoint);
        item.insert("unspent".into(), taken.into());
        Value::Object(item)
    };
    Ok(json!({ "spends": outpoints.into_iter().zip(taken).map(item).collect::<Value>() }))
}

/// The spends that a line reverses: `spends`, one spend with its fields in the line itself, or all
/// inputs of `tx`.
fn unspends(session: &Session, arguments: &Arguments<'_>) -> Result<Vec<Unspend>, Failure> {
    if arguments.has(&["tx"]) {
        let tx = arguments.tx(session.store.settings().format)?;
        let outpoints = tx.outpoints();
        let views = session.store.engine().slots(&outpoints)?;
        let spend = |(vin, (outpoint, view)): (u32, (Outpoint, Option<SlotView>))| {
            // Without a slot no hash is right, and the store reports what is missing.
            let hash = view.and_then(|view| view.slot).map(|slot| slot.hash);
            let hash = hash.unwrap_or(UtxoHash::from_bytes([0; 32]));
            let by = SpendingData::new(tx.txid(), vin);
            Unspend { slot: SlotRef { outpoint, hash }, by }
        };
        return Ok((0..).zip(outpoints.into_iter().zip(views)).map(spend).collect());
    }
    let by = arguments.spending_data()?;
    let list = arguments.objects(&["spends"])?.unwrap_or_else(|| vec![*arguments]);
    let spend = |item: Arguments<'_>| {
        let by = required("spending_data", item.spending_data()?.or(by))?;
        Ok(Unspend { slot: slot_ref(&item, session)?, by })
    };
    list.into_iter().map(spend).collect()
}

pub(super) fn set_mined(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let wanted = arguments.txids()?;
    let infos = arguments.mined_block_infos()?;
    if infos.is_empty() {
        return Err(Failure::argument("block_id", "is missing"));
    }
    let mut items = Vec::new();
    for info in &infos {
        items = mine(session, &wanted, info)?;
    }
    let mut blocks = Map::new();
    for (txid, item) in wanted.iter().zip(&items) {
        let of = item.get("block_ids").cloned();
        blocks.extend(of.map(|of| (txid.to_string(), of)));
    }
    all_or_failure("txs", items)?;
    Ok(json!({ "block_ids": blocks }))
}

/// The blocks of each transaction after one was set, or why it was not.
fn mine(session: &Session, wanted: &[Txid], info: &MinedBlockInfo) -> Result<Vec<Value>, Failure> {
    let results = session.store.set_mined_multi(wanted, info)?;
    let item = |(txid, result): (&Txid, Result<Vec<BlockId>, _>)| match result {
        Ok(blocks) => {
            let blocks: Vec<u32> = blocks.iter().map(|block| block.0).collect();
            json!({ "txid": txid.to_string(), "block_ids": blocks })
        }
        Err(error) => refusal(&error),
    };
    Ok(wanted.iter().zip(results).map(item).collect())
}

pub(super) fn mark_on_longest_chain(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let wanted = arguments.txids()?;
    let value = arguments.flag(&["on_longest_chain", "value"])?.unwrap_or(true);
    session.store.mark_on_longest_chain(&wanted, value)?;
    Ok(json!({ "txids": txids(&wanted), "on_longest_chain": value }))
}

pub(super) fn set_locked(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let value = arguments.flag(&["locked", "value"])?.unwrap_or(true);
    locked(session, arguments, value)
}

pub(super) fn unlock(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    locked(session, arguments, false)
}

fn locked(session: &Session, arguments: &Arguments<'_>, value: bool) -> Result<Value, Failure> {
    let wanted = arguments.txids()?;
    session.store.set_locked(&wanted, value)?;
    Ok(json!({ "txids": txids(&wanted), "locked": value }))
}

pub(super) fn remove_block_ids(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let wanted = arguments.txids()?;
    let blocks = arguments.numbers(&["block_ids", "block_id"])?;
    let blocks: Vec<BlockId> = required("block_ids", blocks)?.into_iter().map(BlockId).collect();
    session.store.remove_block_ids(&wanted, &blocks)?;
    Ok(json!({ "txids": txids(&wanted) }))
}

pub(super) fn delete(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let wanted = arguments.txids()?;
    session.store.delete(&wanted)?;
    Ok(json!({ "txids": txids(&wanted) }))
}

pub(super) fn preserve_until(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let wanted = arguments.txids()?;
    let names = ["preserve_until", "preserve_until_height", "until", "block_height", "height"];
    let height = required("preserve_until", arguments.height(&names)?)?;
    let missing = session.store.preserve_until(&wanted, height)?;
    Ok(json!({ "preserve_until": height.to_u32(), "missing": txids(&missing) }))
}

pub(super) fn process_expired_preservations(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let height = arguments.height(HEIGHT)?.unwrap_or(session.store.block_state().height);
    let expired = session.store.process_expired_preservations(height)?;
    Ok(json!({ "expired": expired }))
}
