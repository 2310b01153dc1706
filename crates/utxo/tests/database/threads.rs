//! Readers in other threads see one whole step each, whatever the writer does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use varve_testdata::Random;
use varve_utxo::parts::Sequence;
use varve_utxo::{Options, Version};

use crate::twin::{State, Twin, oracle_state, state, threaded};

/// Versions by their steps, and what was read of them at once.
type Seen = HashMap<Sequence, (Arc<Version>, State)>;

#[test]
fn readers_see_whole_steps() {
    let mut twin = Twin::new(5, Options { memory: 40_000, ..threaded() });
    let mut chance = Random::new(5);
    let reader = twin.database().reader();
    let done = Arc::new(AtomicBool::new(false));
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (reader, done, seen) = (reader.clone(), Arc::clone(&done), Arc::clone(&seen));
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let version = reader.snapshot();
                    let coins = state(&version);
                    seen.lock().unwrap().insert(version.sequence(), (version, coins));
                }
            })
        })
        .collect();
    let mut states = HashMap::new();
    for step in 0..300 {
        twin.append_draft(&mut chance).unwrap();
        states.insert(twin.database().snapshot().sequence(), oracle_state(&twin.oracle));
        if step % 7 == 6 {
            for _ in 0..3 {
                twin.rewind().unwrap();
                states.insert(twin.database().snapshot().sequence(), oracle_state(&twin.oracle));
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 10, "{} steps were seen", seen.len());
    for (sequence, (version, coins)) in seen.iter() {
        let Some(expected) = states.get(sequence) else { continue };
        assert_eq!(coins, expected, "step {sequence}, while the writer went on");
        assert_eq!(state(version), *expected, "step {sequence}, long after");
    }
}
