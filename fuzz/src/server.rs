//! What clients of the servers send.

use serde_json::Value;
use varve_server::electrum::{Fault, Line, Request};
use varve_server::http::{Form, RequestBody};

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "electrum_request", run: request, seeds: |_| seeds() },
    Target { name: "conduit_body", run: body, seeds: |_| bodies() },
];

/// A body is read as what its first byte says, or refused; bytes give as many rows as they hold.
fn body(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    let form = if kind & 1 == 0 { Form::Json } else { Form::Binary };
    let body = RequestBody { form, bytes };
    let (outpoints, filters, hashes) = (body.outpoints(), body.filters(), body.hashes());
    assert_eq!(outpoints.as_ref().map(Vec::len).ok(), filters.as_ref().map(Vec::len).ok());
    if form == Form::Binary {
        let length = |count: usize, row: usize| count * row == bytes.len();
        assert!(outpoints.is_err() || outpoints.is_ok_and(|read| length(read.len(), 36)));
        assert!(hashes.is_err() || hashes.is_ok_and(|read| length(read.len(), 32)));
        return;
    }
    // What is read as JSON is what a general parser finds.
    if let Ok(read) = outpoints {
        let value: Value = serde_json::from_slice(bytes).expect("it was read");
        let rows = value.as_array().expect("a list").iter();
        for (row, outpoint) in rows.zip(read) {
            assert_eq!(row[0].as_str().map(str::to_lowercase), Some(outpoint.txid.to_string()));
            assert_eq!(row[1].as_u64(), Some(u64::from(outpoint.vout)));
        }
    }
    if let Ok(read) = hashes {
        let value: Value = serde_json::from_slice(bytes).expect("it was read");
        for (row, hash) in value.as_array().expect("a list").iter().zip(read) {
            assert_eq!(row.as_str().map(str::to_lowercase), Some(hash.to_string()));
        }
    }
}

fn bodies() -> Vec<Vec<u8>> {
    let hash = "ab".repeat(32);
    let pairs = format!("\0[[\"{hash}\",7],[\"{hash}\", 4294967295]]");
    let hashes = format!("\0[\"{hash}\",\"{hash}\"]");
    vec![pairs.into(), hashes.into(), vec![1; 1 + 36], vec![1; 1 + 64], b"\0[[[[]]]]".to_vec()]
}

/// Requests in a batch that are taken.
const MAX_BATCH: usize = 50;
/// The codes that a line as such can be refused with.
const CODES: [i32; 3] = [-32700, -32600, 1];

/// A line is read or refused with a code; what is read is what a general JSON parser finds.
fn request(bytes: &[u8]) {
    match Line::parse(bytes, MAX_BATCH) {
        Line::One(one) => check(one, bytes),
        Line::Batch(batch) => {
            assert!((1..=MAX_BATCH).contains(&batch.len()));
            for part in batch {
                let part = part.get().as_bytes();
                check(Request::parse(part), part);
            }
        }
    }
}

fn check(request: Result<Request<'_>, Fault>, bytes: &[u8]) {
    let value: Option<Value> = serde_json::from_slice(bytes).ok();
    match request {
        Err(fault) => assert!(CODES.contains(&fault.code), "{fault:?}"),
        Ok(request) => {
            // The general parser gives up on deep nesting, and reads no numbers beyond a double.
            let Some(value) = value else { return };
            assert_eq!(
                value.get("method").and_then(|method| method.as_str()),
                Some(&*request.method)
            );
            let id = request.id.map(|id| id.get());
            assert_eq!(id.is_some(), value.get("id").is_some());
            let id: Option<Value> = id.and_then(|id| serde_json::from_str(id).ok());
            assert!(id.as_ref().is_none_or(|id| Some(id) == value.get("id")));
            assert!(!id.is_some_and(|id| id.is_object() || id.is_array() || id.is_boolean()));
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let one = r#"{"jsonrpc":"2.0","id":7,"method":"blockchain.block.header","params":[5,8]}"#;
    let named = r#"{"id":"a\u00e9","method":"server.version","params":{"client_name":"x"}}"#;
    let plain = r#" {"method":"server.ping","id":null}"#;
    let batch = format!("[{one},{named}, {plain}]");
    [one, named, plain, &batch, "[]", "{}", "[[[]]]", "7"].map(|text| text.into()).to_vec()
}
