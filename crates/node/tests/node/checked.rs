//! How far scripts were checked: recorded, kept through crashes and reorganisations, and made up
//! for by a later sync.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use varve_consensus::contract::draft::TxDraft;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_node::source::directory::Directory;
use varve_node::{Options, Organizer, Prune, Report, SettingsChange, SyncOptions, Verify};
use varve_types::script::opcode::OP_0;
use varve_types::{Height, Network, Outpoint};
use varve_utxo::UndoConfig;

use crate::crash::{eager_options, hash_of};
use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, is_long, pipe, stop_at, sync, sync_options};

fn spends() -> SyncOptions {
    SyncOptions { verify: Verify::Spends, ..sync_options() }
}

/// Checked up to, assumed up to, and how many blocks nobody has looked at.
fn scripts(node: &Organizer) -> (u32, Option<u32>, u64) {
    let found = node.scripts();
    (found.checked_to.to_u32(), found.assumed_to.map(Height::to_u32), found.unchecked)
}

/// A block above this one whose last transaction spends an output that nobody can.
fn with_failing_script(below: &Mined) -> Mined {
    let mut draft = below.draft(9, vec![TxDraft::spending(&[below.coin()], 2)]);
    draft.txs[1].outputs[0].script = vec![OP_0];
    let failing = Outpoint::new(draft.txs[1].txid(), 0);
    draft.txs.push(TxDraft::spending(&[failing], 1));
    below.mine(draft)
}

/// Syncs, and gives how many blocks were checked in place.
fn sync_counting(node: &mut Organizer, blocks: &[Vec<u8>], options: &SyncOptions) -> u64 {
    let mut checked = 0;
    let mut source = pipe(Network::Regtest, blocks);
    node.sync(&mut source, options, &mut |report| {
        if let Report::ScriptsChecked { done, all } = report {
            assert!(done <= all);
            checked += 1;
        }
    })
    .unwrap();
    checked
}

#[test]
fn a_later_sync_checks_what_was_not_and_once() {
    let chain = Mined::genesis().chain(1, 12);
    let blocks = bytes_of(&chain);
    let folder = tempfile::tempdir().unwrap();
    let open = || Organizer::open(disk(folder.path()), young_options()).unwrap();
    let mut node = open();
    assert_eq!(scripts(&node), (0, None, 0));
    assert_eq!(sync_counting(&mut node, &blocks[..8], &spends()), 0);
    assert_eq!(scripts(&node), (0, None, 8));
    drop(node);
    let mut node = open();
    assert_eq!(scripts(&node), (0, None, 8), "spends are not taken for scripts");
    // New blocks are checked as they come, the old ones in place.
    assert_eq!(sync_counting(&mut node, &blocks, &sync_options()), 8);
    assert_eq!(scripts(&node), (12, None, 0));
    drop(node);
    let mut node = open();
    assert_eq!(scripts(&node), (12, None, 0));
    assert_eq!(sync_counting(&mut node, &blocks, &sync_options()), 0);
    // Spends alone above what was checked.
    let longer = bytes_of(chain.iter().chain(&chain[11].chain(1, 3)));
    sync_counting(&mut node, &longer, &spends());
    assert_eq!(scripts(&node), (12, None, 3));
}

#[test]
fn a_block_that_fails_later_is_marked_and_the_chain_turns() {
    let main = Mined::genesis().chain(1, 4);
    let other = main[1].chain(2, 4);
    let bad = with_failing_script(&main[3]);
    let above = bad.chain(1, 4);
    let blocks = bytes_of(main.iter().chain([&bad]).chain(&above).chain(&other));
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    sync_counting(&mut node, &blocks, &spends());
    assert_eq!(node.snapshot().tip.1, above[3].hash);
    drop(node);
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let refused = sync(&mut node, &mut pipe(Network::Regtest, &[]), &sync_options()).unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].0, bad.hash.to_string());
    assert!(refused[0].1.starts_with("block-script-verify-flag-failed"), "{refused:?}");
    for _ in 0..2 {
        assert_eq!(node.snapshot().tip.1, other[3].hash);
        assert_eq!(scripts(&node), (6, None, 0));
        assert!(node.invalid(&above[0].hash).is_some());
        node.verify(&mut |_, _| {}).unwrap();
        drop(node);
        node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    }
}

/// With `follow`, a header above the refused block comes later: the block is not reported again.
#[test]
fn a_block_that_fails_later_is_reported_once() {
    let main = Mined::genesis().chain(1, 4);
    let other = main[1].chain(2, 5);
    let bad = with_failing_script(&main[3]);
    let above = bad.chain(1, 4);
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("blocks");
    std::fs::create_dir(&files).unwrap();
    let write = |name: &str, blocks: &[&Mined]| {
        let framed = crate::rig::framed(Network::Regtest, &bytes_of(blocks.iter().copied()));
        std::fs::write(files.join(name), framed).unwrap();
    };
    let first = main.iter().chain([&bad]).chain(&above[..3]).chain(&other[..4]);
    write("blk00000.dat", &first.collect::<Vec<_>>());
    let source = |follow| Directory::open(&files, Network::Regtest, follow).unwrap();
    let data = disk(&folder.path().join("data"));
    let mut node = Organizer::open(data, young_options()).unwrap();
    sync(&mut node, &mut source(false), &spends()).unwrap();
    assert_eq!(node.snapshot().tip.1, above[2].hash);
    let options = SyncOptions { follow: true, ..sync_options() };
    let mut refused = Vec::new();
    node.sync(&mut source(true), &options, &mut |report| match report {
        Report::Refused { hash, .. } => {
            refused.push(hash);
            write("blk00001.dat", &[&above[3], &other[4]]);
        }
        Report::Committed { hash, .. } if hash == other[4].hash => {
            options.stop.store(true, Ordering::Relaxed);
        }
        _ => {}
    })
    .unwrap();
    assert_eq!(refused, [bad.hash]);
}

/// What was checked on a branch that has lost is not claimed of the one that has won.
#[test]
fn a_reorganisation_takes_the_record_with_it() {
    let genesis = Mined::genesis();
    let old = genesis.chain(1, 6);
    let new = old[1].chain(2, 6);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    sync_counting(&mut node, &bytes_of(&old), &sync_options());
    assert_eq!(scripts(&node), (6, None, 0));
    sync_counting(&mut node, &bytes_of(old.iter().chain(&new)), &spends());
    assert_eq!(node.snapshot().tip.1, new[5].hash);
    assert_eq!(scripts(&node), (2, None, 6));
    drop(node);
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    assert_eq!(scripts(&node), (2, None, 6));
    assert_eq!(sync_counting(&mut node, &[], &sync_options()), 6);
    assert_eq!(scripts(&node), (8, None, 0));
}

/// At every write of a sync without scripts, of a check in place and of what follows: never more is
/// claimed than was checked, and a later sync makes up for the rest.
#[test]
fn power_cuts_never_leave_a_claim_too_many() {
    let chain = Mined::genesis().chain(1, 9);
    let blocks = bytes_of(&chain);
    let storage = Arc::new(FaultyStorage::new(5));
    let mut node = Organizer::open(storage.clone(), eager_options()).unwrap();
    let mut moments = Vec::new();
    for (end, options, checked) in
        [(3, sync_options(), 3), (6, spends(), 3), (6, sync_options(), 6), (9, spends(), 6)]
    {
        sync_counting(&mut node, &blocks[..end], &options);
        moments.push((storage.operations(), checked));
        assert_eq!(scripts(&node).0, checked);
    }
    let end = hash_of(&node.snapshot());
    drop(node);
    for n in (0..=storage.operations()).step_by(if is_long() { 1 } else { 3 }) {
        let crash = [Crash::LoseAll, Crash::KeepAll, Crash::Seed(n as u64)][n % 3];
        let name = format!("after {n} of {}, {crash:?}", storage.operations());
        let node = Organizer::open(Arc::new(storage.crash(n, crash)), eager_options());
        let mut node = node.unwrap_or_else(|error| panic!("{name}: {error}"));
        let (found, _, _) = scripts(&node);
        let least = moments.iter().rev().find(|(at, _)| *at <= n).map_or(0, |(_, height)| *height);
        let most = moments.iter().find(|(at, _)| *at >= n).map_or(6, |(_, height)| *height);
        assert!((least..=most).contains(&found), "{name}: {found} of {least}..={most}");
        sync_counting(&mut node, &blocks, &sync_options());
        assert_eq!((scripts(&node), hash_of(&node.snapshot())), ((9, None, 0), end), "{name}");
    }
}

#[test]
fn a_pruned_folder_says_that_it_cannot() {
    let undo = UndoConfig { blocks: 3, segment_size: 300, cache: 0 };
    let settings = SettingsChange { prune: Some(Prune::To(1)), ..SettingsChange::default() };
    let options = Options { undo, settings, block_segment: 700, ..eager_options() };
    let chain = bytes_of(&Mined::genesis().chain(1, 200));
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), options).unwrap();
    sync_counting(&mut node, &chain[..150], &spends());
    assert!(node.pruned_below().unwrap().is_some());
    let mut told = Vec::new();
    node.sync(&mut pipe(Network::Regtest, &chain), &sync_options(), &mut |report| match report {
        Report::ScriptsPruned { blocks } => told.push(blocks),
        Report::ScriptsChecked { .. } => panic!("nothing can be checked"),
        _ => {}
    })
    .unwrap();
    assert_eq!(told, [150]);
    assert_eq!(scripts(&node), (0, None, 150));
}

/// Blocks that were taken with `spends` and lie below an assume-valid block are recorded as
/// assumed, and those above it are checked in place: nothing is left to be done.
#[test]
fn blocks_taken_without_scripts_are_assumed_later() {
    let main = Mined::genesis().chain(1, 5);
    let bad = with_failing_script(&main[4]);
    let above = bad.plain_chain(3, 2017);
    let blocks = bytes_of(main.iter().chain([&bad]).chain(&above));
    let folder = tempfile::tempdir().unwrap();
    let open = || Organizer::open(disk(folder.path()), young_options()).unwrap();
    let mut node = open();
    sync_counting(&mut node, &blocks, &spends());
    assert_eq!(scripts(&node), (0, None, 2023));
    let options = SyncOptions { assume_valid: Some(above[9].hash), ..sync_options() };
    // Two weeks of work are above the sixth block, and no higher one.
    assert_eq!(sync_counting(&mut node, &[], &options), 2017);
    assert_eq!(scripts(&node), (2023, Some(6), 0));
    drop(node);
    let mut node = open();
    assert_eq!(scripts(&node), (2023, Some(6), 0));
    assert_eq!(sync_counting(&mut node, &[], &options), 0);
    assert_eq!(node.snapshot().tip.1, above[2016].hash);
}

/// Core's conditions, one by one, on a chain whose sixth block has a script that fails: the block
/// is an ancestor of the assumed one and of the best header, that has enough work, and it is more
/// than two weeks of work above.
#[test]
fn scripts_are_assumed_under_the_conditions_of_core() {
    let main = Mined::genesis().chain(1, 5);
    let bad = with_failing_script(&main[4]);
    let above = bad.chain(3, 2018);
    let side = main[2].chain(4, 3);
    let assumed = above[9].hash;
    // (blocks above the bad one, the assumed block, the least work, whether it is taken)
    let no_work = varve_consensus::Work::ZERO;
    let much = varve_consensus::Work::of_bits(0x1d00_ffff);
    let cases = [
        (2017, Some(assumed), no_work, true),
        (2016, Some(assumed), no_work, false),
        (2017, Some(assumed), much, false),
        (2017, Some(main[4].hash), no_work, false),
        (2017, Some(side[2].hash), no_work, false),
        (2017, None, no_work, false),
    ];
    let all = bytes_of(main.iter().chain(&side).chain([&bad]).chain(&above));
    let first = main.len() + side.len() + 1;
    for (number, (count, assume_valid, minimum_work, taken)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("blk00000.dat");
        let framed = crate::rig::framed(Network::Regtest, &all[..first + count]);
        std::fs::write(&file, framed).unwrap();
        let source = || Directory::open(&file, Network::Regtest, false).unwrap();
        let mut options = young_options();
        options.params.minimum_work = minimum_work;
        let mut node = Organizer::open(disk(&folder.path().join("data")), options).unwrap();
        // All headers first: blocks that come before them are checked.
        sync(&mut node, &mut source(), &stop_at(0)).unwrap();
        let options = SyncOptions { assume_valid, ..sync_options() };
        sync(&mut node, &mut source(), &options).unwrap();
        let height = node.snapshot().tip.0.to_u32() as usize;
        assert_eq!(height > 6, taken, "case {number} ends at {height}");
        if taken {
            assert_eq!(height, 6 + count);
            let (checked_to, assumed_to, unchecked) = scripts(&node);
            assert_eq!((checked_to as usize, unchecked), (height, 0));
            assert!(assumed_to.is_some_and(|assumed| assumed >= 6), "{assumed_to:?}");
        }
    }
}
