//! A server with a node behind it, in the process of the test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use varve::{LiveItem, Network, Node, Source, SyncThread};
use varve_server::electrum::{self, ElectrumOptions, Limits, Listener, TlsIdentity, Transport};
use varve_server::service::Service;

use super::client::Client;

pub(crate) struct Server {
    pub(crate) node: Node,
    pub(crate) tcp: SocketAddr,
    pub(crate) tls: SocketAddr,
    pub(crate) ws: SocketAddr,
    runtime: Option<Runtime>,
    shutdown: watch::Sender<bool>,
    /// Where new blocks and transactions go, and who takes them.
    feed: Option<(Sender<LiveItem>, SyncThread)>,
    _folder: TempDir,
}

pub(crate) fn identity() -> TlsIdentity {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/electrum/tls");
    TlsIdentity::load(&folder.join("cert.pem"), &folder.join("key.pem")).unwrap()
}

impl Server {
    /// An empty chain.
    pub(crate) fn empty(network: Network, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let builder = Node::builder().network(network).datadir(folder.path());
        let node = builder.indexes("all".parse().unwrap()).create().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (shutdown, stop) = watch::channel(false);
        let bind = || runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let transports = [Transport::Tcp, Transport::Tls(identity()), Transport::WebSocket(None)];
        let listeners = transports.map(|transport| Listener { socket: bind(), transport });
        let [tcp, tls, ws] = [0, 1, 2].map(|at| listeners[at].socket.local_addr().unwrap());
        let options = ElectrumOptions { limits, ..ElectrumOptions::default() };
        let service = Service::new(node.clone());
        runtime.spawn(electrum::serve(service, listeners.into(), options, stop));
        Self { node, tcp, tls, ws, runtime: Some(runtime), shutdown, feed: None, _folder: folder }
    }

    /// A chain of these blocks.
    pub(crate) fn with(network: Network, blocks: &[Vec<u8>]) -> Self {
        let server = Self::empty(network, Limits::default());
        server.node.sync(Source::blocks(blocks.to_vec())).run().unwrap();
        server
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.tcp)
    }

    /// Adds a block to a sync that goes on.
    pub(crate) fn feed(&mut self, block: Vec<u8>) {
        self.feed_item(LiveItem::Block(block));
    }

    pub(crate) fn feed_item(&mut self, item: LiveItem) {
        let node = &self.node;
        let (sender, _) = self.feed.get_or_insert_with(|| {
            let (sender, items) = channel();
            (sender, node.follow(Source::live(items)).start().unwrap())
        });
        sender.send(item).unwrap();
    }

    /// Waits until a block is the tip.
    pub(crate) fn wait_for(&self, hash: varve::BlockHash) {
        wait_until(|| self.node.snapshot().tip().hash == hash);
    }

    /// Ends the server, and waits for that.
    pub(crate) fn stop(&mut self) {
        let _ = self.shutdown.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((sender, sync)) = self.feed.take() {
            drop(sender);
            sync.stop();
            let _ = sync.wait();
        }
        self.stop();
    }
}

/// Waits for something that must come true.
pub(crate) fn wait_until(mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_true() {
        assert!(Instant::now() < end, "it did not happen within a minute");
        thread::sleep(Duration::from_millis(2));
    }
}
