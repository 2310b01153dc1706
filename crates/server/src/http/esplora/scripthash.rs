//! `/scripthash/…`: the questions to a script that the SHA-256 of its bytes names.

use axum::extract::{Path, Query, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::Answer;
use super::super::api::Shared;
use super::Refusals;
use super::json::{Script, Summary, Tx, Utxo};
use super::script::{Name, PageQuery, chain, mempool, stats, summary, txs, utxo};

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(scripthash))
        .routes(routes!(scripthash_txs))
        .routes(routes!(scripthash_chain))
        .routes(routes!(scripthash_chain_below))
        .routes(routes!(scripthash_mempool))
        .routes(routes!(scripthash_summary))
        .routes(routes!(scripthash_summary_below))
        .routes(routes!(scripthash_utxo))
}

/// What a script was paid and has spent.
#[utoipa::path(get, path = "/scripthash/{hash}", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Script), Refusals))]
async fn scripthash(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    stats(api, Name::Hash(text)).await
}

/// The transactions of a script, the newest first: up to 50 unconfirmed ones and 25 confirmed.
#[utoipa::path(get, path = "/scripthash/{hash}/txs", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn scripthash_txs(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    txs(api, Name::Hash(text), query).await
}

/// The 25 newest confirmed transactions of a script.
#[utoipa::path(get, path = "/scripthash/{hash}/txs/chain", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn scripthash_chain(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    chain(api, Name::Hash(text), None, query).await
}

/// The next 25 confirmed transactions of a script below one that was seen.
#[utoipa::path(get, path = "/scripthash/{hash}/txs/chain/{last_seen_txid}", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"),
        ("last_seen_txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn scripthash_chain_below(
    State(api): State<Shared>,
    Path((text, last)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Answer {
    chain(api, Name::Hash(text), Some(last), query).await
}

/// Up to 50 unconfirmed transactions of a script, the newest first.
#[utoipa::path(get, path = "/scripthash/{hash}/txs/mempool", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Tx>), Refusals))]
async fn scripthash_mempool(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    mempool(api, Name::Hash(text), query).await
}

/// What each confirmed transaction did to the balance of a script, the newest first.
#[utoipa::path(get, path = "/scripthash/{hash}/txs/summary", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Summary>), Refusals))]
async fn scripthash_summary(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    summary(api, Name::Hash(text), None, query).await
}

/// The same below a transaction that was seen.
#[utoipa::path(get, path = "/scripthash/{hash}/txs/summary/{last_seen_txid}", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"),
        ("last_seen_txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), PageQuery),
    responses((status = 200, body = Vec<Summary>), Refusals))]
async fn scripthash_summary_below(
    State(api): State<Shared>,
    Path((text, last)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Answer {
    summary(api, Name::Hash(text), Some(last), query).await
}

/// The unspent outputs of a script: confirmed ones in chain order, then unconfirmed ones.
#[utoipa::path(get, path = "/scripthash/{hash}/utxo", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Vec<Utxo>), Refusals))]
async fn scripthash_utxo(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    utxo(api, Name::Hash(text)).await
}
