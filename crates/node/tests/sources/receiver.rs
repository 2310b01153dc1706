//! A receiver that stores everything and judges headers, merkle roots and nothing else.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use varve_consensus::Params;
use varve_node::source::Warning;
use varve_node::{Event, HeaderTree, Source};
use varve_types::{Block, BlockHash, Header, Network};

const LIMIT: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(200);
/// A time that is after all blocks of the tests.
const NOW: u32 = 4_000_000_000;

pub(crate) struct Receiver {
    pub(crate) tree: HeaderTree,
    pub(crate) blocks: HashMap<BlockHash, Vec<u8>>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) missing: Vec<BlockHash>,
    wanted: HashSet<BlockHash>,
    done: bool,
}

impl Receiver {
    pub(crate) fn new(network: Network) -> Self {
        Self {
            tree: HeaderTree::new(Params::new(network), [3; 16]),
            blocks: HashMap::new(),
            warnings: Vec::new(),
            missing: Vec::new(),
            wanted: HashSet::new(),
            done: false,
        }
    }

    /// Seeks, and takes events until no more headers and no more blocks come.
    pub(crate) fn sync(&mut self, source: &mut dyn Source) {
        self.done = false;
        self.seek(source);
        self.until(source, |receiver| receiver.done && receiver.owed() == 0);
    }

    /// Takes events until the best chain is the one with this tip, and whole.
    pub(crate) fn follow(&mut self, source: &mut dyn Source, tip: &str) {
        let tip: BlockHash = tip.parse().unwrap();
        self.until(source, |receiver| receiver.tree.hash(receiver.tree.best_chain()) == tip);
    }

    /// Takes events until something holds.
    pub(crate) fn until(&mut self, source: &mut dyn Source, holds: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            let event = source.next_event(STEP).unwrap();
            self.take(source, event);
            assert!(
                begin.elapsed() < LIMIT,
                "{} headers, {} blocks, {} owed, done {}: {:?}",
                self.tree.len(),
                self.blocks.len(),
                self.owed(),
                self.done,
                self.warnings
            );
        }
    }

    pub(crate) fn tip(&self) -> String {
        self.tree.hash(self.tree.best_chain()).to_string()
    }

    fn owed(&self) -> usize {
        self.wanted.len()
    }

    fn seek(&self, source: &mut dyn Source) {
        source.seek(&self.tree.locator(self.tree.best_header())).unwrap();
    }

    pub(crate) fn take(&mut self, source: &mut dyn Source, event: Event) {
        match event {
            Event::Headers { headers, giver } => {
                let before = self.tree.len();
                for header in &headers {
                    match self.tree.insert(Header::new(header), NOW) {
                        Ok(id) if !self.tree.is_stored(id) => self.want(source, id),
                        Ok(_) => {}
                        Err(error) if error.is_blameworthy() => {
                            source.blame(giver, &error.to_string());
                            return;
                        }
                        Err(_) => return self.seek(source),
                    }
                }
                if self.tree.len() > before {
                    self.seek(source);
                }
            }
            Event::Block { hash, bytes, giver } => {
                let id = self.tree.find(&hash).expect("blocks come behind their headers");
                let block = Block::parse(&bytes, self.tree.params().network.format());
                let good = block.is_ok_and(|block| {
                    block.hash() == hash && block.merkle_tree().root == block.header().merkle_root()
                });
                self.wanted.remove(&hash);
                if good {
                    self.tree.mark_stored(id);
                    assert!(self.blocks.insert(hash, bytes).is_none(), "{hash} came twice");
                } else {
                    source.blame(giver, "bad-txnmrklroot");
                    self.wanted.insert(hash);
                    source.want(&[hash]).unwrap();
                }
            }
            Event::Missing { hash } => {
                self.wanted.remove(&hash);
                self.missing.push(hash);
            }
            Event::HeadersDone => self.done = true,
            Event::Warning(warning) => self.warnings.push(warning),
            Event::Idle => {}
        }
    }

    fn want(&mut self, source: &mut dyn Source, id: varve_node::HeaderId) {
        let hash = self.tree.hash(id);
        if self.wanted.insert(hash) {
            source.want(&[hash]).unwrap();
        }
    }
}
