//! The Electrum protocol, versions 1.4 to 1.7, over TCP, TLS and WebSocket.
//!
//! ```text
//!  socket ─ listener ─ connection ─┬─ lines ─ request ─ method ─ answer ─┐
//!                                  │          at one snapshot            ▼
//!                                  └──────────────◄ writes ◄──────── outbox
//!                                                                        ▲
//!  node moves ─ notifier ─ touched ─ subject's state ─ switchboard ──────┘
//! ```
//!
//! 1. A connection takes lines one after the other, and has each answered at one
//!    snapshot of the node: a batch is one line, so its answers agree.
//! 2. A subscription is entered in the switchboard with the state that its client was given.
//! 3. When the node has moved, the notifier finds what has changed among what is
//!    subscribed to, and queues a line for each client that knows another state.
//! 4. Everything is bounded by [`Limits`]. Who does not read is disconnected.
//!
//! Methods and their answers are listed in `docs/api.md`.

mod client;
mod connection;
mod fault;
mod limits;
mod lines;
mod listener;
mod method;
mod notifier;
mod outbox;
mod params;
mod request;
mod statuses;
mod subject;
mod switchboard;
mod tls;
mod touched;
mod version;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use fault::Fault;
pub use limits::Limits;
pub use request::{Line, Request};
pub use tls::{TlsError, TlsIdentity};

use crate::service::{Service, Shutdown};
use listener::Census;
use outbox::Outbox;
use statuses::Statuses;
use switchboard::Switchboard;

/// How clients are served.
#[derive(Clone, Debug, Default)]
pub struct ElectrumOptions {
    /// How much they may take.
    pub limits: Limits,
    /// What `server.banner` says.
    pub banner: String,
    /// Where donations go; empty when nobody asks for any.
    pub donation_address: String,
    /// By which names the server can be reached, with the ports of TCP and TLS.
    pub hosts: BTreeMap<String, (Option<u16>, Option<u16>)>,
}

impl ElectrumOptions {
    /// The hosts as `server.features` has them.
    fn hosts(&self) -> serde_json::Value {
        let ports =
            |(tcp, ssl): &(Option<u16>, Option<u16>)| json!({"tcp_port": tcp, "ssl_port": ssl});
        self.hosts.iter().map(|(host, both)| (host.clone(), ports(both))).collect()
    }
}

/// How lines travel.
#[derive(Clone, Debug)]
pub enum Transport {
    /// In the open.
    Tcp,
    /// Encrypted.
    Tls(TlsIdentity),
    /// As messages of a WebSocket, encrypted or not.
    WebSocket(Option<TlsIdentity>),
}

/// A socket to serve clients at.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: TcpListener,
    /// How lines travel there.
    pub transport: Transport,
}

/// Serves clients at these sockets until the server is shut down. All sockets share subscriptions
/// and limits.
pub async fn serve(
    service: Arc<Service>,
    listeners: Vec<Listener>,
    options: ElectrumOptions,
    shutdown: Shutdown,
) -> io::Result<()> {
    let shared = Arc::new(Shared::new(service, options));
    let mut tasks = JoinSet::new();
    tasks.spawn(notifier::run(Arc::clone(&shared), shutdown.clone()));
    for Listener { socket, transport } in listeners {
        tasks.spawn(listener::listen(socket, transport, Arc::clone(&shared), shutdown.clone()));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(io::Error::other)?;
    }
    Ok(())
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    service: Arc<Service>,
    options: ElectrumOptions,
    limits: Limits,
    statuses: Statuses,
    switchboard: Switchboard,
    census: Census,
    /// Bytes for long lines that are being received.
    receiving: Arc<Semaphore>,
    /// Bytes that wait in all outboxes.
    queued: Arc<AtomicUsize>,
    outboxes: Mutex<Vec<Weak<Outbox>>>,
}

impl Shared {
    fn new(service: Arc<Service>, options: ElectrumOptions) -> Self {
        let limits = options.limits;
        Self {
            service,
            statuses: Statuses::new(limits.history),
            switchboard: Switchboard::new(),
            census: Census::default(),
            receiving: Arc::new(Semaphore::new(limits.received.min(Semaphore::MAX_PERMITS))),
            queued: Arc::new(AtomicUsize::new(0)),
            outboxes: Mutex::new(Vec::new()),
            limits,
            options,
        }
    }

    /// Remembers a client's outbox.
    fn enter(&self, outbox: &Arc<Outbox>) {
        let mut outboxes = self.outboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if outboxes.len() == outboxes.capacity() {
            outboxes.retain(|outbox| outbox.strong_count() > 0);
        }
        outboxes.push(Arc::downgrade(outbox));
    }

    /// Waits until answers fit in the memory that all outboxes share. Clients that leave theirs
    /// unread give way.
    async fn make_room(&self) {
        while self.queued.load(Ordering::Relaxed) > self.limits.queued {
            self.close_stalled();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn close_stalled(&self) {
        let outboxes = self.outboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let stalled = outboxes.iter().filter_map(Weak::upgrade);
        stalled.filter(|outbox| outbox.is_stalled()).for_each(|outbox| outbox.close());
    }
}
