//! All servers of one node together: bound, started, stopped.
//!
//! 1. [`Listeners::bind`] takes the ports before anything else is done, so that one that is in use
//!    is found before a folder is made or opened.
//! 2. [`Servers::start`] serves the node on them, in threads of its own.
//! 3. [`Servers::stop`] lets requests finish for a moment and ends the rest.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::electrum::{self, ElectrumOptions, TlsIdentity, Transport};
use crate::http::{self, HttpOptions};
use crate::log::{self, Level};
use crate::service::Service;

/// One server, by the name of its option and in answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// REST, the explorer, metrics and health.
    Http,
    /// Electrum over TCP.
    Electrum,
    /// Electrum over TLS.
    ElectrumTls,
    /// Electrum over WebSocket.
    ElectrumWs,
}

impl Server {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Http, Self::Electrum, Self::ElectrumTls, Self::ElectrumWs];

    /// The name of the option that says where it listens.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Electrum => "electrum",
            Self::ElectrumTls => "electrum-tls",
            Self::ElectrumWs => "electrum-ws",
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.option())
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}; {}", advice(*server, source))]
    Bind {
        /// The server.
        server: Server,
        /// Where it was to listen.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// TLS was asked for without a certificate.
    #[error("TLS needs a certificate and its key; pass --cert FILE and --key FILE")]
    NoCertificate,
    /// The system gives no threads.
    #[error("cannot start the servers: {0}")]
    Runtime(#[source] io::Error),
}

/// What to do about an address that cannot be had.
fn advice(server: Server, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another program has the port: stop it, or pass --{server} HOST:PORT with another \
             port (0 is any that is free)"
        ),
        io::ErrorKind::PermissionDenied => {
            format!("pass --{server} HOST:PORT with a port above 1023")
        }
        _ => format!("pass --{server} HOST:PORT with an address of this machine"),
    }
}

/// Ports that are taken and not yet served.
#[derive(Debug, Default)]
pub struct Listeners(Vec<(Server, TcpListener)>);

impl Listeners {
    /// Takes a port for each server that has an address.
    pub fn bind<'a>(
        addresses: impl IntoIterator<Item = (Server, Option<&'a str>)>,
    ) -> Result<Self, ServeError> {
        let mut listeners = Vec::new();
        for (server, address) in addresses {
            let Some(address) = address else { continue };
            let failed = |source| ServeError::Bind { server, address: address.to_owned(), source };
            let listener = TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            listeners.push((server, listener));
        }
        Ok(Self(listeners))
    }

    /// Where a server listens, with the port that the system has chosen.
    #[must_use]
    pub fn address(&self, server: Server) -> Option<SocketAddr> {
        let (_, listener) = self.0.iter().find(|(found, _)| *found == server)?;
        listener.local_addr().ok()
    }
}

/// How clients are served.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// HTTP.
    pub http: HttpOptions,
    /// Electrum on every transport.
    pub electrum: ElectrumOptions,
    /// The certificate and the key for TLS.
    pub tls: Option<TlsIdentity>,
}

/// The servers of a node, while they run.
#[derive(Debug)]
pub struct Servers {
    runtime: Runtime,
    shutdown: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Servers {
    /// Serves a node on these ports.
    pub fn start(
        service: &Arc<Service>,
        listeners: Listeners,
        options: ServeOptions,
    ) -> Result<Self, ServeError> {
        let ServeOptions { http: http_options, electrum: electrum_options, tls } = options;
        let runtime = Builder::new_multi_thread()
            .thread_name("varve-serve")
            .enable_all()
            .build()
            .map_err(ServeError::Runtime)?;
        let (shutdown, stopping) = watch::channel(false);
        let (mut tasks, mut electrum) = (JoinSet::new(), Vec::new());
        for (server, listener) in listeners.0 {
            let socket = {
                let _entered = runtime.enter();
                tokio::net::TcpListener::from_std(listener).map_err(ServeError::Runtime)?
            };
            log_listening(server, &socket);
            let transport = match server {
                Server::Http => {
                    let service = Arc::clone(service);
                    let served =
                        http::serve(service, socket, http_options.clone(), stopping.clone());
                    tasks.spawn_on(report(server, served), runtime.handle());
                    continue;
                }
                Server::Electrum => Transport::Tcp,
                Server::ElectrumTls => match &tls {
                    Some(identity) => Transport::Tls(identity.clone()),
                    None => return Err(ServeError::NoCertificate),
                },
                Server::ElectrumWs => Transport::WebSocket(tls.clone()),
            };
            electrum.push(electrum::Listener { socket, transport });
        }
        if !electrum.is_empty() {
            let service = Arc::clone(service);
            let served = electrum::serve(service, electrum, electrum_options, stopping);
            tasks.spawn_on(report(Server::Electrum, served), runtime.handle());
        }
        Ok(Self { runtime, shutdown, tasks })
    }

    /// Takes no more requests, waits for those that run for as long as `patience`, and ends.
    pub fn stop(self, patience: Duration) {
        let Self { runtime, shutdown, mut tasks } = self;
        let end = Instant::now() + patience;
        // Servers that have ended already receive nothing.
        let _ = shutdown.send(true);
        runtime.block_on(async {
            let ended = async { while tasks.join_next().await.is_some() {} };
            // The rest is ended by the runtime's end.
            let _ = tokio::time::timeout_at(end.into(), ended).await;
        });
        runtime.shutdown_timeout(end.saturating_duration_since(Instant::now()));
    }
}

fn log_listening(server: Server, socket: &tokio::net::TcpListener) {
    if let Ok(address) = socket.local_addr() {
        let fields = json!({ "server": server.option(), "address": address.to_string() });
        log::event(Level::Info, "listening", &fields);
    }
}

/// Logs a server that ended although nobody asked it to.
async fn report(server: Server, served: impl Future<Output = io::Result<()>>) {
    if let Err(error) = served.await {
        let fields = json!({ "server": server.option(), "reason": error.to_string() });
        log::event(Level::Error, "server_failed", &fields);
    }
}
