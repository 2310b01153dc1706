//! What happens to the chain, as a stream of server-sent events that can be resumed.
//!
//! | event | data | when |
//! |---|---|---|
//! | `connected` | `block`, `previous`, `tip` | a block joined the chain |
//! | `disconnected` | `block`, `previous`, `tip` | the last block left it |
//! | `tip` | `tip` | the stream has reached the tip |
//! | `mempool` | `count`, `vsize`, `tip` | the unconfirmed transactions have changed |
//!
//! **The chain is the log.** Nothing is queued for a client. The id of an event is a cursor, the
//! block last reported as `HEIGHT:HASH`; what comes next is computed from the stored chain, step by
//! step: a block that is not confirmed any more is disconnected, above a confirmed one the next is
//! connected. Stale blocks are kept, so a client that comes back with its last id, after any
//! reorganisation and any restart, gets every step in between, once. Without a cursor the stream
//! begins at the tip.
//!
//! A client that does not read is not written to; its stream computes nothing meanwhile.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, watch};
use utoipa::IntoParams;
use varve::{Height, Snapshot};

use super::Shared;
use super::reply::{Asked, Refusals, Refused, Reply, Tip};

/// Steps that are computed at one snapshot.
const BATCH: usize = 64;
/// Between two looks at the node.
const PAUSE: Duration = Duration::from_millis(250);
/// Between two signs of life.
const SIGN: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct EventsQuery {
    /// `HEIGHT:HASH` of the block last seen, as in the id of an event. The header `Last-Event-ID`
    /// says the same.
    cursor: Option<String>,
}

/// A block that joined or left the chain.
#[derive(Debug, Serialize)]
struct Step {
    block: Tip,
    /// The block below it.
    previous: Option<String>,
    tip: Tip,
}

/// The end of the chain.
#[derive(Debug, Serialize)]
struct Reached {
    tip: Tip,
}

/// The unconfirmed transactions.
#[derive(Debug, Serialize)]
struct Unconfirmed {
    count: u64,
    vsize: u64,
    tip: Tip,
}

/// Server-sent events: each block that joins or leaves the chain, the tip, and changes of the
/// mempool. A client resumes with the id of the last event it has seen.
#[utoipa::path(get, path = "/events", tag = "varve", params(EventsQuery), responses(
    (status = 200, content_type = "text/event-stream", body = String), Refusals))]
pub(super) async fn events(
    State(own): State<Shared>,
    headers: HeaderMap,
    Asked(EventsQuery { cursor }): Asked<EventsQuery>,
) -> Result<Response, Refused> {
    let permit = Arc::clone(&own.streams).try_acquire_owned().map_err(|_| {
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open; try again later")
    })?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let cursor = last.or(cursor).map(|text| parse(&text)).transpose()?;
    let Reply(cursor) = own
        .ask(move |_, snapshot| match cursor {
            Some(cursor) if snapshot.header(cursor.hash)?.is_none() => {
                Err(Refused::bad("the cursor names a block that is not known; begin without one"))
            }
            Some(cursor) => Ok(cursor),
            None => Ok(snapshot.tip().into()),
        })
        .await?;
    let changes = own.service.changes();
    let stream = Stream {
        own,
        cursor,
        changes,
        ready: VecDeque::new(),
        told: Told::Nothing,
        _permit: permit,
    };
    let events = stream::unfold(stream, |mut stream| async {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    let sse = Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN));
    Ok(([("cache-control", "no-store"), ("x-accel-buffering", "no")], sse).into_response())
}

fn parse(text: &str) -> Result<Tip, Refused> {
    let wrong = || Refused::bad("a cursor is HEIGHT:HASH, as in the id of an event");
    let (height, hash) = text.split_once(':').ok_or_else(wrong)?;
    let (height, hash) = (height.parse().ok(), hash.parse().ok());
    Ok(Tip { height: height.ok_or_else(wrong)?, hash: hash.ok_or_else(wrong)? })
}

/// What the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// The tip, and the number of unconfirmed transactions and their virtual bytes.
    All(varve::BlockHash, Option<(u64, u64)>),
}

/// A client's stream.
struct Stream {
    own: Shared,
    /// The block last reported.
    cursor: Tip,
    changes: watch::Receiver<u64>,
    /// Events that were computed together.
    ready: VecDeque<Event>,
    told: Told,
    _permit: OwnedSemaphorePermit,
}

impl Stream {
    /// The next event; `None` when the server ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.changes.mark_unchanged();
            let (cursor, told) = (self.cursor, self.told);
            let found = self.own.ask(move |_, snapshot| look(snapshot, cursor, told)).await;
            let Reply(found) = found.ok()?;
            (self.cursor, self.told) = (found.cursor, found.told);
            self.ready = found.events;
            if self.ready.is_empty() {
                self.changes.changed().await.ok()?;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What a look at the node has found.
struct Found {
    cursor: Tip,
    told: Told,
    events: VecDeque<Event>,
}

/// The events between what a client knows and a snapshot, some of them.
fn look(snapshot: &Snapshot, mut cursor: Tip, mut told: Told) -> Result<Found, Refused> {
    let tip = Tip::from(snapshot.tip());
    let mut events = VecDeque::new();
    while events.len() < BATCH {
        let Some((name, block, previous)) = step(snapshot, &mut cursor)? else { break };
        let previous = previous.map(|hash| hash.to_string());
        events.push_back(event(name, &Step { block, previous, tip }, cursor)?);
    }
    if cursor.hash == tip.hash {
        let totals = snapshot.mempool().map(|mempool| mempool.totals().sum);
        let totals = totals.map(|sum| (sum.count, sum.vsize));
        let (old, waits) = match told {
            Told::Nothing => (None, None),
            Told::All(tip, waits) => (Some(tip), waits),
        };
        if old != Some(tip.hash) {
            events.push_back(event("tip", &Reached { tip }, cursor)?);
        }
        if let Some((count, vsize)) = totals.filter(|_| old.is_some() && waits != totals) {
            events.push_back(event("mempool", &Unconfirmed { count, vsize, tip }, cursor)?);
        }
        told = Told::All(tip.hash, totals);
    }
    Ok(Found { cursor, told, events })
}

type Moved = (&'static str, Tip, Option<varve::BlockHash>);

/// One step from the cursor towards the tip; `None` at the tip.
fn step(snapshot: &Snapshot, cursor: &mut Tip) -> Result<Option<Moved>, Refused> {
    let Some(header) = snapshot.header(cursor.hash)? else { return Ok(None) };
    if !header.confirmed {
        let Some(previous) = header.previous else { return Ok(None) };
        let block = Tip { height: header.height.to_u32(), hash: header.hash };
        *cursor = Tip { height: block.height.saturating_sub(1), hash: previous };
        return Ok(Some(("disconnected", block, Some(previous))));
    }
    let above = header.height.checked_add(1).filter(|above| *above <= snapshot.tip().height);
    let above = above.map(|above: Height| snapshot.header(above)).transpose()?.flatten();
    Ok(above.map(|above| {
        *cursor = Tip { height: above.height.to_u32(), hash: above.hash };
        ("connected", *cursor, above.previous)
    }))
}

fn event(name: &str, data: &impl Serialize, cursor: Tip) -> Result<Event, Refused> {
    let id = format!("{}:{}", cursor.height, cursor.hash);
    let event = Event::default().event(name).id(id).json_data(data);
    event.map_err(|error| Refused::bad(error.to_string()))
}
