//! Full disks and failing ones: a clear error, nothing half done, all well after reopening.

use std::sync::Arc;

use varve_io::faulty::{Crash, Fault, FaultRule, Operation as Call, When};
use varve_testdata::Random;
use varve_types::Txid;

use super::size::create;
use super::twin::{Twin, see, small};
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::Engine as _;

/// Fails one call of a kind, the `nth`. Returns whether it struck.
fn fail(call: Call, fault: Fault, nth: usize) -> bool {
    let mut chance = Random::new(nth as u64);
    let twin = Twin::new(small());
    twin.storage.inject(FaultRule::new(call, When::Nth(nth), fault));
    for _ in 0..60 {
        let batch = Twin::batch(&mut chance);
        let before = see(&twin.oracle).unwrap();
        let applied = twin.engine().apply(&twin.context, &batch);
        twin.oracle.apply(&twin.context, &batch).unwrap();
        let Err(error) = applied else { continue };
        let message = error.to_string();
        assert!(message.contains("cannot") || message.contains("full"), "{message}");
        // What readers see is one of the two, and what a new process finds as well.
        let after = see(&twin.oracle).unwrap();
        let seen = see(twin.engine()).unwrap();
        assert!(seen == before || seen == after, "{call:?} {nth}");
        twin.storage.clear_faults();
        let write = create(Txid::from_bytes([0x77; 32]), 1);
        let again = twin.engine().apply(&twin.context, &[write]);
        let written = matches!(call, Call::Write | Call::Sync | Call::SyncDir);
        let poisoned = fault == Fault::Io && written;
        if poisoned {
            let refused = again.unwrap_err().to_string();
            assert!(refused.contains("reopen the store"), "{refused}");
        }
        let Twin { storage, engine, options, .. } = twin;
        drop(engine);
        let cut = storage.crash(storage.operations(), Crash::LoseAll);
        for left in [storage.reopen(), cut] {
            let engine = EmbeddedEngine::open(Arc::new(left), options).unwrap();
            let found = see(&engine).unwrap();
            if poisoned {
                assert!(found == before || found == after, "{call:?} {nth}");
            }
        }
        return true;
    }
    false
}

#[test]
fn every_failed_call_is_reported_and_nothing_is_half_done() {
    let mut struck = 0;
    for call in [Call::Write, Call::Sync, Call::SyncDir, Call::Open, Call::Rename, Call::Truncate] {
        for nth in 0..40 {
            struck += usize::from(fail(call, Fault::Io, nth));
        }
    }
    assert!(struck > 70, "{struck}");
}

#[test]
fn a_full_disk_is_told_and_nothing_is_half_done() {
    let struck = (0..60).filter(|nth| fail(Call::Write, Fault::NoSpace, *nth)).count();
    assert!(struck > 30, "{struck}");
}

/// Once there is space it continues, without reopening.
#[test]
fn a_full_disk_is_not_the_end() {
    for capacity in (3_000..30_000).step_by(1_500) {
        let mut chance = Random::new(capacity);
        let mut twin = Twin::new(small());
        twin.storage.set_capacity(Some(capacity));
        for _ in 0..200 {
            let batch = Twin::batch(&mut chance);
            if let Err(error) = twin.engine().apply(&twin.context, &batch) {
                assert!(error.to_string().contains("the disk is full"), "{error}");
                twin.storage.set_capacity(None);
                // It happened or not: both agree again when it is clear.
                let seen = see(twin.engine()).unwrap();
                if seen != see(&twin.oracle).unwrap() {
                    twin.oracle.apply(&twin.context, &batch).unwrap();
                }
            } else {
                twin.oracle.apply(&twin.context, &batch).unwrap();
            }
        }
        twin.storage.set_capacity(None);
        twin.check();
        twin.reopen();
        twin.check();
    }
}

#[test]
fn a_second_opener_is_refused() {
    let twin = Twin::new(small());
    let error = EmbeddedEngine::open(twin.storage.clone(), small()).unwrap_err();
    assert!(error.to_string().contains("in use by"), "{error}");
}

/// The checkpoint that follows a group cannot be saved. The group is durable all the same.
#[test]
fn failed_upkeep_does_not_fail_what_was_written() {
    let mut chance = Random::new(11);
    let options = EmbeddedOptions { checkpoint_every: 1, ..small() };
    let mut twin = Twin::new(options);
    twin.storage.inject(FaultRule::new(Call::Rename, When::OneIn(1), Fault::Io));
    let trouble = |twin: &Twin| twin.engine().status().unwrap().trouble;
    let mut troubled = 0;
    for _ in 0..40 {
        twin.apply(&Twin::batch(&mut chance));
        troubled += usize::from(trouble(&twin).is_some_and(|what| what.contains("rename")));
    }
    assert!(troubled > 3, "{troubled}");
    twin.check();
    twin.storage.clear_faults();
    for _ in 0..10 {
        twin.apply(&Twin::batch(&mut chance));
    }
    assert_eq!(trouble(&twin), None, "it is tried again");
    twin.reopen();
    twin.check();
}
