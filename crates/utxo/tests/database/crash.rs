//! A power cut after every single operation of a short life with reorganisations.
//!
//! The life is lived once. Then the database is opened on what a cut after operation `n` may leave.
//! It must open, at exactly the coins of a step it had been at, no earlier than the last `flush`
//! that had returned by then; and replaying the chain must lead to the coins of the end.

use varve_io::faulty::Crash;
use varve_testdata::Random;
use varve_utxo::parts::Sequence;
use varve_utxo::{Compaction, Database, Options};

use crate::twin::{Twin, small, state, threaded};

/// The sequence that was durable, by operation.
type Promises = Vec<(usize, Sequence)>;

fn life(seed: u64, options: Options, steps: usize) -> (Twin, Promises) {
    let mut chance = Random::new(seed);
    let mut twin = Twin::new(seed, options);
    let mut promises = vec![(0, Sequence::ZERO)];
    for step in 0..steps {
        twin.append_draft(&mut chance).unwrap();
        if step % 9 == 8 {
            for _ in 0..1 + chance.index(5) {
                twin.rewind().unwrap();
            }
        }
        if step % 7 == 3 {
            let before = twin.database().checkpoint().sequence;
            twin.database().begin_flush().unwrap();
            let after = twin.database().checkpoint().sequence;
            assert!(options.compaction == Compaction::Threads || after > before, "done at once");
        }
        if step % 11 == 10 {
            let at = twin.database().flush().unwrap().sequence;
            promises.push((twin.storage.operations(), at));
        }
        let at = twin.database().checkpoint().sequence;
        assert!(promises.last().unwrap().1 <= at, "a checkpoint never goes back");
        promises.push((twin.storage.operations(), at));
    }
    twin.check();
    (twin, promises)
}

/// Opens what each cut leaves; returns the number of different checkpoints seen.
fn cut_everywhere(seed: u64, options: Options, steps: usize, seeds: u64) -> usize {
    let (mut twin, promises) = life(seed, options, steps);
    let mut seen = std::collections::BTreeSet::new();
    twin.database = None;
    for operation in 0..=twin.storage.operations() {
        let by_chance = (0..seeds).map(|seed| Crash::Seed(seed + 100 * operation as u64));
        for crash in [Crash::LoseAll, Crash::KeepAll].into_iter().chain(by_chance) {
            let left = std::sync::Arc::new(twin.storage.crash(operation, crash));
            let database = Database::open(left, options)
                .unwrap_or_else(|error| panic!("after {operation}, {crash:?}: {error}"));
            let version = database.snapshot();
            let at = version.sequence();
            assert_eq!(state(&version), *twin.history[&at], "after {operation}, {crash:?}");
            let promised = promises.iter().rfind(|(by, _)| *by <= operation).unwrap().1;
            assert!(at >= promised, "after {operation}, {crash:?}: step {at}, not {promised}");
            seen.insert(at);
        }
    }
    seen.len()
}

#[test]
fn a_cut_at_every_operation_leaves_a_checkpoint() {
    assert!(cut_everywhere(7, small(), 45, 2) > 10);
}

#[test]
fn a_cut_at_every_operation_leaves_a_checkpoint_without_a_window() {
    let options = Options { memory: 0, ..small() };
    assert!(cut_everywhere(8, options, 20, 1) > 10);
}

/// Whatever the threads were doing at the cut. Each run of the test cuts at other places.
#[test]
fn a_cut_at_every_operation_leaves_a_checkpoint_with_threads() {
    assert!(cut_everywhere(7, threaded(), 45, 2) > 5);
    let options = Options { memory: 0, ..threaded() };
    assert!(cut_everywhere(8, options, 20, 1) > 5);
}

/// After the cut the owner goes down to the fork and up again, and everything continues.
#[test]
fn the_life_goes_on_after_a_cut() {
    for options in [small(), threaded()] {
        go_on_after_a_cut(options);
    }
}

fn go_on_after_a_cut(options: Options) {
    let operations = life(9, options, 40).0.storage.operations();
    for operation in (0..operations).step_by(7) {
        let (mut twin, _) = life(9, options, 40);
        // With threads the next life may come to fewer operations.
        let operation = operation.min(twin.storage.operations());
        let left = twin.storage.crash(operation, Crash::Seed(operation as u64));
        twin.reopen(Some(left));
        let mut chance = Random::new(operation as u64);
        for _ in 0..6 {
            twin.append_draft(&mut chance).unwrap();
            twin.rewind().unwrap();
            twin.append_draft(&mut chance).unwrap();
        }
        twin.check();
        twin.reopen(None);
    }
}
