//! A node with a simulated chain, served over HTTP.

use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use varve::{Index, IndexSet, Network, Node, Source};
use varve_server::http::HttpOptions;
use varve_server::service::Service;
use varve_sim::{Block, Chain, Config, Profile};

use super::client::get;

pub(crate) const NETWORK: Network = Network::Regtest;
const BLOCKS: u32 = 150;

/// Small blocks with transactions from height 101 on, and branches that lose.
pub(crate) fn blocks(count: u32, seed: u64) -> Vec<Block> {
    let config = Config {
        transactions: Some(12),
        coins: Some(200),
        reorg_depth: Some(4),
        ..Config::new(Profile::Mainnet, count, seed)
    };
    Chain::new(&config).unwrap().collect()
}

/// A server, until it is dropped.
pub(crate) struct Rig {
    pub(crate) address: String,
    pub(crate) node: Node,
    pub(crate) blocks: Vec<Block>,
    pub(crate) service: Arc<Service>,
    stop: Option<watch::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

/// One server that tests which change nothing share.
pub(crate) static SHARED: LazyLock<Rig> = LazyLock::new(|| Rig::new(blocks(BLOCKS, 5)));

impl Rig {
    /// Serves a new node that has these blocks and every index.
    pub(crate) fn new(blocks: Vec<Block>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let indexes =
            IndexSet::default().with(Index::Stats).with(Index::Script).with(Index::Filter);
        let builder = Node::builder().network(NETWORK).datadir(folder.path().join("node"));
        let node = builder.indexes(indexes).create().unwrap();
        let rig = Self::serve(node, folder, blocks);
        rig.sync(&rig.blocks);
        rig
    }

    fn serve(node: Node, folder: TempDir, blocks: Vec<Block>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = watch::channel(false);
        let service = Service::new(node.clone());
        let served = Arc::clone(&service);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let options = HttpOptions::default();
                varve_server::http::serve(served, listener, options, stopped).await.unwrap();
            });
            runtime.shutdown_background();
        });
        let (stop, thread) = (Some(stop), Some(thread));
        Self { address, node, blocks, service, stop, thread, _folder: folder }
    }

    /// Adds blocks to the node.
    pub(crate) fn sync(&self, blocks: &[Block]) {
        let bytes: Vec<Vec<u8>> = blocks.iter().map(|block| block.bytes.clone()).collect();
        self.node.sync(Source::blocks(bytes)).run().unwrap();
    }

    /// The answer of an endpoint of the own API, which must be good and name the tip.
    pub(crate) fn ask(&self, path: &str) -> Value {
        let response = get(&self.address, &format!("/api/varve/v1/{path}"));
        let json = response.json();
        assert_eq!(response.status, 200, "{path}: {json}");
        let tip = self.node.snapshot().tip();
        assert_eq!(json["tip"]["hash"], tip.hash.to_string(), "{path}");
        assert_eq!(json["tip"]["height"], tip.height.to_u32(), "{path}");
        json
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A server that has panicked has failed its test already.
            let _ = thread.join();
        }
    }
}
