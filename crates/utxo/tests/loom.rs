//! The publication protocol under a model checker: every order in which a reader may run beside the
//! writer, and every value that relaxed atomics may give it.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --release -p varve-utxo --test loom
//! ```
//!
//! The writer makes a few steps and publishes each. A reader takes a version at any instant and
//! must see exactly the set of its sequence, as often as it looks, whatever the writer is doing. In
//! a build without `--cfg loom` this file is empty.

#![cfg(loom)]

use std::num::NonZeroUsize;

use loom::sync::{Arc, Mutex};
use varve_types::{Amount, Coin, Height, Outpoint, Txid};
use varve_utxo::parts::{
    Entry, Lookup, OutpointHasher, Sequence, Spend, Step, Window, WindowConfig, WindowVersion,
};

fn outpoint(number: u8) -> Outpoint {
    Outpoint::new(Txid::from_bytes([number; 32]), 0)
}

fn add(number: u8, birth: u32) -> Entry<'static> {
    let (height, value) = (Height::new(birth), Amount::from_sat(u64::from(number)));
    let coin = Coin { height, coinbase: false, value, script: &[] };
    Entry::add(outpoint(number), Sequence::new(birth), coin)
}

struct Writer {
    window: Window,
    published: Arc<Mutex<Arc<WindowVersion>>>,
}

impl Writer {
    fn new() -> Self {
        let config = WindowConfig { shards: 1, pane_steps: 8 };
        let window = Window::new(config, OutpointHasher::new(&[1; 16]), Sequence::ZERO);
        let published = Arc::new(Mutex::new(window.version().clone()));
        Self { window, published }
    }

    fn spend(&self, number: u8, birth: u32) -> Spend {
        let mut found = Vec::new();
        self.window.version().lookup(&[outpoint(number)], &mut found);
        let Some(Lookup::Found(found)) = found.pop() else { panic!("{number} is there") };
        let (outpoint, birth) = (outpoint(number), Sequence::new(birth));
        Spend { outpoint, birth, location: Some(found.location) }
    }

    fn step(&mut self, sequence: u32, adds: &[Entry<'_>], spends: &[Spend]) {
        let (sequence, height) = (Sequence::new(sequence), Height::new(sequence));
        let step = Step { sequence, height, spends, replaces: None };
        let version =
            self.window.apply_entries(&step, adds, NonZeroUsize::MIN).expect("the step is sound");
        *self.published.lock().expect("nobody panics") = version;
    }
}

/// The births of coins 1 and 2 that a version sees.
fn births(version: &WindowVersion) -> [Option<u32>; 2] {
    [1, 2].map(|number| {
        let mut found = Vec::new();
        version.lookup(&[outpoint(number)], &mut found);
        match found.pop() {
            Some(Lookup::Found(found)) => {
                assert_eq!(found.coin.value.to_sat(), u64::from(number));
                Some(found.birth.to_u32())
            }
            _ => None,
        }
    })
}

fn expected(version: &WindowVersion) -> [Option<u32>; 2] {
    match version.sequence().to_u32() {
        1 => [Some(1), None],
        2 => [None, Some(2)],
        3 => [Some(1), None],
        other => panic!("no version of sequence {other} was published"),
    }
}

/// Step 1 makes coin 1. Step 2 spends it and makes coin 2. Step 3 undoes step 2.
#[test]
fn a_reader_sees_the_moment_of_its_version() {
    loom::model(|| {
        let mut writer = Writer::new();
        writer.step(1, &[add(1, 1)], &[]);
        let published = Arc::clone(&writer.published);
        let reader = loom::thread::spawn(move || {
            let version = published.lock().expect("nobody panics").clone();
            assert_eq!(births(&version), expected(&version));
            assert_eq!(births(&version), expected(&version), "and again");
        });
        let spend = writer.spend(1, 1);
        writer.step(2, &[add(2, 2)], &[spend]);
        let spend = writer.spend(2, 2);
        writer.step(3, &[add(1, 1)], &[spend]);
        reader.join().expect("the reader saw what it should");
    });
}

/// A step that is refused after it has killed and inserted: no reader notices.
#[test]
fn a_refused_step_is_never_seen() {
    loom::model(|| {
        let mut writer = Writer::new();
        writer.step(1, &[add(1, 1)], &[]);
        let version = writer.window.version().clone();
        let reader = loom::thread::spawn(move || {
            assert_eq!(births(&version), [Some(1), None]);
            assert_eq!(births(&version), [Some(1), None], "and again");
        });
        let spend = writer.spend(1, 1);
        let twice = [add(2, 2), add(2, 2)];
        let (sequence, height) = (Sequence::new(2), Height::new(2));
        let step = Step { sequence, height, spends: &[spend], replaces: None };
        writer
            .window
            .apply_entries(&step, &twice, NonZeroUsize::MIN)
            .expect_err("a coin is made twice");
        assert_eq!(births(writer.window.version()), [Some(1), None]);
        reader.join().expect("the reader saw what it should");
    });
}
