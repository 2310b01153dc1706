//! A real node for tests: bitcoind on regtest.
//!
//! The program is the one that `BITCOIND_EXE` names, else `bitcoind` on the path. It listens on
//! loopback only, is asked through JSON-RPC over plain HTTP with its cookie, and is killed when the
//! test ends.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test stops where it fails")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a node may take to start, or to get somewhere.
const LIMIT: Duration = Duration::from_secs(120);

/// A node that runs until this is dropped.
#[derive(Debug)]
pub struct Node {
    process: Child,
    port: u16,
    cookie: String,
}

impl Node {
    /// Starts one in a data folder, or records the skip when there is none.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn start(folder: &Path, options: &[&str]) -> Option<Self> {
        let program = program()?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args([
                "-regtest",
                "-server",
                "-listen=0",
                "-dnsseed=0",
                "-fixedseeds=0",
                "-dbcache=64",
            ])
            .args(["-rpcbind=127.0.0.1", "-rpcallowip=127.0.0.1", "-acceptnonstdtxn=1"])
            .arg(format!("-rpcport={port}"))
            .arg(format!("-datadir={}", folder.display()))
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut node = Self { process, port, cookie: String::new() };
        let begin = Instant::now();
        loop {
            let cookie = fs::read_to_string(folder.join("regtest/.cookie")).unwrap_or_default();
            node.cookie = cookie;
            if !node.cookie.is_empty() && node.try_call("getblockcount", &json!([])).is_ok() {
                return Some(node);
            }
            assert!(begin.elapsed() < LIMIT, "the node did not start");
            assert!(node.process.try_wait().unwrap().is_none(), "the node ended");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Calls a method that must succeed.
    ///
    /// # Panics
    ///
    /// When it does not.
    #[must_use]
    pub fn call(&self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method; the error is the node's message.
    pub fn try_call(&self, method: &str, params: &Value) -> Result<Value, String> {
        let body = json!({ "id": 0, "method": method, "params": params }).to_string();
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port)).map_err(|error| error.to_string())?;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Basic {}\r\n\
             Content-Length: {}\r\n\r\n",
            base64(self.cookie.as_bytes()),
            body.len()
        );
        let mut answer = String::new();
        stream.write_all(head.as_bytes()).map_err(|error| error.to_string())?;
        stream.write_all(body.as_bytes()).map_err(|error| error.to_string())?;
        stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a body")?;
        let answer: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        match &answer["error"] {
            Value::Null => Ok(answer["result"].clone()),
            error => Err(error["message"].to_string()),
        }
    }

    /// Waits until the node says yes.
    ///
    /// # Panics
    ///
    /// When that takes too long.
    pub fn wait(&self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !is_there(self) {
            assert!(begin.elapsed() < LIMIT, "the node does not get there: {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to do about it here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}
