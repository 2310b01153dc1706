//! `/tx/…`: one transaction.

use axum::extract::{Path, State};
use varve::types::Format;
use varve::{Outpoint, Txid};

use super::super::answer::{Answer, Cache, Refusal};
use super::super::api::{Found, Moment, Shared};
use super::json::{self, MerkleProof, Outspend, Status, Tx};
use super::merkle_block::merkle_block;
use super::{Refusals, hash, number};

fn unknown() -> Refusal {
    Refusal::not_found("Transaction not found")
}

/// How long an answer about a transaction in this place holds.
fn cache(status: &Status, moment: &Moment<'_>) -> Cache {
    status.block_height.map_or(Cache::SHORT, |height| Cache::of_height(height, moment.tip()))
}

/// A transaction.
#[utoipa::path(get, path = "/tx/{txid}", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Tx), Refusals))]
pub(super) async fn tx(State(api): State<Shared>, Path(txid): Path<String>) -> Answer {
    api.ask(move |moment| {
        let (tx, status) = moment.shown_tx(hash(&txid)?)?.ok_or_else(unknown)?;
        Ok(Answer::json(&tx).cached(cache(&status, moment)))
    })
    .await
}

/// Whether and where a transaction is confirmed.
#[utoipa::path(get, path = "/tx/{txid}/status", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Status), Refusals))]
pub(super) async fn status(State(api): State<Shared>, Path(txid): Path<String>) -> Answer {
    api.ask(move |moment| {
        let status = match moment.tx(hash(&txid)?)?.ok_or_else(unknown)? {
            Found::Unconfirmed(_) => Status::default(),
            Found::Stored(stored) => Status::of(&stored.block),
        };
        Ok(Answer::json(&status).cached(cache(&status, moment)))
    })
    .await
}

/// The bytes of a transaction in the form that blocks have.
fn bytes(moment: &Moment<'_>, txid: &str) -> Result<(Vec<u8>, String), Refusal> {
    let txid: Txid = hash(txid)?;
    let bytes = match moment.tx(txid)?.ok_or_else(unknown)? {
        Found::Unconfirmed(entry) => entry.bytes(),
        Found::Stored(stored) => stored.bytes().to_vec(),
    };
    // The witness is no part of the txid, so the same txid may have other bytes elsewhere.
    let tx = varve::types::Tx::parse(&bytes, Format::Segwit);
    let etag = tx.map_or_else(|_| txid.to_string(), |tx| tx.wtxid().to_string());
    Ok((bytes, etag))
}

/// The bytes of a transaction, in hex.
#[utoipa::path(get, path = "/tx/{txid}/hex", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn hex(State(api): State<Shared>, Path(txid): Path<String>) -> Answer {
    use hex_conservative::DisplayHex as _;
    api.ask(move |moment| {
        let (bytes, etag) = bytes(moment, &txid)?;
        Ok(Answer::text(bytes.to_lower_hex_string()).unchanging(etag))
    })
    .await
}

/// The bytes of a transaction.
#[utoipa::path(get, path = "/tx/{txid}/raw", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), Refusals))]
pub(super) async fn raw(State(api): State<Shared>, Path(txid): Path<String>) -> Answer {
    api.ask(move |moment| {
        let (bytes, etag) = bytes(moment, &txid)?;
        Ok(Answer::binary(bytes).unchanging(etag))
    })
    .await
}

/// That a transaction is in a block, as Electrum's servers prove it.
#[utoipa::path(get, path = "/tx/{txid}/merkle-proof", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = MerkleProof), Refusals))]
pub(super) async fn merkle_proof(State(api): State<Shared>, Path(txid): Path<String>) -> Answer {
    api.ask(move |moment| {
        let proof = confirmed_proof(moment, &txid)?;
        let block_height = proof.tx.block.height.to_u32();
        let merkle = proof.branch.siblings.iter().map(|node| json::shown(*node)).collect();
        let answer = MerkleProof { block_height, merkle, pos: proof.branch.index };
        Ok(Answer::json(&answer).cached(Cache::of_height(block_height, moment.tip())))
    })
    .await
}

fn confirmed_proof(moment: &Moment<'_>, txid: &str) -> Result<varve::Proof, Refusal> {
    let proof = moment.snapshot.proof(hash(txid)?)?;
    let proof = proof.filter(|proof| proof.tx.is_confirmed());
    proof.ok_or_else(|| Refusal::not_found("Transaction not found or is unconfirmed"))
}

/// That a transaction is in a block, as a `merkleblock` message (BIP37) in hex.
#[utoipa::path(get, path = "/tx/{txid}/merkleblock-proof", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn merkle_block_proof(
    State(api): State<Shared>,
    Path(txid): Path<String>,
) -> Answer {
    use hex_conservative::DisplayHex as _;
    api.ask(move |moment| {
        let lost = || Refusal::not_found("Transaction not found or is unconfirmed");
        let tx = moment.snapshot.tx(hash(&txid)?)?.filter(varve::Transaction::is_confirmed);
        let tx = tx.ok_or_else(lost)?;
        let block = moment.stored(tx.block.hash)?.ok_or_else(lost)?;
        let leaves = block.txids.iter().map(|txid| txid.to_bytes()).collect();
        let header = block.bytes().first_chunk().ok_or_else(lost)?;
        let position = usize::try_from(tx.position).unwrap_or(usize::MAX);
        let message = merkle_block(header, leaves, position).ok_or_else(lost)?;
        let cache = Cache::of_height(tx.block.height.to_u32(), moment.tip());
        Ok(Answer::text(message.to_lower_hex_string()).cached(cache))
    })
    .await
}

/// Whether an output is spent, and by which input.
#[utoipa::path(get, path = "/tx/{txid}/outspend/{vout}", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), ("vout" = u32, Path)),
    responses((status = 200, body = Outspend), Refusals))]
pub(super) async fn outspend(
    State(api): State<Shared>,
    Path((txid, vout)): Path<(String, String)>,
) -> Answer {
    api.ask(move |moment| {
        let outpoint = Outpoint::new(hash(&txid)?, number(&vout)?);
        let count = match moment.tx(outpoint.txid)?.ok_or_else(unknown)? {
            Found::Unconfirmed(entry) => entry.transaction().view().outputs().count(),
            Found::Stored(stored) => stored.parse()?.outputs().count(),
        };
        if outpoint.vout as usize >= count {
            return Err(Refusal::not_found("Output not found"));
        }
        let spend = moment.outspend(outpoint)?;
        let cache = spend.status.as_ref().map_or(Cache::SHORT, |status| cache(status, moment));
        Ok(Answer::json(&spend).cached(cache))
    })
    .await
}

/// Whether each output of a transaction is spent, and by which input.
#[utoipa::path(get, path = "/tx/{txid}/outspends", tag = "Esplora",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Vec<Outspend>), Refusals))]
pub(super) async fn outspends(State(api): State<Shared>, Path(txid): Path<String>) -> Answer {
    api.ask(move |moment| {
        let spends = moment.outspends(hash(&txid)?)?.ok_or_else(unknown)?;
        Ok(Answer::json(&spends))
    })
    .await
}
