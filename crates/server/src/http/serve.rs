//! Accepting connections and serving each until it ends, is idle, stalls, or the server stops.
//!
//! ```text
//!  accept ─ admitted? ─ no: 503, closed
//!              │ yes
//!              ▼
//!  request ─ within the rate? ─ no: 429
//!              │ yes
//!              ▼
//!            router
//! ```

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::answer::Refusal;
use super::guard::Peer;
use super::limits::{Gate, HttpLimits};
use super::stall::Stalling;
use crate::metrics::{Metrics, Protocol};
use crate::service::Shutdown;

/// What a connection gets that is one too many.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
content-length: 20\r\nconnection: close\r\n\r\ntoo many connections";

/// Bytes of a connection's read and write buffers, at most.
const BUFFER: usize = 64 << 10;

/// How long to wait before accepting again after the system refused: it is out of descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// How long the farewell to a connection that is one too many may take.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// What all connections of a server share.
struct Server {
    router: TowerToHyperService<Router>,
    gate: Arc<Gate>,
    limits: HttpLimits,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
}

/// Serves a router until the server is asked to stop.
pub(crate) async fn run(
    (router, metrics): (Router, Arc<Metrics>),
    listener: TcpListener,
    limits: HttpLimits,
    mut shutdown: Shutdown,
) -> io::Result<()> {
    let server = Arc::new(Server {
        router: TowerToHyperService::new(router),
        gate: Gate::new(&limits),
        limits,
        metrics,
        shutdown: shutdown.clone(),
    });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(Arc::clone(&server).greet(stream, peer));
                }
                Err(_) => sleep(REFUSED_PAUSE).await,
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
            () = stopped(&mut shutdown) => break,
        }
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    // What is not done by then is cut off when the set is dropped.
    let _ = timeout(server.limits.grace_time, rest).await;
    Ok(())
}

/// Returns when the server is to stop.
pub(crate) async fn stopped(shutdown: &mut Shutdown) {
    // An error means that the sender is gone, which says the same.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// Whether a connection ended because the client did not send its request, or read its answer, in
/// time.
fn is_slow(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    error.is_timeout()
        || cause.is_some_and(|cause: &io::Error| cause.kind() == io::ErrorKind::TimedOut)
}

impl Server {
    async fn greet(self: Arc<Self>, mut stream: TcpStream, peer: SocketAddr) {
        let Some(admission) = self.gate.admit(peer.ip()) else {
            self.metrics.refused(Protocol::Http);
            let farewell = async {
                stream.write_all(FULL).await?;
                stream.shutdown().await
            };
            let _ = timeout(FAREWELL_TIME, farewell).await;
            return;
        };
        let _ = stream.set_nodelay(true);
        let _open = self.metrics.connected(Protocol::Http);
        self.connection(stream, peer).await;
        drop(admission);
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr) {
        let limits = &self.limits;
        let service = hyper::service::service_fn(|request| self.answer(request, peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_time)
            .max_buf_size(BUFFER)
            .max_header_size(limits.header_bytes)
            .half_close(true)
            .serve_connection(TokioIo::new(Stalling::new(stream, limits.stall_time)), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            // How a connection ends is the client's affair: it went away, stalled or sent nonsense.
            ended = connection.as_mut() => {
                if ended.is_err_and(|error| is_slow(&error)) {
                    self.metrics.dropped(Protocol::Http);
                }
                return;
            }
            () = stopped(&mut shutdown) => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    async fn answer(
        &self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Result<Response<axum::body::Body>, Infallible> {
        if !self.gate.allows(peer.ip(), Instant::now()) {
            let text = "too many requests; wait a minute";
            return Ok(Refusal::new(StatusCode::TOO_MANY_REQUESTS, text).into_response());
        }
        request.extensions_mut().insert(Peer(peer.ip()));
        self.router.call(request).await
    }
}
