//! Random histories against the oracle, on few keys, so that the rare cases are common: coins made
//! again after a reorganisation, coins overwritten, deaths and rebirths while a flush runs.

use super::model::{Model, Moment, outpoint};
use crate::hasher::OutpointHasher;
use crate::window::{Step, StepError, WindowConfig};
use varve_testdata::Random;

const KEYS: u64 = 24;

fn history(seed: u64, mut model: Model, steps: usize) -> Model {
    let mut random = Random::new(seed);
    let mut held: Vec<Moment> = vec![model.moment()];
    for _ in 0..steps {
        match random.index(12) {
            0..=4 => connect(&mut model, &mut random),
            5..=6 => (0..=random.index(4)).for_each(|_| model.disconnect()),
            7 => model.window.seal(),
            8 if model.flush.is_none() => model.flush = model.window.begin_flush(),
            8 if random.one_in(4) => {
                model.window.cancel_flush();
                model.flush = None;
                model.flush_ready = false;
            }
            9..=10 => model.flush_ready = model.flush.is_some(),
            _ => refused(&mut model, &mut random),
        }
        if random.one_in(3) {
            held.push(model.moment());
        }
        if held.len() > 8 {
            held.swap_remove(random.index(8));
        }
    }
    held.push(model.moment());
    held.iter().for_each(|moment| moment.check((0..KEYS).map(outpoint)));
    model.check_runs();
    model
}

fn some_keys(random: &mut Random, count: usize) -> Vec<varve_types::Outpoint> {
    let mut keys: Vec<_> = (0..count).map(|_| outpoint(random.bits() % KEYS)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn connect(model: &mut Model, random: &mut Random) {
    let count = random.index(6);
    let mut spent = some_keys(random, count);
    spent.retain(|key| model.set.contains_key(key));
    let count = random.index(6);
    let mut created = some_keys(random, count);
    // Overwriting is rare on real chains, but not here.
    created.retain(|key| !model.set.contains_key(key) || random.one_in(3));
    model.connect(&spent, &created).expect("the block is sound");
}

/// A block with something wrong in it changes nothing.
fn refused(model: &mut Model, random: &mut Random) {
    let before = model.moment();
    let count = random.index(6);
    let mut keys = some_keys(random, count);
    keys.retain(|key| model.set.contains_key(key));
    let mut spends: Vec<_> = keys.iter().map(|key| before.spend(key)).collect();
    let Some(twice) = spends.first().copied() else { return };
    spends.insert(random.index(spends.len() + 1), twice);
    let sequence = model.sequence.next().unwrap();
    let height = varve_types::Height::GENESIS;
    let replaces = model.flush.as_ref().filter(|_| model.flush_ready).map(|flush| flush.pane());
    let step = Step { sequence, height, spends: &spends, replaces };
    let error = model.window.apply_entries(&step, &[], model.workers).unwrap_err();
    assert_eq!(error, StepError::SpentTwice { outpoint: twice.outpoint });
    model.moment().check((0..KEYS).map(outpoint));
    // The sequence is not reused.
    model.sequence = sequence;
}

/// How many histories: a share of them, or as many as `VARVE_SEQUENCES` says.
fn sequences() -> usize {
    std::env::var("VARVE_SEQUENCES").map_or(1500, |count| count.parse().unwrap())
}

#[test]
fn histories_agree_with_the_oracle() {
    let mut flushed = 0;
    for seed in 0..sequences() {
        let config = WindowConfig { shards: 1 << (seed % 3), pane_steps: 2 + seed % 7 };
        flushed += history(seed as u64, Model::new(config), 60).runs();
    }
    assert!(flushed > 1000, "histories reach the runs: {flushed}");
}

#[test]
fn histories_agree_when_all_hashes_are_equal() {
    for seed in 0..200 {
        let config = WindowConfig { shards: 2, pane_steps: 4 };
        history(seed, Model::with_hasher(config, OutpointHasher::constant()), 60);
    }
}
