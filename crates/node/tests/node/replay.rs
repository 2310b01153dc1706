//! What a crash costs: the replay of the next opening is durable, and a node that is killed again
//! and again still advances.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use varve_io::Storage as _;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_node::test_suite::CommitLog;
use varve_node::{DataDirectory, Limits, Options, Organizer, Report, SyncOptions};
use varve_types::{Height, Network};
use varve_utxo::{Compaction, Database, Options as SetOptions, Secret, StoreKey};

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{pipe, sync, sync_options, tip};

/// The block that the set of a closed node stands at on disk.
fn set_height(storage: &FaultyStorage) -> u32 {
    durable(storage).0
}

/// The same, and how many blocks the archive has.
fn durable(storage: &FaultyStorage) -> (u32, u32) {
    let storage: Arc<FaultyStorage> = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
    let seed = young_options().seed;
    let identity =
        DataDirectory::open(storage.clone(), Network::Regtest, &seed).unwrap().identity();
    let key = StoreKey { id: identity.store, secret: Secret::new(identity.secret) };
    let set = SetOptions::new(Network::Regtest, key);
    let set = Database::open(storage.directory("utxo").unwrap(), set).unwrap();
    let commits = storage.directory("commit").unwrap();
    let (_, history) = CommitLog::open(commits, identity.store).unwrap();
    (set.tip().map_or(0, |(height, _)| height.to_u32()), history.archived.below)
}

/// Commits every block, and makes nothing else durable before the end of a sync.
fn options() -> Options {
    let limits = Limits { group: 1, ..Limits::default() };
    Options { limits, compaction: Compaction::Inline, ..young_options() }
}

/// A folder of `count` committed blocks whose set is durable at the first of them only.
fn crashed(count: usize) -> (FaultyStorage, (u64, String)) {
    let chain = bytes_of(&Mined::genesis().chain(1, count));
    let storage = Arc::new(FaultyStorage::new(5));
    let mut node = Organizer::open(storage.clone(), options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &chain[..1]), &sync_options()).unwrap();
    let mut committed = 0;
    let mut source = pipe(Network::Regtest, &chain);
    node.sync(&mut source, &sync_options(), &mut |report| {
        if let Report::Committed { .. } = report {
            committed = storage.operations();
        }
    })
    .unwrap();
    let end = tip(&node);
    drop(node);
    let after = storage.crash(committed, Crash::KeepAll);
    assert!(set_height(&after) <= 1, "the set is behind");
    (after, end)
}

#[test]
fn the_first_opening_after_a_crash_makes_its_replay_durable() {
    let (storage, end) = crashed(40);
    let storage = Arc::new(storage);
    let node = Organizer::open(storage.clone(), options()).unwrap();
    assert_eq!(tip(&node), end);
    drop(node);
    assert_eq!(u64::from(set_height(&storage)), end.0);
    // A folder at rest is not written to.
    let before = storage.operations();
    drop(Organizer::open(storage.clone(), options()).unwrap());
    let written = storage.operations() - before;
    assert!(written <= 12, "{written} operations of a clean opening");
}

/// The process dies in the middle of every replay, at whatever write. A later life finds the
/// archive or the set higher than the one before, and in the end both at the tip, though no life
/// had time for all of it.
#[test]
fn a_replay_that_is_cut_short_again_and_again_advances() {
    let (storage, end) = crashed(300);
    let options = Options { limits: Limits { lag: 40_000, ..options().limits }, ..options() };
    let whole = Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
    let before = whole.operations();
    drop(Organizer::open(whole.clone(), options.clone()).unwrap());
    let share = (whole.operations() - before) / 3;
    let (mut storage, mut reached, mut lives) = (storage, (0, 0), 0);
    while u64::from(reached.0) < end.0 {
        let life = Arc::new(storage);
        let before = life.operations();
        let node = Organizer::open(life.clone(), options.clone()).unwrap();
        assert_eq!(tip(&node), end);
        drop(node);
        storage = life.crash((before + share).min(life.operations()), Crash::KeepAll);
        let found = durable(&storage);
        assert!(found > reached, "life {lives}: set and archive are at {found:?} again");
        (reached, lives) = (found, lives + 1);
    }
    assert!(lives > 1, "one life was enough");
}

/// A sync that is killed long before a commit is due by the clock: every life commits something.
#[test]
fn a_sync_that_is_killed_before_the_latency_of_a_commit_advances() {
    let chain = bytes_of(&Mined::genesis().chain(1, 200));
    let options = Options {
        limits: Limits { latency: Duration::from_secs(1), ..Limits::default() },
        ..options()
    };
    let mut storage = FaultyStorage::new(5);
    let mut height = 0;
    for life in 0..20 {
        let alive = Arc::new(storage);
        let mut node = Organizer::open(alive.clone(), options.clone()).unwrap();
        let found = tip(&node).0;
        assert!(life == 0 || found > height, "life {life} begins at {found} again");
        height = found;
        // Ten milliseconds a block, and a life of half a second.
        let ticks = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&ticks);
        let clock = move || Duration::from_millis(10 * now.load(Ordering::Relaxed));
        let stop_height = Some(Height::new(u32::try_from(height + 60).unwrap()));
        let options = SyncOptions { clock: Arc::new(clock), stop_height, ..sync_options() };
        let mut killed = None;
        node.sync(&mut pipe(Network::Regtest, &chain), &options, &mut |report| {
            if let Report::Connected { .. } = report
                && ticks.fetch_add(1, Ordering::Relaxed) == 50
            {
                killed = Some(alive.operations());
            }
        })
        .unwrap();
        drop(node);
        let Some(killed) = killed else { return };
        storage = alive.crash(killed, Crash::KeepAll);
    }
    panic!("it ends at {height} after twenty lives");
}
