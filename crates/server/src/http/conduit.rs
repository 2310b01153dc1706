//! Conduit's REST API: search by pushed data, spends, proofs, headers, and notifications.
//!
//! | file | endpoints |
//! |---|---|
//! | `tx` | `/api/v1/transaction/…`, `/api/v1/merkle-proof/…` |
//! | `search` | `/api/v1/restoration/…` |
//! | `spends` | `/api/v1/output-spend…`, and `/ws`, where spends are pushed |
//! | `filters` | `/api/v1/transaction/filter…` |
//! | `headers` | `/api/v1/chain/…` |
//!
//! Records in bytes are laid out as Conduit packs them (`wire`). JSON is the default;
//! `Accept: application/octet-stream` asks for bytes.
//!
//! Behind the routes runs one task ([`watch`]): whenever the node has moved it looks which watched
//! outputs were spent and which filters match, and reports both.
//!
//! Where this differs from Conduit: spends and matches of unconfirmed transactions are reported as
//! such, every one of them, and again when a reorganisation moves them; matches behind the 1,000th
//! are not cut off; and what cannot be is refused with a 4xx, where Conduit failed with a 500.

mod delivery;
mod filters;
mod headers;
mod search;
mod spends;
mod state;
mod tx;
mod watch;
mod wire;

pub use delivery::ReferenceServer;
pub(crate) use watch::watch;
pub use wire::{Form, Malformed, RequestBody};

use std::io;
use std::path::Path;
use std::sync::Mutex;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, header};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use tokio::sync::watch as watch_channel;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Answer, BINARY, JSON, Refusal};
use super::api::Shared;
use super::guard::trusted;
use spends::{Spends, websocket};
use state::Filters;

/// What the routes and the watching task share.
#[derive(Debug)]
pub(crate) struct Conduit {
    spends: Mutex<Spends>,
    filters: Mutex<Filters>,
    sockets: spends::Sockets,
    /// True when the server stops.
    closing: watch_channel::Sender<bool>,
}

impl Conduit {
    /// Takes up the filters that were registered before.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            spends: Mutex::default(),
            filters: Mutex::new(Filters::open(folder)?),
            sockets: spends::Sockets::default(),
            closing: watch_channel::Sender::new(false),
        })
    }
}

/// The routes, with their whole paths.
pub(super) fn router(api: &Shared) -> OpenApiRouter<Shared> {
    let changing = OpenApiRouter::new()
        .routes(routes!(spends::register))
        .routes(routes!(spends::unregister))
        .routes(routes!(filters::register))
        .routes(routes!(filters::delete))
        .route_layer(from_fn_with_state(Shared::clone(api), trusted));
    OpenApiRouter::new()
        .route("/ws", get(websocket))
        .routes(routes!(ping))
        .routes(routes!(tx::transaction))
        .routes(routes!(tx::merkle_proof))
        .routes(routes!(search::search))
        .routes(routes!(search::search_p2pkh))
        .routes(routes!(spends::output_spend))
        .routes(routes!(headers::tips))
        .routes(routes!(headers::by_height))
        .routes(routes!(headers::by_hash))
        .merge(changing)
        .layer(DefaultBodyLimit::max(api.limits.body_bytes))
}

/// Whether Conduit's API is there.
#[utoipa::path(get, path = "/api/v1", tag = "Conduit",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn ping() -> Answer {
    Answer::text("true")
}

/// The same at `/`, where Conduit's clients ask.
pub(super) async fn root() -> Answer {
    ping().await
}

/// The form in which a client wants its answer.
fn accepted(headers: &HeaderMap) -> Form {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let wants = |kind: &str| kind.split(';').next().is_some_and(|kind| kind.trim() == BINARY);
    match accept.is_some_and(|accept| accept.split(',').any(wants)) {
        true => Form::Binary,
        false => Form::Json,
    }
}

/// A body in the form that the client says.
fn sent<'a>(headers: &HeaderMap, bytes: &'a [u8]) -> Result<RequestBody<'a>, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let form = match kind.and_then(|kind| kind.split(';').next()).map(str::trim) {
        Some(JSON) => Form::Json,
        Some(BINARY) => Form::Binary,
        _ => return Err(Refusal::bad("unknown request body content type")),
    };
    Ok(RequestBody { form, bytes })
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::bad(malformed.0)
    }
}
