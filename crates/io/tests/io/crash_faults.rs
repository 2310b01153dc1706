//! A log that lives through full disks, failed syncs, short transfers and killed processes, and
//! then a power cut after every operation of that life. Nothing acknowledged is lost, and a failed
//! append leaves nothing behind that could be taken for a frame.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "in a test a panic is the report"
)]

use std::sync::Arc;

use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{Error, GlobalOffset, Kind, Result, Segments, SegmentsConfig, StoreId};

type Frames = Vec<Vec<u8>>;

/// After `operations`: what is promised, and every sequence the disk may hold a beginning of.
struct Moment {
    operations: usize,
    durable: GlobalOffset,
    promised: usize,
    candidates: Vec<Frames>,
}

struct Life {
    storage: Arc<FaultyStorage>,
    log: Option<Segments>,
    /// The frames of the log, and how many of them are durable up to where.
    frames: Frames,
    durable: GlobalOffset,
    promised: usize,
    /// What failed appends may have left on the disk.
    leftovers: Vec<Frames>,
    moments: Vec<Moment>,
    random: u64,
}

fn config() -> SegmentsConfig {
    let (kind, store) = (Kind(*b"TESTKIND"), StoreId([5; 16]));
    SegmentsConfig { prefix: "log".to_owned(), kind, store, segment_size: 700 }
}

fn open(storage: &Arc<FaultyStorage>, durable: GlobalOffset) -> Result<Segments> {
    Segments::open(Arc::<FaultyStorage>::clone(storage), config(), durable)
}

fn frames(log: &Segments) -> Frames {
    log.reader().frames(log.start()).map(|frame| frame.unwrap().to_vec()).collect()
}

fn is_beginning(found: &Frames, of: &[Frames]) -> bool {
    of.iter().any(|candidate| candidate.starts_with(found))
}

impl Life {
    fn new(seed: u64) -> Self {
        let storage = Arc::new(FaultyStorage::new(seed));
        Self {
            storage,
            log: None,
            frames: Vec::new(),
            durable: GlobalOffset::ZERO,
            promised: 0,
            leftovers: Vec::new(),
            moments: Vec::new(),
            random: seed,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (self.random >> 33) % limit
    }

    fn note(&mut self, extra: Option<&Frames>) {
        let mut candidates = self.leftovers.clone();
        candidates.push(self.frames.clone());
        candidates.extend(extra.cloned());
        let Self { durable, promised, .. } = *self;
        let operations = self.storage.operations();
        self.moments.push(Moment { operations, durable, promised, candidates });
    }

    /// Opens the log unless it is open, in a new process each time, until it succeeds.
    fn start_process(&mut self) {
        if self.log.is_some() {
            return;
        }
        while self.log.is_none() {
            self.storage = Arc::new(self.storage.reopen());
            self.log = open(&self.storage, self.durable).inspect_err(harmless).ok();
        }
        let found = frames(self.log.as_ref().unwrap());
        let mut candidates = self.leftovers.clone();
        candidates.push(self.frames.clone());
        assert!(found.len() >= self.promised && is_beginning(&found, &candidates));
        self.frames = found;
        self.leftovers.clear();
        self.note(None);
    }

    fn step(&mut self) {
        self.start_process();
        match self.below(10) {
            0 => self.log = None,
            1..=3 => self.sync(),
            _ => self.append(),
        }
    }

    fn append(&mut self) {
        let count = 1 + self.below(4);
        let mut attempt = self.frames.clone();
        for _ in 0..count {
            let (byte, len) = (self.below(256), self.below(300));
            attempt.push(vec![u8::try_from(byte).unwrap(); usize::try_from(len).unwrap()]);
        }
        self.note(Some(&attempt));
        let new: Vec<&[u8]> = attempt[self.frames.len()..].iter().map(Vec::as_slice).collect();
        let log = self.log.as_mut().unwrap();
        match log.append(&new) {
            Ok(_) => {
                self.frames = attempt;
                self.leftovers.clear();
            }
            Err(error) => {
                assert_eq!(frames(log), self.frames, "a failed append shows nothing");
                self.leftovers.push(attempt);
                self.fail(&error);
            }
        }
        self.note(None);
    }

    fn sync(&mut self) {
        match self.log.as_mut().unwrap().sync() {
            Ok(durable) => {
                self.durable = durable;
                self.promised = self.frames.len();
                self.leftovers.clear();
            }
            Err(error) => self.fail(&error),
        }
        self.note(None);
    }

    /// The process survives a full disk; anything else ends it.
    fn fail(&mut self, error: &Error) {
        harmless(error);
        if !error.is_disk_full() {
            self.log = None;
        }
    }
}

fn harmless(error: &Error) {
    let expected =
        matches!(error, Error::DiskFull { .. } | Error::Io { .. } | Error::Poisoned { .. });
    assert!(expected, "{error}");
}

fn inject(storage: &FaultyStorage) {
    for (operation, fault, count) in [
        (Operation::Write, Fault::NoSpace, 12),
        (Operation::Write, Fault::Short, 5),
        (Operation::Write, Fault::Interrupted, 9),
        (Operation::Read, Fault::Short, 5),
        (Operation::Open, Fault::NoSpace, 30),
        (Operation::Truncate, Fault::NoSpace, 20),
        (Operation::Sync, Fault::Io, 15),
        (Operation::SyncDir, Fault::Io, 25),
    ] {
        storage.inject(FaultRule::new(operation, When::OneIn(count), fault));
    }
}

#[test]
fn nothing_acknowledged_is_lost_in_a_hard_life() {
    let (mut operations, mut promised) = (0, 0);
    for seed in 0..60 {
        let mut life = Life::new(seed);
        inject(&life.storage);
        (0..40).for_each(|_| life.step());
        let storage = &life.storage;
        operations += storage.operations();
        promised += life.promised;
        for n in 0..=storage.operations() {
            let known = life.moments.partition_point(|moment| moment.operations <= n);
            let Some(index) = known.checked_sub(1) else { continue };
            // Between two moments the disk may hold a state between them.
            let moment = &life.moments[index];
            let mut candidates = moment.candidates.clone();
            candidates
                .extend(life.moments.get(known).into_iter().flat_map(|m| m.candidates.clone()));
            for crash in [Crash::LoseAll, Crash::Seed(seed + n as u64), Crash::Seed(!seed)] {
                let after = Arc::new(storage.crash(n, crash));
                let log = open(&after, moment.durable).unwrap_or_else(|error| {
                    panic!("life {seed}, operation {n}, {crash:?}: {error}")
                });
                let found = frames(&log);
                assert!(found.len() >= moment.promised, "life {seed}, operation {n}, {crash:?}");
                assert!(is_beginning(&found, &candidates), "life {seed}, operation {n}, {crash:?}");
            }
        }
    }
    assert!(operations > 5000 && promised > 500, "{operations} operations, {promised} frames");
}
