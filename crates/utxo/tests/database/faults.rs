//! Full and failing disks: a clear error, nothing changed, and the set works after reopening.

use varve_io::StoreId;
use varve_io::faulty::{Fault, FaultRule, Operation, When};
use varve_testdata::Random;
use varve_types::{BlockHash, Height, Network};
use varve_utxo::{Compaction, Database, Error, Options, Secret, StoreKey, UndoConfig};

use crate::twin::{Twin, oracle_state, small, state, threaded};

/// Makes steps until one fails; a failed step leaves the set as it was.
fn live_until_it_fails(twin: &mut Twin, chance: &mut Random, steps: usize) -> Option<String> {
    for step in 0..steps {
        let appended = twin.append_draft(chance);
        let rewound = if step % 9 == 8 { twin.rewind() } else { Ok(()) };
        if let Err(error) = appended.and(rewound) {
            // The oracle has made the same steps and not the failed one.
            assert_eq!(state(&twin.database().snapshot()), oracle_state(&twin.oracle));
            return Some(error.to_string());
        }
    }
    None
}

#[test]
fn every_failed_call_leaves_the_set_as_it_was() {
    assert!(fail_every_call(small()) > 80);
    assert!(fail_every_call(threaded()) > 40);
}

/// Returns how many steps failed.
fn fail_every_call(options: Options) -> usize {
    let calls = [Operation::Write, Operation::Sync, Operation::Rename, Operation::SyncDir];
    let mut failures = 0;
    for operation in calls {
        for nth in 0..40 {
            let mut twin = Twin::new(nth as u64, options);
            let mut chance = Random::new(nth as u64);
            twin.storage.inject(FaultRule::new(operation, When::Nth(nth), Fault::Io));
            let failed = live_until_it_fails(&mut twin, &mut chance, 30);
            twin.storage.clear_faults();
            if let Some(message) = failed {
                failures += 1;
                assert!(message.contains("cannot"), "{message}");
                let again = twin.append_draft(&mut chance).and_then(|()| twin.rewind());
                let flushed = again.and_then(|()| twin.database().flush().map(drop));
                match flushed {
                    // A failed rename does not poison: the names are unchanged.
                    Ok(()) => assert_eq!(operation, Operation::Rename),
                    Err(error) => {
                        let refused = error.to_string();
                        // With threads, the error that a thread met is reported first.
                        let own = options.compaction == Compaction::Threads;
                        let own = own && refused.contains("cannot");
                        assert!(own || refused.contains("writing has stopped since"), "{refused}");
                    }
                }
            }
            twin.reopen(None);
        }
    }
    failures
}

#[test]
fn a_full_disk_is_not_the_end() {
    assert!(fill_the_disk(small()) > 1);
    assert!(fill_the_disk(threaded()) > 0);
}

/// Returns how many disks became full.
fn fill_the_disk(options: Options) -> usize {
    let mut failures = 0;
    for capacity in [40_000, 60_000, 90_000, 120_000] {
        let mut twin = Twin::new(capacity, options);
        let mut chance = Random::new(capacity);
        twin.storage.set_capacity(Some(capacity));
        let failed = live_until_it_fails(&mut twin, &mut chance, 60);
        if let Some(message) = failed {
            failures += 1;
            assert!(message.contains("the disk is full"), "{message}");
            assert!(message.contains("free some space"), "{message}");
        }
        // Once there is space the set continues, without reopening.
        twin.storage.set_capacity(None);
        let mut late = 0;
        for _ in 0..12 {
            while let Err(error) = twin.append_draft(&mut chance) {
                // A thread met the full disk earlier; it is reported now.
                assert!(error.to_string().contains("the disk is full"), "{error}");
                late += 1;
            }
        }
        let lanes = if options.compaction == Compaction::Threads { 5 } else { 0 };
        assert!(late <= lanes, "every thread reports once");
        twin.database().flush().unwrap();
        twin.check();
        twin.reopen(None);
    }
    failures
}

#[test]
fn a_second_opener_is_refused() {
    let twin = Twin::new(1, small());
    let error = Database::open(twin.storage.clone(), small()).unwrap_err();
    assert!(error.to_string().contains("in use by"), "{error}");
}

#[test]
fn a_block_that_does_not_stand_on_the_tip_is_refused() {
    let mut twin = Twin::new(1, small());
    let mut chance = Random::new(1);
    let mut draft = twin.draft(&mut chance);
    draft.previous = BlockHash::from_bytes([3; 32]);
    let error = twin.append(&draft.bytes()).unwrap_err();
    assert!(matches!(error, Error::NotNext { .. }), "{error}");
    assert!(error.to_string().contains("rewind first"), "{error}");
    twin.check();
}

#[test]
fn rewinding_stops_where_undo_records_end() {
    let undo = UndoConfig { blocks: 64, segment_size: 1 << 12, cache: 0 };
    let mut twin = Twin::new(1, Options { undo, ..small() });
    let mut chance = Random::new(1);
    for _ in 0..300 {
        twin.append_draft(&mut chance).unwrap();
    }
    twin.database().flush().unwrap();
    let mut rewound = 0;
    let error = loop {
        match twin.rewind() {
            Ok(()) => rewound += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::RewindTooDeep { .. }), "{error}");
    assert!((64..300).contains(&rewound), "{rewound} blocks");
    twin.check();
    let error = twin.database().rewind_to(Height::GENESIS).unwrap_err();
    assert!(matches!(error, Error::RewindTooDeep { .. }), "{error}");
    for _ in 0..20 {
        twin.append_draft(&mut chance).unwrap();
    }
    twin.check();
}

/// Id, secret and parameters are the set's own; shards, threads and memory are the opener's.
#[test]
fn a_set_keeps_what_it_was_made_with() {
    let mut twin = Twin::new(1, small());
    let mut chance = Random::new(1);
    for shards in [1, 8, 2] {
        for _ in 0..10 {
            twin.append_draft(&mut chance).unwrap();
        }
        twin.database().flush().unwrap();
        let other = StoreKey { id: StoreId([8; 16]), secret: Secret::new([9; 16]) };
        let workers = std::num::NonZeroUsize::new(2).unwrap();
        twin.options = Options { shards, workers, ..Options::new(Network::Regtest, other) };
        twin.reopen(None);
    }
    assert!(!twin.database().snapshot().runs().as_slice().is_empty(), "a window of four");
    twin.database = None;
    let options = Options { network: Network::Signet, ..small() };
    let error = Database::open(twin.storage.clone(), options).unwrap_err();
    assert!(error.to_string().contains("not of signet"), "{error}");
}

#[test]
fn an_empty_set_cannot_be_rewound() {
    let mut twin = Twin::new(1, small());
    twin.rewind().unwrap();
    let error = twin.database().rewind().unwrap_err();
    assert!(matches!(error, Error::Empty), "{error}");
}
