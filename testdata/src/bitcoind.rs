//! A real node for tests: `bitcoind` on regtest, with its own folder and loopback address.
//!
//! The program is the one that `BITCOIND_EXE` names, else `bitcoind` on the path. It listens on
//! loopback only, is queried through JSON-RPC over plain HTTP with its cookie, and is killed when
//! the test ends.
//!
//! A port that was free a moment ago may be taken when the node has started. So every node has an
//! address in 127.0.0.0/8 on which nothing else listens, and always the same two ports.
//!
//! ```no_run
//! use serde_json::json;
//! use varve_testdata::bitcoind::Bitcoind;
//!
//! let Some(node) = Bitcoind::start(&["-txindex"]) else { return };
//! assert_eq!(node.call("getblockcount", &json!([])), 0);
//! ```
//!
//! Everything here panics when the node does not do what it is asked: a test stops where it fails.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

mod answers;
mod every_kind;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use answers::Answers;
pub use every_kind::EveryKind;

const LIMIT: Duration = Duration::from_secs(120);
const RPC_PORT: u16 = 18443;
const P2P_PORT: u16 = 18444;

/// A running node.
pub struct Bitcoind {
    program: PathBuf,
    folder: Folder,
    options: Vec<String>,
    process: Child,
    address: Ipv4Addr,
    cookie: String,
    /// How often blocks have been mined.
    mined: AtomicU32,
}

enum Folder {
    Own(TempDir),
    Given(PathBuf),
}

impl Bitcoind {
    /// Starts a node with an empty folder and these options in addition to the usual ones. `None`,
    /// after recording the skip, when there is no program.
    #[must_use]
    pub fn start(options: &[&str]) -> Option<Self> {
        Some(Self::run(program()?, Folder::Own(tempfile::tempdir().unwrap()), options))
    }

    /// The same with a folder that may have files of a node.
    #[must_use]
    pub fn start_in(folder: &Path, options: &[&str]) -> Option<Self> {
        Some(Self::run(program()?, Folder::Given(folder.to_owned()), options))
    }

    /// Two nodes that have the same blocks and are not connected.
    #[must_use]
    pub fn start_two(blocks: u32) -> Option<(Self, Self)> {
        let (one, other) = (Self::start(&[])?, Self::start(&[])?);
        one.mine(blocks);
        other.call("addnode", &json!([one.p2p_address(), "onetry"]));
        other.wait_for_height(blocks);
        other.call("disconnectnode", &json!([one.p2p_address()]));
        let begin = Instant::now();
        while one.call("getconnectioncount", &json!([])) != 0 {
            assert!(begin.elapsed() < LIMIT, "the nodes stay connected");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some((one, other))
    }

    fn run(program: PathBuf, folder: Folder, options: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let address = own_address(std::process::id(), number);
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let process = spawn(&program, folder.path(), address, &options);
        // Two nodes mine different blocks too.
        let (cookie, mined) = (String::new(), AtomicU32::new(number << 16));
        let mut node = Self { program, folder, options, process, address, cookie, mined };
        node.wait_until_ready();
        node
    }

    /// Kills the process, as power loss would.
    pub fn kill(&mut self) {
        // It may already have ended, which is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops the node in order.
    pub fn stop(&mut self) {
        self.call("stop", &json!([]));
        let begin = Instant::now();
        while self.process.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < LIMIT, "the node does not stop");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts it again, with the same folder and address.
    pub fn start_again(&mut self) {
        self.process = spawn(&self.program, self.folder.path(), self.address, &self.options);
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let begin = Instant::now();
        loop {
            self.cookie = fs::read_to_string(self.cookie_file()).unwrap_or_default();
            if !self.cookie.is_empty() && self.try_call("getblockcount", &json!([])).is_ok() {
                return;
            }
            assert!(begin.elapsed() < LIMIT, "the node did not start");
            assert!(self.process.try_wait().unwrap().is_none(), "the node ended");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The folder of the network, with `blocks/` in it.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("regtest")
    }

    /// The file with the login of this run.
    #[must_use]
    pub fn cookie_file(&self) -> PathBuf {
        self.folder().join(".cookie")
    }

    /// The address for peers.
    #[must_use]
    pub fn p2p_address(&self) -> String {
        format!("{}:{P2P_PORT}", self.address)
    }

    /// The address for JSON-RPC and REST.
    #[must_use]
    pub fn rpc_address(&self) -> String {
        format!("{}:{RPC_PORT}", self.address)
    }

    /// The result of a call, which must succeed.
    pub fn call(&self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The result of a call, or the message of the error.
    pub fn try_call(&self, method: &str, params: &Value) -> Result<Value, String> {
        self.post("/", method, params)
    }

    /// The same for a wallet.
    pub fn wallet(&self, wallet: &str, method: &str, params: &Value) -> Value {
        let result = self.post(&format!("/wallet/{wallet}"), method, params);
        result.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn post(&self, path: &str, method: &str, params: &Value) -> Result<Value, String> {
        let body = json!({ "id": 0, "method": method, "params": params }).to_string();
        let stream = TcpStream::connect((self.address, RPC_PORT));
        let mut stream = stream.map_err(|error| error.to_string())?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Basic {}\r\nContent-Length: {}\r\n\r\n",
            BASE64_STANDARD.encode(&self.cookie),
            body.len()
        );
        let mut answer = String::new();
        stream.write_all(head.as_bytes()).map_err(|error| error.to_string())?;
        stream.write_all(body.as_bytes()).map_err(|error| error.to_string())?;
        stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a body")?;
        let answer: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        match answer.get("error") {
            None | Some(Value::Null) => Ok(answer.get("result").cloned().unwrap_or_default()),
            Some(error) => Err(error.get("message").unwrap_or(error).to_string()),
        }
    }

    /// Mines blocks that pay to anyone, and returns their hashes.
    pub fn mine(&self, count: u32) -> Vec<String> {
        // A number that the script drops makes the blocks of two branches different.
        let number = self.mined.fetch_add(1, Ordering::Relaxed);
        let script = format!("raw(04{:08x}7551)", number.swap_bytes());
        let descriptor = self.call("getdescriptorinfo", &json!([script]));
        let hashes = self.call("generatetodescriptor", &json!([count, descriptor["descriptor"]]));
        let hash = |hash: &Value| hash.as_str().unwrap().to_owned();
        hashes.as_array().unwrap().iter().map(hash).collect()
    }

    /// The height of the active chain.
    #[must_use]
    pub fn height(&self) -> u32 {
        let height = self.call("getblockcount", &json!([])).as_u64();
        u32::try_from(height.unwrap()).unwrap()
    }

    /// The hash of the tip.
    #[must_use]
    pub fn tip(&self) -> String {
        self.call("getbestblockhash", &json!([])).as_str().unwrap().to_owned()
    }

    /// The block of this hash.
    #[must_use]
    pub fn block(&self, hash: &str) -> Vec<u8> {
        use bitcoin::hex::FromHex as _;
        Vec::from_hex(self.call("getblock", &json!([hash, 0])).as_str().unwrap()).unwrap()
    }

    /// Replaces the last `depth` blocks by `depth + 1` others. Returns the hashes of those.
    pub fn reorganize(&self, depth: u32) -> Vec<String> {
        let first = self.height() + 1 - depth;
        let stale = self.call("getblockhash", &json!([first]));
        self.call("invalidateblock", &json!([stale]));
        let hashes = self.mine(depth + 1);
        self.call("reconsiderblock", &json!([stale]));
        hashes
    }

    /// Waits until the tip is at this height.
    pub fn wait_for_height(&self, height: u32) {
        let begin = Instant::now();
        while self.height() != height {
            assert!(begin.elapsed() < LIMIT, "the node does not get to height {height}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Own(folder) => folder.path(),
            Self::Given(folder) => folder,
        }
    }
}

impl Drop for Bitcoind {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The loopback address of a node: no other of this process has it, nor one of a process that runs
/// at the same time. It is not in 127.0.0.0/9, which other programs use.
fn own_address(process: u32, number: u32) -> Ipv4Addr {
    let [.., high, low] = process.to_be_bytes();
    let [.., number] = (number % 254 + 1).to_be_bytes();
    Ipv4Addr::new(127, 0x80 | high, low, number)
}

fn spawn(program: &Path, folder: &Path, address: Ipv4Addr, options: &Vec<String>) -> Child {
    Command::new(program)
        .args(["-regtest", "-server", "-dnsseed=0", "-fixedseeds=0", "-discover=0", "-dbcache=64"])
        .args(["-listen=1", "-listenonion=0", "-natpmp=0", "-maxtipage=9999999999"])
        .args(["-rpcallowip=127.0.0.0/8", "-acceptnonstdtxn=1"])
        .arg(format!("-rpcbind={address}:{RPC_PORT}"))
        .arg(format!("-bind={address}:{P2P_PORT}"))
        .arg(format!("-datadir={}", folder.display()))
        .args(options)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("BITCOIND_EXE").map(PathBuf::from);
    let found = named.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join("bitcoind")).find(|file| file.is_file())
    });
    if found.is_none() {
        crate::skip("no bitcoind: run `cargo xtask node`, or set BITCOIND_EXE");
    }
    found
}
