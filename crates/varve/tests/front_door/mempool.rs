//! Unconfirmed transactions: handed in, seen in snapshots, kept in the folder; and leases.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use varve::{BroadcastError, Error, LiveItem, Node, Source, SyncThread, Txid};
use varve_sim::{Chain, Config, Profile, Unconfirmed};

use crate::chain::NETWORK;

/// A signed chain, and transactions that are valid on its tip.
pub(crate) fn simulated() -> (Vec<Vec<u8>>, Vec<Unconfirmed>) {
    let config = Config {
        transactions: Some(8),
        coins: Some(100),
        signed_percent: 100,
        mempool: 20,
        ..Config::new(Profile::Mainnet, 130, 5)
    };
    let mut chain = Chain::new(&config).unwrap();
    let blocks = chain.by_ref().map(|block| block.bytes).collect();
    (blocks, chain.into_mempool())
}

/// A node that follows a maker, when it has caught up and has a mempool.
pub(crate) fn following(node: &Node, blocks: &[Vec<u8>]) -> (Sender<LiveItem>, SyncThread) {
    let (maker, items) = channel();
    let sync = node.follow(Source::live(items)).start().unwrap();
    for block in blocks {
        maker.send(LiveItem::Block(block.clone())).unwrap();
    }
    let begin = Instant::now();
    while node.snapshot().mempool().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "at {}", node.snapshot().tip());
        thread::sleep(Duration::from_millis(5));
    }
    (maker, sync)
}

fn has(node: &Node, txid: &Txid) -> bool {
    node.snapshot().mempool().is_some_and(|mempool| mempool.contains(txid))
}

#[test]
fn a_transaction_is_handed_in_wakes_subscribers_and_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (blocks, txs) = simulated();
    let node = Node::builder().network(NETWORK).datadir(folder.path()).create().unwrap();
    let refused = node.broadcast(&txs[0].bytes).unwrap_err();
    assert!(matches!(refused, BroadcastError::Unavailable { .. }), "{refused}");
    let (maker, sync) = following(&node, &blocks);
    let mut changes = node.changes();
    let tested = node.test_accept(&[txs[0].bytes.clone()]).unwrap();
    let fee = tested[0].result.as_ref().unwrap().1;
    assert!(!has(&node, &txs[0].txid) && tested[0].txid == txs[0].txid);
    assert_eq!(node.broadcast(&txs[0].bytes).unwrap(), txs[0].txid);
    assert!(has(&node, &txs[0].txid), "it is visible when the call returns");
    assert_eq!(node.broadcast(&txs[0].bytes).unwrap(), txs[0].txid, "again is no error");
    let change = changes.next_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(change.tip, node.snapshot().tip());
    let refused = node.broadcast(&txs[0].bytes[..20]).unwrap_err();
    assert!(matches!(refused, BroadcastError::Decode { .. }), "{refused}");
    let mut wrong = txs[1].bytes.clone();
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    let refused = node.broadcast(&wrong).unwrap_err();
    assert!(matches!(refused, BroadcastError::Refused { .. }), "another lock time: {refused}");
    for tx in &txs[1..10] {
        maker.send(LiveItem::Tx(tx.bytes.clone())).unwrap();
    }
    let begin = Instant::now();
    while !has(&node, &txs[9].txid) {
        assert!(begin.elapsed() < Duration::from_secs(30), "it does not come");
        changes.next_timeout(Duration::from_millis(100));
    }
    let snapshot = node.snapshot();
    let mempool = snapshot.mempool().unwrap();
    assert_eq!(mempool.totals().sum.count, 10);
    assert_eq!(mempool.entry(&txs[0].txid).unwrap().fee(), fee);
    assert_eq!(mempool.entry(&txs[0].txid).unwrap().bytes(), txs[0].bytes);
    drop((maker, snapshot));
    sync.stop();
    sync.wait().unwrap();
    assert!(node.snapshot().mempool().is_none());
    drop(node);
    // At rest the folder still has them, and a question takes them from there.
    let node = Node::open(folder.path()).unwrap();
    assert!(node.snapshot().mempool().is_none());
    let stored = node.snapshot().stored_mempool().unwrap().unwrap();
    assert_eq!(stored.totals().sum.count, 10);
    assert_eq!(stored.entry(&txs[0].txid).unwrap().fee(), fee);
    let (_maker, _sync) = following(&node, &[]);
    assert!(txs[..10].iter().all(|tx| has(&node, &tx.txid)));
}

#[test]
fn a_package_is_taken_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (blocks, txs) = simulated();
    let node = Node::builder().network(NETWORK).datadir(folder.path()).create().unwrap();
    let (_maker, _sync) = following(&node, &blocks);
    let one = node.broadcast_package(&[txs[0].bytes.clone()]).unwrap();
    assert_eq!(one, [Ok(txs[0].txid)]);
    let none = node.broadcast_package(&[txs[1].bytes.clone(), txs[2].bytes.clone()]);
    let answers = none.unwrap();
    assert!(answers.iter().all(Result::is_err) || answers.iter().all(Result::is_ok), "{answers:?}");
}

#[test]
fn a_snapshot_that_is_held_too_long_expires_and_others_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let (blocks, _) = simulated();
    let lease = Duration::from_millis(300);
    let node = Node::builder().network(NETWORK).datadir(folder.path()).snapshot_lease(lease);
    let node = node.create().unwrap();
    node.sync(Source::blocks(blocks)).run().unwrap();
    let old = node.snapshot();
    let tip = old.tip();
    assert!(old.header(tip.hash).unwrap().is_some());
    let copy = old.clone();
    assert_eq!(node.live_snapshots().count, 1, "a clone is the same");
    thread::sleep(lease * 2);
    for snapshot in [&old, &copy] {
        let expired = snapshot.header(tip.hash).unwrap_err();
        assert!(matches!(expired, Error::SnapshotExpired { .. }), "{expired}");
        assert!(snapshot.unspent().is_err() && snapshot.mempool().is_none());
        assert_eq!(snapshot.tip(), tip, "which moment it was stays known");
    }
    assert_eq!(node.live_snapshots().count, 0);
    let new = node.snapshot();
    assert!(new.header(tip.hash).unwrap().is_some());
    let live = node.live_snapshots();
    assert!(live.count == 1 && live.oldest < lease, "{live:?}");
    drop((old, copy, new));
    assert_eq!(node.live_snapshots().count, 0);
}
