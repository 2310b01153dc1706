//! Power cuts at every write of a sync with reorganisations, and disks that fail.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use varve_io::Storage as _;
use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_node::{
    Error, Limits, NodeReader, NodeSnapshot, Options, Organizer, Prune, Report, SettingsChange,
};
use varve_types::{Block, Network};
use varve_utxo::{Compaction, Parameters, SetHash, UndoConfig};

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{is_long, pipe, sync, sync_options, tip};
use crate::scan::{check_node, check_pushes, tiny};

/// Commits every block and checkpoints every few, and brings every part of the set into play.
pub(crate) fn eager_options() -> Options {
    let parameters =
        Parameters { window: 2, flush_interval: 2, fan_in: 2, ..Parameters::default() };
    let limits = Limits { group: 1, lag: 2_500, ..Limits::default() };
    Options { parameters, limits, compaction: Compaction::Inline, ..young_options() }
}

/// Two branches that overtake one another, a bad block among them.
pub(crate) fn blocks() -> Vec<Vec<u8>> {
    let first = Mined::genesis().chain(1, 5);
    let second = first[2].chain(2, 4);
    let third = second[1].chain(3, 3);
    let mut bad = third[2].draft(3, Vec::new());
    bad.txs[0].outputs[0].value += 1;
    let bad = third[2].mine(bad);
    let fourth = third[2].chain(4, 2);
    bytes_of(first.iter().chain(&second).chain(&third).chain([&bad]).chain(&fourth))
}

pub(crate) fn hash_of(snapshot: &NodeSnapshot) -> [u8; 32] {
    let one = std::num::NonZeroUsize::MIN;
    let found = snapshot.utxo.statistics(SetHash::HashSerialized3, one, &mut |_, _| {});
    found.unwrap().hash.unwrap()
}

/// Set and history stand at the tip, and the history has every confirmed transaction.
pub(crate) fn check_agreement(snapshot: &NodeSnapshot) {
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

/// With every index, small runs of the script history among them: after every cut each script and
/// each pushed item is what a scan of the blocks says, before and after the sync that follows.
#[test]
fn power_cuts_at_every_write_with_every_index() {
    let options = tiny("all", eager_options());
    power_cuts(&options, &|node, is_synced| {
        if is_synced {
            assert!(check_node(node) > 1);
        }
        check_pushes(&node.snapshot());
    });
}

/// Drops blocks in small files as soon as their undo records allow.
#[test]
fn power_cuts_at_every_write_with_pruning() {
    let undo = UndoConfig { blocks: 3, ..UndoConfig::default() };
    let settings = SettingsChange { prune: Some(Prune::To(1)), ..SettingsChange::default() };
    let options = Options { undo, settings, block_segment: 700, ..eager_options() };
    let node = power_cuts_at_every_write(&options);
    assert!(node.pruned_below().unwrap().is_some_and(|height| height.to_u32() > 1));
}

/// The set runs ahead of the last commit by more blocks than there are undo records, and their
/// bytes may be lost.
#[test]
fn power_cuts_at_every_write_with_rare_commits_and_few_undo_records() {
    let undo = UndoConfig { blocks: 2, segment_size: 300, cache: 0 };
    let hour = Duration::from_secs(3600);
    let limits = Limits { group: u64::MAX, latency: hour, ..Limits::default() };
    let options = Options { undo, limits, ..eager_options() };
    // Undo records go by 64 at least.
    let chain = bytes_of(&Mined::genesis().chain(1, 150));
    let storage = Arc::new(FaultyStorage::new(5));
    let mut node = Organizer::open(storage.clone(), options.clone()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &chain), &sync_options()).unwrap();
    let end = (tip(&node), hash_of(&node.snapshot()));
    for n in (0..=storage.operations()).step_by(if is_long() { 1 } else { 31 }) {
        for crash in [Crash::LoseAll, Crash::Seed(n as u64)] {
            let name = format!("after {n} of {} operations, {crash:?}", storage.operations());
            let after = Arc::new(storage.crash(n, crash));
            let mut node = match Organizer::open(after, options.clone()) {
                Ok(node) => node,
                Err(error) => panic!("{name}: {error}"),
            };
            check_agreement(&node.snapshot());
            sync(&mut node, &mut pipe(Network::Regtest, &chain), &sync_options()).unwrap();
            assert_eq!((tip(&node), hash_of(&node.snapshot())), end, "{name}");
        }
    }
}

/// The ways in which the power is cut after an operation: one of three in turn, or all in the long
/// form.
fn crashes(n: usize) -> Vec<Crash> {
    let all = [Crash::LoseAll, Crash::KeepAll, Crash::Seed(n as u64)];
    if is_long() { all.to_vec() } else { vec![all[n % all.len()]] }
}

fn power_cuts_at_every_write(options: &Options) -> Organizer {
    power_cuts(options, &|_, _| {})
}

/// Returns the node that was never interrupted. `check` gets each other one, after it was opened
/// and after it was synced.
fn power_cuts(options: &Options, check: &dyn Fn(&Organizer, bool)) -> Organizer {
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
    assert!(acknowledged.len() > 7, "{} commits", acknowledged.len());

    let operations = storage.operations();
    let cuts = (0..=operations).flat_map(|n| crashes(n).into_iter().map(move |crash| (n, crash)));
    for (n, crash) in cuts {
        let least = acknowledged.iter().rev().find(|(at, _)| *at <= n).unwrap().1;
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
        check(&node, false);
        sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        assert_eq!(tip(&node), end.0, "{name}");
        assert_eq!(hash_of(&node.snapshot()), states[&end.1].1, "{name}");
        check_agreement(&node.snapshot());
        check(&node, true);
    }
    node
}

/// A second power cut, at every write of the opening after the first: the third opening finds the
/// state of the second, or of what was acknowledged before it.
#[test]
fn power_cuts_while_it_recovers() {
    let blocks = blocks();
    let mut openings = 0;
    for options in [eager_options(), lazy_options()] {
        let storage = Arc::new(FaultyStorage::new(5));
        let mut node = Organizer::open(storage.clone(), options.clone()).unwrap();
        for end in [5, 9, 15] {
            sync(&mut node, &mut pipe(Network::Regtest, &blocks[..end]), &sync_options()).unwrap();
        }
        let end = (tip(&node), hash_of(&node.snapshot()));
        for n in (0..storage.operations()).step_by(if is_long() { 1 } else { 97 }) {
            for first in [Crash::LoseAll, Crash::Seed(n as u64)] {
                let after = Arc::new(storage.crash(n, first));
                let before = after.operations();
                let node = Organizer::open(after.clone(), options.clone()).unwrap();
                let found = (node.snapshot().sequence, node.snapshot().tip);
                drop(node);
                for m in before..=after.operations() {
                    let name = format!("after {n}, {first:?}, then after {m}");
                    let again = after.crash(m, crashes(m)[0]);
                    let mut node = match Organizer::open(Arc::new(again), options.clone()) {
                        Ok(node) => node,
                        Err(error) => panic!("{name}: {error}"),
                    };
                    openings += 1;
                    assert_eq!((node.snapshot().sequence, node.snapshot().tip), found, "{name}");
                    check_agreement(&node.snapshot());
                    sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
                    assert_eq!((tip(&node), hash_of(&node.snapshot())), end, "{name}");
                }
            }
        }
    }
    assert!(openings > 80, "{openings} openings");
}

/// Archive or set are lost and rebuilt by the next opening, which is cut short at every write. So
/// is a repair.
#[test]
fn power_cuts_while_stores_are_rebuilt() {
    let blocks = blocks();
    let whole = Arc::new(FaultyStorage::new(5));
    let end = tip(&try_sync(&whole, &blocks, &mut 0).unwrap());
    for lost in ["archive", "utxo", ""] {
        let storage = Arc::new(whole.crash(whole.operations(), Crash::KeepAll));
        let folder = if lost.is_empty() { None } else { Some(storage.directory(lost).unwrap()) };
        if let Some(folder) = &folder {
            folder.list().unwrap().iter().for_each(|name| folder.remove(name).unwrap());
            folder.sync_dir().unwrap();
        }
        let before = storage.operations();
        match &folder {
            Some(_) => drop(Organizer::open(storage.clone(), eager_options()).unwrap()),
            None => {
                drop(Organizer::repair(storage.clone(), eager_options(), &mut |_, _| {}).unwrap());
            }
        }
        let cuts = before..=storage.operations();
        let cuts = cuts.flat_map(|n| crashes(n).into_iter().map(move |crash| (n, crash)));
        for (n, crash) in cuts {
            let after = Arc::new(storage.crash(n, crash));
            let opened = match &folder {
                Some(_) => Organizer::open(after, eager_options()),
                None => Organizer::repair(after, eager_options(), &mut |_, _| {}),
            };
            let node = opened.unwrap_or_else(|error| panic!("{lost} {n} {crash:?}: {error}"));
            assert_eq!(tip(&node), end);
            node.verify(&mut |_, _| {}).unwrap();
        }
    }
}

/// Opens and syncs; an error of the disk is a sentence. Notes what was acknowledged meanwhile.
fn try_sync(
    storage: &Arc<FaultyStorage>,
    blocks: &[Vec<u8>],
    acknowledged: &mut u64,
) -> Result<Organizer, Error> {
    let mut node = Organizer::open(storage.clone(), eager_options())?;
    let reader = node.reader();
    *acknowledged = reader.snapshot().sequence.0;
    node.sync(&mut pipe(Network::Regtest, blocks), &sync_options(), &mut |report| {
        if let Report::Committed { .. } = report {
            *acknowledged = reader.snapshot().sequence.0;
        }
    })?;
    Ok(node)
}

/// One call of a kind fails, each in turn: an error that says so, and every acknowledged commit is
/// there when the node is opened again.
#[test]
fn a_disk_that_fails_is_an_error_and_opening_again_goes_on() {
    let blocks = blocks();
    let storage = Arc::new(FaultyStorage::new(5));
    let end = tip(&try_sync(&storage, &blocks, &mut 0).unwrap());
    let mut failures = 0;
    for operation in [
        Operation::Write,
        Operation::Sync,
        Operation::SyncDir,
        Operation::Rename,
        Operation::Remove,
    ] {
        for fault in [Fault::Io, Fault::NoSpace] {
            for nth in (0..200).step_by(if is_long() { 1 } else { 7 }) {
                let storage = Arc::new(FaultyStorage::new(nth as u64));
                storage.inject(FaultRule::new(operation, When::Nth(nth), fault));
                let mut acknowledged = 0;
                let failed = try_sync(&storage, &blocks, &mut acknowledged);
                storage.clear_faults();
                if let Err(error) = failed {
                    failures += 1;
                    let message = error.to_string();
                    let says = ["cannot", "free some space", "writing has stopped"];
                    assert!(says.iter().any(|part| message.contains(part)), "{message}");
                }
                let again = Arc::new(storage.reopen());
                let node = Organizer::open(again.clone(), eager_options()).unwrap();
                let found = node.snapshot().sequence.0;
                assert!(found >= acknowledged, "{operation:?} {nth}, {fault:?}");
                check_agreement(&node.snapshot());
                drop(node);
                let node = try_sync(&again, &blocks, &mut 0).unwrap();
                assert_eq!(tip(&node), end, "{operation:?} {nth}, {fault:?}");
                check_agreement(&node.snapshot());
            }
        }
    }
    assert!(failures > 60, "{failures} syncs failed");
}

/// A disk of some size becomes full in the middle. With more room a new opening finishes, and with
/// as little it still answers for what was acknowledged.
#[test]
fn a_disk_that_is_full_loses_nothing() {
    let blocks = blocks();
    let storage = Arc::new(FaultyStorage::new(5));
    let end = tip(&try_sync(&storage, &blocks, &mut 0).unwrap());
    let mut failures = 0;
    for capacity in (2_000..150_000).step_by(if is_long() { 700 } else { 7_000 }) {
        let storage = Arc::new(FaultyStorage::new(capacity));
        storage.set_capacity(Some(capacity));
        let mut acknowledged = 0;
        if let Err(error) = try_sync(&storage, &blocks, &mut acknowledged) {
            assert!(error.to_string().contains("free some space"), "{capacity}: {error}");
            failures += 1;
        }
        storage.set_capacity(None);
        let again = Arc::new(storage.reopen());
        let node = Organizer::open(again.clone(), eager_options()).unwrap();
        assert!(node.snapshot().sequence.0 >= acknowledged, "{capacity}");
        check_agreement(&node.snapshot());
        drop(node);
        let node = try_sync(&again, &blocks, &mut 0).unwrap();
        assert_eq!(tip(&node), end, "{capacity}");
    }
    assert!(failures > 2, "{failures} disks became full");
}

/// The same, and the same node goes on when there is room again.
#[test]
fn a_disk_that_was_full_needs_no_new_opening() {
    let blocks = blocks();
    let storage = Arc::new(FaultyStorage::new(5));
    let end = tip(&try_sync(&storage, &blocks, &mut 0).unwrap());
    let mut failures = 0;
    for capacity in (2_000..150_000).step_by(if is_long() { 700 } else { 5_000 }) {
        let storage = Arc::new(FaultyStorage::new(capacity));
        let mut node = Organizer::open(storage.clone(), eager_options()).unwrap();
        storage.set_capacity(Some(capacity));
        let mut source = pipe(Network::Regtest, &blocks);
        if let Err(error) = sync(&mut node, &mut source, &sync_options()) {
            assert!(error.to_string().contains("free some space"), "{capacity}: {error}");
            check_agreement(&node.snapshot());
            failures += 1;
        }
        storage.set_capacity(None);
        let mut source = pipe(Network::Regtest, &blocks);
        match sync(&mut node, &mut source, &sync_options()) {
            Ok(_) => assert_eq!(tip(&node), end, "{capacity}"),
            Err(error) => panic!("{capacity}: {error}"),
        }
        check_agreement(&node.snapshot());
        drop(node);
        let node = try_sync(&storage, &blocks, &mut 0).unwrap();
        assert_eq!(tip(&node), end, "{capacity}");
        node.verify(&mut |_, _| {}).unwrap();
    }
    assert!(failures > 2, "{failures} disks became full");
}

/// The operations on files of a sync of these blocks, and of a checkpoint behind it.
fn operations(blocks: &[Vec<u8>], lag: u64) -> (usize, usize) {
    let storage = Arc::new(FaultyStorage::new(3));
    let limits = Limits { lag, ..Limits::default() };
    let options = Options { limits, ..eager_options() };
    let mut node = Organizer::open(storage.clone(), options).unwrap();
    let mut source = pipe(Network::Regtest, blocks);
    assert_eq!(sync(&mut node, &mut source, &sync_options()).unwrap(), []);
    let synced = storage.operations();
    node.checkpoint().unwrap();
    (synced, storage.operations() - synced)
}

/// A checkpoint beside the joiner was not counted, so that one followed every block.
#[test]
fn a_checkpoint_is_made_once_when_it_is_due() {
    let blocks = bytes_of(&Mined::genesis().chain(1, 100));
    let bytes: usize = blocks.iter().map(Vec::len).sum();
    let (without, one) = operations(&blocks, u64::MAX);
    let (with, _) = operations(&blocks, bytes as u64 / 4);
    assert!(with > without, "some are made");
    assert!(with < without + 16 * one, "{with} operations instead of {without}, {one} each");
}
