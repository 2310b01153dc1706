//! Creating many records at once, and records of which only outputs are known.

use std::collections::HashMap;

use hex_conservative::FromHex as _;
use serde_json::{Value, json};
use varve_records::outcome::Spent;
use varve_records::store::TxUnit;
use varve_records::utxo_wrapper::{UtxoWrapper, WrappedOutput, WrapperHead, write_wrapper};
use varve_records::{Fields, Transaction};
use varve_types::{Amount, Outpoint, TxOut, Txid};

use super::super::arguments::{Arguments, required, transaction};
use super::super::failure::Failure;
use super::super::session::{Session, item};
use super::super::unit::{Summary, create_options, rules};

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

/// Gives transactions the outputs that they spend, from one another and from the records.
fn decorate(txs: Vec<Transaction>, session: &Session) -> Result<Vec<Transaction>, Failure> {
    let own: HashMap<Txid, Transaction> = txs.iter().map(|tx| (tx.txid(), tx.clone())).collect();
    let mut parents = own.clone();
    let bare = |tx: &&Transaction| !tx.is_extended();
    for outpoint in txs.iter().filter(bare).flat_map(Transaction::outpoints) {
        if !parents.contains_key(&outpoint.txid)
            && let Some(Ok(record)) =
                session.store.batch_decorate(&[outpoint.txid], Fields::TX)?.pop()
            && let Some(varve_records::record::Body::Transaction(parent)) = record.body
        {
            parents.insert(outpoint.txid, parent);
        }
    }
    let extend = |tx: Transaction| {
        let find = |outpoint: &Outpoint| {
            let parent = parents.get(&outpoint.txid)?;
            let mut outputs = (0_u32..).zip(parent.view().outputs());
            outputs.find(|(vout, _)| *vout == outpoint.vout).map(|(_, output)| output)
        };
        let outpoints = tx.outpoints();
        if tx.is_extended() || outpoints.is_empty() {
            return tx;
        }
        let spent: Option<Vec<TxOut<'_>>> = outpoints.iter().map(find).collect();
        spent.and_then(|spent| tx.extend(&spent)).unwrap_or(tx)
    };
    Ok(txs.into_iter().map(extend).collect())
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
