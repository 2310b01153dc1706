//! Acknowledged writes survive `kill -9`.
//!
//! The test runs this test program again as a child, which spends one output after the other and
//! says so on its standard output when a batch is acknowledged. The parent kills it at some moment,
//! opens the store, and finds everything the child has said, and nothing that is half done.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use varve_io::{Disk, StoreId};
use varve_records::engine::Context;
use varve_records::operation::{NewRecord, Spend, SpendPart, Unit};
use varve_records::record::{BatchSize, Body, UtxoHash};
use varve_records::{
    EmbeddedEngine, EmbeddedOptions, Engine, Fields, Operation, SpendRules, StoreKey,
};
use varve_types::{Amount, Height, Outpoint, Txid};

const DIRECTORY: &str = "VARVE_RECORDS_TEST_DIR";
const BATCH: u32 = 20;
const CONTEXT: Context = Context { height: Height::new(100), retention: 10 };

fn txid(number: u32) -> Txid {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

fn hash(outpoint: &Outpoint) -> UtxoHash {
    let mut bytes = outpoint.txid.to_bytes();
    bytes[31] = outpoint.vout.to_le_bytes()[0];
    UtxoHash::from_bytes(bytes)
}

/// Transaction `number` spends the first output of the one before it and has twelve.
fn unit(number: u32) -> Operation {
    let outpoint = |vout| Outpoint::new(txid(number), vout);
    let parent = number.checked_sub(1).map(|parent| Outpoint::new(txid(parent), 0));
    let spend = |outpoint| Spend { outpoint, hash: hash(&outpoint), vin: 0 };
    let rules = SpendRules::at(Height::new(101));
    let create = NewRecord {
        version: 1,
        lock_time: 0,
        fee: Amount::from_sat(1),
        size: 100,
        extended_size: 130,
        is_coinbase: false,
        spending_height: None,
        body: Body::External,
        inputs: parent.into_iter().collect(),
        utxos: Arc::new((0..12).map(|vout| Some(hash(&outpoint(vout)))).collect()),
        batch: BatchSize::new(20_000).unwrap(),
        height: Height::new(100),
        created_at: u64::from(number),
        blocks: Vec::new(),
        frozen: false,
        conflicting: false,
        locked: false,
        creating: false,
    };
    let spend = parent.map(|parent| SpendPart { spends: vec![spend(parent)], rules });
    Operation::Unit(Box::new(Unit { txid: txid(number), spend, create: Some(create) }))
}

fn open(directory: &Path) -> EmbeddedEngine {
    let key = StoreKey { id: StoreId([1; 16]), secret: [2; 16] };
    let options = EmbeddedOptions {
        segment_size: 1 << 18,
        checkpoint_every: 1 << 18,
        ..EmbeddedOptions::new(key)
    };
    EmbeddedEngine::open(Arc::new(Disk::open(directory).unwrap()), options).unwrap()
}

/// How many transactions there are, after checking that they are whole.
fn count(engine: &EmbeddedEngine) -> u32 {
    let mut number = 0;
    loop {
        let read = engine.read(&[txid(number)], Fields::ALL).unwrap().remove(0);
        let Some(record) = read else { break };
        assert_eq!(record.utxos.len(), 12);
        let spender = record.utxos[0].unwrap().spender();
        let child = engine.read(&[txid(number + 1)], Fields::HEAD).unwrap().remove(0);
        assert_eq!(spender.map(|data| data.txid), child.map(|child| child.txid), "{number}");
        number += 1;
    }
    number
}

/// Not a test of its own: what a child does. Does nothing when it is not one.
#[test]
fn play_the_child() {
    let Some(directory) = env::var_os(DIRECTORY) else { return };
    let engine = open(Path::new(&directory));
    let mut number = count(&engine);
    println!("\nopened");
    loop {
        let batch: Vec<_> = (number..number + BATCH).map(unit).collect();
        let outcomes = engine.apply(&CONTEXT, &batch).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
        number += BATCH;
        println!("acknowledged {number}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn acknowledged_writes_survive_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..6_u32 {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["kill::play_the_child", "--exact", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        for line in lines.by_ref() {
            if let Some(number) = line.unwrap().strip_prefix("acknowledged ") {
                acknowledged = number.parse().unwrap();
                heard += 1;
            }
            // In the middle of something, and later in every round.
            if heard > 20 + 13 * round {
                child.kill().unwrap();
                break;
            }
        }
        // What it said before it died counts as well.
        for line in lines {
            if let Some(number) = line.unwrap().strip_prefix("acknowledged ") {
                acknowledged = number.parse().unwrap();
            }
        }
        child.wait().unwrap();
        let found = count(&open(directory.path()));
        assert!(found >= acknowledged, "{found} found, {acknowledged} acknowledged");
        assert_eq!(found % BATCH, 0, "a batch of one caller is one group");
    }
}
