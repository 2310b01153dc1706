//! Peers: one that relays as a node does, and some that flood.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use varve_consensus::contract::draft::TxDraft;
use varve_node::mempool::Judge;
use varve_node::source::p2p::{P2p, Settings};
use varve_node::source::transactions::TxName;
use varve_node::test_suite::wire::{Inventory, Message};
use varve_node::{NodeReader, NodeSnapshot, Order, Organizer, Reply, Report, SyncOptions, Verify};
use varve_types::{Network, Txid, Wtxid};

use super::model::{FEE, pay};
use crate::miner::{Mined, SUBSIDY, young_options};
use crate::rig::{disk, sync_options};
use crate::script_peer::{Manner, ScriptPeer, Served, send};

/// More than any transaction pays: the filter of a node that takes none.
const NOTHING: u64 = 21_000_000 * 100_000_000;

/// A node that follows peers and has a mempool.
struct Follower {
    reader: NodeReader,
    stop: Arc<AtomicBool>,
    warnings: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<()>,
    _folder: TempDir,
}

impl Follower {
    fn start(peers: &[&ScriptPeer]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
        let begin = Instant::now();
        let mut source = P2p::new(Settings {
            network: Network::Regtest,
            peers: peers.iter().map(|peer| peer.address.clone()).collect(),
            clock: Arc::new(move || begin.elapsed()),
            epoch: 0,
            nonce: 5,
            relay: true,
        });
        let (reader, stop) = (node.reader(), Arc::new(AtomicBool::new(false)));
        let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
        let options = SyncOptions {
            verify: Verify::Spends,
            follow: true,
            mempool: true,
            all_branches: false,
            stop: stop.clone(),
            ..sync_options()
        };
        let said = warnings.clone();
        let thread = thread::spawn(move || {
            let report = &mut |report: Report<'_>| {
                if let Report::Warning(warning) = report {
                    said.lock().unwrap().push(warning.to_string());
                }
            };
            node.sync(&mut source, &options, report).unwrap();
        });
        Self { reader, stop, warnings, thread, _folder: folder }
    }

    #[track_caller]
    fn until(&self, is_so: impl Fn(&NodeSnapshot) -> bool) -> Arc<NodeSnapshot> {
        let begin = Instant::now();
        loop {
            let now = self.reader.snapshot();
            if is_so(&now) {
                return now;
            }
            assert!(!self.thread.is_finished(), "it ended");
            let waited = begin.elapsed();
            assert!(waited < Duration::from_secs(30), "{:?}, {:?}", now.tip, now.mempool.is_some());
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn has(&self, tx: &TxDraft) -> Arc<NodeSnapshot> {
        self.until(|now| now.mempool.as_ref().is_some_and(|pool| pool.contains(&tx.txid())))
    }

    fn stop(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.warnings.lock().unwrap().clone()
    }
}

/// What a peer that relays has and was told.
#[derive(Default)]
struct Shelf {
    txs: Mutex<HashMap<Txid, Vec<u8>>>,
    line: Mutex<Option<TcpStream>>,
    announced: Mutex<Vec<TxName>>,
    received: Mutex<Vec<Vec<u8>>>,
    filters: Mutex<Vec<u64>>,
}

impl Shelf {
    /// A peer's manner: it has these transactions, and takes those that it is told of.
    fn manner(self: &Arc<Self>) -> Manner {
        let shelf = self.clone();
        Arc::new(move |message, stream| {
            match message {
                Message::FeeFilter(rate) => {
                    shelf.filters.lock().unwrap().push(*rate);
                    *shelf.line.lock().unwrap() = Some(stream.try_clone().unwrap());
                }
                Message::GetData(list) => {
                    for item in list {
                        let Some(TxName::Txid(txid)) = item.tx_name() else { continue };
                        match shelf.txs.lock().unwrap().get(&txid) {
                            Some(tx) => send(stream, &Message::Tx(tx.clone())),
                            None => send(stream, &Message::NotFound(vec![*item])),
                        }
                    }
                }
                Message::Inv(list) => {
                    let names: Vec<TxName> = list.iter().filter_map(Inventory::tx_name).collect();
                    shelf.announced.lock().unwrap().extend(&names);
                    let wanted = names.iter().map(|name| Inventory::tx(*name, Network::Regtest));
                    send(stream, &Message::GetData(wanted.collect()));
                }
                Message::Tx(bytes) => shelf.received.lock().unwrap().push(bytes.clone()),
                _ => {}
            }
            false
        })
    }

    fn put(&self, tx: &TxDraft) {
        self.txs.lock().unwrap().insert(tx.txid(), tx.bytes());
    }

    fn announce(&self, txs: &[&TxDraft]) {
        let names = txs.iter().map(|tx| Inventory::announced(TxName::Txid(tx.txid())));
        let message = Message::Inv(names.collect());
        let mut line = self.line.lock().unwrap();
        send(line.as_mut().expect("it is connected"), &message);
    }
}

#[test]
fn transactions_come_by_announcement_and_their_parents_on_demand() {
    let blocks = Mined::genesis().plain(6);
    let shelf = Arc::new(Shelf::default());
    let peer = ScriptPeer::start(Served::new(&blocks), shelf.manner());
    let follower = Follower::start(&[&peer]);
    follower.until(|now| now.tip.1 == blocks[5].hash && now.mempool.is_some());
    follower.until(|_| shelf.filters.lock().unwrap().last().is_some_and(|rate| *rate < NOTHING));
    assert_eq!(shelf.filters.lock().unwrap()[0], NOTHING, "nothing is wanted before");
    let parent = pay(&[(blocks[0].coin(), SUBSIDY)], 2, FEE).unwrap();
    let spent = varve_types::Outpoint::new(parent.txid(), 0);
    let child = pay(&[(spent, parent.outputs[0].value)], 1, FEE).unwrap();
    [&parent, &child].into_iter().for_each(|tx| shelf.put(tx));
    shelf.announce(&[&child]);
    let now = follower.has(&child);
    assert!(now.mempool.as_ref().unwrap().contains(&parent.txid()));
    // One that it does not have after all, then one that it has.
    let other = pay(&[(blocks[1].coin(), SUBSIDY)], 1, FEE).unwrap();
    let nobody = pay(&[(blocks[2].coin(), SUBSIDY)], 1, FEE).unwrap();
    shelf.put(&other);
    shelf.announce(&[&nobody, &other]);
    follower.has(&other);
    // Our own go the other way.
    let own = pay(&[(blocks[3].coin(), SUBSIDY)], 1, FEE).unwrap();
    let order = Order::Accept(vec![own.bytes().into()], Judge::Ours);
    let Reply::Verdicts(verdicts) = follower.reader.desk().hand_in(order).unwrap() else {
        panic!("an order to accept is answered by verdicts");
    };
    assert_eq!(verdicts[0].as_ref().unwrap(), &own.txid());
    follower.until(|_| shelf.received.lock().unwrap().contains(&own.bytes()));
    assert_eq!(*shelf.announced.lock().unwrap(), [TxName::Txid(own.txid())]);
    assert_eq!(follower.stop(), Vec::<String>::new());
}

#[test]
fn who_sends_what_no_node_relays_is_banned() {
    let blocks = Mined::genesis().plain(6);
    let (bad, good) = (Arc::new(Shelf::default()), Arc::new(Shelf::default()));
    let peers = [&bad, &good].map(|shelf| ScriptPeer::start(Served::new(&blocks), shelf.manner()));
    let follower = Follower::start(&[&peers[0], &peers[1]]);
    follower.until(|now| now.mempool.is_some() && now.tip.1 == blocks[5].hash);
    let is_open = |shelf: &Shelf| shelf.filters.lock().unwrap().iter().any(|rate| *rate < NOTHING);
    follower.until(|_| is_open(&bad) && is_open(&good));
    // An output script of OP_1 is true; the input pushes what a clean stack does not allow… but
    // consensus does. So the script itself must fail: it returns.
    let mut wrong = pay(&[(blocks[0].coin(), SUBSIDY)], 1, FEE).unwrap();
    wrong.inputs[0].script = vec![0x6a];
    bad.put(&wrong);
    bad.announce(&[&wrong]);
    follower.until(|_| !follower.warnings.lock().unwrap().is_empty());
    let right = pay(&[(blocks[0].coin(), SUBSIDY)], 1, FEE).unwrap();
    good.put(&right);
    good.announce(&[&right]);
    follower.has(&right);
    let warnings = follower.stop();
    assert!(warnings[0].contains("banned") && warnings[0].contains("script"), "{warnings:?}");
}

/// A peer's manner: as soon as transactions are wanted it announces others without end, sends some
/// that nobody asked for, and never one that it was asked for.
fn floods(sent: &Arc<AtomicUsize>, junk: Vec<u8>) -> Manner {
    let sent = sent.clone();
    Arc::new(move |message, stream| {
        if !matches!(message, Message::FeeFilter(rate) if *rate < NOTHING) {
            return matches!(message, Message::GetData(list) if list[0].tx_name().is_some());
        }
        let (mut stream, sent, junk) = (stream.try_clone().unwrap(), sent.clone(), junk.clone());
        thread::spawn(move || {
            for round in 0_u32.. {
                let name = |number: u32| {
                    let mut bytes = [0; 32];
                    bytes[..4].copy_from_slice(&number.to_le_bytes());
                    bytes[4..8].copy_from_slice(&round.to_le_bytes());
                    Inventory::announced(TxName::Wtxid(Wtxid::from_bytes(bytes)))
                };
                let inv = Message::Inv((0..50_000).map(name).collect()).encode(Network::Regtest);
                let tx = Message::Tx(junk.clone()).encode(Network::Regtest).repeat(200);
                if stream.write_all(&inv).is_err() || stream.write_all(&tx).is_err() {
                    return;
                }
                sent.fetch_add(50_200, Ordering::Relaxed);
            }
        });
        true
    })
}

/// Blocks and the transactions of another peer come through, and nothing grows.
#[test]
fn a_flood_of_transactions_keeps_no_block_waiting() {
    let blocks = Mined::genesis().plain(6);
    let next = blocks[5].above(9, Vec::new());
    let shelf = Arc::new(Shelf::default());
    let all: Vec<Mined> = blocks.iter().chain([&next]).cloned().collect();
    let served = Served::new(&all);
    let honest = {
        let (relay, served) = (shelf.manner(), served.clone());
        let first = Served::new(&blocks);
        let is_mined = Arc::new(AtomicBool::new(false));
        let flag = is_mined.clone();
        let manner: Manner = Arc::new(move |message, stream| {
            relay(message, stream);
            let chain = if flag.load(Ordering::Relaxed) { &served } else { &first };
            chain.answer(message, stream);
            true
        });
        (ScriptPeer::start(Served::new(&blocks), manner), is_mined)
    };
    let sent = Arc::new(AtomicUsize::new(0));
    let junk = pay(&[(blocks[1].coin(), SUBSIDY)], 1, FEE).unwrap().bytes();
    let bad = ScriptPeer::start(Served::new(&blocks), floods(&sent, junk));
    let follower = Follower::start(&[&bad, &honest.0]);
    follower.until(|now| now.mempool.is_some() && now.tip.1 == blocks[5].hash);
    follower.until(|_| sent.load(Ordering::Relaxed) > 1_000_000);
    let begin = Instant::now();
    let tx = pay(&[(blocks[0].coin(), SUBSIDY)], 1, FEE).unwrap();
    shelf.put(&tx);
    shelf.announce(&[&tx]);
    follower.has(&tx);
    let relayed = begin.elapsed();
    honest.1.store(true, Ordering::Relaxed);
    let header = *next.bytes.first_chunk().unwrap();
    let begin = Instant::now();
    send(shelf.line.lock().unwrap().as_mut().unwrap(), &Message::Headers(vec![header]));
    let now = follower.until(|now| now.tip.1 == next.hash);
    let mined = begin.elapsed();
    assert!(relayed.max(mined) < Duration::from_secs(5), "{relayed:?}, {mined:?}");
    let pool = now.mempool.as_ref().unwrap();
    assert_eq!(pool.totals().sum.count, 1, "what nobody asked for is not taken");
    follower.stop();
}
