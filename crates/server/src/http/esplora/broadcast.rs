//! `POST /tx`, `/txs/package` and `/txs/test`: transactions for the network.
//!
//! A refusal has the reason in its text, as the node gave it.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use hex_conservative::FromHex as _;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use varve::types::{Format, Tx};
use varve::{Acceptance, BroadcastError, Txid};

use super::super::answer::{Answer, Cache, Refusal};
use super::super::api::Shared;
use super::Refusals;
use super::batch::{List, list};
use super::json;

/// Transactions of a package, as nodes have it.
const PACKAGE: usize = 25;

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(tx)).routes(routes!(package)).routes(routes!(test))
}

impl From<BroadcastError> for Refusal {
    fn from(error: BroadcastError) -> Self {
        match error {
            BroadcastError::Unavailable { .. } => Self::unavailable(error.to_string()),
            _ => Self::bad(error.to_string()),
        }
    }
}

/// The bytes that a text of hexadecimal digits stands for.
fn bytes(text: &str) -> Result<Vec<u8>, Refusal> {
    Vec::from_hex(text.trim()).map_err(|_| Refusal::bad("Invalid hex string"))
}

/// Transactions of a list in hex, of which there may be a package's number.
fn transactions(api: &Shared, body: List) -> Result<Vec<Vec<u8>>, Refusal> {
    let texts = list(api, body)?;
    if texts.is_empty() || texts.len() > PACKAGE {
        let text = format!("expected 1 to {PACKAGE} transactions");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    }
    texts.iter().map(|text| bytes(text)).collect()
}

/// Sends a transaction, in hex, to the network. The answer is its txid.
#[utoipa::path(post, path = "/tx", tag = "Esplora",
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
async fn tx(State(api): State<Shared>, body: String) -> Result<Answer, Refusal> {
    let bytes = bytes(&body)?;
    let service = std::sync::Arc::clone(&api.service);
    let sent = api.service.act_outside(move || service.node.broadcast(&bytes)).await?;
    Ok(Answer::text(sent).cached(Cache::Never).at(api.service.tip()))
}

/// What became of a package.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Package)]
struct Package {
    /// `success`, or that some transaction was refused.
    package_msg: &'static str,
    /// By wtxid.
    #[serde(rename = "tx-results")]
    tx_results: BTreeMap<String, PackageTx>,
}

/// What became of a transaction of a package.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::PackageTx)]
struct PackageTx {
    txid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Sends a child and its parents, the child last, to the network together.
#[utoipa::path(post, path = "/txs/package", tag = "Esplora", request_body = Vec<String>,
    responses((status = 200, body = Package), Refusals))]
async fn package(State(api): State<Shared>, body: List) -> Result<Answer, Refusal> {
    let txs = transactions(&api, body)?;
    let ids = txs.iter().map(|tx| ids(tx)).collect::<Result<Vec<_>, _>>()?;
    let service = std::sync::Arc::clone(&api.service);
    let results = api.service.act_outside(move || service.node.broadcast_package(&txs)).await?;
    let all = results.iter().all(Result::is_ok);
    let tx_results = ids.into_iter().zip(results).map(|((txid, wtxid), result)| {
        (wtxid, PackageTx { txid: json::txid(txid), error: result.err() })
    });
    let package_msg = if all { "success" } else { "transaction failed" };
    let answer = Package { package_msg, tx_results: tx_results.collect() };
    Ok(Answer::json(&answer).cached(Cache::Never).at(api.service.tip()))
}

fn ids(bytes: &[u8]) -> Result<(Txid, String), Refusal> {
    let tx = Tx::parse(bytes, Format::Segwit);
    let tx = tx.map_err(|error| Refusal::bad(format!("not a transaction: {error}")))?;
    Ok((tx.txid(), tx.wtxid().to_string()))
}

/// Whether a transaction would be taken.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Test)]
struct Test {
    txid: String,
    wtxid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    vsize: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fees: Option<TestFees>,
    #[serde(rename = "reject-reason", skip_serializing_if = "Option::is_none")]
    reject_reason: Option<String>,
}

/// The fee of a transaction, in coins as nodes write it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::TestFees)]
struct TestFees {
    base: f64,
}

/// Whether transactions would be taken, each after those before it. Nothing is sent.
#[utoipa::path(post, path = "/txs/test", tag = "mempool.space", request_body = Vec<String>,
    responses((status = 200, body = Vec<Test>), Refusals))]
async fn test(State(api): State<Shared>, body: List) -> Result<Answer, Refusal> {
    let txs = transactions(&api, body)?;
    let service = std::sync::Arc::clone(&api.service);
    let answers = api.service.act_outside(move || service.node.test_accept(&txs)).await?;
    let answers: Vec<Test> = answers.into_iter().map(Test::from).collect();
    Ok(Answer::json(&answers).cached(Cache::Never).at(api.service.tip()))
}

impl From<Acceptance> for Test {
    fn from(acceptance: Acceptance) -> Self {
        let Acceptance { txid, wtxid, result } = acceptance;
        let (vsize, fees, reject_reason) = match result {
            Ok((vsize, fee)) => {
                let base = fee.to_string().parse().unwrap_or_default();
                (Some(vsize), Some(TestFees { base }), None)
            }
            Err(reason) => (None, None, Some(reason)),
        };
        Self {
            txid: json::txid(txid),
            wtxid: wtxid.to_string(),
            allowed: reject_reason.is_none(),
            vsize,
            fees,
            reject_reason,
        }
    }
}
