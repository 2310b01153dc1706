//! A served node, and the plainest client that speaks HTTP to it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use varve::{Index, IndexSet, Network, Node, Source};
use varve_server::http::{HttpOptions, serve};
use varve_server::service::Service;

/// A node that is served over HTTP until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) node: Node,
    stop: watch::Sender<bool>,
    runtime: Option<Runtime>,
    _folder: Option<TempDir>,
}

impl Server {
    /// A new node with these blocks and all indexes.
    pub(crate) fn with_blocks(network: Network, blocks: Vec<Vec<u8>>) -> Self {
        Self::with_options(network, blocks, HttpOptions::default())
    }

    pub(crate) fn with_options(
        network: Network,
        blocks: Vec<Vec<u8>>,
        options: HttpOptions,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node = node(network, folder.path());
        if !blocks.is_empty() {
            node.sync(Source::blocks(blocks)).run().unwrap();
        }
        let mut server = Self::start(node, options);
        server._folder = Some(folder);
        server
    }

    /// Serves a node.
    pub(crate) fn start(node: Node, options: HttpOptions) -> Self {
        let runtime = Runtime::new().unwrap();
        let (stop, shutdown) = watch::channel(false);
        let service = Service::new(node.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { serve(service, listener, options, shutdown).await.unwrap() });
        Self { address, node, stop, runtime: Some(runtime), _folder: None }
    }

    pub(crate) fn client(&self) -> Client {
        Client { address: self.address, stream: None }
    }

    /// Asks the server to stop.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

/// A new node in a folder, with all indexes.
pub(crate) fn node(network: Network, folder: &Path) -> Node {
    let indexes = IndexSet::default().with(Index::Script).with(Index::Pushdata);
    let builder = Node::builder().network(network).datadir(folder).indexes(indexes);
    builder.memory(256 << 20).open_or_create().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

/// A connection that is kept open between requests.
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl Client {
    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    /// The JSON of a path that answers with 200.
    pub(crate) fn json(&mut self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, "application/json"),
            "{path}"
        );
        reply.json()
    }

    /// The text of a path that answers with 200.
    pub(crate) fn text(&mut self, path: &str) -> String {
        let reply = self.get(path);
        assert_eq!((reply.status, reply.header("content-type")), (200, "text/plain"), "{path}");
        reply.text().to_owned()
    }

    /// The status and text of a path that is refused.
    pub(crate) fn refused(&mut self, path: &str) -> (u16, String) {
        let reply = self.get(path);
        assert_ne!(reply.status, 200, "{path}: {}", reply.text());
        (reply.status, reply.text().to_owned())
    }

    pub(crate) fn post(&mut self, path: &str, kind: &str, body: &[u8]) -> Reply {
        self.send("POST", path, &[("content-type", kind)], body)
    }

    pub(crate) fn post_json(&mut self, path: &str, body: &Value) -> Reply {
        self.post(path, "application/json", body.to_string().as_bytes())
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let stream = self.stream.get_or_insert_with(|| {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            BufReader::new(stream)
        });
        let bytes = [request.as_bytes(), body].concat();
        stream.get_mut().write_all(&bytes).unwrap();
        let reply = read(stream, method == "HEAD");
        if reply.header("connection") == "close" {
            self.stream = None;
        }
        reply
    }
}

/// Reads an answer.
pub(crate) fn read(stream: &mut BufReader<TcpStream>, is_head: bool) -> Reply {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if let Some(length) = headers.get("content-length").filter(|_| !is_head) {
        body.resize(length.parse().unwrap(), 0);
        stream.read_exact(&mut body).unwrap();
    }
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") && !is_head {
        loop {
            line.clear();
            stream.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            let start = body.len();
            body.resize(start + length, 0);
            stream.read_exact(&mut body[start..]).unwrap();
            line.clear();
            stream.read_line(&mut line).unwrap();
            if length == 0 {
                break;
            }
        }
    }
    Reply { status, headers, body }
}

/// Waits until something holds.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
