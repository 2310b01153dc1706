//! Big transactions, and many.

use std::sync::Arc;

use varve_types::{Amount, Height, Outpoint, Txid};

use super::threads::spend;
use super::twin::{Twin, hash, small};
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::{Context, Engine as _};
use crate::fields::Fields;
use crate::key::BatchSize;
use crate::operation::{NewRecord, Operation, Unit};
use crate::record::{Body, PartCounts};

pub(super) fn create(txid: Txid, outputs: u32) -> Operation {
    let slot = |vout| Some(hash(&Outpoint::new(txid, vout)));
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
        utxos: Arc::new((0..outputs).map(slot).collect()),
        batch: BatchSize::new(20_000).unwrap(),
        height: Height::new(100),
        created_at: 5,
        blocks: Vec::new(),
        frozen: false,
        conflicting: false,
        locked: false,
        creating: false,
    };
    Operation::Unit(Box::new(Unit { txid, spend: None, create: Some(new) }))
}

/// 45,000 outputs are a master of 20,000 and children of 20,000 and 5,000.
#[test]
fn forty_five_thousand_outputs_make_three_records() {
    let mut twin = Twin::new(EmbeddedOptions { segment_size: 1 << 20, ..small() });
    let big = Txid::from_bytes([9; 32]);
    twin.apply(&[create(big, 45_000)]);
    let count = |utxos| PartCounts { utxos, spent: 0 };
    let read = |twin: &Twin, fields| twin.engine().read(&[big], fields).unwrap().remove(0).unwrap();
    let record = read(&twin, Fields::HEAD);
    assert_eq!(record.parts, [count(20_000), count(20_000), count(5_000)]);
    let vouts = [0, 7, 8, 19_999, 20_000, 44_999];
    let spends = vouts.map(|vout: u32| {
        let mut spender = [1; 32];
        spender[..4].copy_from_slice(&vout.to_le_bytes());
        spend(Txid::from_bytes(spender), Outpoint::new(big, vout))
    });
    twin.apply(&spends[..3]);
    twin.apply(&spends[3..]);
    for _ in 0..2 {
        let record = read(&twin, Fields::ALL);
        let expected = twin.oracle.read(&[big], Fields::ALL).unwrap().remove(0).unwrap();
        assert!(record == expected, "all slots are the same");
        assert_eq!(record.parts[0].spent, 4);
        twin.reopen();
    }
    // Spent and removed in the group that creates it, and in the next.
    twin.apply(&[Operation::Delete { txid: big }, create(big, 45_000), spends[4].clone()]);
    twin.apply(&[Operation::Delete { txid: big }]);
    twin.apply(&[create(big, 45_000), Operation::Delete { txid: big }]);
    assert_eq!(twin.engine().status().unwrap().keys, 0);
    twin.reopen();
    assert_eq!(twin.engine().status().unwrap().keys, 0);
}

/// Five million outputs: the store needs no more memory than a copy of their hashes and what it
/// keeps of the log. The peak is printed, and bounded where the system reports it.
#[test]
fn five_million_outputs_take_bounded_memory() {
    let directory = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions { cache: 64 << 20, ..EmbeddedOptions::new(super::twin::KEY) };
    let open = || {
        let disk = varve_io::Disk::open(directory.path()).unwrap();
        EmbeddedEngine::open(Arc::new(disk), options).unwrap()
    };
    let engine = open();
    let context = Context { height: Height::new(100), retention: 5 };
    let big = Txid::from_bytes([9; 32]);
    let operation = create(big, 5_000_000);
    let before = peak();
    engine.apply(&context, std::slice::from_ref(&operation)).unwrap();
    println!("created: {} MB more at the peak", (peak() - before) >> 20);
    assert!(peak() - before < 600 << 20, "{} bytes", peak() - before);
    drop(operation);
    let spends: Vec<_> = (0..1000)
        .map(|n: u32| {
            let mut spender = [1; 32];
            spender[..4].copy_from_slice(&n.to_le_bytes());
            spend(Txid::from_bytes(spender), Outpoint::new(big, n * 4_999))
        })
        .collect();
    let begun = std::time::Instant::now();
    let outcomes = engine.apply(&context, &spends).unwrap();
    println!("1,000 spends in {:?}", begun.elapsed());
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    drop(engine);
    let begun = std::time::Instant::now();
    let engine = open();
    println!("opened in {:?}", begun.elapsed());
    let record = engine.read(&[big], Fields::HEAD).unwrap().remove(0).unwrap();
    assert_eq!(record.parts.len(), 250);
    assert_eq!(record.parts.iter().map(|part| part.spent).sum::<u32>(), 1000);
    let views = engine.slots(&[Outpoint::new(big, 4_999), Outpoint::new(big, 5_000)]).unwrap();
    let spent: Vec<_> =
        views.iter().map(|view| view.as_ref().unwrap().slot.unwrap().spending.is_some()).collect();
    assert_eq!(spent, [true, false]);
}

/// The most memory that this process ever had, in bytes; 0 when the system does not tell.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
