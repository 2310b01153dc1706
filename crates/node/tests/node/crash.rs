//! Power cuts at every write of a sync with reorganisations, and disks that fail.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_node::{Error, Limits, NodeReader, NodeSnapshot, Options, Organizer, Report};
use varve_types::{Block, Network};
use varve_utxo::{Compaction, Parameters, SetHash};

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{pipe, sync, sync_options, tip};

/// Commits every block and checkpoints every few, and brings every part of the set into play.
fn eager_options() -> Options {
    let parameters =
        Parameters { window: 2, flush_interval: 2, fan_in: 2, ..Parameters::default() };
    let limits = Limits { group: 1, lag: 2_500, ..Limits::default() };
    Options { parameters, limits, compaction: Compaction::Inline, ..young_options() }
}

/// Two branches that overtake one another, a bad block among them.
fn blocks() -> Vec<Vec<u8>> {
    let first = Mined::genesis().chain(1, 5);
    let second = first[2].chain(2, 4);
    let third = second[1].chain(3, 3);
    let mut bad = third[2].draft(3, Vec::new());
    bad.txs[0].outputs[0].value += 1;
    let bad = third[2].mine(bad);
    let fourth = third[2].chain(4, 2);
    bytes_of(first.iter().chain(&second).chain(&third).chain([&bad]).chain(&fourth))
}

fn hash_of(snapshot: &NodeSnapshot) -> [u8; 32] {
    let one = std::num::NonZeroUsize::MIN;
    let found = snapshot.utxo.statistics(SetHash::HashSerialized3, one, &mut |_, _| {});
    found.unwrap().hash.unwrap()
}

/// Set and history stand at the tip, and the history has every confirmed transaction.
fn check_agreement(snapshot: &NodeSnapshot) {
    assert_eq!(snapshot.utxo.tip(), Some(snapshot.tip));
    let view = snapshot.view();
    let (height, hash) = snapshot.tip;
    let link = view.to_confirmed(height).unwrap();
    assert_eq!(view.header(link).unwrap().hash, hash);
    assert_eq!(view.to_confirmed(height.checked_add(1).unwrap()), None);
    let bytes = view.raw_block(link).unwrap().unwrap().to_vec();
    let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
    for txid in block.txids() {
        assert!(view.to_tx(txid).unwrap().unwrap().confirmed);
    }
}

/// What was acknowledged: after how many operations, and by which commit.
type Acknowledged = Vec<(usize, u64)>;
/// The tip and the hash of the set at each commit.
type States = BTreeMap<u64, (String, [u8; 32])>;

fn note(reader: &NodeReader, states: &mut States) -> u64 {
    let snapshot = reader.snapshot();
    states.insert(snapshot.sequence.0, (snapshot.tip.1.to_string(), hash_of(&snapshot)));
    snapshot.sequence.0
}

/// Checkpoints only at the end of a sync, so that the set is often on a branch that has lost. With
/// two workers set and stores are made durable side by side.
fn lazy_options() -> Options {
    let limits = Limits { group: 1, ..Limits::default() };
    let workers = NonZeroUsize::new(2).unwrap();
    Options { limits, workers, compaction: Compaction::Inline, ..young_options() }
}

#[test]
fn power_cuts_at_every_write_with_eager_checkpoints() {
    power_cuts_at_every_write(&eager_options());
}

#[test]
fn power_cuts_at_every_write_with_late_checkpoints() {
    power_cuts_at_every_write(&lazy_options());
}

fn power_cuts_at_every_write(options: &Options) {
    let blocks = blocks();
    let storage = Arc::new(FaultyStorage::new(5));
    let (mut acknowledged, mut states): (Acknowledged, States) = (vec![(0, 0)], States::new());
    let mut node = Organizer::open(storage.clone(), options.clone()).unwrap();
    let reader = node.reader();
    acknowledged.push((storage.operations(), note(&reader, &mut states)));
    for end in [1, 3, 5, 8, 9, 11, 12, 13, 14, 15] {
        let mut source = pipe(Network::Regtest, &blocks[..end]);
        node.sync(&mut source, &sync_options(), &mut |report| {
            if let Report::Committed { .. } = report {
                acknowledged.push((storage.operations(), note(&reader, &mut states)));
            }
        })
        .unwrap();
    }
    // A commit may also have only marked a bad block.
    let end = (tip(&node), note(&reader, &mut states));
    drop(node);
    assert!(acknowledged.len() > 7, "{} commits", acknowledged.len());

    let operations = storage.operations();
    for n in 0..=operations {
        let least = acknowledged.iter().rev().find(|(at, _)| *at <= n).unwrap().1;
        let crash = match n % 4 {
            0 => Crash::LoseAll,
            1 => Crash::KeepAll,
            _ => Crash::Seed(n as u64),
        };
        let after = Arc::new(storage.crash(n, crash));
        let name = format!("after {n} of {operations} operations, {crash:?}");
        let mut node = match Organizer::open(after, options.clone()) {
            Ok(node) => node,
            Err(error) => panic!("{name}: {error}"),
        };
        let snapshot = node.snapshot();
        let sequence = snapshot.sequence.0;
        assert!(sequence >= least, "{name}: commit {sequence} is before {least}");
        let known = states.range(..=sequence).next_back();
        let (_, (tip_then, hash_then)) = known.expect("the first commit is that of genesis");
        assert_eq!(*tip_then, snapshot.tip.1.to_string(), "{name}");
        assert_eq!(*hash_then, hash_of(&snapshot), "{name}");
        check_agreement(&snapshot);
        sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        assert_eq!(tip(&node), end.0, "{name}");
        assert_eq!(hash_of(&node.snapshot()), states[&end.1].1, "{name}");
        check_agreement(&node.snapshot());
    }
}

/// Opens and syncs; an error of the disk is a sentence.
fn try_sync(storage: &Arc<FaultyStorage>, blocks: &[Vec<u8>]) -> Result<Organizer, Error> {
    let mut node = Organizer::open(storage.clone(), eager_options())?;
    sync(&mut node, &mut pipe(Network::Regtest, blocks), &sync_options())?;
    Ok(node)
}

#[test]
fn a_disk_that_fails_is_an_error_and_opening_again_goes_on() {
    let blocks = blocks();
    let storage = Arc::new(FaultyStorage::new(5));
    let end = tip(&try_sync(&storage, &blocks).unwrap());
    for operation in [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Rename] {
        for fault in [Fault::Io, Fault::NoSpace] {
            for nth in (0..60).step_by(7) {
                let storage = Arc::new(FaultyStorage::new(nth as u64));
                storage.inject(FaultRule::new(operation, When::Nth(nth), fault));
                let failed = try_sync(&storage, &blocks);
                storage.clear_faults();
                if let Err(error) = failed {
                    assert!(!error.to_string().is_empty());
                }
                let again = Arc::new(storage.reopen());
                let node = try_sync(&again, &blocks).unwrap();
                assert_eq!(tip(&node), end, "{operation:?} {nth}, {fault:?}");
                check_agreement(&node.snapshot());
            }
        }
    }
}
