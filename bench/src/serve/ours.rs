//! Our side: a node and its Electrum server in a child, which takes further blocks as lines.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::{Context as _, Result, bail};
use tokio::runtime::Builder;
use tokio::sync::watch;
use varve::types::Height;
use varve::{LiveItem, Network, Node, Source};
use varve_server::electrum::{self, ElectrumOptions, Listener, Transport};
use varve_server::http::{self, HttpOptions};
use varve_server::service::Service;

/// A child that serves.
pub(super) struct Server {
    /// Where Electrum is served.
    pub(super) address: SocketAddr,
    /// Where REST is served.
    pub(super) http: SocketAddr,
    child: Child,
    input: ChildStdin,
}

/// Syncs a chain up to a height, and serves it.
pub(super) fn start(folder: &Path, chain: &Path, stop: Option<u32>) -> Result<Server> {
    let node = open(folder)?;
    let mut sync = node.sync(Source::folder(chain));
    if let Some(height) = stop {
        sync = sync.stop_height(Height::new(height));
    }
    sync.run()?;
    drop(node);
    let mut child = Command::new(std::env::current_exe()?)
        .args(["child", "serve"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a child")?;
    let input = child.stdin.take().context("the child has no input")?;
    let output = child.stdout.take().context("the child has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let mut addresses = line.split_whitespace().map(str::parse::<SocketAddr>);
    let mut next = || addresses.next().context("the child says where it listens");
    let (address, http) = (next()??, next()??);
    Ok(Server { address, http, child, input })
}

impl Server {
    /// Hands the child a block.
    pub(super) fn feed(&mut self, block: &[u8]) -> Result<()> {
        let hex: String = block.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(writeln!(self.input, "{hex}")?)
    }

    /// Megabytes that the child has in memory.
    pub(super) fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.context("no VmRSS")?.parse::<f64>()? / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to do about it here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(folder: &Path) -> Result<Node> {
    let builder = Node::builder().network(Network::Regtest).datadir(folder);
    Ok(builder.indexes("all".parse()?).open_or_create()?)
}

/// Runs in the child: serves until its input ends; a line of the input is a block in hex.
pub(crate) fn run(words: &[OsString]) -> Result<()> {
    let [folder] = words else { bail!("`serve` wants a folder") };
    let node = open(Path::new(folder))?;
    let (blocks, items) = channel();
    let sync = node.follow(Source::live(items)).start()?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let bind = || runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let (socket, rest) = (bind()?, bind()?);
    println!("{} {}", socket.local_addr()?, rest.local_addr()?);
    let (stop, shutdown) = watch::channel(false);
    let listeners = vec![Listener { socket, transport: Transport::Tcp }];
    let service = Service::new(node);
    let options = ElectrumOptions::default();
    let serving = electrum::serve(Arc::clone(&service), listeners, options, shutdown.clone());
    let serving = runtime.spawn(serving);
    runtime.spawn(http::serve(service, rest, HttpOptions::default(), shutdown));
    for line in std::io::stdin().lines() {
        let line = line?;
        let digits = line.as_bytes().as_chunks::<2>().0;
        let byte =
            |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair)?, 16).context("hex");
        let block = digits.iter().map(byte).collect::<Result<Vec<u8>>>()?;
        blocks.send(LiveItem::Block(block))?;
    }
    stop.send(true)?;
    runtime.block_on(serving)??;
    sync.stop();
    sync.wait()?;
    Ok(())
}
