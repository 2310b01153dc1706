//! Esplora's API: transactions, blocks, addresses and the mempool in JSON, text and bytes.
//!
//! Every endpoint of Blockstream's Esplora but the one for block templates, and the batch
//! endpoints that mempool.space added. Amounts are satoshi, feerates satoshi per virtual byte.
//!
//! | file | endpoints |
//! |---|---|
//! | `tx` | `/tx/…` |
//! | `block` | `/block/…`, `/blocks/…`, `/block-height/…` |
//! | `address`, `scripthash` | `/address/…`, `/scripthash/…`; the answers are those of `script` |
//! | `batch` | `/addresses/…`, `/scripthashes/…`, `/txs/outspends`, `/internal/…` |
//! | `mempool` | `/mempool/…`, `/fee-estimates`, `/internal/mempool/…` |
//! | `broadcast` | `POST /tx`, `/txs/package`, `/txs/test` |
//! | `address_book` | `/address-prefix/…` |
//!
//! Where this differs from Esplora: an unknown transaction or block is a 404 everywhere, a page
//! behind a transaction that is not in the chain is a 404 and not an empty page, and `fee` and
//! `prevout` are `null` where the spent output's block was pruned.

mod address;
mod address_book;
mod asm;
mod batch;
mod block;
mod broadcast;
mod history;
mod json;
mod mempool;
mod merkle_block;
mod script;
mod scripthash;
mod tx;

pub(crate) use address_book::AddressBook;
pub(crate) use asm::asm;
pub(crate) use json::shown;

use std::str::FromStr;

use axum::extract::DefaultBodyLimit;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use varve::types::address::{AddressError, decode};
use varve::{Network, ScriptHash};

use super::answer::Refusal;
use super::api::Shared;
use super::limits::HttpLimits;

/// The routes, below `/api`.
pub(super) fn router(limits: &HttpLimits) -> OpenApiRouter<Shared> {
    let reading = OpenApiRouter::new()
        .routes(routes!(tx::tx))
        .routes(routes!(tx::status))
        .routes(routes!(tx::hex))
        .routes(routes!(tx::raw))
        .routes(routes!(tx::merkle_proof))
        .routes(routes!(tx::merkle_block_proof))
        .routes(routes!(tx::outspend))
        .routes(routes!(tx::outspends))
        .routes(routes!(block::block))
        .routes(routes!(block::header))
        .routes(routes!(block::status))
        .routes(routes!(block::txs))
        .routes(routes!(block::txs_from))
        .routes(routes!(block::txids))
        .routes(routes!(block::txid))
        .routes(routes!(block::raw))
        .routes(routes!(block::at_height))
        .routes(routes!(block::blocks))
        .routes(routes!(block::blocks_from))
        .routes(routes!(block::tip_height))
        .routes(routes!(block::tip_hash));
    reading
        .merge(address::router())
        .merge(scripthash::router())
        .merge(batch::router())
        .merge(mempool::router())
        .routes(routes!(address_book::address_prefix))
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .merge(broadcast::router().layer(DefaultBodyLimit::max(limits.tx_bytes)))
}

/// The refusals that every endpoint has.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "describes responses, and is never made")]
pub(crate) enum Refusals {
    /// The request makes no sense: the text says what of it.
    #[response(status = 400, content_type = "text/plain")]
    Bad(String),
    /// From another machine this takes the server's token.
    #[response(status = 403, content_type = "text/plain")]
    Forbidden(String),
    /// There is no such thing.
    #[response(status = 404, content_type = "text/plain")]
    NotFound(String),
    /// The bytes that the answer needs were pruned.
    #[response(status = 410, content_type = "text/plain")]
    Pruned(String),
    /// More than a limit allows.
    #[response(status = 413, content_type = "text/plain")]
    TooLarge(String),
    /// Too many requests of this address.
    #[response(status = 429, content_type = "text/plain")]
    TooMany(String),
    /// The node does not keep what the answer needs, or it takes too long.
    #[response(status = 503, content_type = "text/plain")]
    Unavailable(String),
}

/// A hash in a path, in the byte order in which it is shown.
fn hash<T: FromStr>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|_| Refusal::bad("Invalid hash string"))
}

/// A number in a path.
fn number(text: &str) -> Result<u32, Refusal> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    number.ok_or_else(|| Refusal::bad("Invalid number"))
}

/// The script that an address stands for.
fn script_of(text: &str, network: Network) -> Result<ScriptHash, Refusal> {
    match decode(text, network) {
        Ok(script) => Ok(ScriptHash::of(&script)),
        Err(AddressError::OtherNetwork { .. }) => Err(Refusal::bad("Address on invalid network")),
        Err(AddressError::Malformed { .. }) => Err(Refusal::bad("Invalid Bitcoin address")),
    }
}

/// A script hash as Esplora writes it: the SHA-256 of the script, not reversed.
fn plain_script_hash(text: &str) -> Result<ScriptHash, Refusal> {
    let reversed: ScriptHash = text.parse().map_err(|_| Refusal::bad("Invalid scripthash"))?;
    let mut bytes = reversed.to_bytes();
    bytes.reverse();
    Ok(ScriptHash::from_bytes(bytes))
}
