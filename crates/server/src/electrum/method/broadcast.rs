//! Methods that hand transactions to the node, or ask it what would become of them.
//!
//! They wait for the node, so lines that hold one have separate turns (`Service::act_outside`).

use memchr::memmem;
use serde_json::{Map, Value, json};
use varve::BroadcastError;
use varve::types::{Tx, Txid};

use super::{Call, Method};
use crate::electrum::fault::Fault;
use crate::electrum::params::Params;

pub(super) const METHODS: &[Method] = &[
    Method("blockchain.transaction.broadcast", &["raw_tx"], broadcast),
    Method("blockchain.transaction.broadcast_package", &["raw_txs", "verbose"], package),
    Method("blockchain.transaction.testmempoolaccept", &["raw_txs"], test),
];

/// Transactions in a package: Core takes no more.
const MAX_PACKAGE: usize = 25;

/// Whether a line may hold one of these methods.
pub(in crate::electrum) fn may_wait(line: &[u8]) -> bool {
    let has = |part: &str| memmem::find(line, part.as_bytes()).is_some();
    has("transaction.broadcast") || has("testmempoolaccept")
}

impl From<BroadcastError> for Fault {
    fn from(error: BroadcastError) -> Self {
        match error {
            BroadcastError::Refused { reason } => {
                Self::bad(format!("the transaction was rejected by network rules.\n\n{reason}"))
            }
            BroadcastError::Decode { .. } => Self::bad(error.to_string()),
            _ => Self::daemon(error.to_string()),
        }
    }
}

fn broadcast(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let txid = call.shared.service.node.broadcast(&params.bytes(0)?)?;
    call.answer(&txid.to_string())
}

fn transactions(params: &Params<'_>) -> Result<Vec<Vec<u8>>, Fault> {
    let txs = params.list_of_bytes(0)?;
    if txs.is_empty() || txs.len() > MAX_PACKAGE {
        return Err(Fault::bad(format!("raw_txs should have 1 to {MAX_PACKAGE} transactions")));
    }
    Ok(txs)
}

/// What became of a package; with `verbose` as Core's `submitpackage` says it.
fn package(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let (txs, is_verbose) = (transactions(params)?, params.flag(1)?);
    let results = call.shared.service.node.broadcast_package(&txs)?;
    let names = txs.iter().map(|bytes| names(call, bytes)).collect::<Result<Vec<_>, _>>()?;
    let success = results.iter().all(Result::is_ok);
    if !is_verbose {
        let errors: Vec<Value> = names
            .iter()
            .zip(&results)
            .filter_map(|((txid, _), result)| {
                let error = result.as_ref().err()?;
                Some(json!({"txid": txid.to_string(), "error": error}))
            })
            .collect();
        let mut answer = json!({"success": success});
        if let Some(fields) = answer.as_object_mut().filter(|_| !errors.is_empty()) {
            fields.insert("errors".to_owned(), errors.into());
        }
        return call.answer(&answer);
    }
    let mut all = Map::new();
    for ((txid, wtxid), result) in names.into_iter().zip(results) {
        let result = match result {
            Ok(txid) => json!({"txid": txid.to_string()}),
            Err(error) => json!({"txid": txid.to_string(), "error": error}),
        };
        all.insert(wtxid, result);
    }
    let message = if success { "success" } else { "transaction failed" };
    call.answer(&json!({"package_msg": message, "tx-results": all}))
}

/// The txid of a transaction, and its wtxid as text.
fn names(call: &Call<'_>, bytes: &[u8]) -> Result<(Txid, String), Fault> {
    let tx = Tx::parse(bytes, call.snapshot.network().format());
    let tx = tx.map_err(|error| Fault::bad(format!("no transaction: {error}")))?;
    Ok((tx.txid(), tx.wtxid().to_string()))
}

fn test(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let txs = transactions(params)?;
    let results = call.shared.service.node.test_accept(&txs)?;
    let answer = |one: varve::Acceptance| {
        let (txid, wtxid) = (one.txid.to_string(), one.wtxid.to_string());
        match one.result {
            Ok(_) => json!({"txid": txid, "wtxid": wtxid, "allowed": true}),
            Err(reason) => {
                json!({"txid": txid, "wtxid": wtxid, "allowed": false, "reason": reason})
            }
        }
    };
    call.answer(&results.into_iter().map(answer).collect::<Vec<_>>())
}
