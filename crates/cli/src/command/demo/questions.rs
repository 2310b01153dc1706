//! What a demo that nobody looks at asks its own servers, and what they must answer.
//!
//! The truth is what was mined and what the node's snapshot says. A block may be mined between a
//! question and its answer; then everything is asked again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use varve::{Node, ScriptHash, Snapshot};
use varve_server::serve::Server;

use super::miner::Mined;
use crate::command::serve::Running;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Transactions that must have been sent ahead of their blocks.
const TRANSACTIONS: u64 = 50;

/// What was asked, and for what chain.
pub(super) struct Asked {
    /// What was mined when the servers were asked.
    pub(super) mined: Mined,
    /// Answers that were compared.
    pub(super) answers: u32,
}

/// Whether enough has happened for the questions: a branch has overtaken another, transactions are
/// in the mempool, and the node is where the miner is.
pub(super) fn is_time(node: &Node, mined: &Mined) -> bool {
    let snapshot = node.snapshot();
    let in_mempool = snapshot.mempool().map_or(0, |mempool| mempool.totals().sum.count);
    mined.reorgs > 0
        && !mined.is_contested
        && mined.transactions >= TRANSACTIONS
        && in_mempool > 0
        && snapshot.tip().hash == mined.tip
}

/// Asks both servers; `None` when the tip moved meanwhile.
pub(super) fn ask(
    running: &Running,
    node: &Node,
    (mined, hot): (&Mined, &[Vec<u8>]),
) -> Result<Option<Asked>> {
    let snapshot = node.snapshot();
    let http = running.address(Server::Http).context("HTTP is served")?;
    let electrum = running.address(Server::Electrum).context("Electrum is served")?;
    let asked = ask_http(http, &snapshot, mined)
        .and_then(|by_http| Ok(by_http + ask_electrum(electrum, &snapshot, hot)?));
    if node.snapshot().tip() != snapshot.tip() || snapshot.tip().hash != mined.tip {
        return Ok(None);
    }
    let answers = asked.context("a server of the demo answered wrongly; please report it")?;
    Ok(Some(Asked { mined: *mined, answers }))
}

fn ask_http(address: SocketAddr, snapshot: &Snapshot, mined: &Mined) -> Result<u32> {
    let tip = snapshot.tip();
    let text = |path: &str| get(address, path);
    let expect = |path: &str, expected: &str| -> Result<()> {
        let answer = text(path)?;
        ensure!(answer == expected, "{path} is {answer}, not {expected}");
        Ok(())
    };
    expect("/api/blocks/tip/height", &tip.height.to_string())?;
    expect("/api/blocks/tip/hash", &mined.tip.to_string())?;
    expect(&format!("/api/block-height/{}", mined.height), &mined.tip.to_string())?;
    let block = snapshot.block(tip.hash)?.context("the tip is stored")?;
    let answer: Value = serde_json::from_str(&text(&format!("/api/block/{}/txids", tip.hash))?)?;
    let txids: Vec<Value> = block.txids.iter().map(|txid| json!(txid.to_string())).collect();
    ensure!(answer == Value::Array(txids), "the transactions of the tip are others");
    let metrics = text("/metrics")?;
    let line = format!("varve_tip_height {}", tip.height);
    ensure!(metrics.lines().any(|found| found == line), "/metrics has no line {line}");
    let mempool: Value = serde_json::from_str(&text("/api/mempool")?)?;
    ensure!(mempool.get("count").is_some_and(Value::is_u64), "/api/mempool has no count");
    Ok(6)
}

fn ask_electrum(address: SocketAddr, snapshot: &Snapshot, hot: &[Vec<u8>]) -> Result<u32> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut call = |method: &str, params: Value| -> Result<Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        (&stream).write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => bail!("{method}: {line}"),
        }
    };
    call("server.version", json!(["varve demo", ["1.4", "1.6"]]))?;
    let tip = call("blockchain.headers.subscribe", json!([]))?;
    let height = tip.get("height").and_then(Value::as_u64);
    ensure!(height == Some(snapshot.tip().height.to_u32().into()), "the tip is {tip}");
    let mut answers = 2;
    for script in hot.iter().take(8) {
        let hash = ScriptHash::of(script);
        let confirmed = call("blockchain.scripthash.get_balance", json!([hash.to_string()]))?;
        let confirmed = confirmed.get("confirmed").and_then(Value::as_u64);
        let balance = snapshot.script(hash)?.summary()?.balance.to_sat();
        ensure!(confirmed == Some(balance), "{hash} has {confirmed:?}, not {balance}");
        answers += 1;
    }
    Ok(answers)
}

/// The body of an answer by HTTP, which must be a good one.
fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of headers")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{path}: {}", head.lines().next().unwrap_or(head));
    ensure!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{path} came in chunks");
    Ok(body.to_owned())
}
