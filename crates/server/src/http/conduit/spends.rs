//! Which outputs are spent, now and from now on.
//!
//! Watched outputs are kept in memory, for all clients together, as Conduit does: the reference
//! server that registers them registers them again when it connects. Each change of a watched
//! output's spender is pushed to every `/ws` as one record of bytes: when the spend appears, when
//! it is confirmed, and when a reorganisation moves it.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hex_conservative::DisplayHex as _;
use tokio::sync::broadcast;
use varve::{Outpoint, Txid};

use super::super::answer::{Answer, Cache, Refusal};
use super::super::api::{Moment, Shared, Spend};
use super::super::esplora::{Refusals, shown};
use super::super::serve::stopped;
use super::wire::{Form, spend};
use super::{accepted, sent};

/// Outputs that are watched at the same time: some 30 MB.
const WATCHED: usize = 250_000;
/// Sockets at the same time.
const SOCKETS: usize = 256;
/// Records that wait for a slow socket before it is closed.
const QUEUE: usize = 4_096;
/// The longest message of a client that is read at all; any ends the socket.
const LONGEST_MESSAGE: usize = 1_024;

/// The outputs that are watched, each with the spend that was last reported.
#[derive(Debug, Default)]
pub(super) struct Spends(HashMap<Outpoint, Option<Spend>>);

/// Where records are pushed.
#[derive(Debug)]
pub(super) struct Sockets {
    records: broadcast::Sender<Bytes>,
    open: AtomicUsize,
}

impl Default for Sockets {
    fn default() -> Self {
        Self { records: broadcast::Sender::new(QUEUE), open: AtomicUsize::new(0) }
    }
}

impl Sockets {
    /// Pushes a record to every socket. There may be none.
    pub(super) fn push(&self, record: Bytes) {
        let _ = self.records.send(record);
    }
}

impl Spends {
    /// The watched outputs.
    pub(super) fn watched(&self) -> Vec<(Outpoint, Option<Spend>)> {
        self.0.iter().map(|(outpoint, spend)| (*outpoint, *spend)).collect()
    }

    /// Notes what was found of an output that may be watched still; returns whether it is news.
    pub(super) fn note(&mut self, outpoint: Outpoint, found: Option<Spend>) -> bool {
        match self.0.get_mut(&outpoint) {
            Some(known) if *known != found => {
                *known = found;
                found.is_some()
            }
            _ => false,
        }
    }

    fn add(&mut self, outpoints: &[Outpoint]) -> Result<(), Refusal> {
        let new = outpoints.iter().filter(|outpoint| !self.0.contains_key(outpoint)).count();
        if self.0.len() + new > WATCHED {
            let text = format!("too many outputs are watched: at most {WATCHED}");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        outpoints.iter().for_each(|outpoint| {
            self.0.entry(*outpoint).or_default();
        });
        Ok(())
    }
}

/// A spent output: its txid and index, and the txid, index and block hash of the input that spends
/// it. As in Conduit the block hash alone is not reversed; `null` for an unconfirmed spend.
type SpendRow = (String, u32, String, u32, Option<String>);

/// The outputs of a list that are spent.
fn answer(moment: &Moment<'_>, list: &[Outpoint], form: Form) -> Result<Answer, Refusal> {
    let mut found = Vec::new();
    for outpoint in list {
        found.extend(moment.spend(*outpoint)?.map(|spend| (*outpoint, spend)));
    }
    if form == Form::Binary {
        let records: Vec<u8> =
            found.iter().flat_map(|(outpoint, by)| spend(*outpoint, by)).collect();
        return Ok(Answer::binary(records));
    }
    let row = |(outpoint, by): &(Outpoint, Spend)| -> SpendRow {
        let txid = |txid: Txid| shown(txid.to_bytes());
        let block = by.block.map(|block| block.as_bytes().to_lower_hex_string());
        (txid(outpoint.txid), outpoint.vout, txid(by.txid), by.vin, block)
    };
    Ok(Answer::json(&found.iter().map(row).collect::<Vec<_>>()))
}

/// Which of several outputs are spent, and by what.
#[utoipa::path(post, path = "/api/v1/output-spend", tag = "Conduit",
    request_body(content((Vec<(String, u32)> = "application/json"),
        (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, content(
        (Vec<(String, u32, String, u32, Option<String>)> = "application/json"),
        (Vec<u8> = "application/octet-stream"))), Refusals))]
pub(super) async fn output_spend(
    State(api): State<Shared>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Answer, Refusal> {
    let list = sent(&headers, &body)?.outpoints()?;
    let form = accepted(&headers);
    let answer = api.ask(move |moment| answer(moment, &list, form)).await;
    Ok(answer.cached(Cache::Never))
}

/// Watches outputs: every spend of them is pushed to `/ws`. The answer is which are spent already.
#[utoipa::path(post, path = "/api/v1/output-spend/notifications", tag = "Conduit",
    request_body(content((Vec<(String, u32)> = "application/json"),
        (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, content(
        (Vec<(String, u32, String, u32, Option<String>)> = "application/json"),
        (Vec<u8> = "application/octet-stream"))), Refusals))]
pub(super) async fn register(
    State(api): State<Shared>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Answer, Refusal> {
    let list = sent(&headers, &body)?.outpoints()?;
    let form = accepted(&headers);
    // Watched before the snapshot is taken: a spend that comes now is in the answer or pushed.
    lock(&api).add(&list)?;
    let shared = Shared::clone(&api);
    let question = move |moment: &Moment<'_>| {
        for outpoint in &list {
            let found = moment.spend(*outpoint)?;
            lock(&shared).note(*outpoint, found);
        }
        answer(moment, &list, form)
    };
    Ok(api.ask(question).await.cached(Cache::Never))
}

/// Watches outputs no longer. One output of zeros stands for all.
#[utoipa::path(post, path = "/api/v1/output-spend/notifications:unregister", tag = "Conduit",
    request_body(content((Vec<(String, u32)> = "application/json"),
        (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, description = "They are not watched."), Refusals))]
pub(super) async fn unregister(
    State(api): State<Shared>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let list = sent(&headers, &body)?.outpoints()?;
    let mut spends = lock(&api);
    if list == [Outpoint::new(Txid::ZERO, 0)] {
        spends.0 = HashMap::new();
    }
    list.iter().for_each(|outpoint| {
        spends.0.remove(outpoint);
    });
    Ok(StatusCode::OK)
}

pub(super) fn lock(api: &Shared) -> std::sync::MutexGuard<'_, Spends> {
    api.conduit.spends.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a socket on which spends of watched outputs are pushed.
pub(super) async fn websocket(State(api): State<Shared>, upgrade: WebSocketUpgrade) -> Response {
    let open = &api.conduit.sockets.open;
    if open.fetch_add(1, Ordering::Relaxed) >= SOCKETS {
        open.fetch_sub(1, Ordering::Relaxed);
        return Refusal::unavailable("too many sockets").into_response();
    }
    let place = Place(Shared::clone(&api));
    let records = api.conduit.sockets.records.subscribe();
    upgrade
        .max_message_size(LONGEST_MESSAGE)
        .max_frame_size(LONGEST_MESSAGE)
        .on_upgrade(move |socket| push(socket, records, place))
}

/// A socket that counts until it is dropped, also when its upgrade never happens.
struct Place(Shared);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.conduit.sockets.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Pushes records until the client says anything, is gone or too slow, or the server stops.
async fn push(mut socket: WebSocket, mut records: broadcast::Receiver<Bytes>, place: Place) {
    let mut closing = place.0.conduit.closing.subscribe();
    loop {
        tokio::select! {
            record = records.recv() => {
                let Ok(record) = record else { break };
                if socket.send(Message::Binary(record)).await.is_err() {
                    return;
                }
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => break,
            },
            () = stopped(&mut closing) => break,
        }
    }
    let _ = socket.send(Message::Close(None)).await;
}
