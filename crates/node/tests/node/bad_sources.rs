//! Sources that go on and on: they are blamed or left alone, and what they say is told once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use varve_node::source::{HeaderBytes, SourceError};
use varve_node::{Event, Giver, Organizer, Report, Source, SyncOptions};
use varve_types::BlockHash;

use crate::miner::{Mined, young_options};
use crate::rig::{disk, sync_options};

/// A source that answers every question with the same events, until it is blamed or gives up.
struct Stubborn {
    answer: Vec<Event>,
    events: VecDeque<Event>,
    seeks: usize,
    wants: usize,
    blamed: bool,
    patience: usize,
}

impl Stubborn {
    fn new(answer: Vec<Event>, patience: usize) -> Self {
        let events = VecDeque::new();
        Self { answer, events, seeks: 0, wants: 0, blamed: false, patience }
    }
}

impl Source for Stubborn {
    fn seek(&mut self, _: &[BlockHash]) -> Result<(), SourceError> {
        self.seeks += 1;
        self.events.extend(self.answer.iter().cloned());
        Ok(())
    }

    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.wants += 1;
        self.events.extend(hashes.iter().map(|hash| Event::Missing { hash: *hash, giver }));
        Ok(())
    }

    fn next_event(&mut self, _: Duration) -> Result<Event, SourceError> {
        let left = self.patience.checked_sub(1);
        let over = std::io::Error::other("asked too often");
        self.patience = left.ok_or(SourceError::Io { path: "stubborn".into(), source: over })?;
        Ok(self.events.pop_front().unwrap_or(if self.blamed {
            Event::HeadersDone
        } else {
            Event::Idle
        }))
    }

    fn blame(&mut self, _: Giver, reason: &str) {
        assert!(reason.contains("link to none"), "{reason}");
        self.blamed = true;
        self.events.clear();
    }
}

fn headers(blocks: &[Mined]) -> Vec<HeaderBytes> {
    blocks.iter().map(|block| *block.bytes.first_chunk().unwrap()).collect()
}

/// Headers above one that nobody gives: the giver is asked for those between, and at last blamed.
#[test]
fn headers_that_link_to_nothing_for_ever() {
    let chain = Mined::genesis().chain(1, 5);
    let answer = Event::Headers { headers: headers(&chain[3..]), giver: giver() };
    let mut source = Stubborn::new(vec![answer], 1000);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    node.sync(&mut source, &sync_options(), &mut |_| ()).unwrap();
    assert!(source.blamed && (5..50).contains(&source.seeks), "{} seeks", source.seeks);
}

/// A block that nobody has: it is asked for again while the source is followed, not all the time,
/// and told once.
#[test]
fn a_block_that_nobody_has_is_told_once() {
    let chain = Mined::genesis().chain(1, 2);
    let answer = Event::Headers { headers: headers(&chain), giver: giver() };
    let mut source = Stubborn::new(vec![answer, Event::HeadersDone], 600);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    // Each look at the clock takes 10 milliseconds.
    let time = AtomicU64::new(0);
    let clock = move || Duration::from_millis(10 * time.fetch_add(1, Ordering::Relaxed));
    let options = SyncOptions { follow: true, clock: Arc::new(clock), ..sync_options() };
    let mut told = 0;
    let ended = node.sync(&mut source, &options, &mut |report| {
        told += usize::from(matches!(report, Report::Missing { .. }));
    });
    assert!(ended.unwrap_err().to_string().contains("asked too often"));
    assert_eq!(told, 1, "the one above it is not worth a sentence");
    assert!((3..100).contains(&source.wants), "{} times", source.wants);
}

const fn giver() -> Giver {
    Giver::ONLY
}
