//! Every answer, by walking the blocks from the first to the last.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use varve_consensus::Work;
use varve_types::pushdata::{PushdataFlags, PushdataRule, PushedItem};
use varve_types::{Block, BlockHash, Header, Network, Outpoint, PushdataHash, Txid};

/// A block as it came.
#[derive(Clone)]
pub(crate) struct ModelBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: BlockHash,
    pub(crate) previous: BlockHash,
    pub(crate) height: u32,
    pub(crate) work: Work,
}

/// Blocks in the order of arrival, and the branch with the most work.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) network: Network,
    pub(crate) blocks: Vec<ModelBlock>,
    by_hash: HashMap<BlockHash, usize>,
    /// The hashes of the best branch, by height.
    pub(crate) active: Vec<BlockHash>,
}

/// Where a transaction is: block and position.
pub(crate) type Places = BTreeMap<Txid, BTreeSet<(BlockHash, u32)>>;
/// Who pushes an item in the best branch: block, transaction, input or output, and what it is.
pub(crate) type Pushes = BTreeMap<PushdataHash, BTreeSet<(BlockHash, Txid, u32, PushdataFlags)>>;
/// Who spends an output: transaction, input and block.
pub(crate) type Spenders = BTreeMap<Outpoint, BTreeSet<(Txid, u32, BlockHash)>>;

impl Model {
    pub(crate) fn new(network: Network) -> Self {
        Self { network, blocks: Vec::new(), by_hash: HashMap::new(), active: Vec::new() }
    }

    pub(crate) fn knows(&self, hash: &BlockHash) -> bool {
        self.by_hash.contains_key(hash)
    }

    pub(crate) fn get(&self, hash: &BlockHash) -> &ModelBlock {
        &self.blocks[self.by_hash[hash]]
    }

    /// Takes a block whose parent is known. Returns whether the best branch changed.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> bool {
        let header = Header::new(bytes.first_chunk().unwrap());
        let (hash, previous) = (header.hash(), header.previous());
        let (height, work) = match self.by_hash.get(&previous) {
            Some(parent) => (self.blocks[*parent].height + 1, self.blocks[*parent].work),
            None => (0, Work::ZERO),
        };
        let work = work.plus(Work::of_bits(header.bits()));
        let best = self.active.last().map_or(Work::ZERO, |hash| self.get(hash).work);
        self.by_hash.insert(hash, self.blocks.len());
        let bytes = bytes.to_vec();
        self.blocks.push(ModelBlock { bytes, hash, previous, height, work });
        if work > best {
            self.activate(hash);
        }
        work > best
    }

    /// Makes the branch of this block the best one.
    pub(crate) fn activate(&mut self, tip: BlockHash) {
        self.active = self.branch(tip);
    }

    /// The hashes of the blocks up to this one.
    pub(crate) fn branch(&self, tip: BlockHash) -> Vec<BlockHash> {
        let mut hashes = Vec::new();
        let mut next = Some(tip);
        while let Some(hash) = next {
            hashes.push(hash);
            next = Some(self.get(&hash).previous).filter(|hash| self.knows(hash));
        }
        hashes.reverse();
        hashes
    }

    pub(crate) fn is_active(&self, hash: &BlockHash) -> bool {
        self.active.get(self.get(hash).height as usize) == Some(hash)
    }

    /// Every item that a block pushes, on any branch, with the places in the best one.
    pub(crate) fn pushes(&self, rule: PushdataRule) -> Pushes {
        let mut pushes = Pushes::new();
        for model in &self.blocks {
            let block = Block::parse(&model.bytes, self.network.format()).unwrap();
            for (txid, tx) in block.txids().into_iter().zip(block.txs()) {
                let mut put = |item: PushedItem<'_>, index: u32| {
                    let rows = pushes.entry(item.hash()).or_default();
                    if self.is_active(&model.hash) {
                        rows.insert((model.hash, txid, index, item.flags));
                    }
                };
                for (index, output) in (0..).zip(tx.outputs()) {
                    rule.of_output(output.script).for_each(|item| put(item, index));
                }
                for (index, input) in (0..).zip(tx.inputs()).filter(|_| !tx.is_coinbase()) {
                    rule.of_input(input.script).for_each(|item| put(item, index));
                }
            }
        }
        pushes
    }

    /// Every transaction and every spend of all blocks.
    pub(crate) fn walk(&self) -> (Places, Spenders) {
        let (mut places, mut spenders) = (Places::new(), Spenders::new());
        for model in &self.blocks {
            let block = Block::parse(&model.bytes, self.network.format()).unwrap();
            for (position, (txid, tx)) in (0..).zip(block.txids().into_iter().zip(block.txs())) {
                places.entry(txid).or_default().insert((model.hash, position));
                let inputs = (0..).zip(tx.inputs()).filter(|_| !tx.is_coinbase());
                for (vin, input) in inputs {
                    let spender = (txid, vin, model.hash);
                    spenders.entry(input.outpoint).or_default().insert(spender);
                }
            }
        }
        (places, spenders)
    }
}
