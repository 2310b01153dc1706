//! Random lives beside the memory engine.

use super::twin::{Twin, small};
use crate::embedded::EmbeddedOptions;
use varve_testdata::Random;

fn live(seed: u64, options: EmbeddedOptions, steps: u32) {
    let mut chance = Random::new(seed);
    let mut twin = Twin::new(options);
    for step in 0..steps {
        twin.context.retention = if step % 50 < 45 { 5 } else { 0 };
        twin.apply(&Twin::batch(&mut chance));
        if step % 7 == 0 {
            twin.check();
        }
        if step % 61 == 60 {
            twin.reopen();
            twin.check();
        }
    }
    twin.check();
}

#[test]
fn random_lives_agree_with_the_memory_engine() {
    for seed in 0..30 {
        live(seed, small(), 200);
    }
}

/// One shard and files so small that nearly every group begins one.
#[test]
fn random_lives_agree_in_tiny_files() {
    for seed in 100..110 {
        let options =
            EmbeddedOptions { segment_size: 500, cache: 0, checkpoint_every: 1, ..small() };
        live(seed, options, 150);
    }
}

#[test]
fn random_lives_agree_without_checkpoints_and_cleaning() {
    for seed in 200..205 {
        let options =
            EmbeddedOptions { segment_size: 1 << 30, checkpoint_every: u64::MAX, ..small() };
        live(seed, options, 200);
    }
}
