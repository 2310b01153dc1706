//! Creating many records at once, and records of which only outputs are known.

use std::collections::HashMap;

use hex_conservative::FromHex as _;
use serde_json::{Value, json};
use varve::records::exchange::{UtxoWrapper, WrappedOutput, WrapperHead, write_wrapper};
use varve::records::operation::Spent;
use varve::records::record::Body;
use varve::records::store::TxUnit;
use varve::records::{Fields, Transaction};
use varve::types::TxOut;
use varve::{Amount, Outpoint, Txid};

use crate::command::records::arguments::{Arguments, required, transaction};
use crate::command::records::failure::Failure;
use crate::command::records::session::{Session, item};
use crate::command::records::unit::{Summary, create_options, rules};

/// Spends and creates many transactions, which may spend one another, in any order.
pub(super) fn spend_and_create_multi(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let format = session.store.settings().format;
    let texts = required("txs", arguments.names(&["txs"])?)?;
    let parse = |text: &&str| {
        let bytes = Vec::from_hex(text).map_err(|error| Failure::argument("txs", error))?;
        transaction(&bytes.into(), format, None)
    };
    let txs = texts.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let txs = decorate(txs, session)?;
    let (rules, options) = (rules(arguments, session)?, create_options(arguments, session)?);
    let unit = |tx| TxUnit { tx, spend: Some(rules), create: Some(options.clone()) };
    let units: Vec<TxUnit<'_>> = txs.iter().map(unit).collect();
    let answers = session.store.spend_and_create_multi(&units)?;
    let show = |(tx, answer): (&Transaction, Result<Vec<Spent>, _>)| {
        item(answer.map(|spent| Summary::of(tx).show(&spent)))
    };
    Ok(json!({ "txs": txs.iter().zip(answers).map(show).collect::<Value>() }))
}

/// Gives transactions the outputs that they spend, from one another and from the records. One
/// whose parents are in neither stays as it is.
fn decorate(txs: Vec<Transaction>, session: &Session) -> Result<Vec<Transaction>, Failure> {
    let mut parents: HashMap<Txid, Transaction> =
        txs.iter().map(|tx| (tx.txid(), tx.clone())).collect();
    let bare = |tx: &&Transaction| !tx.is_extended();
    for outpoint in txs.iter().filter(bare).flat_map(Transaction::outpoints) {
        if !parents.contains_key(&outpoint.txid)
            && let Some(Ok(record)) =
                session.store.batch_decorate(&[outpoint.txid], Fields::TX)?.pop()
            && let Some(Body::Transaction(parent)) = record.body
        {
            parents.insert(outpoint.txid, parent);
        }
    }
    Ok(txs.into_iter().map(|tx| extend(&tx, &parents).unwrap_or(tx)).collect())
}

/// The transaction in extended form; `None` when it has that form, or a parent is not known.
fn extend(tx: &Transaction, parents: &HashMap<Txid, Transaction>) -> Option<Transaction> {
    let outpoints = tx.outpoints();
    if tx.is_extended() || outpoints.is_empty() {
        return None;
    }
    let find = |outpoint: &Outpoint| {
        let mut outputs = (0_u32..).zip(parents.get(&outpoint.txid)?.view().outputs());
        outputs.find(|(vout, _)| *vout == outpoint.vout).map(|(_, output)| output)
    };
    let spent: Option<Vec<TxOut<'_>>> = outpoints.iter().map(find).collect();
    tx.extend(&spent?)
}

/// Creates the record of a transaction of which only outputs are known: `wrapper` in hex, or
/// `txid` and `outputs`.
pub(super) fn create_outputs(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let options = create_options(arguments, session)?;
    let wrapper = match arguments.bytes(&["wrapper"])? {
        Some(bytes) => {
            UtxoWrapper::parse(&bytes).map_err(|error| Failure::argument("wrapper", error))?;
            bytes
        }
        None => {
            let head = WrapperHead {
                txid: required("txid", arguments.txid(&["txid"])?)?,
                height: options.height,
                coinbase: options.is_coinbase.unwrap_or(false),
            };
            wrap(&head, &required("outputs", arguments.objects(&["outputs"])?)?)?
        }
    };
    let txid = session.store.create_outputs(wrapper.into(), &options)?;
    Ok(json!({ "txid": txid.to_string() }))
}

fn wrap(head: &WrapperHead, outputs: &[Arguments<'_>]) -> Result<Vec<u8>, Failure> {
    let mut parsed = Vec::new();
    for output in outputs {
        let vout = required("vout", output.u32(&["vout", "index"])?)?;
        let value = required("satoshis", output.u64(&["satoshis", "value"])?)?;
        let script = required("script", output.bytes(&["script", "locking_script"])?)?;
        parsed.push((vout, Amount::from_sat(value), script));
    }
    let mut bytes = Vec::new();
    let outputs = parsed.iter().map(|(index, value, script)| WrappedOutput {
        index: *index,
        output: TxOut { value: *value, script },
    });
    write_wrapper(head, outputs, &mut bytes);
    Ok(bytes)
}
