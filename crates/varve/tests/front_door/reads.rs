//! Snapshots of a node that is synced, at rest, or on its way from one to the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use varve::{BlockHash, Height, Node, Outpoint, SetHash, Source, Status, UnspentSet};

use crate::chain::{Expected, blocks, bytes, synced};

const HEIGHT: u32 = 125;

/// What a node says about itself beside its chain.
fn summary(node: &Node) -> (Status, Vec<(u32, BlockHash, u32)>) {
    let snapshot = node.snapshot();
    let tips = snapshot.chain_tips();
    let mut tips: Vec<_> =
        tips.iter().map(|tip| (tip.height.to_u32(), tip.hash, tip.branch_length)).collect();
    tips.sort_unstable();
    (node.status().unwrap(), tips)
}

#[test]
fn answers_are_the_same_live_and_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(HEIGHT, 3);
    let expected = Expected::up_to(&blocks, HEIGHT);
    let live = synced(folder.path(), &blocks);
    expected.check(&live.snapshot());
    let (live_status, live_tips) = summary(&live);
    let stats = live.snapshot().stats(SetHash::Muhash).unwrap();
    drop(live);

    let at_rest = Node::open(folder.path()).unwrap();
    expected.check(&at_rest.snapshot());
    let (status, tips) = summary(&at_rest);
    assert_eq!(tips, live_tips);
    let branches = blocks.iter().filter(|block| block.stale).count();
    assert!(tips.len() > 1 && branches >= tips.len() - 1, "there are branches that lost");
    assert_eq!(at_rest.snapshot().stats(SetHash::Muhash).unwrap(), stats);
    let facts = |status: &Status| {
        let Status { tip, headers, scripts, stores, .. } = status.clone();
        (tip, headers, scripts, format!("{stores:?}"))
    };
    assert_eq!(facts(&status), facts(&live_status));
    assert!(status.memory.is_some() && live_status.memory.is_some());
}

/// A block that lost is found by its hash and not by its height; so are its transactions.
#[test]
fn stale_blocks_answer_by_hash() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(HEIGHT, 3);
    let node = synced(folder.path(), &blocks);
    let snapshot = node.snapshot();
    let stale = blocks.iter().rfind(|block| block.stale).unwrap();
    let found = snapshot.block(stale.hash).unwrap().unwrap();
    assert_eq!((found.bytes(), found.header.confirmed), (stale.bytes.as_slice(), false));
    let height = Height::new(stale.height);
    assert_ne!(snapshot.header(height).unwrap().unwrap().hash, stale.hash);
    let coinbase = snapshot.tx(found.txids[0]).unwrap().unwrap();
    assert_eq!((coinbase.block.hash, coinbase.is_confirmed()), (stale.hash, false));
    assert!(snapshot.block(Height::new(HEIGHT + 1)).unwrap().is_none());
    assert!(snapshot.block(BlockHash::ZERO).unwrap().is_none());
}

/// A snapshot of a folder at rest may not have opened the unspent set, or a table of the history,
/// when the writers open and move on. It must still answer for its own moment, and so must one of
/// the live node and a set that was opened before.
#[test]
fn a_snapshot_keeps_its_moment_when_the_node_wakes_and_moves_on() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(HEIGHT, 4);
    let (first, second) = (HEIGHT - 12, HEIGHT - 6);
    let below = |height| -> Vec<_> {
        blocks.iter().filter(|block| !block.stale && block.height <= height).cloned().collect()
    };
    for opens_set in [false, true] {
        let path = folder.path().join(opens_set.to_string());
        drop(synced(&path, &below(first)));
        let node = Node::open(&path).unwrap();
        let at_rest = node.snapshot();
        let set = opens_set.then(|| at_rest.unspent().unwrap());
        let count = |set: &UnspentSet| set.stats(SetHash::Muhash, &mut |_, _| {}).unwrap();
        let counted = set.as_ref().map(count);

        node.sync(Source::blocks(bytes(&below(second)))).run().unwrap();
        let live = node.snapshot();
        node.sync(Source::blocks(bytes(&blocks))).run().unwrap();
        Expected::up_to(&blocks, first).check(&at_rest);
        Expected::up_to(&blocks, second).check(&live);
        Expected::up_to(&blocks, HEIGHT).check(&node.snapshot());
        assert_eq!(set.as_ref().map(count), counted);
        let (at_rest, live) = (at_rest.chain_tips(), live.chain_tips());
        assert_eq!((at_rest.len(), live.len()), (1, 1), "branches that came later do not count");
        assert!(node.snapshot().chain_tips().len() > 1);
    }
}

/// Readers ask a node at rest all the time while it wakes and syncs: every answer is of one tip.
#[test]
fn readers_do_not_notice_that_a_node_wakes() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(HEIGHT, 8);
    let half: Vec<_> = blocks.iter().filter(|b| !b.stale && b.height <= 110).cloned().collect();
    drop(synced(folder.path(), &half));
    let node = Node::open(folder.path()).unwrap();
    let coinbases: Vec<_> = (1..=110)
        .map(|height| node.snapshot().block(Height::new(height)).unwrap().unwrap().txids[0])
        .collect();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let snapshot = node.snapshot();
                    let tip = snapshot.tip();
                    assert_eq!(snapshot.unspent().unwrap().tip(), Some(tip));
                    assert_eq!(snapshot.header(tip.height).unwrap().unwrap().hash, tip.hash);
                    for txid in &coinbases {
                        let outpoint = Outpoint::new(*txid, 0);
                        let spender = snapshot.spender(outpoint).unwrap();
                        let utxo = snapshot.utxo(outpoint).unwrap();
                        assert_eq!(spender.is_none(), utxo.is_some(), "{outpoint} at {tip}");
                    }
                }
            });
        }
        let done = node.sync(Source::blocks(bytes(&blocks))).run();
        is_done.store(true, Ordering::Relaxed);
        done.unwrap();
    });
    Expected::up_to(&blocks, HEIGHT).check(&node.snapshot());
}
