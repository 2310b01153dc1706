//! Many callers at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use varve_testdata::Random;
use varve_types::{Height, Outpoint, Txid};

use super::size::create;
use super::twin::{Twin, hash, operation, see, small};
use crate::embedded::fetch::Fetched;
use crate::engine::{Context, Engine as _};
use crate::error::{RecordError, SlotError};
use crate::fields::Fields;
use crate::operation::{Failure, Operation, Spend, SpendPart, SpendRules, Unit};

fn name(number: u32) -> Txid {
    let mut bytes = [0x22; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

pub(super) fn spend(txid: Txid, outpoint: Outpoint) -> Operation {
    let spend = Spend { outpoint, hash: hash(&outpoint), vin: 0 };
    let part = SpendPart { spends: vec![spend], rules: SpendRules::at(Height::new(101)) };
    Operation::Unit(Box::new(Unit { txid, spend: Some(part), create: None }))
}

/// Of many spenders of an output one wins, and all others learn who.
#[test]
fn exactly_one_of_many_spenders_wins() {
    let twin = Twin::new(small());
    let parents: Vec<Txid> = (0..20).map(name).collect();
    let creates: Vec<_> = parents.iter().map(|txid| create(*txid, 10)).collect();
    twin.engine().apply(&twin.context, &creates).unwrap();
    let wins: Vec<AtomicUsize> = (0..200).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let (twin, parents, wins) = (&twin, &parents, &wins);
            scope.spawn(move || {
                let spender = name(1000 + thread);
                for vout in 0..10_u32 {
                    let batch: Vec<_> = parents
                        .iter()
                        .map(|parent| spend(spender, Outpoint::new(*parent, vout)))
                        .collect();
                    let outcomes = twin.engine().apply(&twin.context, &batch).unwrap();
                    for (place, outcome) in (0_u32..).zip(outcomes) {
                        match outcome.result {
                            Ok(_) => {
                                let win = &wins[(place * 10 + vout) as usize];
                                win.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(Failure::Refused(RecordError::Spend(items))) => {
                                let Some(SlotError::Spent { by }) = items[0].error else {
                                    panic!("{items:?}")
                                };
                                assert_ne!(by.txid, spender);
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert!(wins.iter().all(|win| win.load(Ordering::Relaxed) == 1));
}

/// A reader beside the writers sees a unit whole: the child is there if and only if its parent is
/// spent.
#[test]
fn readers_see_whole_units() {
    let twin = Twin::new(small());
    let done = AtomicBool::new(false);
    let root = name(0);
    twin.engine().apply(&twin.context, &[create(root, 100)]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let fields = Fields::UTXOS.union(Fields::TX);
                    let read = twin.engine().read(&[root], fields).unwrap();
                    let slots = read[0].as_ref().unwrap().utxos.clone();
                    assert_eq!(slots.len(), 100);
                    let spent = slots.iter().filter(|slot| slot.unwrap().spending.is_some());
                    let counted: u32 =
                        read[0].as_ref().unwrap().parts.iter().map(|part| part.spent).sum();
                    assert_eq!(
                        spent.count(),
                        counted as usize,
                        "head and chunks are of one moment"
                    );
                }
            });
        }
        for vout in 0..100 {
            let operation = spend(name(vout + 1), Outpoint::new(root, vout));
            twin.engine().apply(&twin.context, &[operation]).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Threads do anything at all; the store opens again as it was.
#[test]
fn what_threads_did_is_there_after_reopening() {
    for seed in 0..5 {
        let mut twin = Twin::new(small());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let twin = &twin;
                scope.spawn(move || {
                    let mut chance = Random::new(seed * 10 + thread);
                    let context = Context { height: Height::new(100), retention: 5 };
                    for _ in 0..60 {
                        let batch: Vec<_> = (0..4).map(|_| operation(&mut chance)).collect();
                        twin.engine().apply(&context, &batch).unwrap();
                    }
                });
            }
        });
        let expected = see(twin.engine()).unwrap();
        twin.reopen();
        assert_eq!(see(twin.engine()).unwrap(), expected);
    }
}

/// One thread has the disk, one waits for it, and a third panics: the disk does not come back, and
/// the one that waits gets the error.
#[test]
fn who_waits_for_a_disk_that_is_lost_is_told() {
    // Threads that would hang are not waited for.
    let twin: &'static Twin = Box::leak(Box::new(Twin::new(small())));
    let commit = &twin.engine().commit;
    let ((taken, is_taken), (go, may_go), (done, is_done)) = (channel(), channel(), channel());
    let holder = thread::spawn(move || {
        commit.with_disk(|_| {
            taken.send(()).unwrap();
            may_go.recv().unwrap();
            Ok(())
        })
    });
    is_taken.recv().unwrap();
    thread::spawn(move || {
        let write = create(name(1), 1);
        done.send(twin.engine().apply(&twin.context, &[write]).is_err()).unwrap();
    });
    assert!(is_done.recv_timeout(Duration::from_millis(200)).is_err(), "it waits for the disk");
    let panicking =
        thread::spawn(|| commit.run::<()>(|| Ok(Fetched::default()), |_| panic!("on purpose")));
    assert!(panicking.join().is_err());
    go.send(()).unwrap();
    assert!(holder.join().unwrap().is_err());
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(true));
}
