//! `/mempool/…`, `/fee-estimates` and `/internal/mempool/…`: the unconfirmed transactions.
//!
//! A node without a mempool answers as one whose mempool is empty; it has no estimates then.

use std::collections::BTreeMap;

use axum::extract::{Path, Query, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use varve::{FeeRate, Txid};

use super::super::answer::{Answer, Cache, JSON, Refusal};
use super::super::api::{Moment, Shared, total};
use super::super::streaming::json_array;
use super::batch::{List, list};
use super::json::{self, Mempool, Recent, Tx};
use super::script::PageQuery;
use super::{Refusals, hash};

/// Arrivals of `/mempool/recent`.
const RECENT: usize = 10;
/// Txids of a page.
const TXIDS_PAGE: usize = 10_000;
/// Transactions of a page.
const TXS_PAGE: usize = 100;
/// The targets of fee estimates, in blocks.
const TARGETS: [u32; 28] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 144,
    504, 1008,
];

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(mempool))
        .routes(routes!(txids))
        .routes(routes!(txids_page))
        .routes(routes!(txids_page_from))
        .routes(routes!(recent))
        .routes(routes!(fee_estimates))
        .routes(routes!(internal_txs, internal_txs_listed))
        .routes(routes!(internal_txs_from))
        .routes(routes!(internal_txs_all))
}

/// Satoshi per virtual byte.
fn rate(rate: FeeRate) -> f64 {
    let per_kvb = u32::try_from(rate.sat_per_kvb()).unwrap_or(u32::MAX);
    f64::from(per_kvb) / 1_000.0
}

/// The mempool in figures.
#[utoipa::path(get, path = "/mempool", tag = "Esplora",
    responses((status = 200, body = Mempool), Refusals))]
async fn mempool(State(api): State<Shared>) -> Answer {
    api.ask(move |moment| {
        let mempool = moment.mempool.as_deref();
        let sum = mempool.map(|mempool| mempool.totals().sum).unwrap_or_default();
        let bins = mempool.map(|mempool| mempool.esplora_histogram()).unwrap_or_default();
        Ok(Answer::json(&Mempool {
            count: sum.count,
            vsize: sum.vsize,
            total_fee: sum.fees.to_sat(),
            fee_histogram: bins.iter().map(|bin| (rate(bin.rate), bin.vsize)).collect(),
        }))
    })
    .await
}

fn page(moment: &Moment<'_>, after: Option<&Txid>, limit: usize) -> Vec<Txid> {
    let mempool = moment.mempool.as_deref();
    mempool.map(|mempool| mempool.txids(after, limit)).unwrap_or_default()
}

fn listed(txids: &[Txid]) -> Answer {
    let txids: Vec<String> = txids.iter().map(|txid| json::txid(*txid)).collect();
    Answer::json(&txids)
}

/// All txids.
#[utoipa::path(get, path = "/mempool/txids", tag = "Esplora",
    responses((status = 200, body = Vec<String>), Refusals))]
async fn txids(State(api): State<Shared>) -> Answer {
    api.ask(move |moment| Ok(listed(&page(moment, None, usize::MAX)))).await
}

/// The first page of txids.
#[utoipa::path(get, path = "/mempool/txids/page", tag = "mempool.space", params(PageQuery),
    responses((status = 200, body = Vec<String>), Refusals))]
async fn txids_page(State(api): State<Shared>, Query(query): Query<PageQuery>) -> Answer {
    let limit = query.count(TXIDS_PAGE, TXIDS_PAGE);
    api.ask(move |moment| Ok(listed(&page(moment, None, limit)))).await
}

/// The page of txids behind the last one that was seen.
#[utoipa::path(get, path = "/mempool/txids/page/{last_seen_txid}", tag = "mempool.space",
    params(("last_seen_txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<String>), Refusals))]
async fn txids_page_from(
    State(api): State<Shared>,
    Path(last): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    let limit = query.count(TXIDS_PAGE, TXIDS_PAGE);
    api.ask(move |moment| Ok(listed(&page(moment, Some(&hash(&last)?), limit)))).await
}

/// The ten last arrivals, the newest first.
#[utoipa::path(get, path = "/mempool/recent", tag = "Esplora",
    responses((status = 200, body = Vec<Recent>), Refusals))]
async fn recent(State(api): State<Shared>) -> Answer {
    api.ask(move |moment| {
        let mut recent = Vec::new();
        if let Some(mempool) = &moment.mempool {
            recent.extend(mempool.recent(RECENT).map(|entry| Recent {
                txid: json::txid(entry.txid()),
                fee: entry.fee().to_sat(),
                vsize: entry.vsize(),
                value: total(entry.transaction().view().outputs().map(|output| output.value)),
            }));
        }
        Ok(Answer::json(&recent).cached(Cache::Seconds(5)))
    })
    .await
}

/// Feerates by the number of blocks within which they should confirm.
#[utoipa::path(get, path = "/fee-estimates", tag = "Esplora",
    responses((status = 200, body = BTreeMap<String, f64>), Refusals))]
async fn fee_estimates(State(api): State<Shared>) -> Answer {
    api.ask(move |moment| {
        let estimates: BTreeMap<u32, f64> = match &moment.mempool {
            Some(mempool) => {
                TARGETS.iter().map(|target| (*target, rate(mempool.estimate(*target)))).collect()
            }
            None => BTreeMap::new(),
        };
        Ok(Answer::json(&estimates))
    })
    .await
}

/// The first page of unconfirmed transactions.
#[utoipa::path(get, path = "/internal/mempool/txs", tag = "mempool.space", params(PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn internal_txs(State(api): State<Shared>, Query(query): Query<PageQuery>) -> Answer {
    api.ask(move |moment| Ok(shown_page(moment, None, &query))).await
}

/// The page of unconfirmed transactions behind the last one that was seen.
#[utoipa::path(get, path = "/internal/mempool/txs/{last_seen_txid}", tag = "mempool.space",
    params(("last_seen_txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn internal_txs_from(
    State(api): State<Shared>,
    Path(last): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    api.ask(move |moment| Ok(shown_page(moment, Some(hash(&last)?), &query))).await
}

fn shown_page(moment: &Moment<'_>, after: Option<Txid>, query: &PageQuery) -> Answer {
    let txids = page(moment, after.as_ref(), query.count(TXS_PAGE, TXS_PAGE * 10));
    let entries = txids.iter().filter_map(|txid| moment.entry(txid));
    let txs: Vec<Tx> = entries.map(|entry| moment.shown_entry(entry)).collect();
    Answer::json(&txs)
}

/// Several unconfirmed transactions, without those that are not in the mempool.
#[utoipa::path(post, path = "/internal/mempool/txs", tag = "mempool.space",
    request_body = Vec<String>, responses((status = 200, body = Vec<Tx>), Refusals))]
async fn internal_txs_listed(State(api): State<Shared>, body: List) -> Result<Answer, Refusal> {
    let list = list(&api, body)?;
    let question = move |moment: &Moment<'_>| {
        let mut txs = Vec::new();
        for txid in &list {
            let entry = moment.entry(&hash(txid)?);
            txs.extend(entry.map(|entry| moment.shown_entry(entry)));
        }
        Ok(Answer::json(&txs))
    };
    Ok(api.ask(question).await)
}

/// All unconfirmed transactions, of one moment. Sent as they are written.
#[utoipa::path(get, path = "/internal/mempool/txs/all", tag = "mempool.space",
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn internal_txs_all(State(api): State<Shared>) -> Result<Answer, Refusal> {
    let snapshot = api.service.node.snapshot();
    let tip = snapshot.tip();
    let body = json_array(&api, move |api, writer| {
        let moment = Moment::new(api, &snapshot);
        let Some(mempool) = &moment.mempool else { return };
        for entry in mempool.entries() {
            if !writer.item(&moment.shown_entry(entry)) {
                return;
            }
        }
    })?;
    Ok(Answer::stream(JSON, body).at(tip))
}
