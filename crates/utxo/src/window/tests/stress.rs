//! Readers in other threads, at versions they hold as long as they like, while the window moves on.
//!
//! A reader takes the latest moment, or one it has kept, and adds up a checksum of the coins it
//! finds among all keys. It must be that of the set at the moment's sequence. Meanwhile the writer
//! connects, disconnects, seals panes, flushes them and gives them up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use varve_testdata::Random;

use super::model::{Model, Moment, OwnCoin, outpoint};
use crate::window::WindowConfig;

const KEYS: u64 = 600;

/// A coin's part of the checksum; the whole is their sum.
fn part(outpoint: &varve_types::Outpoint, birth: varve_runs::Sequence, coin: &OwnCoin) -> u64 {
    let mut bytes = Vec::new();
    coin.coin().write_for_hash(outpoint, &mut bytes);
    let start = u64::from(birth.to_u32());
    bytes.iter().fold(start, |sum, byte| Random::new(sum ^ u64::from(*byte)).bits())
}

fn read(published: &Mutex<Moment>, done: &AtomicBool, checks: &AtomicU64, seed: u64) {
    let mut random = Random::new(seed);
    let mut held: Vec<Moment> = Vec::new();
    while !done.load(Ordering::Relaxed) {
        held.push(published.lock().unwrap().clone());
        if held.len() > 6 {
            held.swap_remove(random.index(6));
        }
        let moment = &held[random.index(held.len())];
        let expected: u64 = moment
            .set
            .iter()
            .fold(0, |sum, (key, (birth, coin))| sum.wrapping_add(part(key, *birth, coin)));
        let found = (0..KEYS).map(outpoint).filter_map(|key| {
            let (birth, coin) = moment.find(&key)?;
            Some(part(&key, birth, &coin))
        });
        let found = found.fold(0, u64::wrapping_add);
        assert_eq!(found, expected, "at sequence {}", moment.window.sequence());
        if random.one_in(4) {
            moment.check(std::iter::empty());
        }
        checks.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_see_their_moment_whatever_the_writer_does() {
    let mut model = Model::new(WindowConfig { shards: 4, pane_steps: 12 });
    model.workers = std::num::NonZeroUsize::new(2).unwrap();
    let published = Mutex::new(model.moment());
    let (done, checks) = (AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (published, done, checks) = (&published, &done, &checks);
            scope.spawn(move || read(published, done, checks, seed));
        }
        let mut random = Random::new(77);
        let mut step = 0;
        while step < 400 || (checks.load(Ordering::Relaxed) < 200 && step < 20_000) {
            step += 1;
            match random.index(10) {
                0..=5 => {
                    let some = |random: &mut Random| -> Vec<_> {
                        (0..KEYS).filter(|_| random.one_in(8)).map(outpoint).collect()
                    };
                    let (mut spent, mut created) = (some(&mut random), some(&mut random));
                    spent.retain(|key| model.set.contains_key(key));
                    created.retain(|key| !model.set.contains_key(key));
                    model.connect(&spent, &created).unwrap();
                }
                6 => (0..=random.index(5)).for_each(|_| model.disconnect()),
                7 => model.window.seal(),
                8 if model.flush.is_none() => model.flush = model.window.begin_flush(),
                _ => model.flush_ready = model.flush.is_some(),
            }
            *published.lock().unwrap() = model.moment();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(checks.load(Ordering::Relaxed) >= 200, "the readers had their turn");
    assert!(model.runs() > 3);
}
