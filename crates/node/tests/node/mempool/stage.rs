//! A node in one thread, and a source that acts whenever the node has nothing left to do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use varve_io::Storage;
use varve_node::source::transactions::TxNews;
use varve_node::{
    Event, Giver, NodeReader, NodeSnapshot, Options, Organizer, Source, SourceError, SyncOptions,
    Verify,
};
use varve_types::{BlockHash, Header, Height, Network, Tx};

use crate::rig::sync_options;

/// How long the node may take to get to where it is expected.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the source says that nothing comes before the node counts as quiet.
const QUIET: usize = 4;

/// What a source does next.
pub(super) enum Act {
    /// Gives blocks, and expects the tip at the last or, if they lose, where it is.
    Blocks(Vec<Vec<u8>>, BlockHash),
    /// Gives transactions.
    Txs(Vec<Vec<u8>>),
    /// Ends the sync.
    End,
}

/// Decides what happens, and looks at what came of it.
pub(super) trait Director: Send {
    /// The node has nothing left to do.
    fn next(&mut self, now: &Arc<NodeSnapshot>) -> Act;

    /// Any moment of the node.
    fn look(&mut self, now: &Arc<NodeSnapshot>);
}

/// Runs a node in this storage until the director ends it.
pub(super) fn run(storage: Arc<dyn Storage>, options: Options, director: &mut dyn Director) {
    let mut node = Organizer::open(storage, options).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    // A branch that was stored before a crash may still win.
    let expected = None;
    let mut source = Stage {
        reader: node.reader(),
        director,
        stop: stop.clone(),
        events: VecDeque::new(),
        expected,
        quiet: 0,
        since: Instant::now(),
    };
    let options =
        SyncOptions { verify: Verify::Spends, follow: true, mempool: true, stop, ..sync_options() };
    node.sync(&mut source, &options, &mut |report| {
        if let varve_node::Report::MempoolClosed { reason } = report {
            panic!("the mempool was closed: {reason}");
        }
    })
    .unwrap();
    assert!(node.snapshot().mempool.is_none(), "it ends with the sync");
}

struct Stage<'a> {
    reader: NodeReader,
    director: &'a mut dyn Director,
    stop: Arc<AtomicBool>,
    events: VecDeque<Event>,
    expected: Option<BlockHash>,
    quiet: usize,
    since: Instant,
}

impl Stage<'_> {
    fn act(&mut self, now: &Arc<NodeSnapshot>) {
        match self.director.next(now) {
            Act::End => self.stop.store(true, Ordering::Relaxed),
            Act::Txs(txs) => {
                for bytes in txs {
                    let tx = Tx::parse(&bytes, Network::Regtest.format()).unwrap();
                    let (wtxid, giver) = (tx.wtxid(), Giver::ONLY);
                    let news = TxNews::Given { tx: bytes.into(), wtxid, giver };
                    self.events.push_back(Event::Transactions(news));
                }
            }
            Act::Blocks(blocks, tip) => {
                self.expected = Some(tip);
                let giver = Giver::ONLY;
                for bytes in blocks {
                    let header = *bytes.first_chunk().unwrap();
                    let hash = Header::new(&header).hash();
                    self.events.push_back(Event::Headers { headers: vec![header], giver });
                    self.events.push_back(Event::Block { hash, bytes, giver });
                }
            }
        }
        (self.quiet, self.since) = (0, Instant::now());
    }
}

impl Source for Stage<'_> {
    fn seek(&mut self, _: &[BlockHash]) -> Result<(), SourceError> {
        self.events.push_back(Event::HeadersDone);
        Ok(())
    }

    fn want(&mut self, _: Giver, _: &[BlockHash]) -> Result<(), SourceError> {
        Ok(())
    }

    fn next_event(&mut self, _: Duration) -> Result<Event, SourceError> {
        let now = self.reader.snapshot();
        self.director.look(&now);
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        let has_chain = now.tip.0 > Height::GENESIS;
        let is_there = self.expected.is_none_or(|expected| now.tip.1 == expected);
        if !is_there || (has_chain && now.mempool.is_none()) {
            let (tip, expected) = (now.tip, self.expected);
            assert!(self.since.elapsed() < LIMIT, "at {tip:?}, not at {expected:?}");
            self.quiet = 0;
            std::thread::sleep(Duration::from_micros(200));
            return Ok(Event::Idle);
        }
        self.quiet += 1;
        if self.quiet >= QUIET {
            self.act(&now);
        }
        Ok(Event::Idle)
    }

    fn blame(&mut self, _: Giver, reason: &str) {
        panic!("nobody is to blame: {reason}");
    }
}
