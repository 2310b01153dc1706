//! Reading records and outputs.

use hex_conservative::DisplayHex as _;
use serde_json::{Value, json};
use varve::records::Fields;

use crate::command::records::arguments::{Arguments, required, transaction};
use crate::command::records::failure::{Failure, spending_data};
use crate::command::records::session::{Session, item};
use crate::command::records::shape::{Selection, hex};
use crate::command::records::unit::slot_ref;

/// Everything but the transaction.
const META: Fields =
    Fields::INPOINTS.union(Fields::UTXOS).union(Fields::ALERTS).union(Fields::CHILDREN);

pub(super) fn get(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    get_selected(session, arguments, Fields::ALL)
}

pub(super) fn get_meta(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    get_selected(session, arguments, META)
}

fn get_selected(
    session: &Session,
    arguments: &Arguments<'_>,
    fields: Fields,
) -> Result<Value, Failure> {
    let txid = required("txid", arguments.txid(&["txid", "hash"])?)?;
    let selection = selection(arguments, fields)?;
    Ok(selection.show(&session.store.get(txid, selection.fields)?))
}

fn selection(arguments: &Arguments<'_>, fields: Fields) -> Result<Selection, Failure> {
    let names = arguments.names(&["fields"])?;
    names.map_or(Ok(Selection::all(fields)), |names| Selection::of(&names))
}

pub(super) fn get_spend(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let response = session.store.get_spend(&slot_ref(arguments, session)?)?;
    Ok(json!({
        "status": response.status.name(),
        "status_code": response.status as u64,
        "lock_time": response.lock_time,
        "spending_data": response.spending.as_ref().map(spending_data),
        "bytes": response.to_bytes().to_lower_hex_string(),
    }))
}

pub(super) fn decorate(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let selection = selection(arguments, Fields::ALL)?;
    let records = session.store.batch_decorate(&arguments.txids()?, selection.fields)?;
    let show = |record: Result<_, _>| item(record.map(|record| selection.show(&record)));
    Ok(records.into_iter().map(show).collect())
}

pub(super) fn previous_outputs(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let format = session.store.settings().format;
    let many = arguments.names(&["txs"])?;
    let Some(many) = many else {
        let tx = arguments.tx(format)?;
        let found = session.store.previous_outputs_decorate(&[tx])?.pop();
        let found = found.transpose()?;
        return Ok(json!({ "tx": found.as_ref().map(hex) }));
    };
    let parse = |text: &&str| {
        let bytes: Vec<u8> = hex_conservative::FromHex::from_hex(text)
            .map_err(|error| Failure::argument("txs", error))?;
        transaction(&bytes.into(), format, None)
    };
    let txs = many.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let found = session.store.previous_outputs_decorate(&txs)?;
    let show = |tx: Result<_, _>| item(tx.map(|tx| json!({ "tx": hex(&tx) })));
    Ok(json!({ "txs": found.into_iter().map(show).collect::<Value>() }))
}

pub(super) fn health(session: &Session, _: &Arguments<'_>) -> Result<Value, Failure> {
    let health = session.store.health();
    Ok(json!({ "status": health.http_status(), "message": health.text }))
}

pub(super) fn sizes(session: &Session, _: &Arguments<'_>) -> Result<Value, Failure> {
    let status = session.store.engine().status()?;
    Ok(json!({
        "keys": status.keys,
        "intents": status.intents,
        "memory": status.memory,
        "live": status.live,
        "stored": status.stored,
    }))
}
