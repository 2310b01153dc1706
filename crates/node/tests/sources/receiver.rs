//! A receiver that stores everything and judges headers, merkle roots and nothing else.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use varve_consensus::Params;
use varve_node::source::{Outlook, Warning};
use varve_node::test_suite::{HeaderId, HeaderTree};
use varve_node::{Event, Giver, Source};
use varve_types::{Block, BlockHash, Header, Network};

const LIMIT: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(200);
/// A time that is after all blocks of the tests.
const NOW: u32 = 4_000_000_000;

pub(crate) struct Receiver {
    pub(crate) tree: HeaderTree,
    pub(crate) blocks: HashMap<BlockHash, Vec<u8>>,
    pub(crate) warnings: Vec<Warning>,
    /// The best header of each giver.
    offers: BTreeMap<Giver, HeaderId>,
    wanted: HashMap<BlockHash, Giver>,
    /// Who was asked in vain.
    tried: HashMap<BlockHash, Vec<Giver>>,
    done: bool,
    begin: Instant,
}

impl Receiver {
    pub(crate) fn new(network: Network) -> Self {
        Self {
            tree: HeaderTree::new(Params::new(network), [3; 16]),
            blocks: HashMap::new(),
            warnings: Vec::new(),
            offers: BTreeMap::new(),
            wanted: HashMap::new(),
            tried: HashMap::new(),
            done: false,
            begin: Instant::now(),
        }
    }

    /// Seeks, and takes events until no more headers and no more blocks come.
    pub(crate) fn sync(&mut self, source: &mut dyn Source) {
        self.done = false;
        self.seek(source);
        while !self.done || self.owed() > 0 || source.outlook() == Outlook::Expecting {
            self.step(source);
        }
    }

    /// How many blocks of the headers have not come.
    pub(crate) fn missing(&self) -> usize {
        self.tree.ids().filter(|id| !self.tree.is_stored(*id)).count()
    }

    /// Takes events until the best chain is the one with this tip, and whole.
    pub(crate) fn follow(&mut self, source: &mut dyn Source, tip: &str) {
        let tip: BlockHash = tip.parse().unwrap();
        self.until(source, |receiver| receiver.tree.hash(receiver.tree.best_chain()) == tip);
    }

    /// Takes events until something holds.
    pub(crate) fn until(&mut self, source: &mut dyn Source, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            self.step(source);
        }
    }

    fn step(&mut self, source: &mut dyn Source) {
        let event = source.next_event(STEP).unwrap();
        self.take(source, event);
        assert!(
            self.begin.elapsed() < LIMIT,
            "{} headers, {} blocks, {} owed, done {}: {:?}",
            self.tree.len(),
            self.blocks.len(),
            self.owed(),
            self.done,
            self.warnings
        );
    }

    pub(crate) fn tip(&self) -> String {
        self.tree.hash(self.tree.best_chain()).to_string()
    }

    fn owed(&self) -> usize {
        self.wanted.len()
    }

    fn seek(&self, source: &mut dyn Source) {
        let best = self.tree.best_header();
        source.seek(&self.tree.locator(self.tree.parent(best).unwrap_or(best))).unwrap();
    }

    pub(crate) fn take(&mut self, source: &mut dyn Source, event: Event) {
        match event {
            Event::Headers { headers, giver } => {
                let before = self.tree.len();
                for header in &headers {
                    match self.tree.insert(Header::new(header), NOW) {
                        Ok(id) => drop(self.offers.insert(giver, id)),
                        Err(error) if error.is_blameworthy() => {
                            source.blame(giver, &error.to_string());
                            return;
                        }
                        Err(_) => {
                            let locator = self.tree.locator(self.tree.best_header());
                            return source.more(giver, &locator).unwrap();
                        }
                    }
                }
                if self.tree.len() > before {
                    self.seek(source);
                }
                if headers.len() == 2000 {
                    let last = Header::new(headers.last().unwrap()).hash();
                    source.more(giver, &[last]).unwrap();
                }
            }
            Event::Block { hash, bytes, giver } => self.block(source, hash, bytes, giver),
            Event::Missing { hash, giver } => {
                self.wanted.remove(&hash);
                self.tried.entry(hash).or_default().push(giver);
            }
            Event::Parent { hash } => {
                if self.tree.find(&hash).is_some() {
                    source.root(hash);
                }
            }
            Event::HeadersDone => self.done = true,
            Event::Warning(warning) => self.warnings.push(warning),
            Event::Transactions(_) | Event::Idle => {}
        }
        self.want(source);
    }

    fn block(&mut self, source: &mut dyn Source, hash: BlockHash, bytes: Vec<u8>, giver: Giver) {
        let id = self.tree.find(&hash).expect("blocks come behind their headers");
        let block = Block::parse(&bytes, self.tree.params().network.format());
        let good = block.is_ok_and(|block| {
            block.hash() == hash && block.merkle_tree().root == block.header().merkle_root()
        });
        self.wanted.remove(&hash);
        if good {
            self.tree.mark_stored(id);
            self.blocks.insert(hash, bytes);
        } else {
            source.blame(giver, "bad-txnmrklroot");
        }
    }

    /// Asks every giver for what is missing on its branch.
    fn want(&mut self, source: &mut dyn Source) {
        for (giver, tip) in self.offers.clone() {
            let Some(room) = source.room(giver) else {
                self.offers.remove(&giver);
                continue;
            };
            let wanted = |hash: &BlockHash| {
                let tried = self.tried.get(hash).is_some_and(|givers| givers.contains(&giver));
                !tried && !self.wanted.contains_key(hash)
            };
            let ids = match source.is_trusted() {
                true => self.tree.ids().filter(|id| !self.tree.is_stored(*id)).collect(),
                false => self.tree.to_fetch(tip, 5000),
            };
            let hashes = ids.into_iter().map(|id| self.tree.hash(id)).filter(wanted);
            let hashes: Vec<_> = hashes.take(room).collect();
            self.wanted.extend(hashes.iter().map(|hash| (*hash, giver)));
            if !hashes.is_empty() {
                source.want(giver, &hashes).unwrap();
            }
        }
    }
}
