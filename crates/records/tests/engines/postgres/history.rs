//! Histories of outputs: whatever clients saw of an output, in whatever order their calls
//! overlapped, could have been seen one after the other.
//!
//! Clients spend, take back and read a few outputs while the server is killed. Each call is noted
//! with the moments of its beginning and its end. Then, output by output, an order is looked for in
//! which every call saw what it reported and no call comes before one that had ended when it began.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use varve_records::contract::postgres::Server;
use varve_records::contract::random::Rng;
use varve_records::engine::Context;
use varve_records::operation::{
    Failure, NewRecord, Reply, SlotRef, Spend, SpendPart, Unit, Unspend,
};
use varve_records::record::{BatchSize, BlockId, BlockRef, Body, SpendingData, UtxoHash};
use varve_records::{Engine, Operation, PostgresEngine, RecordError, SlotError, SpendRules};
use varve_types::{Amount, Height, Outpoint, Txid};

const CONTEXT: Context = Context { height: Height::new(100), retention: 10 };
const CLIENTS: u32 = 8;
const OUTPUTS: u32 = 6;
const CALLS: u32 = 150;

/// What a call saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saw {
    /// It spent, or had spent before.
    Spent,
    /// This client had spent before.
    SpentBy(u32),
    /// It took its spend back, or found that it had none.
    TakenBack(bool),
    /// It read.
    Read(Option<u32>),
}

#[derive(Clone, Copy, Debug)]
struct Call {
    output: u32,
    saw: Saw,
    begun: Instant,
    ended: Instant,
}

fn record() -> Txid {
    Txid::from_bytes([5; 32])
}

fn spender(client: u32) -> Txid {
    let mut bytes = [9; 32];
    bytes[..4].copy_from_slice(&client.to_le_bytes());
    Txid::from_bytes(bytes)
}

/// Which client a transaction belongs to.
fn client_of(txid: Txid) -> u32 {
    u32::from_le_bytes(*txid.as_bytes().first_chunk().unwrap())
}

fn slot(output: u32) -> SlotRef {
    // Some lie in the state of the record, some in a chunk behind it.
    let outpoint = Outpoint::new(record(), output * 3);
    SlotRef { outpoint, hash: UtxoHash::from_bytes([output.to_le_bytes()[0]; 32]) }
}

fn create() -> Operation {
    let utxos = (0..OUTPUTS * 3).map(|vout| {
        let output = (vout % 3 == 0).then_some(vout / 3);
        Some(slot(output.unwrap_or(0)).hash)
    });
    let new = NewRecord {
        version: 1,
        lock_time: 0,
        fee: Amount::from_sat(1),
        size: 100,
        extended_size: 130,
        is_coinbase: false,
        spending_height: None,
        body: Body::External,
        inputs: Vec::new(),
        utxos: std::sync::Arc::new(utxos.collect()),
        batch: BatchSize::new(20_000).unwrap(),
        height: Height::new(100),
        created_at: 1,
        blocks: vec![BlockRef { id: BlockId(1), height: Height::new(90), subtree: 0 }],
        frozen: false,
        conflicting: false,
        locked: false,
        creating: false,
    };
    Operation::Unit(Box::new(Unit { txid: record(), spend: None, create: Some(new) }))
}

/// One call. `None` when the engine says that it was not done.
fn call(engine: &PostgresEngine, client: u32, output: u32, kind: u64) -> Option<Saw> {
    let (slot, txid) = (slot(output), spender(client));
    let SlotRef { outpoint, hash } = slot;
    let operation = match kind {
        0 => {
            let spends = vec![Spend { outpoint, hash, vin: 0 }];
            let spend = Some(SpendPart { spends, rules: SpendRules::at(Height::new(101)) });
            Operation::Unit(Box::new(Unit { txid, spend, create: None }))
        }
        1 => {
            let spends = vec![Unspend { slot, by: SpendingData::new(txid, 0) }];
            Operation::Unspend { spends, lock_parents: false }
        }
        _ => {
            let views = engine.slots(&[outpoint]).ok()?;
            let slot = views[0].as_ref().unwrap().slot.unwrap();
            return Some(Saw::Read(slot.spender().map(|by| client_of(by.txid))));
        }
    };
    match &engine.apply(&CONTEXT, &[operation]).unwrap()[0].result {
        Ok(Reply::Unit(_)) => Some(Saw::Spent),
        Ok(Reply::Unspent(taken)) => Some(Saw::TakenBack(taken[0])),
        Err(Failure::Refused(RecordError::Spend(items))) => match items[0].error {
            Some(SlotError::Spent { by }) => Some(Saw::SpentBy(client_of(by.txid))),
            other => panic!("{other:?}"),
        },
        Err(Failure::Unavailable { .. }) => None,
        other => panic!("{other:?}"),
    }
}

/// The state behind a call, if it could see what it saw in this one.
fn step(state: Option<u32>, client: u32, saw: Saw) -> Option<Option<u32>> {
    match saw {
        Saw::Spent => (state.is_none() || state == Some(client)).then_some(Some(client)),
        Saw::SpentBy(other) => (state == Some(other) && other != client).then_some(state),
        Saw::TakenBack(true) => (state == Some(client)).then_some(None),
        Saw::TakenBack(false) => (state != Some(client)).then_some(state),
        Saw::Read(seen) => (state == seen).then_some(state),
    }
}

/// Whether the calls of the clients, each in its order, fit into one order.
fn fits(calls: &[Vec<Call>]) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![(vec![0_usize; calls.len()], None)];
    while let Some((places, state)) = open.pop() {
        if !seen.insert((places.clone(), state)) {
            continue;
        }
        let next = |client: usize| calls[client].get(places[client]);
        let Some(first_end) = (0..calls.len()).filter_map(next).map(|call| call.ended).min() else {
            return true;
        };
        for client in 0..calls.len() {
            // A call that began after another had ended comes after it.
            let Some(call) = next(client).filter(|call| call.begun <= first_end) else { continue };
            if let Some(state) = step(state, u32::try_from(client).unwrap(), call.saw) {
                let mut places = places.clone();
                places[client] += 1;
                open.push((places, state));
            }
        }
    }
    false
}

/// The calls of each client on one output.
fn of_output(history: &[Vec<Call>], output: u32) -> Vec<Vec<Call>> {
    let only = |calls: &Vec<Call>| calls.iter().filter(|c| c.output == output).copied().collect();
    history.iter().map(only).collect()
}

#[test]
fn histories_of_outputs_are_linearizable() {
    let Some(server) = Server::start() else { return };
    let url = server.url("history");
    let setup = PostgresEngine::open(&url).unwrap();
    assert!(setup.apply(&CONTEXT, &[create()]).unwrap()[0].result.is_ok());
    let made = AtomicU32::new(0);
    let history: Vec<Vec<Call>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (url, made) = (&url, &made);
                scope.spawn(move || {
                    let engine = PostgresEngine::open(url).unwrap();
                    let mut rng = Rng::new(u64::from(client));
                    let mut calls = Vec::new();
                    for _ in 0..CALLS {
                        let output = u32::try_from(rng.below(u64::from(OUTPUTS))).unwrap();
                        let kind = rng.below(3);
                        let begun = Instant::now();
                        if let Some(saw) = call(&engine, client, output, kind) {
                            calls.push(Call { output, saw, begun, ended: Instant::now() });
                        }
                        made.fetch_add(1, Ordering::SeqCst);
                    }
                    calls
                })
            })
            .collect();
        while made.load(Ordering::SeqCst) < CLIENTS * CALLS / 3 {
            thread::sleep(Duration::from_millis(5));
        }
        server.kill();
        server.restart();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for output in 0..OUTPUTS {
        let calls = of_output(&history, output);
        let count: usize = calls.iter().map(Vec::len).sum();
        assert!(count > 50, "enough was done");
        assert!(fits(&calls), "output {output}: {calls:?}");
    }
}

/// The judge can say no: a read that comes after a spend and does not see it.
#[test]
fn a_history_with_a_stale_read_does_not_fit() {
    let at = |ms| Instant::now() + Duration::from_millis(ms);
    let call = |saw, begun, ended| Call { output: 0, saw, begun: at(begun), ended: at(ended) };
    let spent = call(Saw::Spent, 0, 10);
    let stale = |begun| vec![vec![spent], vec![call(Saw::Read(None), begun, begun + 50)]];
    assert!(fits(&stale(5)), "they overlap");
    assert!(!fits(&stale(1_000)), "the spend had ended");
    let two = [vec![spent], vec![call(Saw::Spent, 5, 20)]];
    assert!(!fits(&two), "two spenders");
}
