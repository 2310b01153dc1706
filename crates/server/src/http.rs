//! REST over HTTP/1.1: Esplora's API, Conduit's, our own, and the explorer's pages.
//!
//! ```text
//!  /api/…            Esplora's endpoints (`esplora`)
//!  /api/v1/…, /ws    Conduit's (`conduit`)
//!  /api/varve/v1/…   our own (`own`)
//!  /, /tx/…, …       the explorer's pages
//!  /api/openapi.json what all of them take and give; /api/docs is a page to try them
//! ```
//!
//! A request passes these on its way, from outside in:
//!
//! 1. `serve`: connections in all and by address, header size and time, rate;
//! 2. `guard`: the path, the time, and the headers that every answer has;
//! 3. a route, which takes the request apart and refuses what makes no sense;
//! 4. `Api::ask`: one snapshot, in a thread that may block, answers it.
//!
//! An answer is read at one tip and says at which (`x-varve-tip`).

mod answer;
mod api;
mod conduit;
mod esplora;
mod guard;
mod limits;
mod openapi;
mod operation;
mod own;
mod serve;
mod stall;
mod streaming;

pub use conduit::{Form, Malformed, ReferenceServer, RequestBody};
pub use limits::HttpLimits;

use std::sync::Arc;
use std::{fmt, io};

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::explorer;
use crate::service::{Service, Shutdown};
use api::{Api, Shared};

/// How to serve HTTP.
#[derive(Clone, Default)]
pub struct HttpOptions {
    /// What clients may take.
    pub limits: HttpLimits,
    /// Where matches of Conduit's tip filters are sent.
    pub reference_server: Option<ReferenceServer>,
    /// What a client must know to change anything from another machine, and to change records at
    /// all. Without one nobody may.
    pub token: Option<String>,
}

/// Without the token: it must not reach a log.
impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("HttpOptions");
        debug.field("limits", &self.limits).field("reference_server", &self.reference_server);
        debug.finish_non_exhaustive()
    }
}

/// Serves HTTP until it is asked to stop.
///
/// What Conduit's tip filters watch for, and what could not be sent yet, is kept in the file
/// `conduit.json` of the node's folder; the error is that it cannot be read.
pub async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    options: HttpOptions,
    shutdown: Shutdown,
) -> io::Result<()> {
    let HttpOptions { limits, reference_server, token } = options;
    let api = Api::new(service, limits.clone(), token)?;
    let watching = conduit::watch(Shared::clone(&api), reference_server, shutdown.clone());
    let metrics = Arc::clone(api.service.metrics());
    let served = serve::run((router(api), metrics), listener, limits, shutdown);
    tokio::join!(served, watching).0
}

/// Every route.
fn router(api: Shared) -> Router {
    let (routes, document) = openapi::described(
        utoipa_axum::router::OpenApiRouter::new()
            .nest("/api", esplora::router(&api.limits))
            .nest("/api/varve/v1", own::router(Arc::clone(&api.service)))
            .merge(conduit::router(&api)),
    );
    routes
        .merge(openapi::router(&document))
        .route("/metrics", axum::routing::get(operation::metrics))
        .merge(explorer::router())
        .route("/", get(front))
        .fallback(guard::unknown)
        .layer(from_fn_with_state(Shared::clone(&api), guard::guard))
        .with_state(api)
}

/// A browser gets the explorer; Conduit's clients ask whether somebody is there.
async fn front(headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        return explorer::index(&headers);
    }
    conduit::root().await.into_response()
}
