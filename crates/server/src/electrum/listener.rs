//! Accepts clients, and refuses those that are too many.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection::{HANDSHAKE, over_stream, over_web_socket, refusal};
use super::fault::Fault;
use super::tls::TlsIdentity;
use super::{Shared, Transport};
use crate::metrics::{Connected, Protocol};
use crate::service::{Shutdown, stopping};

/// How long clients have to take their last answers when the server ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many clients there are, and from where.
#[derive(Debug, Default)]
pub(super) struct Census(Mutex<HashMap<IpAddr, usize>>);

/// A client that is counted for as long as this exists.
#[derive(Debug)]
struct Seat {
    shared: Arc<Shared>,
    address: IpAddr,
    _open: Connected,
}

impl Census {
    fn enter(shared: &Arc<Shared>, address: IpAddr) -> Result<Seat, Fault> {
        let mut counts = shared.census.0.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = &shared.limits;
        if counts.values().sum::<usize>() >= limits.connections {
            return Err(Fault::bad("too many connections: the server has no room for more"));
        }
        let count = counts.entry(address).or_default();
        if *count >= limits.connections_per_address && !address.is_loopback() {
            let most = limits.connections_per_address;
            return Err(Fault::bad(format!("too many connections: {most} of one address is most")));
        }
        *count += 1;
        let open = shared.service.metrics().connected(Protocol::Electrum);
        Ok(Seat { shared: Arc::clone(shared), address, _open: open })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.shared.census.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// Serves the clients of one socket until the server is shut down.
pub(super) async fn listen(
    socket: TcpListener,
    transport: Transport,
    shared: Arc<Shared>,
    mut shutdown: Shutdown,
) {
    let mut clients = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(_) = clients.join_next() => continue,
            () = stopping(&mut shutdown) => break,
        };
        match accepted {
            Ok((stream, peer)) => match Census::enter(&shared, peer.ip().to_canonical()) {
                Ok(seat) => {
                    let (shared, shutdown) = (Arc::clone(&shared), shutdown.clone());
                    clients.spawn(serve(stream, transport.clone(), (shared, seat), shutdown));
                }
                Err(fault) => {
                    shared.service.metrics().refused(Protocol::Electrum);
                    refuse(&stream, &transport, &fault);
                }
            },
            // No descriptors are left, or the client has gone: the next one may do better.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
    drop(socket);
    let ended = async { while clients.join_next().await.is_some() {} };
    // Those that remain are dropped with the set.
    let _ = timeout(PATIENCE, ended).await;
}

/// Says why, where that takes no conversation, and hangs up.
fn refuse(stream: &TcpStream, transport: &Transport, fault: &Fault) {
    if matches!(transport, Transport::Tcp) {
        let _ = stream.try_write(&refusal(fault));
    }
}

async fn serve(
    stream: TcpStream,
    transport: Transport,
    (shared, _seat): (Arc<Shared>, Seat),
    shutdown: Shutdown,
) {
    // Answers are written whole; waiting for more to send with them gains nothing.
    let _ = stream.set_nodelay(true);
    match transport {
        Transport::Tcp => over_stream(stream, shared, shutdown).await,
        Transport::WebSocket(None) => over_web_socket(stream, shared, shutdown).await,
        Transport::Tls(identity) => {
            if let Ok(stream) = encrypt(&identity, stream).await {
                over_stream(stream, shared, shutdown).await;
            }
        }
        Transport::WebSocket(Some(identity)) => {
            if let Ok(stream) = encrypt(&identity, stream).await {
                over_web_socket(stream, shared, shutdown).await;
            }
        }
    }
}

async fn encrypt(
    identity: &TlsIdentity,
    stream: TcpStream,
) -> io::Result<tokio_rustls::server::TlsStream<TcpStream>> {
    let accepted = timeout(HANDSHAKE, identity.acceptor.accept(stream)).await;
    accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
