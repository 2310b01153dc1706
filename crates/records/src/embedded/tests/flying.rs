//! What is done on top of a group that is being written.
//!
//! One caller's group is on its way to the disk while another one executes on what it will have
//! written. On a real disk a sync takes long enough for that to happen all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use varve_io::Disk;
use varve_io::faulty::{Fault, FaultRule, Operation as Call, When};
use varve_types::{Height, Outpoint, Txid};

use super::size::create;
use super::threads::spend;
use super::twin::{Twin, small};
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::{Context, Engine as _};
use crate::fields::Fields;
use crate::operation::Operation;

const CONTEXT: Context = Context { height: Height::new(100), retention: 5 };
/// More than one chunk.
const OUTPUTS: u32 = 20;
const RECORDS: u32 = 60;

fn name(number: u32) -> Txid {
    let mut bytes = [0x44; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

/// One caller creates records; as soon as one is seen, durable or not, `act` is done to it, and
/// again until it answers true and the record is durable.
fn meanwhile(act: impl Fn(&EmbeddedEngine, Txid) -> bool + Sync) -> EmbeddedEngine {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::open(directory.path()).unwrap());
    let engine = EmbeddedEngine::open(disk, small()).unwrap();
    for number in 0..RECORDS {
        let durable = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let outcomes = engine.apply(&CONTEXT, &[create(name(number), OUTPUTS)]).unwrap();
                assert!(outcomes[0].result.is_ok());
                durable.store(true, Ordering::SeqCst);
            });
            loop {
                let last = durable.load(Ordering::SeqCst);
                if act(&engine, name(number)) && last {
                    break;
                }
            }
        });
    }
    engine
}

/// The slot lies in a chunk that is not in the log yet.
#[test]
fn an_output_of_a_record_that_is_being_written_is_spent() {
    let spender = name(u32::MAX);
    let engine = meanwhile(|engine, txid| {
        let operation = spend(spender, Outpoint::new(txid, 15));
        engine.apply(&CONTEXT, &[operation]).unwrap()[0].result.is_ok()
    });
    for number in 0..RECORDS {
        let record = engine.read(&[name(number)], Fields::UTXOS).unwrap().remove(0).unwrap();
        let spent: Vec<_> = record.utxos.iter().map(|slot| slot.unwrap().spender()).collect();
        assert_eq!(spent.iter().flatten().count(), 1);
        assert_eq!(spent[15].unwrap().txid, spender);
    }
}

/// Nothing of the record stays behind, neither its chunks.
#[test]
fn a_record_that_is_being_written_is_removed() {
    let engine = meanwhile(|engine, txid| {
        engine.apply(&CONTEXT, &[Operation::Delete { txid }]).unwrap()[0].result.is_ok()
    });
    assert_eq!(engine.status().unwrap().keys, 0);
}

/// A group that cannot be written takes with it what was done on top of it: of many who spend from
/// one record those who got a success have spent, and nobody else.
#[test]
fn what_was_done_on_a_group_that_failed_fails_too() {
    const CALLERS: u32 = 4;
    const EACH: u32 = 100;
    let options = EmbeddedOptions { segment_size: 1 << 30, checkpoint_every: u64::MAX, ..small() };
    let twin = Twin::new(options);
    let root = name(0);
    twin.engine().apply(&CONTEXT, &[create(root, CALLERS * EACH)]).unwrap();
    twin.storage.inject(FaultRule::new(Call::Write, When::OneIn(3), Fault::NoSpace));
    let mut answers: Vec<(u32, bool)> = std::thread::scope(|scope| {
        let callers = (0..CALLERS).map(|caller| {
            let engine = twin.engine();
            scope.spawn(move || {
                let vouts = (0..EACH).map(|number| number * CALLERS + caller);
                let batch = |vout| {
                    // With enough to write that others come meanwhile.
                    let spender = name(vout + 1);
                    [spend(spender, Outpoint::new(root, vout)), create(spender, 1_000)]
                };
                let done = |vout| (vout, engine.apply(&CONTEXT, &batch(vout)).is_ok());
                vouts.map(done).collect::<Vec<_>>()
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    twin.storage.clear_faults();
    answers.sort_unstable();
    assert!(answers.iter().any(|(_, done)| *done) && answers.iter().any(|(_, done)| !*done));
    let record = twin.engine().read(&[root], Fields::UTXOS).unwrap().remove(0).unwrap();
    let spent = record.utxos.iter().map(|slot| slot.unwrap().spender().is_some());
    assert!(spent.eq(answers.iter().map(|(_, done)| *done)), "{answers:?}");
    let counted: u32 = record.parts.iter().map(|part| part.spent).sum();
    assert_eq!(counted as usize, answers.iter().filter(|(_, done)| *done).count());
}
