//! All sides against the engine in memory: the same records at the end, the same units refused.

use std::fs::File;
use std::io::BufReader;

use varve_records::operation::Unit;
use varve_records::{MemoryDisk, MemoryEngine, Operation};
use varve_types::Txid;

use super::embedded::{self, Ours};
use super::fjall::Fjall;
use super::rocksdb::RocksDb;
use super::side::{Memory, Side};
use super::sqlite::Sqlite;
use super::work::{Plan, Preparer, StockState, Work};

/// The stock, and the batches of a small race.
fn work() -> (Vec<Operation>, Vec<Vec<Operation>>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("work");
    Plan { stock: 3_000, warm_up: 1, timed: 3 }.write(&path).unwrap();
    let mut work = Work::new(BufReader::new(File::open(path).unwrap()));
    let preparer = Preparer::new(StockState::Unmined);
    let count = work.count().unwrap();
    let stock = (0..count).map(|_| preparer.create(&work.transaction().unwrap()).unwrap());
    let stock = stock.collect();
    let batches = (0..work.count().unwrap()).map(|_| {
        let count = work.count().unwrap();
        (0..count).map(|_| preparer.both(&work.transaction().unwrap()).unwrap()).collect()
    });
    (stock, batches.collect())
}

fn unit(operation: &Operation) -> Unit {
    let Operation::Unit(unit) = operation else { panic!("only units") };
    unit.as_ref().clone()
}

/// Units that must be refused, each for another reason, and one that must not.
fn hostile(batches: &[Vec<Operation>]) -> Vec<Operation> {
    let again = unit(&batches[0][0]);
    let another = |number: u8, of: &Operation| {
        let mut unit = unit(of);
        unit.txid = Txid::from_bytes([number; 32]);
        unit
    };
    let second_spender = another(1, &batches[0][1]);
    let mut wrong_hash = another(2, &batches[1][0]);
    wrong_hash.spend.as_mut().unwrap().spends[0].hash =
        again.spend.as_ref().unwrap().spends[0].hash;
    let mut no_parent = another(3, &batches[1][1]);
    no_parent.spend.as_mut().unwrap().spends[0].outpoint.txid = Txid::from_bytes([9; 32]);
    let mut no_output = another(4, &batches[1][2]);
    no_output.spend.as_mut().unwrap().spends[0].outpoint.vout = 2;
    let mut creates = another(5, &batches[1][3]);
    creates.spend = None;
    [again, second_spender, wrong_hash, no_parent, no_output, creates].map(Into::into).to_vec()
}

#[test]
fn all_sides_agree_with_the_engine_in_memory() {
    let (stock, batches) = work();
    let hostile = hostile(&batches);
    let dir = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let memory = Memory(96 << 20);
    let mut sides: Vec<(&str, Box<dyn Side>)> = vec![
        ("memory", Box::new(Ours::new(MemoryEngine::open(MemoryDisk::default())))),
        ("varve", Box::new(embedded::open(&folder("varve"), memory).unwrap())),
        ("rocksdb", Box::new(RocksDb::open(&folder("rocksdb"), memory).unwrap())),
        ("fjall", Box::new(Fjall::open(&folder("fjall"), memory).unwrap())),
        ("sqlite", Box::new(Sqlite::open(&folder("sqlite"), memory).unwrap())),
    ];
    let mut digests = Vec::new();
    for (name, side) in &mut sides {
        stock.chunks(1_000).for_each(|part| side.load(part).unwrap());
        side.loaded().unwrap();
        let before = side.digest().unwrap();
        for batch in &batches {
            assert_eq!(side.apply(batch).unwrap(), 0, "{name}");
        }
        assert_eq!(side.apply(&hostile).unwrap(), 5, "{name}");
        digests.push((before, side.digest().unwrap()));
    }
    let expected = digests[0];
    assert_eq!((expected.0.records, expected.1.records), (3_000, 7_001));
    for ((name, _), digest) in sides.iter().zip(&digests) {
        assert_eq!(*digest, expected, "{name}");
    }
}
