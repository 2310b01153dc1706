//! The thread that follows the mempool of the node.
//!
//! 1. It asks the node where it publishes (`getzmqnotifications`). Where it publishes `sequence`, a
//!    second thread listens there and passes changes on; the receiver finds gaps by their counters.
//! 2. A *listing* is all txids with the mempool sequence (`getrawmempool`), between two questions
//!    for the tip in the same batch. It is made when the receiver asks for it, when a connection to
//!    the publisher is new, and at intervals: [`POLL`] without a publisher, but never more than a
//!    twentieth of the time; [`CHECK`] with one.
//! 3. Transactions are *fetched* in batches (`getrawtransaction`), but for those that the node has
//!    published (`rawtx`), which are kept for a while.
//!
//! What the node refuses (a login that may not do this, say) ends this thread with a warning, and
//! never the source: blocks do not need it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use hex_conservative::FromHex as _;
use serde_json::{Value, json};
use varve_types::{BlockHash, Format, Tx, Txid};

use super::client::Client;
use super::link::{Link, Message, Stop, TICK};
use crate::mempool::{FeedChange, FeedEvent, Listing};
use crate::source::Warning;
use crate::source::transactions::TxNews;
use crate::source::zmq::{Published, Subscriber};

/// Between two listings without a publisher, and with one.
const POLL: Duration = Duration::from_secs(1);
const CHECK: Duration = Duration::from_secs(60);
/// A listing takes at most this part of the time.
const PART: u32 = 20;
/// Transactions of one batch.
const BATCH: usize = 100;
/// How long a publisher that is gone is left alone.
const PAUSE: Duration = Duration::from_secs(2);
/// Published transactions that are kept, and their bytes.
const KEPT: usize = 2_000;
const KEPT_BYTES: usize = 16 << 20;

/// What the receiver wants.
pub(super) enum Ask {
    /// To hear of transactions, or not any more.
    Relay(bool),
    List,
    Fetch(Vec<Txid>),
}

/// What this thread and the one that listens to the publisher share.
#[derive(Default)]
struct Shared {
    /// Whether changes are heard.
    is_connected: AtomicBool,
    /// Whether a listing is needed because a connection is new or was lost.
    is_stale: AtomicBool,
    /// Whether the receiver wants to hear.
    is_on: AtomicBool,
    kept: Mutex<Kept>,
}

/// The last transactions that were published.
#[derive(Default)]
struct Kept {
    txs: HashMap<Txid, Bytes>,
    order: VecDeque<Txid>,
    bytes: usize,
}

impl Kept {
    fn insert(&mut self, txid: Txid, tx: Bytes) {
        self.bytes += tx.len();
        if let Some(before) = self.txs.insert(txid, tx) {
            self.bytes -= before.len();
            return;
        }
        self.order.push_back(txid);
        while self.order.len() > KEPT || self.bytes > KEPT_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.txs.remove(&oldest).map_or(0, |tx| tx.len());
        }
    }
}

/// The thread.
pub(super) struct Listener {
    link: Arc<Link>,
    client: Client,
    asks: Receiver<Ask>,
    shared: Arc<Shared>,
    wanted: VecDeque<Txid>,
    /// When the next listing is due.
    due: Option<Duration>,
    has_publisher: bool,
}

impl Listener {
    pub(super) fn new(link: Arc<Link>, client: Client, asks: Receiver<Ask>) -> Self {
        let (shared, wanted) = (Arc::default(), VecDeque::new());
        Self { link, client, asks, shared, wanted, due: None, has_publisher: false }
    }

    /// Runs until the source is dropped.
    pub(super) fn run(mut self) {
        if let Err(Stop::Failed(error)) = self.serve() {
            let (peer, reason) = (self.link.address.clone(), error.to_string());
            let reason = format!("its mempool is not followed: {reason}");
            // When nobody listens any more, nobody wants to know.
            let _ = self.link.send(Message::Warning(Warning::Lost { peer, reason }));
        }
        self.shared.is_on.store(false, Ordering::Relaxed);
    }

    fn serve(&mut self) -> Result<(), Stop> {
        loop {
            self.wait()?;
            if !self.shared.is_on.load(Ordering::Relaxed) {
                continue;
            }
            if !self.wanted.is_empty() {
                self.fetch()?;
            }
            let is_stale = self.shared.is_stale.swap(false, Ordering::Relaxed);
            if is_stale || self.due.is_some_and(|due| (self.link.clock)() >= due) {
                self.list()?;
            }
        }
    }

    /// Takes what the receiver wants, and waits when that is nothing.
    fn wait(&mut self) -> Result<(), Stop> {
        if self.link.is_closed() {
            return Err(Stop::Closed);
        }
        let wait = if self.wanted.is_empty() { TICK } else { Duration::ZERO };
        let mut next = self.asks.recv_timeout(wait);
        loop {
            match next {
                Ok(Ask::Relay(is_on)) => self.relay(is_on)?,
                Ok(Ask::List) => self.due = Some((self.link.clock)()),
                Ok(Ask::Fetch(txids)) => self.wanted.extend(txids),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Closed),
            }
            next = self.asks.recv_timeout(Duration::ZERO);
        }
    }

    fn relay(&mut self, is_on: bool) -> Result<(), Stop> {
        self.shared.is_on.store(is_on, Ordering::Relaxed);
        self.wanted.clear();
        self.due = is_on.then(|| (self.link.clock)());
        if is_on && !self.has_publisher {
            self.find_publisher()?;
        }
        Ok(())
    }

    /// Starts to listen where the node publishes its changes, if it does.
    fn find_publisher(&mut self) -> Result<(), Stop> {
        let notifications = self.client.notifications()?;
        let address = |kind: &str| {
            let of_kind = |item: &&Value| item.get("type").and_then(Value::as_str) == Some(kind);
            let item = notifications.as_array()?.iter().find(of_kind)?;
            reachable(item.get("address")?.as_str()?, &self.link.address)
        };
        let Some(sequence) = address("pubsequence") else { return Ok(()) };
        let raw = address("pubrawtx");
        self.has_publisher = true;
        let is_together = raw.as_ref() == Some(&sequence);
        let topics: &[&str] = if is_together { &["sequence", "rawtx"] } else { &["sequence"] };
        self.listen(sequence, topics);
        if let Some(raw) = raw.filter(|_| !is_together) {
            self.listen(raw, &["rawtx"]);
        }
        Ok(())
    }

    fn listen(&self, address: String, topics: &[&'static str]) {
        let topics = topics.to_vec();
        let (link, shared) = (Arc::clone(&self.link), Arc::clone(&self.shared));
        thread::spawn(move || while hear(&link, &shared, &address, &topics).is_ok() {});
    }

    fn list(&mut self) -> Result<(), Stop> {
        let begin = (self.link.clock)();
        let listing = self.client.mempool()?;
        let end = (self.link.clock)();
        let is_connected = self.shared.is_connected.load(Ordering::Relaxed);
        let pause = if is_connected { CHECK } else { POLL };
        self.due = Some(end + pause.max(end.saturating_sub(begin) * PART));
        self.link.send(Message::Transactions(TxNews::Listed(listing)))
    }

    /// Fetches one batch, so that listings and other wishes have their turn.
    fn fetch(&mut self) -> Result<(), Stop> {
        let count = self.wanted.len().min(BATCH);
        let txids: Vec<Txid> = self.wanted.drain(..count).collect();
        let mut found: Vec<(Txid, Option<Bytes>)> = {
            let mut kept = self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
            txids.iter().map(|txid| (*txid, kept.txs.get_mut(txid).cloned())).collect()
        };
        let missing = found.iter().filter(|(_, tx)| tx.is_none());
        let missing: Vec<Txid> = missing.map(|(txid, _)| *txid).collect();
        if !missing.is_empty() {
            let mut fetched = self.client.transactions(&missing)?.into_iter();
            for (_, tx) in found.iter_mut().filter(|(_, tx)| tx.is_none()) {
                *tx = fetched.next().flatten();
            }
        }
        self.link.send(Message::Transactions(TxNews::Fetched(found)))
    }
}

impl Client {
    /// Where the node publishes; nothing when it does not know the question.
    fn notifications(&mut self) -> Result<Value, Stop> {
        self.patiently(|client| {
            let answer = client.calls.call("getzmqnotifications", &json!([]))?;
            Ok(answer.unwrap_or_default())
        })
    }

    /// All transactions of the node.
    fn mempool(&mut self) -> Result<Listing, Stop> {
        let (before, listed, after) = self.patiently(|client| {
            let tip = ("getbestblockhash", json!([]));
            let calls = [tip.clone(), ("getrawmempool", json!([false, true])), tip];
            let mut answers = client.calls.batch(&calls)?.into_iter();
            let mut next = || answers.next().flatten();
            Ok((next(), next(), next()))
        })?;
        let parsed = || {
            let listed = listed?;
            let txids = listed.get("txids")?.as_array()?.iter();
            let txids = txids.map(|txid| txid.as_str()?.parse().ok()).collect::<Option<_>>()?;
            let sequence = listed.get("mempool_sequence")?.as_u64()?;
            let hash = |value: Option<Value>| value?.as_str()?.parse::<BlockHash>().ok();
            let (before, after) = (hash(before)?, hash(after)?);
            Some(Listing { txids, sequence, tip: Some(before).filter(|tip| *tip == after) })
        };
        parsed().ok_or_else(|| self.link.refused("does not list its mempool with its sequence"))
    }

    /// Transactions of the mempool, `None` for each that it does not have any more.
    fn transactions(&mut self, txids: &[Txid]) -> Result<Vec<Option<Bytes>>, Stop> {
        self.patiently(|client| {
            let call = |txid: &Txid| ("getrawtransaction", json!([txid.to_string(), false]));
            let calls: Vec<_> = txids.iter().map(call).collect();
            let bytes = |answer: Option<Value>| {
                let bytes = Vec::from_hex(answer?.as_str()?).ok()?;
                Some(Bytes::from(bytes))
            };
            Ok(client.calls.batch(&calls)?.into_iter().map(bytes).collect())
        })
    }
}

/// Listens to a publisher for as long as the connection holds. An error: nobody wants to hear it.
fn hear(link: &Link, shared: &Shared, address: &str, topics: &[&str]) -> Result<(), Stop> {
    let is_over = || link.is_closed();
    let heard = Subscriber::connect(address, topics, TICK).and_then(|mut subscriber| {
        let is_sequence = topics.contains(&"sequence");
        if is_sequence {
            shared.is_connected.store(true, Ordering::Relaxed);
            shared.is_stale.store(true, Ordering::Relaxed);
        }
        loop {
            if is_over() {
                return Ok(());
            }
            let Some(message) = subscriber.next(&is_over)? else { continue };
            if take(link, shared, message).is_err() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
    });
    if topics.contains(&"sequence") {
        shared.is_connected.store(false, Ordering::Relaxed);
        shared.is_stale.store(true, Ordering::Relaxed);
    }
    // Without a publisher the listings go on, so its loss is no news; it is tried again.
    drop(heard);
    link.pause(PAUSE)
}

/// Passes a message on, or keeps it.
fn take(link: &Link, shared: &Shared, message: Published) -> Result<(), Stop> {
    let Published { topic, body, counter } = message;
    if topic == b"rawtx" {
        let format = if link.network.is_bsv() { Format::Legacy } else { link.network.format() };
        if let Ok(tx) = Tx::parse(&body, format) {
            let txid = tx.txid();
            let mut kept = shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.insert(txid, Bytes::from(body));
        }
        return Ok(());
    }
    let change = change_of(&body).filter(|_| shared.is_on.load(Ordering::Relaxed));
    let Some(what) = change else { return Ok(()) };
    let event = FeedEvent { counter, what };
    link.send(Message::Transactions(TxNews::Changed(event)))
}

/// What a message of `sequence` says: a hash with its bytes reversed, a letter, and for
/// transactions the mempool sequence.
fn change_of(body: &[u8]) -> Option<FeedChange> {
    let (hash, rest) = body.split_first_chunk::<32>()?;
    let mut hash = *hash;
    hash.reverse();
    let (label, rest) = rest.split_first()?;
    let sequence = || rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let txid = Txid::from_bytes(hash);
    match label {
        b'A' => Some(FeedChange::Added { txid, sequence: sequence()? }),
        b'R' => Some(FeedChange::Removed { txid, sequence: sequence()? }),
        b'C' | b'D' => Some(FeedChange::Block(BlockHash::from_bytes(hash))),
        _ => None,
    }
}

/// The address of a publisher as we reach it: one that listens everywhere is where the node is.
/// `None` when it is not reached by TCP.
fn reachable(endpoint: &str, node: &str) -> Option<String> {
    let address = endpoint.strip_prefix("tcp://")?;
    let (host, port) = address.rsplit_once(':')?;
    let (node_host, _) = node.rsplit_once(':').unwrap_or((node, ""));
    let is_anywhere = matches!(host, "0.0.0.0" | "*" | "[::]" | "::");
    Some(format!("{}:{port}", if is_anywhere { node_host } else { host }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_sequence_are_read() {
        let mut hash = [0; 32];
        (hash[0], hash[31]) = (1, 2);
        let reversed: Vec<u8> = hash.iter().rev().copied().collect();
        let body = |label: u8, rest: &[u8]| [&reversed[..], &[label], rest].concat();
        let (txid, sequence) = (Txid::from_bytes(hash), 7);
        let number = 7_u64.to_le_bytes();
        assert_eq!(change_of(&body(b'A', &number)), Some(FeedChange::Added { txid, sequence }));
        assert_eq!(change_of(&body(b'R', &number)), Some(FeedChange::Removed { txid, sequence }));
        let block = Some(FeedChange::Block(BlockHash::from_bytes(hash)));
        assert_eq!((change_of(&body(b'C', &[])), change_of(&body(b'D', &[]))), (block, block));
        assert_eq!((change_of(&body(b'A', &[0; 7])), change_of(&[0; 32])), (None, None));
    }

    #[test]
    fn a_publisher_that_listens_everywhere_is_where_the_node_is() {
        let found = |endpoint| reachable(endpoint, "10.0.0.7:8332");
        assert_eq!(found("tcp://127.0.0.1:28332").as_deref(), Some("127.0.0.1:28332"));
        assert_eq!(found("tcp://0.0.0.0:28332").as_deref(), Some("10.0.0.7:28332"));
        assert_eq!(found("tcp://[::]:28332").as_deref(), Some("10.0.0.7:28332"));
        assert_eq!(found("ipc:///tmp/node"), None);
    }

    #[test]
    fn published_transactions_are_kept_within_bounds() {
        let mut kept = Kept::default();
        let txid = |number: u16| {
            let mut bytes = [0; 32];
            bytes[..2].copy_from_slice(&number.to_le_bytes());
            Txid::from_bytes(bytes)
        };
        (0..3_000).for_each(|number| kept.insert(txid(number), Bytes::from(vec![1; 10])));
        assert_eq!((kept.txs.len(), kept.bytes), (KEPT, KEPT * 10));
        kept.insert(txid(2_999), Bytes::from(vec![1; 20]));
        assert_eq!((kept.txs.len(), kept.bytes), (KEPT, KEPT * 10 + 10));
        kept.insert(txid(1), Bytes::from(vec![1; KEPT_BYTES]));
        assert!(kept.bytes <= KEPT_BYTES && kept.txs.contains_key(&txid(1)));
    }
}
