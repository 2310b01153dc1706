//! Alert orders: freezing outputs and binding them to other scripts.

use serde_json::Value;
use varve::records::exchange::UtxoWrapper;
use varve::records::operation::SlotRef;
use varve::records::record::Body;
use varve::records::record::FreezeWindow;
use varve::records::record::UtxoHash;
use varve::records::store::Item;
use varve::records::{Fields, RecordError, SlotError};
use varve::types::TxOut;
use varve::{Amount, Outpoint};

use super::all_or_failure;
use crate::command::records::arguments::{Arguments, required};
use crate::command::records::failure::{Failure, place, refusal};
use crate::command::records::session::Session;
use crate::command::records::unit::slot_ref;

pub(super) fn freeze(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let slots = slots(arguments, session)?;
    answer(&slots, session.store.freeze(&slots)?)
}

pub(super) fn unfreeze(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let slots = slots(arguments, session)?;
    answer(&slots, session.store.unfreeze(&slots)?)
}

pub(super) fn freeze_window(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let slots = slots(arguments, session)?;
    let from = arguments.u64(&["from"])?.unwrap_or(0);
    let until = arguments.u64(&["until"])?;
    let policy_expires = arguments.flag(&["policy_expires"])?.unwrap_or(false);
    // An end of 0 is stored for no end.
    let until = until.filter(|until| *until != 0);
    let window = FreezeWindow::from_interval(from, until, policy_expires);
    answer(&slots, session.store.freeze_window(&slots, window)?)
}

pub(super) fn reassign(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let old = arguments.object(&["old_utxo", "old"])?.unwrap_or(*arguments);
    let slot = slot_ref(&old, session)?;
    let to = match arguments.object(&["new_utxo", "new"])? {
        Some(new) => new_hash(&new, &["utxo_hash", "new_utxo_hash"], slot.outpoint, session)?,
        None => new_hash(arguments, &["new_utxo_hash"], slot.outpoint, session)?,
    };
    session.store.reassign(slot, to)?;
    let mut answer = place(slot.outpoint);
    answer.insert("utxo_hash".into(), to.to_string().into());
    Ok(answer.into())
}

/// The outputs that a line names: `spends`, or one with its fields in the line itself.
fn slots(arguments: &Arguments<'_>, session: &Session) -> Result<Vec<SlotRef>, Failure> {
    match arguments.objects(&["spends", "utxos"])? {
        Some(list) => list.iter().map(|item| slot_ref(item, session)).collect(),
        None => Ok(vec![slot_ref(arguments, session)?]),
    }
}

fn answer(slots: &[SlotRef], results: Vec<Item<()>>) -> Result<Value, Failure> {
    let one = |(slot, result): (&SlotRef, Item<()>)| match result {
        Ok(()) => {
            let mut item = place(slot.outpoint);
            item.insert("ok".into(), true.into());
            Value::Object(item)
        }
        Err(error) => refusal(&error),
    };
    all_or_failure("spends", slots.iter().zip(results).map(one).collect())
}

/// The new hash of a reassigned output: as given, or that of its new script.
fn new_hash(
    arguments: &Arguments<'_>,
    names: &[&str],
    outpoint: Outpoint,
    session: &Session,
) -> Result<UtxoHash, Failure> {
    if let Some(hash) = arguments.utxo_hash(names)? {
        return Ok(hash);
    }
    let script = arguments.bytes(&["new_script", "script"])?;
    let script = required("new_utxo_hash (or new_script)", script)?;
    let value = match arguments.u64(&["satoshis", "value"])? {
        Some(satoshis) => Amount::from_sat(satoshis),
        None => value_of(outpoint, session)?,
    };
    Ok(UtxoHash::of(&outpoint, &TxOut { value, script: &script }))
}

/// The value of an output.
fn value_of(outpoint: Outpoint, session: &Session) -> Result<Amount, Failure> {
    let record = session.store.get(outpoint.txid, Fields::TX)?;
    let vout = outpoint.vout;
    let found = match &record.body {
        Some(Body::Transaction(tx)) => {
            let mut outputs = (0_u32..).zip(tx.view().outputs());
            outputs.find(|(place, _)| *place == vout).map(|(_, output)| output.value)
        }
        Some(Body::Outputs(bytes)) => UtxoWrapper::parse(bytes).ok().and_then(|wrapper| {
            let mut outputs = wrapper.outputs();
            outputs.find(|found| found.index == vout).map(|found| found.output.value)
        }),
        Some(Body::External) | None => None,
    };
    let error = SlotError::UtxoNotFound;
    found.ok_or_else(|| RecordError::Slot { outpoint, error }.into())
}
