//! Many things in one request, as mempool.space's servers ask for them.
//!
//! One snapshot answers all parts of a request. A list may be as long as the limit `batch` says.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use varve::{Outpoint, ScriptHash};

use super::super::answer::{Answer, Cache, Refusal};
use super::super::api::{Moment, Shared};
use super::history::Start;
use super::json::{Outspend, Summary, Tx};
use super::script::{PageQuery, mixed_page, summaries};
use super::{Refusals, block, hash, plain_script_hash, script_of};

/// Transactions whose outputs one request in a query string may ask about.
const TXIDS: usize = 50;

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(addresses_txs))
        .routes(routes!(scripthashes_txs))
        .routes(routes!(addresses_summary))
        .routes(routes!(scripthashes_summary))
        .routes(routes!(outspends))
        .routes(routes!(internal_txs))
        .routes(routes!(internal_outspends_by_txid))
        .routes(routes!(internal_outspends_by_outpoint))
        .routes(routes!(internal_block_txs))
}

/// A list of texts in JSON.
pub(super) type List = Result<Json<Vec<String>>, JsonRejection>;

/// The texts of a list that is not too long.
pub(super) fn list(api: &Shared, list: List) -> Result<Vec<String>, Refusal> {
    let Json(list) = list.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long")
        }
        _ => Refusal::bad("expected a JSON array of strings, as application/json"),
    })?;
    if list.len() > api.limits.batch {
        let text = format!("too many at once: at most {}", api.limits.batch);
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    Ok(list)
}

fn addresses(moment: &Moment<'_>, texts: &[String]) -> Result<Vec<ScriptHash>, Refusal> {
    texts.iter().map(|text| script_of(text, moment.network())).collect()
}

fn script_hashes(texts: &[String]) -> Result<Vec<ScriptHash>, Refusal> {
    texts.iter().map(|text| plain_script_hash(text)).collect()
}

/// The transactions of several addresses in one list: unconfirmed ones, then confirmed ones.
#[utoipa::path(post, path = "/addresses/txs", tag = "mempool.space", params(PageQuery),
    request_body = Vec<String>, responses((status = 200, body = Vec<Tx>), Refusals))]
async fn addresses_txs(
    State(api): State<Shared>,
    Query(query): Query<PageQuery>,
    body: List,
) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    Ok(api.ask(move |moment| mixed_page(moment, &addresses(moment, &list)?, &query)).await)
}

/// The transactions of several scripts in one list: unconfirmed ones, then confirmed ones.
#[utoipa::path(post, path = "/scripthashes/txs", tag = "mempool.space", params(PageQuery),
    request_body = Vec<String>, responses((status = 200, body = Vec<Tx>), Refusals))]
async fn scripthashes_txs(
    State(api): State<Shared>,
    Query(query): Query<PageQuery>,
    body: List,
) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    Ok(api.ask(move |moment| mixed_page(moment, &script_hashes(&list)?, &query)).await)
}

fn below(query: &PageQuery) -> Result<Start, Refusal> {
    Ok(query.after()?.map_or(Start::Top, Start::Below))
}

/// What each confirmed transaction did to the balance of several addresses together.
#[utoipa::path(post, path = "/addresses/txs/summary", tag = "mempool.space", params(PageQuery),
    request_body = Vec<String>, responses((status = 200, body = Vec<Summary>), Refusals))]
async fn addresses_summary(
    State(api): State<Shared>,
    Query(query): Query<PageQuery>,
    body: List,
) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    let question = move |moment: &Moment<'_>| {
        let scripts = addresses(moment, &list)?;
        summaries(moment, &scripts, below(&query)?, query.summary_count())
    };
    Ok(api.ask(question).await)
}

/// What each confirmed transaction did to the balance of several scripts together.
#[utoipa::path(post, path = "/scripthashes/txs/summary", tag = "mempool.space", params(PageQuery),
    request_body = Vec<String>, responses((status = 200, body = Vec<Summary>), Refusals))]
async fn scripthashes_summary(
    State(api): State<Shared>,
    Query(query): Query<PageQuery>,
    body: List,
) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    let question = move |moment: &Moment<'_>| {
        summaries(moment, &script_hashes(&list)?, below(&query)?, query.summary_count())
    };
    Ok(api.ask(question).await)
}

/// Whose outputs are asked about.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TxidsQuery {
    /// At most 50 txids, with commas between them.
    txids: String,
}

/// Whether the outputs of transactions are spent: a list for each, empty when it is unknown.
#[utoipa::path(get, path = "/txs/outspends", tag = "mempool.space", params(TxidsQuery),
    responses((status = 200, body = Vec<Vec<Outspend>>), Refusals))]
async fn outspends(State(api): State<Shared>, Query(query): Query<TxidsQuery>) -> Answer {
    api.ask(move |moment| {
        let txids: Vec<&str> = query.txids.split(',').collect();
        if txids.len() > TXIDS {
            return Err(Refusal::bad(format!("Too many txids requested: at most {TXIDS}")));
        }
        spends_of(moment, &txids)
    })
    .await
}

fn spends_of(moment: &Moment<'_>, txids: &[&str]) -> Result<Answer, Refusal> {
    let spends = |txid: &&str| Ok(moment.outspends(hash(txid)?)?.unwrap_or_default());
    let spends: Vec<Vec<Outspend>> = txids.iter().map(spends).collect::<Result<_, Refusal>>()?;
    Ok(Answer::json(&spends))
}

/// Several transactions, without those that are unknown.
#[utoipa::path(post, path = "/internal/txs", tag = "mempool.space",
    request_body = Vec<String>, responses((status = 200, body = Vec<Tx>), Refusals))]
async fn internal_txs(State(api): State<Shared>, body: List) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    let question = move |moment: &Moment<'_>| {
        let mut txs = Vec::new();
        for txid in &list {
            txs.extend(moment.shown_tx(hash(txid)?)?.map(|(tx, _)| tx));
        }
        Ok(Answer::json(&txs))
    };
    Ok(api.ask(question).await)
}

/// Whether the outputs of transactions are spent: a list for each, empty when it is unknown.
#[utoipa::path(post, path = "/internal/txs/outspends/by-txid", tag = "mempool.space",
    request_body = Vec<String>, responses((status = 200, body = Vec<Vec<Outspend>>), Refusals))]
async fn internal_outspends_by_txid(
    State(api): State<Shared>,
    body: List,
) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    let question = move |moment: &Moment<'_>| {
        let txids: Vec<&str> = list.iter().map(String::as_str).collect();
        spends_of(moment, &txids)
    };
    Ok(api.ask(question).await)
}

/// Whether several outputs, written `TXID:VOUT`, are spent.
#[utoipa::path(post, path = "/internal/txs/outspends/by-outpoint", tag = "mempool.space",
    request_body = Vec<String>, responses((status = 200, body = Vec<Outspend>), Refusals))]
async fn internal_outspends_by_outpoint(
    State(api): State<Shared>,
    body: List,
) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    let question = move |moment: &Moment<'_>| {
        let spend = |text: &String| {
            let outpoint: Outpoint = text.parse().map_err(|_| Refusal::bad("Invalid outpoint"))?;
            moment.outspend(outpoint)
        };
        let spends: Vec<Outspend> = list.iter().map(spend).collect::<Result<_, Refusal>>()?;
        Ok(Answer::json(&spends))
    };
    Ok(api.ask(question).await)
}

/// All transactions of a block.
#[utoipa::path(get, path = "/internal/block/{hash}/txs", tag = "mempool.space",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn internal_block_txs(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    api.ask(move |moment| {
        let found = moment.stored(hash(&text)?)?;
        let found = found.ok_or_else(|| Refusal::not_found("Block not found"))?;
        let cache = match found.header.confirmed {
            true => Cache::of_height(found.header.height.to_u32(), moment.tip()),
            false => Cache::SHORT,
        };
        let txs = block::shown(moment, &found, 0, usize::MAX)?;
        Ok(Answer::json(&txs).cached(cache))
    })
    .await
}
