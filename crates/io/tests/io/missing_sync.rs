//! Does the crash storage catch what it is there for? A tiny key-value log is written correctly
//! and with three classic mistakes. The correct one must survive a crash at every operation; each
//! mistake must be caught.
//!
//! The log is a file of 12-byte entries (key u32, value u32, checksum u32) and, every eighth
//! entry, is rewritten with the live pairs only: a new file renamed over the old one.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "in a test a panic is the report"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching, Checksum, Error, File, FileOffset, Result, Storage};

const NAME: &str = "pairs";
const ENTRY: usize = 12;

type Pairs = BTreeMap<u32, u32>;

/// What is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    NoDataSync,
    NoDirectorySyncAfterRename,
    AcknowledgeBeforeSync,
}

struct PairLog<'a> {
    storage: &'a dyn Storage,
    file: Arc<dyn File>,
    end: FileOffset,
    pairs: Pairs,
    mistake: Mistake,
}

impl<'a> PairLog<'a> {
    fn open(storage: &'a dyn Storage, mistake: Mistake) -> Result<Self> {
        let file = match storage.open(NAME, Access::Write, Caching::Buffered) {
            Err(Error::NotFound { .. }) => {
                let file = storage.open(NAME, Access::Create, Caching::Buffered)?;
                storage.sync_dir()?;
                file
            }
            opened => opened?,
        };
        let mut pairs = Pairs::new();
        let mut end = FileOffset::ZERO;
        let mut entry = [0; ENTRY];
        while end.get() + ENTRY as u64 <= file.size()? {
            file.read_at(end, &mut entry)?;
            let Some((key, value)) = decode(&entry) else { break };
            pairs.insert(key, value);
            end = end.plus(ENTRY as u64);
        }
        // The cut must be durable before anything is written after it.
        file.truncate(end)?;
        file.sync()?;
        Ok(Self { storage, file, end, pairs, mistake })
    }

    /// Stores a pair. `acknowledge` is called when the caller may rely on it.
    fn put(&mut self, key: u32, value: u32, mut acknowledge: impl FnMut()) -> Result<()> {
        self.file.write_at(self.end, &encode(key, value))?;
        self.end = self.end.plus(ENTRY as u64);
        self.pairs.insert(key, value);
        if self.mistake == Mistake::AcknowledgeBeforeSync {
            acknowledge();
        }
        if self.mistake != Mistake::NoDataSync {
            self.file.sync()?;
        }
        if self.mistake != Mistake::AcknowledgeBeforeSync {
            acknowledge();
        }
        if self.end.get() >= 8 * ENTRY as u64 { self.rewrite() } else { Ok(()) }
    }

    fn rewrite(&mut self) -> Result<()> {
        let file = self.storage.open("pairs.tmp", Access::Replace, Caching::Buffered)?;
        let bytes: Vec<u8> = self.pairs.iter().flat_map(|(k, v)| encode(*k, *v)).collect();
        file.write_at(FileOffset::ZERO, &bytes)?;
        file.sync()?;
        self.storage.rename("pairs.tmp", NAME)?;
        if self.mistake != Mistake::NoDirectorySyncAfterRename {
            self.storage.sync_dir()?;
        }
        self.file = file;
        self.end = FileOffset::new(bytes.len() as u64);
        Ok(())
    }
}

fn encode(key: u32, value: u32) -> [u8; ENTRY] {
    let body = u64::from(key) | u64::from(value) << 32;
    let crc = Checksum::new().with_u64(body).get();
    let mut entry = [0; ENTRY];
    entry[..8].copy_from_slice(&body.to_le_bytes());
    entry[8..].copy_from_slice(&crc.to_le_bytes());
    entry
}

fn decode(entry: &[u8; ENTRY]) -> Option<(u32, u32)> {
    let field = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
    let (key, value) = (field(0), field(4));
    (encode(key, value) == *entry).then_some((key, value))
}

/// Runs the log, crashes it after every operation, and counts the crashes that lost something.
fn losses(mistake: Mistake) -> usize {
    let storage = FaultyStorage::new(0);
    // After each acknowledged put: operations so far, and what must be there from then on.
    let mut acknowledged: Vec<(usize, Pairs)> = vec![(0, Pairs::new())];
    let mut log = PairLog::open(&storage, mistake).unwrap();
    for step in 0..40_u32 {
        let (key, value) = (step % 5, 1000 + step);
        let mut promised = acknowledged.last().unwrap().1.clone();
        promised.insert(key, value);
        let mut at = 0;
        log.put(key, value, || at = storage.operations()).unwrap();
        acknowledged.push((at, promised));
    }
    let mut losses = 0;
    for n in 0..=storage.operations() {
        let promised = acknowledged.partition_point(|(at, _)| *at <= n);
        let promised = &acknowledged[promised.saturating_sub(1)].1;
        for crash in Crash::ways(12) {
            let after = storage.crash(n, crash);
            let found = PairLog::open(&after, mistake).unwrap().pairs;
            // A later value of a key is fine: it was written and not yet acknowledged.
            let kept = promised.iter().all(|(key, value)| found.get(key) >= Some(value));
            losses += usize::from(!kept);
        }
    }
    losses
}

#[test]
fn the_correct_log_survives_every_crash() {
    assert_eq!(losses(Mistake::None), 0);
}

#[test]
fn a_missing_data_sync_is_caught() {
    assert!(losses(Mistake::NoDataSync) > 0);
}

#[test]
fn a_missing_directory_sync_after_a_rename_is_caught() {
    assert!(losses(Mistake::NoDirectorySyncAfterRename) > 0);
}

#[test]
fn acknowledging_before_the_sync_is_caught() {
    assert!(losses(Mistake::AcknowledgeBeforeSync) > 0);
}
