//! Transactions that other threads hand in while a node follows a maker in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use varve_consensus::contract::draft::TxDraft;
use varve_node::mempool::{Judge, Reject};
use varve_node::source::live::{Item, Live};
use varve_node::{
    DeskError, NodeReader, NodeSnapshot, Order, Organizer, Reply, SyncOptions, Verify,
};
use varve_types::Network;

use super::model::{FEE, pay};
use crate::miner::{Mined, SUBSIDY, bytes_of, young_options};
use crate::rig::{disk, sync_options};

struct Live1 {
    maker: Sender<Item>,
    reader: NodeReader,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Organizer>,
}

impl Live1 {
    fn start(folder: &std::path::Path) -> Self {
        let mut node = Organizer::open(disk(folder), young_options()).unwrap();
        let (maker, items) = channel();
        let (reader, stop) = (node.reader(), Arc::new(AtomicBool::new(false)));
        let options = SyncOptions {
            verify: Verify::Spends,
            follow: true,
            mempool: true,
            stop: stop.clone(),
            ..sync_options()
        };
        let thread = thread::spawn(move || {
            let mut source = Live::new(items, Network::Regtest);
            node.sync(&mut source, &options, &mut |_| {}).unwrap();
            node
        });
        Self { maker, reader, stop, thread }
    }

    fn mine(&self, blocks: &[Mined]) {
        for block in bytes_of(blocks) {
            self.maker.send(Item::Block(block)).unwrap();
        }
        self.until(|now| now.tip.1 == blocks.last().unwrap().hash && now.mempool.is_some());
    }

    fn until(&self, is_so: impl Fn(&NodeSnapshot) -> bool) -> Arc<NodeSnapshot> {
        let begin = Instant::now();
        loop {
            let now = self.reader.snapshot();
            if is_so(&now) {
                return now;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "at {:?}", now.tip);
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn accept(&self, tx: &TxDraft) -> Result<varve_types::Txid, Reject> {
        let order = Order::Accept(vec![tx.bytes().into()], Judge::Ours);
        match self.reader.desk().hand_in(order).unwrap() {
            Reply::Verdicts(mut verdicts) => verdicts.pop().unwrap(),
            Reply::Tested(_) => unreachable!(),
        }
    }

    fn stop(self) -> Organizer {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn what_is_handed_in_is_seen_at_once_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live1::start(folder.path());
    let blocks = Mined::genesis().plain(8);
    live.mine(&blocks);
    let coin = |at: usize| (blocks[at].coin(), SUBSIDY);
    let parent = pay(&[coin(0)], 2, FEE).unwrap();
    let child = pay(&[(outpoint(&parent, 0), parent.outputs[0].value)], 1, FEE).unwrap();
    assert!(matches!(live.accept(&child), Err(Reject::Orphan { .. })));
    assert_eq!(live.accept(&parent).unwrap(), parent.txid());
    let now = live.reader.snapshot();
    let mempool = now.mempool.as_ref().unwrap();
    assert!(mempool.contains(&parent.txid()), "the answer comes when it is visible");
    assert!(!mempool.contains(&child.txid()), "one that was refused does not come in later");
    assert_eq!(live.accept(&child).unwrap(), child.txid());
    assert!(matches!(live.accept(&child), Err(Reject::Here(_))));
    // A test changes nothing.
    let tested = pay(&[coin(1)], 1, FEE).unwrap();
    let order = Order::Test(vec![tested.bytes().into(), child.bytes().into()]);
    let Reply::Tested(answers) = live.reader.desk().hand_in(order).unwrap() else { panic!() };
    let fee = answers[0].as_ref().unwrap().result.as_ref().unwrap().1;
    assert_eq!(fee.to_sat(), FEE);
    assert!(answers[1].as_ref().unwrap().result.is_err());
    assert_eq!(live.reader.snapshot().mempool.as_ref().unwrap().totals().sum.count, 2);
    // A transaction that comes through the channel, and a block with the parent alone.
    live.maker.send(Item::Tx(tested.bytes())).unwrap();
    live.until(|now| now.mempool.as_ref().is_some_and(|mempool| mempool.contains(&tested.txid())));
    let next = blocks[7].above(3, vec![parent.clone()]);
    live.mine(std::slice::from_ref(&next));
    let expected = |now: &NodeSnapshot| {
        let mempool = now.mempool.as_ref().unwrap();
        let here = [&parent, &child, &tested].map(|tx| mempool.contains(&tx.txid()));
        (here, mempool.totals().sum.count)
    };
    assert_eq!(expected(&live.reader.snapshot()), ([false, true, true], 2));
    let reader = live.reader.clone();
    drop(live.stop());
    assert!(reader.snapshot().mempool.is_none());
    let order = Order::Accept(vec![parent.bytes().into()], Judge::Ours);
    assert!(matches!(reader.desk().hand_in(order), Err(DeskError::Closed(_))));
    drop(reader);
    let again = Live1::start(folder.path());
    let now = again.until(|now| now.mempool.is_some());
    assert_eq!((now.tip.1, expected(&now)), (next.hash, ([false, true, true], 2)));
    again.stop();
}

fn outpoint(tx: &TxDraft, vout: u32) -> varve_types::Outpoint {
    varve_types::Outpoint::new(tx.txid(), vout)
}

/// A sync without a mempool keeps none and makes no folder for it.
#[test]
fn a_sync_that_wants_none_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (maker, items) = channel();
    let reader = node.reader();
    let options =
        SyncOptions { verify: Verify::Spends, follow: true, stop: stop.clone(), ..sync_options() };
    let blocks = Mined::genesis().plain(3);
    for block in bytes_of(&blocks) {
        maker.send(Item::Block(block)).unwrap();
    }
    let thread = thread::spawn(move || {
        node.sync(&mut Live::new(items, Network::Regtest), &options, &mut |_| {}).unwrap();
        node
    });
    while reader.snapshot().tip.1 != blocks[2].hash {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(200));
    assert!(reader.snapshot().mempool.is_none() && reader.desk().gateway().is_err());
    stop.store(true, Ordering::Relaxed);
    drop(thread.join().unwrap());
    assert!(!folder.path().join("mempool").exists());
}
