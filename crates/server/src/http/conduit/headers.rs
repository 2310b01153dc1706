//! Headers, in the JSON of HeaderSV or in their 80 bytes.
//!
//! `transactionCount` is 0, as Conduit has it: a header does not know.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use varve::{BlockHash, BlockHeader, Height};

use super::super::answer::{Answer, JSON, Refusal};
use super::super::api::{Moment, Shared};
use super::super::esplora::{Refusals, shown};
use super::accepted;
use super::wire::Form;

/// Headers of an answer, at most.
const HEADERS: u32 = 10_000;

/// A header.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = conduit::Header)]
#[serde(rename_all = "camelCase")]
struct Header {
    hash: String,
    version: i32,
    prev_block_hash: String,
    merkle_root: String,
    creation_timestamp: u32,
    difficulty_target: u32,
    nonce: u32,
    transaction_count: u32,
    /// How many hashes the block took on average.
    #[schema(value_type = u64)]
    work: u128,
}

/// A number of 256 bits as far as it fits: the work of a chain has 96 bits today.
fn number(bytes: &[u8; 32]) -> u128 {
    let (low, high) = bytes.split_at(16);
    let low = low.first_chunk().map_or(0, |low| u128::from_le_bytes(*low));
    if high.iter().all(|byte| *byte == 0) { low } else { u128::MAX }
}

impl Header {
    fn new(moment: &Moment<'_>, header: &BlockHeader) -> Result<Self, Refusal> {
        let below = header.previous.map(|previous| moment.snapshot.header(previous)).transpose()?;
        let below = below.flatten().map_or(0, |below| number(&below.chain_work));
        Ok(Self {
            hash: shown(header.hash.to_bytes()),
            version: header.version,
            prev_block_hash: shown(header.previous.unwrap_or(BlockHash::ZERO).to_bytes()),
            merkle_root: shown(header.merkle_root.to_bytes()),
            creation_timestamp: header.time,
            difficulty_target: header.bits,
            nonce: header.nonce,
            transaction_count: 0,
            work: number(&header.chain_work).saturating_sub(below),
        })
    }
}

/// The last header of a chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = conduit::Tip)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tip {
    header: Header,
    /// `LONGEST_CHAIN` or `STALE`.
    state: &'static str,
    #[schema(value_type = u64)]
    chain_work: u128,
    height: u32,
}

/// Which tips are listed.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TipsQuery {
    /// `1` for the tip of the confirmed chain alone.
    longest_chain: Option<u8>,
}

/// The tip of every chain that is known.
#[utoipa::path(get, path = "/api/v1/chain/tips", tag = "Conduit", params(TipsQuery),
    responses((status = 200, body = Vec<Tip>),
        (status = 406, body = String, content_type = "text/plain"), Refusals))]
pub(super) async fn tips(
    State(api): State<Shared>,
    Query(query): Query<TipsQuery>,
    headers: HeaderMap,
) -> Answer {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_json = |accept: &str| accept.contains(JSON) || accept.contains("*/*");
    if !accept.is_none_or(is_json) {
        let text = "Can only give an 'application/json' response type";
        return Refusal::new(StatusCode::NOT_ACCEPTABLE, text).into();
    }
    api.ask(move |moment| {
        let best = moment.tip();
        let longest_alone = query.longest_chain.unwrap_or_default() != 0;
        let mut tips = Vec::new();
        for tip in moment.snapshot.chain_tips() {
            let is_best = tip.hash == best.hash;
            let header = moment.snapshot.header(tip.hash)?.filter(|_| is_best || !longest_alone);
            let Some(header) = header else { continue };
            tips.push(Tip {
                state: if is_best { "LONGEST_CHAIN" } else { "STALE" },
                chain_work: number(&header.chain_work),
                height: header.height.to_u32(),
                header: Header::new(moment, &header)?,
            });
        }
        Ok(Answer::json(&tips))
    })
    .await
}

/// Which headers are asked for.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HeightQuery {
    /// The lowest height; 0 unless it is given.
    height: Option<u32>,
    /// How many headers; 1 unless it is given, at most 10,000.
    count: Option<u32>,
}

/// Headers of the confirmed chain from a height up, as many as there are.
#[utoipa::path(get, path = "/api/v1/chain/header/byHeight", tag = "Conduit", params(HeightQuery),
    responses((status = 200, content((Vec<Header> = "application/json"),
        (Vec<u8> = "application/octet-stream"))), Refusals))]
pub(super) async fn by_height(
    State(api): State<Shared>,
    Query(query): Query<HeightQuery>,
    headers: HeaderMap,
) -> Answer {
    let form = accepted(&headers);
    api.ask(move |moment| {
        let start = query.height.unwrap_or_default();
        let count = query.count.unwrap_or(1).min(HEADERS);
        let mut found = Vec::new();
        for height in (start..).take(count as usize) {
            let Some(header) = moment.snapshot.header(Height::new(height))? else { break };
            found.push(header);
        }
        match form {
            Form::Binary => {
                let bytes: Vec<u8> = found.iter().flat_map(BlockHeader::bytes).collect();
                Ok(Answer::binary(bytes))
            }
            Form::Json => {
                let headers = found.iter().map(|header| Header::new(moment, header));
                Ok(Answer::json(&headers.collect::<Result<Vec<_>, _>>()?))
            }
        }
    })
    .await
}

/// The header of a block, on any branch.
#[utoipa::path(get, path = "/api/v1/chain/header/{hash}", tag = "Conduit",
    params(("hash" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, content((Header = "application/json"),
        (Vec<u8> = "application/octet-stream"))), Refusals))]
pub(super) async fn by_hash(
    State(api): State<Shared>,
    Path(text): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let form = accepted(&headers);
    api.ask(move |moment| {
        let wrong = |_| Refusal::bad("'hash' path parameter must be 32 hex bytes in length");
        let hash: BlockHash = text.parse().map_err(wrong)?;
        let header = moment.snapshot.header(hash)?;
        let header = header.ok_or_else(|| Refusal::not_found("header not found"))?;
        Ok(match form {
            Form::Binary => Answer::binary(header.bytes().to_vec()),
            Form::Json => Answer::json(&Header::new(moment, &header)?),
        })
    })
    .await
}
