//! The embedded engine keeps the contract, on a disk that loses what was not synced.

use std::sync::{Arc, Mutex};

use varve_io::StoreId;
use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_records::contract::Disk;
use varve_records::contract::random::{Walk, walk};
use varve_records::{EmbeddedEngine, EmbeddedOptions, StoreKey};
use varve_runs::Compaction;

const KEY: StoreKey = StoreKey { id: StoreId([3; 16]), secret: [4; 16] };

/// A store in storage that can be cut off.
struct FaultyDisk {
    storage: Mutex<Arc<FaultyStorage>>,
    options: EmbeddedOptions,
    /// What goes wrong while the store is open.
    faults: Vec<FaultRule>,
}

impl FaultyDisk {
    fn new(options: EmbeddedOptions) -> Self {
        let storage = Mutex::new(Arc::new(FaultyStorage::new(1)));
        Self { storage, options, faults: Vec::new() }
    }

    /// Tiny files, so that checkpoints and cleaning happen all the time.
    fn small() -> Self {
        Self::new(EmbeddedOptions {
            cache: 60_000,
            segment_size: 50_000,
            checkpoint_every: 70_000,
            upkeep: Compaction::Inline,
            ..EmbeddedOptions::new(KEY)
        })
    }
}

impl Disk for FaultyDisk {
    type Engine = EmbeddedEngine;

    fn open(&self) -> EmbeddedEngine {
        let mut storage = self.storage.lock().unwrap();
        storage.clear_faults();
        *storage = Arc::new(storage.reopen());
        let engine = EmbeddedEngine::open(storage.clone(), self.options).expect("it opens");
        self.faults.iter().cloned().for_each(|rule| storage.inject(rule));
        engine
    }

    fn crash(&self) {
        let mut storage = self.storage.lock().unwrap();
        let operations = storage.operations();
        let crash = match operations % 3 {
            0 => Crash::LoseAll,
            1 => Crash::KeepAll,
            _ => Crash::Seed(operations as u64),
        };
        *storage = Arc::new(storage.crash(operations, crash));
    }
}

varve_records::engine_contract!(FaultyDisk::small());

/// A store in a directory, which keeps nothing of full files in memory.
struct RealDisk(tempfile::TempDir);

impl Disk for RealDisk {
    type Engine = EmbeddedEngine;

    fn open(&self) -> EmbeddedEngine {
        let options = EmbeddedOptions { cache: 0, ..FaultyDisk::small().options };
        let disk = varve_io::Disk::open(self.0.path()).expect("the directory is there");
        EmbeddedEngine::open(Arc::new(disk), options).expect("it opens")
    }
}

/// Maps, rings and writes past the cache.
#[test]
fn walks_on_a_real_disk_agree_with_the_oracle() {
    for seed in 50..53 {
        let disk = RealDisk(tempfile::tempdir().unwrap());
        walk(&disk, &Walk { seed, steps: 120, reopen: 10 });
    }
}

/// The usual sizes: everything stays in one file.
mod in_one_file {
    use super::{EmbeddedOptions, FaultyDisk, KEY};

    varve_records::engine_contract!(FaultyDisk::new(EmbeddedOptions::new(KEY)));
}

#[test]
fn a_small_engine_refuses_large_bodies() {
    let options = EmbeddedOptions { body_limit: 1_000, ..EmbeddedOptions::new(KEY) };
    let disk = FaultyDisk::new(options);
    varve_records::contract::create::a_body_above_the_limit_is_refused(&disk);
}

#[test]
fn long_walks_agree_with_the_oracle() {
    for seed in 10..22 {
        walk(&FaultyDisk::small(), &Walk { seed, steps: 300, reopen: 5 });
    }
}

/// Calls fail by chance in the middle of batches: what is left is a first part of the batch.
#[test]
fn walks_over_a_failing_disk_are_followed() {
    let calls = [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Rename];
    for (seed, call) in (30..).zip(calls.repeat(3)) {
        let fault = if seed % 2 == 0 { Fault::Io } else { Fault::NoSpace };
        let rule = FaultRule::new(call, When::OneIn(40), fault);
        let disk = FaultyDisk { faults: vec![rule], ..FaultyDisk::small() };
        walk(&disk, &Walk { seed, steps: 200, reopen: 5 });
    }
}
