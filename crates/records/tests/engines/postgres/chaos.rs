//! What a server and a wire can do to a batch. Whatever it is, acknowledged operations are there,
//! units are whole, and clients recover by themselves.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use varve_records::contract::postgres::Server;
use varve_records::engine::{Context, Fate, Scan};
use varve_records::operation::{Failure, NewRecord, Outcome, Reply, Spend, SpendPart, Unit};
use varve_records::record::{BatchSize, Body, Slot, UtxoHash};
use varve_records::{Engine, Fields, Operation, PostgresEngine, SpendRules};
use varve_types::{Amount, Height, Outpoint, Txid};

use super::proxy::{Cut, Proxy};

const CONTEXT: Context = Context { height: Height::new(100), retention: 10 };
/// Outputs of every transaction: more than lie in a state.
const OUTPUTS: u32 = 12;

fn txid(client: u32, number: u32) -> Txid {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&client.to_le_bytes());
    bytes[4..8].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

fn hash(outpoint: &Outpoint) -> UtxoHash {
    let mut bytes = outpoint.txid.to_bytes();
    bytes[31] = outpoint.vout.to_le_bytes()[0];
    UtxoHash::from_bytes(bytes)
}

fn spend(vin: u32, outpoint: Outpoint) -> Spend {
    Spend { outpoint, hash: hash(&outpoint), vin }
}

/// A transaction with these inputs.
fn unit(txid: Txid, inputs: &[Outpoint]) -> Operation {
    let spends: Vec<Spend> = (0..).zip(inputs).map(|(vin, input)| spend(vin, *input)).collect();
    let utxos = (0..OUTPUTS).map(|vout| Some(hash(&Outpoint::new(txid, vout)))).collect();
    let create = NewRecord {
        version: 1,
        lock_time: 0,
        fee: Amount::from_sat(1),
        size: 100,
        extended_size: 130,
        is_coinbase: false,
        spending_height: None,
        body: Body::External,
        inputs: inputs.to_vec(),
        utxos: std::sync::Arc::new(utxos),
        batch: BatchSize::new(20_000).unwrap(),
        height: Height::new(100),
        created_at: 1,
        blocks: Vec::new(),
        frozen: false,
        conflicting: false,
        locked: false,
        creating: false,
    };
    let rules = SpendRules::at(Height::new(101));
    let spend = (!spends.is_empty()).then_some(SpendPart { spends, rules });
    Operation::Unit(Box::new(Unit { txid, spend, create: Some(create) }))
}

/// Transaction `number` of a client spends the first and the last output of the one before it.
fn link(client: u32, number: u32) -> Operation {
    let parent = number.checked_sub(1).map(|number| txid(client, number));
    let inputs = parent.map(|parent| [0, OUTPUTS - 1].map(|vout| Outpoint::new(parent, vout)));
    unit(txid(client, number), inputs.as_ref().map_or(&[][..], |inputs| inputs.as_slice()))
}

fn done(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| match &outcome.result {
        Ok(_) => true,
        // It was done by an attempt whose answer was lost for good.
        Err(Failure::Refused(error)) => error.code().name() == "TX_EXISTS",
        Err(_) => false,
    })
}

/// Every record is whole: counts are those of its slots, and every spender has a record.
fn check(engine: &PostgresEngine) -> BTreeSet<Txid> {
    let (mut all, mut cursor) = (BTreeSet::new(), None);
    loop {
        let page = engine.scan(Scan::All, cursor, 1_000).unwrap();
        all.extend(page.txids);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let txids: Vec<Txid> = all.iter().copied().collect();
    for record in engine.read(&txids, Fields::ALL).unwrap() {
        let record = record.expect("it was found");
        let spenders: Vec<_> = record.utxos.iter().flatten().filter_map(Slot::spender).collect();
        let counted: u32 = record.parts.iter().map(|part| part.spent).sum();
        assert_eq!(spenders.len(), counted as usize);
        assert!(spenders.iter().all(|by| all.contains(&by.txid)), "a spend without a record");
    }
    all
}

/// Clients write chains while the server is killed and started again. What they were told is done
/// is there, and they go on by themselves.
#[test]
fn the_server_is_killed_in_the_middle_of_batches() {
    const CLIENTS: u32 = 8;
    const BATCH: u32 = 20;
    let Some(server) = Server::start() else { return };
    let engine = PostgresEngine::open(&server.url("kill")).unwrap();
    let (stop, rounds) = (AtomicBool::new(false), AtomicU32::new(0));
    let told = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (engine, stop, rounds) = (&engine, &stop, &rounds);
                scope.spawn(move || {
                    let mut next = 0;
                    while !stop.load(Ordering::SeqCst) {
                        let batch: Vec<_> = (next..next + BATCH).map(|n| link(client, n)).collect();
                        let outcomes = engine.apply(&CONTEXT, &batch);
                        if outcomes.is_ok_and(|outcomes| done(&outcomes)) {
                            next += BATCH;
                            rounds.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    next
                })
            })
            .collect();
        for kill in 1..=3 {
            // Some batches went through since the server came back.
            let before = rounds.load(Ordering::SeqCst);
            while rounds.load(Ordering::SeqCst) < before + 30 {
                thread::sleep(Duration::from_millis(2));
            }
            thread::sleep(Duration::from_millis(7 * kill));
            server.kill();
            server.restart();
        }
        let before = rounds.load(Ordering::SeqCst);
        while rounds.load(Ordering::SeqCst) < before + 30 {
            thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, Ordering::SeqCst);
        let told = clients.into_iter().map(|client| client.join().unwrap());
        told.collect::<Vec<u32>>()
    });
    let found = check(&engine);
    for (client, told) in (0..CLIENTS).zip(told) {
        assert!((0..told).all(|number| found.contains(&txid(client, number))), "{client}: {told}");
    }
}

/// The answer of a COMMIT is lost, and the engine finds out by itself what it was.
#[test]
fn the_connection_is_lost_on_commit() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::new(server.port());
    let engine = PostgresEngine::open(&proxy.url("lost_on_commit")).unwrap();
    for (number, cut) in (0..).zip([Cut::After, Cut::Before, Cut::After, Cut::Nothing]) {
        proxy.cut(cut, false);
        let outcomes = engine.apply(&CONTEXT, &[link(0, number)]).unwrap();
        let Ok(Reply::Unit(spent)) = &outcomes[0].result else { panic!("{outcomes:?}") };
        assert_eq!(spent.len(), if number == 0 { 0 } else { 2 }, "the answer of the first attempt");
    }
    assert_eq!(proxy.cuts(), 3);
    assert_eq!(check(&engine).len(), 4);
}

/// The server cannot be asked: the operation is unknown, and the question is answered later, by
/// whoever asks it.
#[test]
fn an_unknown_commit_can_be_asked_for() {
    let Some(server) = Server::shared() else { return };
    let schema = "asked_later";
    let direct = PostgresEngine::open(&server.url(schema)).unwrap();
    for (number, (cut, fate)) in (0..).zip([(Cut::After, Fate::Done), (Cut::Before, Fate::NotDone)])
    {
        let proxy = Proxy::new(server.port());
        let engine = PostgresEngine::open(&proxy.url(schema)).unwrap();
        proxy.cut(cut, true);
        let outcomes = engine.apply(&CONTEXT, &[link(number, 0)]).unwrap();
        let Err(Failure::Unknown(unknown)) = &outcomes[0].result else { panic!("{outcomes:?}") };
        assert_eq!(unknown.answer, Ok(Reply::Unit(Vec::new())));
        // The session on the server may have to end first.
        let mut found = direct.fate(&unknown.question).unwrap();
        while found == Fate::Undecided {
            thread::sleep(Duration::from_millis(20));
            found = direct.fate(&unknown.question).unwrap();
        }
        assert_eq!(found, fate);
        let there = direct.read(&[txid(number, 0)], Fields::HEAD).unwrap()[0].is_some();
        assert_eq!(there, fate == Fate::Done);
        proxy.cut(Cut::Nothing, false);
        assert!(done(&engine.apply(&CONTEXT, &[link(number, 0)]).unwrap()), "it comes back");
    }
}

/// A server that is gone is unavailable, and each operation says that it was not done.
#[test]
fn a_server_that_is_gone_is_unavailable() {
    let Some(server) = Server::start() else { return };
    let engine = PostgresEngine::open(&server.url("gone")).unwrap();
    assert!(done(&engine.apply(&CONTEXT, &[link(0, 0)]).unwrap()));
    server.kill();
    let outcomes = engine.apply(&CONTEXT, &[link(0, 1)]).unwrap();
    assert!(matches!(&outcomes[0].result, Err(Failure::Unavailable { .. })), "{outcomes:?}");
    assert!(engine.read(&[txid(0, 0)], Fields::HEAD).is_err());
    server.restart();
    assert!(done(&engine.apply(&CONTEXT, &[link(0, 1)]).unwrap()));
    assert_eq!(check(&engine).len(), 2);
}

/// Operations that follow inputs lock records in whatever order they find them. The server ends
/// those that wait for one another, and every one is done in the end.
#[test]
fn a_storm_of_deadlocks_passes() {
    const CLIENTS: u32 = 8;
    const RECORDS: u32 = 12;
    let Some(server) = Server::shared() else { return };
    let engine = PostgresEngine::open(&server.url("deadlocks")).unwrap();
    let chain: Vec<Operation> = (0..RECORDS).map(|number| link(0, number)).collect();
    assert!(done(&engine.apply(&CONTEXT, &chain).unwrap()));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..12 {
                    // Marking a transaction locks its own record first, then those of its parents.
                    let order = (0..RECORDS).map(|n| (n * (2 * client + 1) + round) % RECORDS);
                    let batch: Vec<Operation> = order
                        .take(4)
                        .map(|number| Operation::SetConflicting {
                            txid: txid(0, number),
                            conflicting: round % 2 == 0,
                        })
                        .collect();
                    let outcomes = engine.apply(&CONTEXT, &batch).unwrap();
                    assert!(outcomes.iter().all(|one| one.result.is_ok()), "{outcomes:?}");
                }
            });
        }
    });
    let found = check(&engine);
    assert_eq!(found.len(), RECORDS as usize);
    let records = engine.read(&found.into_iter().collect::<Vec<_>>(), Fields::CHILDREN).unwrap();
    let children = records.iter().flatten().map(|record| record.children.conflicting.len());
    assert_eq!(children.sum::<usize>(), RECORDS as usize - 1, "each is noted by its parent once");
}

/// Eight clients spend the same outputs two by two, in crossing orders.
#[test]
fn crossing_rivals_leave_one_spender_an_output() {
    const CLIENTS: u32 = 8;
    const PARENTS: u32 = 20;
    let Some(server) = Server::shared() else { return };
    let disk = server.disk();
    let setup = PostgresEngine::open(&disk.url).unwrap();
    let parents: Vec<Operation> = (0..PARENTS).map(|n| unit(txid(1_000, n), &[])).collect();
    assert!(done(&setup.apply(&CONTEXT, &parents).unwrap()));
    let won = AtomicU32::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (won, url) = (&won, &disk.url);
            scope.spawn(move || {
                // A process of its own, as far as the server can see.
                let engine = PostgresEngine::open(url).unwrap();
                for number in 0..PARENTS {
                    let mut inputs = [number, (number + 1) % PARENTS]
                        .map(|parent| Outpoint::new(txid(1_000, parent), 9));
                    if client % 2 == 1 {
                        inputs.reverse();
                    }
                    let outcomes = engine.apply(&CONTEXT, &[unit(txid(client, number), &inputs)]);
                    match &outcomes.unwrap()[0].result {
                        Ok(_) => drop(won.fetch_add(1, Ordering::SeqCst)),
                        Err(Failure::Refused(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    let won = won.load(Ordering::SeqCst);
    assert_eq!(check(&setup).len(), (PARENTS + won) as usize, "losers leave nothing");
    let outpoints: Vec<_> = (0..PARENTS).map(|n| Outpoint::new(txid(1_000, n), 9)).collect();
    let views = setup.slots(&outpoints).unwrap();
    let spent = views.iter().flatten().filter(|view| view.slot.unwrap().spender().is_some());
    assert_eq!(spent.count(), 2 * won as usize);
}
