//! The log stays short while the store is busy.

use std::sync::Arc;

use bytes::Bytes;
use varve_io::Disk;
use varve_testdata::Random;
use varve_types::{Height, Outpoint, Txid};

use super::size::create;
use super::threads::spend;
use super::twin::{Twin, small};
use crate::embedded::clean::WALK;
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::{Context, Engine as _};
use crate::fields::Fields;
use crate::operation::Operation;
use crate::record::Body;
use varve_runs::Compaction;

fn name(number: u32) -> Txid {
    let mut bytes = [0x33; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

/// Records come and go, some stay for ever. Whatever moves is still right, and the log is never
/// much longer than twice what is in it.
#[test]
fn the_log_stays_short_under_load() {
    let segment_size = 200_000;
    let options = EmbeddedOptions { segment_size, checkpoint_every: 200_000, ..small() };
    let mut twin = Twin::new(options);
    let mut chance = Random::new(5);
    for round in 0..600_u32 {
        let mut batch = vec![create(name(round), 1 + chance.small(20))];
        if let Some(old) = round.checked_sub(1 + chance.small(40)) {
            batch.push(spend(name(round), Outpoint::new(name(old), 0)));
            if old % 10 != 0 {
                batch.push(Operation::Delete { txid: name(old) });
            }
        }
        twin.apply(&batch);
        let sizes = twin.engine().status().unwrap();
        let index = 24 * sizes.keys;
        let bound = 2 * sizes.live + 5 * segment_size + 4 * index;
        assert!(sizes.stored < bound, "round {round}: {sizes:?}");
        if round % 150 == 149 {
            twin.reopen();
        }
    }
    let txids: Vec<_> = (0..600).map(name).collect();
    let fields = Fields::ALL;
    let found = twin.engine().read(&txids, fields).unwrap();
    assert!(found == twin.oracle.read(&txids, fields).unwrap());
    assert!(found.iter().flatten().count() > 60, "some stay");
}

/// Cleaning becomes due long after the log grew. A walk is as long as what was just written asks
/// for, not as what was written before: others wait while what it found is put into a group.
#[test]
fn one_walk_is_no_longer_than_the_last_group_asks_for() {
    let (segment_size, checkpoint_every) = (4 << 20, 1 << 20);
    let twin = Twin::new(EmbeddedOptions { segment_size, checkpoint_every, ..small() });
    let commit = &twin.engine().commit;
    let (mut walks, mut frame) = (0, 0);
    let mut apply = |batch: &[Operation]| {
        let (end, walked) = (commit.base.log.end(), commit.walked().unwrap());
        twin.engine().apply(&twin.context, batch).unwrap();
        let written = commit.base.log.end().since(end).unwrap();
        let walk = commit.walked().unwrap().since(walked).unwrap();
        frame = written.max(frame);
        assert!(walk <= WALK.max(2 * written) + frame, "{walk} after {written}");
        walks += usize::from(walk > 0);
    };
    for group in 0..140 {
        let batch: Vec<_> = (0..30).map(|n| create(name(group * 30 + n), 100)).collect();
        apply(&batch);
    }
    for group in 0..140 {
        let batch: Vec<_> =
            (1..30).map(|n| Operation::Delete { txid: name(group * 30 + n) }).collect();
        apply(&batch);
    }
    assert!(walks > 10, "{walks}");
    assert!(twin.engine().commit.base.log.start().get() > 0, "files were dropped");
}

fn create_with(txid: Txid, body: Vec<u8>) -> Operation {
    let Operation::Unit(mut unit) = create(txid, 2) else { panic!("it is a unit") };
    unit.create.as_mut().unwrap().body = Body::Outputs(Bytes::from(body));
    Operation::Unit(unit)
}

/// Several callers change the states of records whose bodies lie at the front. Whoever cleans moves
/// a body while another caller's group, with the state in it, is being written.
#[test]
fn no_body_is_lost_when_callers_change_what_is_moved() {
    const LONG: u32 = 40;
    const ROUNDS: u32 = 1_500;
    let directory = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        segment_size: 200_000,
        cache: 400_000,
        checkpoint_every: 200_000,
        body_limit: 4_000,
        upkeep: Compaction::Threads,
        ..small()
    };
    let open = || {
        let disk = Disk::open(directory.path()).unwrap();
        EmbeddedEngine::open(Arc::new(disk), options).unwrap()
    };
    let context = Context { height: Height::new(100), retention: 5 };
    let engine = open();
    let body = |number: u32| vec![u8::try_from(number).unwrap(); 500];
    for number in 0..LONG {
        engine.apply(&context, &[create_with(name(number), body(number))]).unwrap();
    }
    std::thread::scope(|scope| {
        for caller in 1..=3 {
            let (engine, context) = (&engine, &context);
            scope.spawn(move || {
                let mut chance = Random::new(u64::from(caller));
                for round in 1..=ROUNDS {
                    let passing = |round| name(caller * 1_000_000 + round);
                    let (txid, locked) = (name(chance.small(LONG)), round % 2 == 0);
                    let batch = [
                        Operation::SetLocked { txid, locked },
                        create_with(passing(round), vec![7; 1_500]),
                        Operation::Delete { txid: passing(round - 1) },
                    ];
                    engine.apply(context, &batch).unwrap();
                }
            });
        }
    });
    assert!(engine.commit.base.log.start().get() > 1_000_000, "the log was turned over");
    drop(engine);
    let engine = open();
    for number in 0..LONG {
        let record = engine.read(&[name(number)], Fields::TX).unwrap().remove(0).unwrap();
        assert_eq!(record.body, Some(Body::Outputs(Bytes::from(body(number)))));
    }
}
