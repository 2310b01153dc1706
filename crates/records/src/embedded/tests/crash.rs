//! A power cut after every single operation of a life.
//!
//! The life is lived once. Then the store is opened on what a cut after operation `n` may leave. It
//! must open, with exactly what was acknowledged by then, or with that and the batch under way as a
//! whole: each batch is one group here.

use std::sync::Arc;
use varve_testdata::Random;

use varve_io::faulty::Crash;

use super::twin::{Seen, Twin, operation, see, small};
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::Engine as _;

/// The life, and what was to be seen from which operation of the storage on.
fn life(seed: u64, options: EmbeddedOptions, steps: usize) -> (Twin, Vec<(usize, Seen)>) {
    let mut chance = Random::new(seed);
    let twin = Twin::new(options);
    let mut seen = vec![(twin.storage.operations(), see(&twin.oracle).unwrap())];
    for _ in 0..steps {
        twin.apply(&Twin::batch(&mut chance));
        seen.push((twin.storage.operations(), see(&twin.oracle).unwrap()));
    }
    twin.check();
    (twin, seen)
}

fn cut_everywhere(seed: u64, options: EmbeddedOptions, steps: usize, seeds: u64) {
    let (mut twin, seen) = life(seed, options, steps);
    twin.engine = None;
    for operation in 0..=twin.storage.operations() {
        let by_chance = (0..seeds).map(|seed| Crash::Seed(seed + 100 * operation as u64));
        for crash in [Crash::LoseAll, Crash::KeepAll].into_iter().chain(by_chance) {
            let left = Arc::new(twin.storage.crash(operation, crash));
            let engine = EmbeddedEngine::open(left, options)
                .unwrap_or_else(|error| panic!("after {operation}, {crash:?}: {error}"));
            let found = see(&engine).unwrap();
            let acknowledged = seen.iter().rposition(|(by, _)| *by <= operation).unwrap_or(0);
            let mut allowed = seen.iter().skip(acknowledged).take(2);
            assert!(allowed.any(|(_, seen)| *seen == found), "after {operation}, {crash:?}");
        }
    }
}

#[test]
fn a_cut_at_every_operation_keeps_what_was_acknowledged() {
    cut_everywhere(7, small(), 120, 3);
}

/// A group is several frames here, and many a group several files.
fn tiny() -> EmbeddedOptions {
    EmbeddedOptions { segment_size: 2_000, cache: 0, checkpoint_every: 1, ..small() }
}

#[test]
fn a_cut_at_every_operation_in_tiny_files_keeps_what_was_acknowledged() {
    cut_everywhere(8, tiny(), 40, 3);
}

/// After the cut the life continues, with another cut after it.
#[test]
fn the_life_goes_on_after_a_cut() {
    go_on(small());
    go_on(EmbeddedOptions { checkpoint_every: u64::MAX, ..tiny() });
}

fn go_on(options: EmbeddedOptions) {
    let (twin, _) = life(9, options, 40);
    for cut in (0..twin.storage.operations()).step_by(3) {
        let left = Arc::new(twin.storage.crash(cut, Crash::Seed(cut as u64)));
        let engine = EmbeddedEngine::open(left.clone(), options).unwrap();
        let mut chance = Random::new(cut as u64);
        for _ in 0..5 {
            let batch: Vec<_> = (0..5).map(|_| operation(&mut chance)).collect();
            engine.apply(&twin.context, &batch).unwrap();
        }
        let expected = see(&engine).unwrap();
        drop(engine);
        let left = Arc::new(left.crash(left.operations(), Crash::LoseAll));
        let engine = EmbeddedEngine::open(left, options).unwrap();
        assert_eq!(see(&engine).unwrap(), expected, "after {cut}");
    }
}
