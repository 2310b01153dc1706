//! `/address/…`: the questions to a script that an address names.

use axum::extract::{Path, Query, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::Answer;
use super::super::api::Shared;
use super::Refusals;
use super::json::{Address, Summary, Tx, Utxo};
use super::script::{Name, PageQuery, chain, mempool, stats, summary, txs, utxo};

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(address))
        .routes(routes!(address_txs))
        .routes(routes!(address_chain))
        .routes(routes!(address_chain_below))
        .routes(routes!(address_mempool))
        .routes(routes!(address_summary))
        .routes(routes!(address_summary_below))
        .routes(routes!(address_utxo))
}

/// What an address was paid and has spent.
#[utoipa::path(get, path = "/address/{address}", tag = "Esplora",
    params(("address" = String, Path)),
    responses((status = 200, body = Address), Refusals))]
async fn address(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    stats(api, Name::Address(text)).await
}

/// The transactions of an address, the newest first: up to 50 unconfirmed ones and 25 confirmed.
#[utoipa::path(get, path = "/address/{address}/txs", tag = "Esplora",
    params(("address" = String, Path), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn address_txs(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    txs(api, Name::Address(text), query).await
}

/// The 25 newest confirmed transactions of an address.
#[utoipa::path(get, path = "/address/{address}/txs/chain", tag = "Esplora",
    params(("address" = String, Path), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn address_chain(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    chain(api, Name::Address(text), None, query).await
}

/// The next 25 confirmed transactions of an address below one that was seen.
#[utoipa::path(get, path = "/address/{address}/txs/chain/{last_seen_txid}", tag = "Esplora",
    params(("address" = String, Path),
        ("last_seen_txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn address_chain_below(
    State(api): State<Shared>,
    Path((text, last)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Answer {
    chain(api, Name::Address(text), Some(last), query).await
}

/// Up to 50 unconfirmed transactions of an address, the newest first.
#[utoipa::path(get, path = "/address/{address}/txs/mempool", tag = "Esplora",
    params(("address" = String, Path), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn address_mempool(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    mempool(api, Name::Address(text), query).await
}

/// What each confirmed transaction did to the balance of an address, the newest first.
#[utoipa::path(get, path = "/address/{address}/txs/summary", tag = "Esplora",
    params(("address" = String, Path), PageQuery),
    responses((status = 200, body = Vec<Summary>), Refusals))]
async fn address_summary(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    summary(api, Name::Address(text), None, query).await
}

/// The same below a transaction that was seen.
#[utoipa::path(get, path = "/address/{address}/txs/summary/{last_seen_txid}", tag = "Esplora",
    params(("address" = String, Path),
        ("last_seen_txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Summary>), Refusals))]
async fn address_summary_below(
    State(api): State<Shared>,
    Path((text, last)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Answer {
    summary(api, Name::Address(text), Some(last), query).await
}

/// The unspent outputs of an address: confirmed ones in chain order, then unconfirmed ones.
#[utoipa::path(get, path = "/address/{address}/utxo", tag = "Esplora",
    params(("address" = String, Path)),
    responses((status = 200, body = Vec<Utxo>), Refusals))]
async fn address_utxo(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    utxo(api, Name::Address(text)).await
}
