//! `/block/…`, `/blocks/…` and `/block-height/…`.

use axum::extract::{Path, State};
use hex_conservative::DisplayHex as _;
use varve::{BlockHash, Height};

use super::super::answer::{Answer, Cache, Refusal};
use super::super::api::{Moment, Shared};
use super::json::{self, Block, BlockStatus, Status, Tx};
use super::{Refusals, hash, number};

/// Transactions of a page.
const PAGE: usize = 25;
/// Blocks of a list.
const BLOCKS: usize = 10;

fn unknown() -> Refusal {
    Refusal::not_found("Block not found")
}

fn stored(moment: &Moment<'_>, text: &str) -> Result<varve::Block, Refusal> {
    moment.stored(hash(text)?)?.ok_or_else(unknown)
}

/// A block.
#[utoipa::path(get, path = "/block/{hash}", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Block), Refusals))]
pub(super) async fn block(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    api.ask(move |moment| {
        let (header, size) = moment.block(hash(&text)?)?.ok_or_else(unknown)?;
        Ok(Answer::json(&Block::new(&header, size)).unchanging(header.hash))
    })
    .await
}

/// The header of a block, in hex.
#[utoipa::path(get, path = "/block/{hash}/header", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn header(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    api.ask(move |moment| {
        let header = moment.snapshot.header(hash::<BlockHash>(&text)?)?.ok_or_else(unknown)?;
        Ok(Answer::text(header.bytes().to_lower_hex_string()).unchanging(header.hash))
    })
    .await
}

/// Whether a block is in the best chain, and which one follows it there.
#[utoipa::path(get, path = "/block/{hash}/status", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = BlockStatus), Refusals))]
pub(super) async fn status(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    api.ask(move |moment| {
        let header = moment.snapshot.header(hash::<BlockHash>(&text)?)?.ok_or_else(unknown)?;
        let in_best_chain = header.confirmed;
        let above = header.height.checked_add(1).filter(|_| in_best_chain);
        let next = above.map(|height| moment.snapshot.header(height)).transpose()?.flatten();
        let height = in_best_chain.then(|| header.height.to_u32());
        let status = BlockStatus {
            in_best_chain,
            height,
            next_best: next.map(|next| json::block_hash(next.hash)),
        };
        let cache = height.filter(|_| status.next_best.is_some());
        let cache = cache.map_or(Cache::SHORT, |height| Cache::of_height(height, moment.tip()));
        Ok(Answer::json(&status).cached(cache))
    })
    .await
}

/// The first 25 transactions of a block.
#[utoipa::path(get, path = "/block/{hash}/txs", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Vec<Tx>), Refusals))]
pub(super) async fn txs(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    api.ask(move |moment| page(moment, &text, 0)).await
}

/// 25 transactions of a block from a place on, which is a multiple of 25.
#[utoipa::path(get, path = "/block/{hash}/txs/{start}", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"),
        ("start" = u32, Path, multiple_of = 25)),
    responses((status = 200, body = Vec<Tx>), Refusals))]
pub(super) async fn txs_from(
    State(api): State<Shared>,
    Path((text, start)): Path<(String, String)>,
) -> Answer {
    api.ask(move |moment| page(moment, &text, number(&start)? as usize)).await
}

fn page(moment: &Moment<'_>, text: &str, start: usize) -> Result<Answer, Refusal> {
    let block = stored(moment, text)?;
    if start >= block.txids.len() {
        return Err(Refusal::not_found("start index out of range"));
    }
    if !start.is_multiple_of(PAGE) {
        let text = format!("start index must be a multipication of {PAGE}");
        return Err(Refusal::bad(text));
    }
    let txs = shown(moment, &block, start, PAGE)?;
    let cache = match block.header.confirmed {
        true => Cache::of_height(block.header.height.to_u32(), moment.tip()),
        false => Cache::SHORT,
    };
    Ok(Answer::json(&txs).cached(cache))
}

/// Transactions of a block as they are shown.
pub(super) fn shown(
    moment: &Moment<'_>,
    block: &varve::Block,
    start: usize,
    count: usize,
) -> Result<Vec<Tx>, Refusal> {
    let status = Status::of(&block.header);
    let parsed = block.parse()?;
    let txs = parsed.txs().iter().zip(&block.txids).skip(start).take(count);
    txs.map(|(tx, txid)| moment.shown_view(*txid, tx, status.clone())).collect()
}

/// The txids of a block.
#[utoipa::path(get, path = "/block/{hash}/txids", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Vec<String>), Refusals))]
pub(super) async fn txids(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    api.ask(move |moment| {
        let block = stored(moment, &text)?;
        let txids: Vec<String> = block.txids.iter().map(|txid| json::txid(*txid)).collect();
        Ok(Answer::json(&txids).unchanging(block.header.hash))
    })
    .await
}

/// The txid at a place of a block.
#[utoipa::path(get, path = "/block/{hash}/txid/{index}", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), ("index" = u32, Path)),
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn txid(
    State(api): State<Shared>,
    Path((text, index)): Path<(String, String)>,
) -> Answer {
    api.ask(move |moment| {
        let index = number(&index)?;
        let block = stored(moment, &text)?;
        let txid = block.txids.get(index as usize);
        let txid = txid.ok_or_else(|| Refusal::not_found("tx index out of range"))?;
        Ok(Answer::text(txid).unchanging(format_args!("{}-{index}", block.header.hash)))
    })
    .await
}

/// A block whose bytes are sent as they lie in the store.
struct Raw(varve::Block);

impl AsRef<[u8]> for Raw {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The bytes of a block.
#[utoipa::path(get, path = "/block/{hash}/raw", tag = "Esplora",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), Refusals))]
pub(super) async fn raw(State(api): State<Shared>, Path(text): Path<String>) -> Answer {
    api.ask(move |moment| {
        let block = stored(moment, &text)?;
        let hash = block.header.hash;
        Ok(Answer::owned(Raw(block)).unchanging(hash))
    })
    .await
}

/// The hash of the block at a height of the best chain.
#[utoipa::path(get, path = "/block-height/{height}", tag = "Esplora",
    params(("height" = u32, Path)),
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn at_height(State(api): State<Shared>, Path(height): Path<String>) -> Answer {
    api.ask(move |moment| {
        let height = number(&height)?;
        let header = moment.snapshot.header(Height::new(height))?.ok_or_else(unknown)?;
        let cache = Cache::of_height(height, moment.tip());
        Ok(Answer::text(header.hash).cached(cache))
    })
    .await
}

/// The ten newest blocks of the best chain, the newest first.
#[utoipa::path(get, path = "/blocks", tag = "Esplora",
    responses((status = 200, body = Vec<Block>), Refusals))]
pub(super) async fn blocks(State(api): State<Shared>) -> Answer {
    api.ask(move |moment| list(moment, moment.tip().height)).await
}

/// Ten blocks of the best chain from a height down. `tip` stands for the newest.
#[utoipa::path(get, path = "/blocks/{start}", tag = "Esplora",
    params(("start" = u32, Path)),
    responses((status = 200, body = Vec<Block>), Refusals))]
pub(super) async fn blocks_from(State(api): State<Shared>, Path(start): Path<String>) -> Answer {
    api.ask(move |moment| match start.as_str() {
        "tip" => list(moment, moment.tip().height),
        start => list(moment, Height::new(number(start)?)),
    })
    .await
}

fn list(moment: &Moment<'_>, start: Height) -> Result<Answer, Refusal> {
    let mut blocks = Vec::with_capacity(BLOCKS);
    let mut next = Some(start);
    while let Some(height) = next.filter(|_| blocks.len() < BLOCKS) {
        let header = moment.snapshot.header(height)?.ok_or_else(unknown)?;
        let (header, size) = moment.block(header.hash)?.ok_or_else(unknown)?;
        blocks.push(Block::new(&header, size));
        next = height.checked_sub(1);
    }
    Ok(Answer::json(&blocks))
}

/// The height of the newest block of the best chain.
#[utoipa::path(get, path = "/blocks/tip/height", tag = "Esplora",
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn tip_height(State(api): State<Shared>) -> Answer {
    api.ask(move |moment| Ok(Answer::text(moment.tip().height))).await
}

/// The hash of the newest block of the best chain.
#[utoipa::path(get, path = "/blocks/tip/hash", tag = "Esplora",
    responses((status = 200, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn tip_hash(State(api): State<Shared>) -> Answer {
    api.ask(move |moment| Ok(Answer::text(moment.tip().hash))).await
}
