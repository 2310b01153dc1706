//! Transactions that a user hands in, on their way to the node.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use hex_conservative::DisplayHex as _;
use serde_json::{Value, json};
use varve_types::{Amount, Format, Tx, Txid, Wtxid};

use super::calls::{CallError, Calls};
use super::link::Trouble;
use crate::mempool::Acceptance;
use crate::source::transactions::{Gateway, GatewayError};

/// Calls of the threads that hand transactions in, one at a time.
pub(super) struct RpcGateway {
    calls: Mutex<Calls>,
    format: Format,
}

impl RpcGateway {
    pub(super) const fn new(calls: Calls, format: Format) -> Self {
        Self { calls: Mutex::new(calls), format }
    }

    fn call(&self, method: &str, params: &Value) -> Result<Value, GatewayError> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.call(method, params) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err((_, message))) => Err(GatewayError::Refused(message)),
            Err(error) => Err(GatewayError::Unreachable(match error {
                CallError::Trouble(Trouble::Unreachable(reason) | Trouble::Busy(reason))
                | CallError::Refused(reason) => reason,
                CallError::Stop(_) => "the sync has ended".to_owned(),
                CallError::TooLong | CallError::NoRest => "its answer is no answer".to_owned(),
            })),
        }
    }

    fn ids(&self, tx: &Bytes) -> Option<(Txid, Wtxid)> {
        let tx = Tx::parse(tx, self.format).ok()?;
        Some((tx.txid(), tx.wtxid()))
    }
}

impl Gateway for RpcGateway {
    fn send(&self, tx: &[u8]) -> Result<Txid, GatewayError> {
        let txid = self.call("sendrawtransaction", &json!([tx.to_lower_hex_string()]))?;
        let txid = txid.as_str().and_then(|txid| txid.parse().ok());
        txid.ok_or_else(|| GatewayError::Unreachable("it names no txid; is this a node?".into()))
    }

    fn send_package(&self, txs: &[Bytes]) -> Result<Vec<Result<Txid, String>>, GatewayError> {
        let answer = self.call("submitpackage", &json!([hex_of(txs)]))?;
        let results = answer.get("tx-results").unwrap_or(&Value::Null);
        let message = answer.get("package_msg").and_then(Value::as_str);
        let message = message.filter(|message| *message != "success");
        let one = |tx: &Bytes| {
            let (txid, wtxid) = self.ids(tx).ok_or("the bytes are no transaction")?;
            let result = results.get(wtxid.to_string());
            let error = result.and_then(|result| result.get("error")).and_then(Value::as_str);
            match (result, error.or(message.filter(|_| error.is_none() && result.is_none()))) {
                (Some(_), None) => Ok(txid),
                (_, error) => Err(error.unwrap_or("the node does not say").to_owned()),
            }
        };
        Ok(txs.iter().map(one).collect())
    }

    fn test(&self, txs: &[Bytes]) -> Result<Vec<Acceptance>, GatewayError> {
        let answer = self.call("testmempoolaccept", &json!([hex_of(txs)]))?;
        let answers = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        let found = txs.iter().zip(answers).filter_map(|(tx, answer)| {
            let (txid, wtxid) = self.ids(tx)?;
            Some(Acceptance { txid, wtxid, result: tested(answer) })
        });
        let found: Vec<Acceptance> = found.collect();
        match found.len() == txs.len() {
            true => Ok(found),
            false => Err(GatewayError::Unreachable("it did not test every transaction".into())),
        }
    }
}

impl fmt::Debug for RpcGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcGateway").finish_non_exhaustive()
    }
}

fn hex_of(txs: &[Bytes]) -> Vec<String> {
    txs.iter().map(|tx| tx.to_lower_hex_string()).collect()
}

/// One answer of `testmempoolaccept`.
fn tested(answer: &Value) -> Result<(u64, Amount), String> {
    let text = |name| answer.get(name).and_then(Value::as_str);
    if answer.get("allowed").and_then(Value::as_bool) != Some(true) {
        let reason = text("reject-reason").or_else(|| text("package-error"));
        return Err(reason.unwrap_or("it is not tested, because another is refused").to_owned());
    }
    let vsize = answer.get("vsize").and_then(Value::as_u64).unwrap_or_default();
    let fee = answer.get("fees").and_then(|fees| fees.get("base"));
    Ok((vsize, fee.and_then(satoshi).unwrap_or(Amount::ZERO)))
}

/// An amount that a node gives in bitcoins.
fn satoshi(value: &Value) -> Option<Amount> {
    let text = value.to_string();
    // Numbers of JSON may have exponents: a node writes none, but a parser of ours may.
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => (text.to_owned(), exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{fraction}");
    let places = 8 - i32::try_from(fraction.len()).ok()? + exponent;
    let number: u64 = digits.parse().ok()?;
    let scale = 10_u64.checked_pow(places.unsigned_abs())?;
    let satoshi = if places < 0 { number / scale } else { number.checked_mul(scale)? };
    Some(Amount::from_sat(satoshi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly() {
        for (text, expected) in [
            ("0.00001000", 1_000),
            ("1e-8", 1),
            ("1.41e-6", 141),
            ("0.1", 10_000_000),
            ("20999999.9769", 2_099_999_997_690_000),
            ("3", 300_000_000),
            ("0.00", 0),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(satoshi(&value), Some(Amount::from_sat(expected)), "{text}");
        }
        assert_eq!(satoshi(&json!("x")), None);
    }
}
