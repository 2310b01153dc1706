//! Storage that fails at any call: readers see the old version or the new one, and a restart puts
//! the records right.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use varve_records::engine::{
    Context, Cursor, Engine, EngineError, EngineStatus, Limits, Scan, ScanPage, SlotView,
};
use varve_records::operation::Outcome;
use varve_records::{Fields, MemoryDisk, MemoryEngine, Operation, Record};
use varve_types::{Outpoint, Txid};

use super::world::{Watch, World, child, open, spend};
use crate::mempool::{Moment, Policy, Removal};

/// Fails all writes after a number of them.
struct Failing {
    engine: MemoryEngine,
    left: AtomicUsize,
}

impl Engine for Failing {
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError> {
        let left =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.engine.apply(context, operations),
            Err(_) => Err(EngineError::Storage(Arc::from(Box::<
                dyn std::error::Error + Send + Sync,
            >::from("the plug")))),
        }
    }

    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError> {
        self.engine.read(txids, fields)
    }

    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError> {
        self.engine.slots(outpoints)
    }

    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        self.engine.scan(scan, after, limit)
    }

    fn intents(
        &self,
        after: Option<varve_records::conflicts::IntentId>,
        limit: usize,
    ) -> Result<Vec<varve_records::conflicts::Intent>, EngineError> {
        self.engine.intents(after, limit)
    }

    fn limits(&self) -> Limits {
        self.engine.limits()
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        self.engine.status()
    }
}

/// A mempool with a chain of three, and storage that is about to fail.
fn prepared(writes: usize) -> (World, Vec<varve_consensus::contract::draft::TxDraft>) {
    let mut world = World::usual();
    let (coin, value) = world.coin(1);
    let first = spend(&[coin], value, &[1, 2], 1_000);
    let second = child(&first, 0, &[3], 1_000);
    let third = child(&second, 0, &[4], 1_000);
    let txs = vec![first, second, third];
    txs.iter().for_each(|tx| world.take(tx));
    let engine = MemoryEngine::open(world.disk.clone());
    let engine = Failing { engine, left: AtomicUsize::new(usize::MAX) };
    let engine = Arc::new(engine);
    let shared: Arc<dyn Engine> = engine.clone();
    world.pool = open(shared, world.policy, &world.chain, world.now).unwrap().0;
    world.watch = Watch::default();
    engine.left.store(writes, Ordering::SeqCst);
    (world, txs)
}

/// After a restart, what is in the mempool is in the records, spent and unlocked, and nothing else.
fn check_after_restart(world: &mut World) -> Vec<Txid> {
    world.restart();
    let txids = world.version().txids(None, usize::MAX);
    let engine = world.pool.ledger.store.engine();
    for record in engine.read(&txids, Fields::ALL).unwrap() {
        let record = record.expect("in the mempool, so in the records");
        assert!(!record.locked && !record.conflicting && record.unmined_since.is_some());
        for (slot, vin) in engine.slots(&record.inputs).unwrap().into_iter().zip(0..) {
            let by = slot.unwrap().slot.unwrap().spender().unwrap();
            assert_eq!((by.txid, by.vin), (record.txid, vin));
        }
    }
    for txid in engine.scan(Scan::Unmined, None, usize::MAX).unwrap().txids {
        let record = engine.read(&[txid], Fields::HEAD).unwrap().pop().flatten().unwrap();
        assert!(record.conflicting || world.version().contains(&txid));
    }
    txids
}

#[test]
fn a_replacement_that_fails_at_any_write_can_be_made_again() {
    let mut failures = 0;
    for writes in 0..12 {
        let (mut world, txs) = prepared(writes);
        let (coin, value) = world.coin(1);
        let better = spend(&[coin], value, &[5], 90_000);
        let bytes = [better.bytes().into()];
        let judge = crate::mempool::Judge::Ours;
        let at = Moment { chain: &world.chain, now: world.now };
        let done = world.pool.accept(at, &bytes, judge, &mut world.watch);
        failures += usize::from(done.is_err());
        if done.is_err() && world.watch.version.is_none() {
            assert!(txs.iter().all(|tx| world.has(tx)), "readers see what was before");
            assert_eq!(world.watch.events, []);
        } else {
            assert!(world.has(&better));
        }
        check_after_restart(&mut world);
        let _ = world.accept(&better);
        assert!(world.has(&better) && !world.has(&txs[0]));
        assert_eq!(check_after_restart(&mut world), [better.txid()]);
    }
    assert!((3..12).contains(&failures), "{failures}");
}

#[test]
fn a_reorganisation_that_fails_at_any_write_is_made_good_by_a_restart() {
    let mut failures = 0;
    for writes in 0..14 {
        let (mut world, txs) = prepared(writes);
        let (coin, value) = world.coin(2);
        let other = spend(&[coin], value, &[6], 1_000);
        let (left, joined) = world.move_tip(0, vec![vec![txs[0].clone(), other.clone()]]);
        let mut failed = world.follow(&left, &joined).is_err();
        if !failed {
            let rival = child(&txs[0], 0, &[7], 5);
            let (left, joined) = world.move_tip(1, vec![vec![txs[0].clone(), rival], vec![]]);
            failed = world.follow(&left, &joined).is_err();
            let txids = check_after_restart(&mut world);
            assert_eq!(txids.contains(&other.txid()), !failed || txids.len() == 1);
            assert!(!txids.contains(&txs[1].txid()) && !txids.contains(&txs[2].txid()));
        } else {
            let txids = check_after_restart(&mut world);
            let mut expected = vec![txs[1].txid(), txs[2].txid()];
            expected.sort_unstable();
            assert_eq!(txids, expected, "what is confirmed left, what waits stays");
        }
        failures += usize::from(failed);
    }
    assert!(failures > 3, "{failures}");
}

#[test]
fn a_step_that_fails_delivers_no_event() {
    let (mut world, _) = prepared(0);
    world.now += Policy::default().expiry + 1;
    assert!(world.pool.expire(world.now, &mut world.watch).is_err());
    assert_eq!(world.watch.events, []);
    let disk: MemoryDisk = world.disk.clone();
    world.disk = disk;
    world.restart();
    world.pool.expire(world.now, &mut world.watch).unwrap();
    assert!(world.removals().iter().all(|(_, reason)| *reason == Removal::Expired));
}
