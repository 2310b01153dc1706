//! A followed source that lacks the blocks of known headers is asked again, less and less often.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use varve_node::source::HeaderBytes;
use varve_node::{Event, Giver, Organizer, Source, SourceError, SyncOptions, Verify};
use varve_types::BlockHash;

use crate::miner::{Mined, young_options};
use crate::rig::{disk, sync_options};

const BLOCKS: usize = 3000;
/// How long it is followed, by its own clock.
const END: Duration = Duration::from_secs(100);

/// Gives headers and no block. The clock of the sync goes on while the source has nothing to say.
struct Empty {
    headers: Vec<HeaderBytes>,
    events: VecDeque<Event>,
    clock: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    asked: Vec<BlockHash>,
}

impl Source for Empty {
    fn seek(&mut self, _: &[BlockHash]) -> Result<(), SourceError> {
        let headers = std::mem::take(&mut self.headers);
        if !headers.is_empty() {
            self.events.push_back(Event::Headers { headers, giver: Giver::ONLY });
        }
        self.events.push_back(Event::HeadersDone);
        Ok(())
    }

    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.asked.extend(hashes);
        self.events.extend(hashes.iter().map(|hash| Event::Missing { hash: *hash, giver }));
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        let step = u64::try_from(timeout.as_millis()).unwrap().clamp(1, 100);
        let now = Duration::from_millis(self.clock.fetch_add(step, Ordering::Relaxed) + step);
        self.stop.store(now >= END, Ordering::Relaxed);
        Ok(Event::Idle)
    }

    fn blame(&mut self, _: Giver, _: &str) {}
}

#[test]
fn blocks_that_a_folder_lacks_are_asked_for_less_and_less_often() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Mined::genesis().plain_chain(1, BLOCKS);
    let clock = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&clock);
    let options = SyncOptions {
        verify: Verify::Spends,
        follow: true,
        clock: Arc::new(move || Duration::from_millis(now.load(Ordering::Relaxed))),
        ..sync_options()
    };
    let mut source = Empty {
        headers: chain.iter().map(|block| *block.bytes.first_chunk().unwrap()).collect(),
        events: VecDeque::new(),
        clock,
        stop: Arc::clone(&options.stop),
        asked: Vec::new(),
    };
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    node.sync(&mut source, &options, &mut |_| {}).unwrap();
    let different: HashSet<_> = source.asked.iter().collect();
    assert_eq!(different.len(), BLOCKS, "each block is asked for");
    // At first, and after 1, 2, 4, 8, 16, 32 seconds more.
    let times = source.asked.len() as f64 / BLOCKS as f64;
    assert!((6.0..=8.0).contains(&times), "{times} times in 100 s");
}
