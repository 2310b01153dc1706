//! Ten thousand clients with ten subscriptions each, and a block every second.
//!
//! Each client subscribes to the tip and to ten scripts of blocks that are still to come. It checks
//! that no state is reported twice, and that it knows the last one at the end; what it should know
//! is asked of the server again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use varve_bench::ratio::Ratio;
use varve_types::{Block, Network, ScriptHash};

use super::ours::Server;
use super::wallet::blocks;

const CLIENTS: usize = 10_000;
const SCRIPTS: usize = 10;
/// Descriptors that the generator needs beside those of its clients.
const SPARE: u64 = 200;

/// Feeds the blocks of these heights to the server while the clients listen.
pub(super) fn run(mut server: Server, chain: &Path, (from, to): (u32, u32)) -> Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let clients = limit.map_or(CLIENTS, |limit| {
        CLIENTS.min(usize::try_from(limit.saturating_sub(SPARE)).unwrap_or(CLIENTS))
    });
    let live: Vec<Vec<u8>> =
        blocks(chain)?.into_iter().skip(from as usize + 1).take((to - from) as usize).collect();
    let names = Arc::new(names(&live)?);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let idle = server.resident()?;
    let (ready, end) = (Arc::new(Barrier::new(clients + 1)), to);
    let address = server.address;
    let tasks: Vec<_> = (0..clients)
        .map(|number| {
            let (names, ready) = (Arc::clone(&names), Arc::clone(&ready));
            runtime.spawn(async move {
                let first = number * SCRIPTS;
                let place = |place: usize| names.get(place % names.len()).cloned();
                let own: Vec<String> = (first..first + SCRIPTS).filter_map(place).collect();
                client(address, own, &ready, end).await
            })
        })
        .collect();
    runtime.block_on(ready.wait());
    let subscribed = server.resident()?;
    let mut last = Instant::now();
    for block in &live {
        last = Instant::now();
        server.feed(block)?;
        std::thread::sleep(Duration::from_secs(1));
    }
    let (mut reported, mut slowest) = (0, Duration::ZERO);
    for task in tasks {
        let done = runtime.block_on(task)??;
        reported += done.notifications;
        slowest = slowest.max(done.at.saturating_duration_since(last));
    }
    let busy = server.resident()?;
    println!(
        "{clients} clients, {SCRIPTS} subscriptions each, {} blocks: {reported} notifications, \
         none missed or doubled; all know the last block {slowest:.2?} after it came; memory \
         {idle:.0} MB before, {subscribed:.0} MB with subscriptions, {busy:.0} MB after",
        live.len()
    );
    Ratio::at_most("serve.crowd", slowest.as_secs_f64(), 1.0).print();
    Ok(())
}

struct Done {
    notifications: usize,
    /// When the last block was reported.
    at: Instant,
}

/// The scripts of blocks.
fn names(blocks: &[Vec<u8>]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for bytes in blocks {
        let block = Block::parse(bytes, Network::Regtest.format()).context("a block")?;
        let outputs = block.txs().iter().flat_map(|tx| tx.outputs().collect::<Vec<_>>());
        names.extend(outputs.map(|output| ScriptHash::of(output.script).to_string()));
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

async fn client(
    address: std::net::SocketAddr,
    names: Vec<String>,
    ready: &Barrier,
    end: u32,
) -> Result<Done> {
    let mut stream = BufReader::with_capacity(1 << 10, TcpStream::connect(address).await?);
    let subscribe =
        |method: &str, params: Value| json!({"id": 1, "method": method, "params": params});
    let mut requests = vec![subscribe("blockchain.headers.subscribe", json!([]))];
    let script = |name: &String| subscribe("blockchain.scripthash.subscribe", json!([name]));
    requests.extend(names.iter().map(script));
    ask(&mut stream, &json!(requests)).await?;
    let answer = line(&mut stream).await?;
    let mut known: HashMap<String, Value> = names.iter().cloned().zip(statuses(&answer)).collect();
    ready.wait().await;
    let (mut notifications, mut tip) = (0, Value::Null);
    while tip.get("height") != Some(&end.into()) {
        tip = take(&line(&mut stream).await?, &mut known)?.unwrap_or(tip);
        notifications += 1;
    }
    let at = Instant::now();
    // What is true now is asked for, and whatever comes before the answer is taken.
    let get = |name: &String| subscribe("blockchain.scripthash.get_status", json!([name]));
    let mut requests = vec![subscribe("server.ping", json!([]))];
    requests.extend(names.iter().map(get));
    tokio::time::sleep(Duration::from_secs(2)).await;
    ask(&mut stream, &json!(requests)).await?;
    let answer = loop {
        let next = line(&mut stream).await?;
        if next.is_array() {
            break next;
        }
        take(&next, &mut known)?;
        notifications += 1;
    };
    for (name, status) in names.iter().zip(statuses(&answer)) {
        ensure!(known.get(name) == Some(&status), "a notification about {name} was missed");
    }
    Ok(Done { notifications, at })
}

/// The results of a batch behind its first.
fn statuses(answer: &Value) -> impl Iterator<Item = Value> {
    let answers = answer.as_array().into_iter().flatten().skip(1);
    answers.map(|answer| answer["result"].clone())
}

/// Takes a notification; returns the tip when it is about that.
fn take(line: &Value, known: &mut HashMap<String, Value>) -> Result<Option<Value>> {
    let params = &line["params"];
    if line["method"] == "blockchain.headers.subscribe" {
        return Ok(Some(params[0].clone()));
    }
    let name = params[0].as_str().context("a notification names its script")?;
    let before = known.insert(name.to_owned(), params[1].clone());
    ensure!(before.as_ref() != Some(&params[1]), "the same state of {name} was reported twice");
    Ok(None)
}

async fn ask(stream: &mut BufReader<TcpStream>, batch: &Value) -> Result<()> {
    Ok(stream.get_mut().write_all(format!("{batch}\n").as_bytes()).await?)
}

async fn line(stream: &mut BufReader<TcpStream>) -> Result<Value> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    serde_json::from_str(&line).context("a line of JSON")
}
