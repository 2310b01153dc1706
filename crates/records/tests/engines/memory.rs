//! The memory engine keeps the contract.

use varve_records::contract::Disk;
use varve_records::contract::draft::TxDraft;
use varve_records::engine::{Context, Limits};
use varve_records::operation::Unit;
use varve_records::record::Body;
use varve_records::{CreateOptions, Engine, Fields, MemoryDisk, MemoryEngine, Settings};
use varve_types::Height;

varve_records::engine_contract!(MemoryDisk::default());

/// A disk whose engine takes small bodies only.
#[derive(Default)]
struct SmallDisk(MemoryDisk);

impl Disk for SmallDisk {
    type Engine = MemoryEngine;

    fn open(&self) -> MemoryEngine {
        MemoryEngine::with_limits(self.0.clone(), Limits { body: 1_000, ..Limits::NONE })
    }
}

#[test]
fn a_small_engine_refuses_large_bodies() {
    varve_records::contract::create::a_body_above_the_limit_is_refused(&SmallDisk::default());
}

/// The bytes of a transaction are in memory once, from the caller to the record and back.
#[test]
fn the_bytes_of_a_transaction_are_not_copied() {
    let mut draft = TxDraft::root(1, 1);
    draft.outputs[0].1 = vec![0x51; 1 << 20];
    let tx = draft.build();
    let unit = Unit::create(&tx, &CreateOptions::default(), &Settings::default());
    let engine = MemoryEngine::open(MemoryDisk::default());
    let context = Context { height: Height::new(1), retention: 1 };
    let outcomes = engine.apply(&context, &[unit.expect("it can be created").into()]);
    assert!(outcomes.expect("maps do not fail")[0].result.is_ok());
    let records = engine.read(&[tx.txid()], Fields::TX).expect("maps do not fail");
    let Some(Body::Transaction(read)) = records[0].as_ref().and_then(|r| r.body.as_ref()) else {
        panic!("the body is in the record");
    };
    assert_eq!(read.bytes().as_ptr(), tx.bytes().as_ptr());
}
