//! Search by pushed data: where a wallet finds all that it ever received.
//!
//! Matches are those of the confirmed chain by the rule of the node's index `pushdata`. They are
//! sent as they are found, so a key with millions of them takes no memory. A match in an output
//! names that output and what spends it; one in an input, the output that the input spends and the
//! input.
//!
//! In bytes the end is one byte `00`. In JSON every match is a line; the end is `{}` for a client
//! that accepts `application/json` and nothing else.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use varve::types::PushdataHash;
use varve::types::script::{Class, Instructions};
use varve::{Outpoint, PushdataMatch, Side};

use super::super::answer::{Answer, BINARY, JSON, Refusal};
use super::super::api::{Moment, Shared};
use super::super::esplora::{Refusals, shown};
use super::super::streaming::{Writer, body};
use super::accepted;
use super::wire::{Form, Match, NO_INPUT};

/// Matches that are looked up at once.
const PAGE: usize = 1_000;
/// Keys of a request.
const KEYS: usize = 10_000;

/// What is searched for.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = conduit::Search)]
#[serde(rename_all = "camelCase")]
pub(super) struct Search {
    /// The SHA-256 of each item in hex, or the addresses of key hashes.
    filter_keys: Vec<String>,
}

/// A match, as a line of JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MatchLine {
    /// 1 in an output, 2 in an input, 4 behind an `OP_RETURN`.
    flags: u8,
    push_data_hash_hex: String,
    locking_transaction_id: String,
    locking_transaction_index: u32,
    unlocking_transaction_id: Option<String>,
    /// 4294967295 when the output is unspent.
    unlocking_input_index: u32,
}

impl From<&Match> for MatchLine {
    fn from(found: &Match) -> Self {
        Self {
            flags: found.flags.bits(),
            push_data_hash_hex: found.hash.to_string(),
            locking_transaction_id: shown(found.locking.txid.to_bytes()),
            locking_transaction_index: found.locking.vout,
            unlocking_transaction_id: found.unlocking.map(|(txid, _)| shown(txid.to_bytes())),
            unlocking_input_index: found.unlocking.map_or(NO_INPUT, |(_, vin)| vin),
        }
    }
}

/// Where items are pushed, by the hashes of the items.
#[utoipa::path(post, path = "/api/v1/restoration/search", tag = "Conduit", request_body = Search,
    responses((status = 200, description = "Lines of JSON, or records of 105 bytes."), Refusals))]
pub(super) async fn search(
    State(api): State<Shared>,
    headers: HeaderMap,
    content: Bytes,
) -> Result<Answer, Refusal> {
    let wrong = |_| Refusal::bad("expected hashes of 64 hex digits");
    let keys =
        keys(&content)?.iter().map(|key| key.parse().map_err(wrong)).collect::<Result<_, _>>()?;
    matches(&api, &headers, keys)
}

/// The same by addresses of key hashes.
#[utoipa::path(post, path = "/api/v1/restoration/search_p2pkh", tag = "Conduit",
    request_body = Search,
    responses((status = 200, description = "Lines of JSON, or records of 105 bytes."), Refusals))]
pub(super) async fn search_p2pkh(
    State(api): State<Shared>,
    headers: HeaderMap,
    content: Bytes,
) -> Result<Answer, Refusal> {
    let network = api.service.network();
    let hash = |address: &String| {
        let wrong = || Refusal::bad(format!("bad address {address:?}"));
        let script = varve::types::address::decode(address, network).map_err(|_| wrong())?;
        if Class::of(&script) != Class::P2pkh {
            return Err(wrong());
        }
        let pushed = Instructions::new(&script).find_map(|found| found.ok()?.data);
        Ok(PushdataHash::of(pushed.ok_or_else(wrong)?))
    };
    let keys = keys(&content)?.iter().map(hash).collect::<Result<_, _>>()?;
    matches(&api, &headers, keys)
}

fn keys(content: &[u8]) -> Result<Vec<String>, Refusal> {
    if content.is_empty() {
        return Err(Refusal::bad("empty body"));
    }
    let wrong = |_| Refusal::bad("expected {\"filterKeys\": [text, …]}");
    let search: Search = serde_json::from_slice(content).map_err(wrong)?;
    if search.filter_keys.len() > KEYS {
        return Err(Refusal::bad(format!("too many keys: at most {KEYS}")));
    }
    Ok(search.filter_keys)
}

/// All matches of keys, as they are found.
fn matches(api: &Shared, headers: &HeaderMap, keys: Vec<PushdataHash>) -> Result<Answer, Refusal> {
    let snapshot = api.service.node.snapshot();
    if snapshot.pushdata_rule()?.is_none() {
        return Err(Refusal::unavailable("this node keeps no index `pushdata`"));
    }
    let tip = snapshot.tip();
    let form = accepted(headers);
    let accepts_json_alone = headers.get(header::ACCEPT).is_some_and(|accept| accept == JSON);
    let stream = body(api, move |api, writer| {
        let moment = Moment::new(api, &snapshot);
        for key in keys {
            match write_matches(&moment, key, form, writer) {
                Ok(true) => {}
                Ok(false) => return,
                // The client sees that the end is missing.
                Err(refusal) => return writer.fail(&format!("{refusal:?}")),
            }
        }
        let end: &[u8] = match form {
            Form::Binary => &[0],
            Form::Json if accepts_json_alone => b"{}",
            Form::Json => b"",
        };
        writer.bytes(end);
    })?;
    let kind = if form == Form::Binary { BINARY } else { JSON };
    Ok(Answer::stream(kind, stream).at(tip))
}

/// Writes the matches of a key; false when nobody reads any more.
fn write_matches(
    moment: &Moment<'_>,
    key: PushdataHash,
    form: Form,
    writer: &mut Writer,
) -> Result<bool, Refusal> {
    let mut cursor = None;
    loop {
        let page = moment.snapshot.pushdata_page(key, cursor, PAGE)?;
        for row in &page.rows {
            let found = resolved(moment, key, row)?;
            let goes_on = match form {
                Form::Binary => writer.bytes(&found.to_bytes()),
                Form::Json => writer.line(&MatchLine::from(&found)),
            };
            if !goes_on {
                return Ok(false);
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(true);
        }
    }
}

/// A match with the output that it is about and the input that spends that.
fn resolved(
    moment: &Moment<'_>,
    hash: PushdataHash,
    row: &PushdataMatch,
) -> Result<Match, Refusal> {
    let flags = row.flags;
    match row.side {
        Side::Output(vout) => {
            let locking = Outpoint::new(row.txid, vout);
            let spender = moment.snapshot.spender(locking)?;
            let unlocking = spender.map(|spender| (spender.txid, spender.vin));
            Ok(Match { flags, hash, locking, unlocking })
        }
        Side::Input(vin) => {
            let lost = || Refusal::internal(&"a match names an input that is not there");
            let tx = moment.snapshot.tx(row.txid)?.ok_or_else(lost)?;
            let parsed = tx.parse()?;
            let input = parsed.inputs().nth(vin as usize).ok_or_else(lost)?;
            let unlocking = Some((row.txid, vin));
            Ok(Match { flags, hash, locking: input.outpoint, unlocking })
        }
    }
}
