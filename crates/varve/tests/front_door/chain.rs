//! A simulated chain, and what a walk over its bytes says about it.

use std::collections::HashMap;
use std::path::Path;

use varve::types::{Block, unspendable};
use varve::{Height, Network, Node, Outpoint, Snapshot, Source, Tip, Txid};
use varve_sim::{Chain, Config, Profile};

pub(crate) const NETWORK: Network = Network::Regtest;

/// Small blocks with transactions from height 101 on, and branches that lose.
pub(crate) fn blocks(count: u32, seed: u64) -> Vec<varve_sim::Block> {
    let config = Config {
        transactions: Some(12),
        coins: Some(200),
        reorg_depth: Some(4),
        ..Config::new(Profile::Mainnet, count, seed)
    };
    Chain::new(&config).unwrap().collect()
}

pub(crate) fn bytes(blocks: &[varve_sim::Block]) -> Vec<Vec<u8>> {
    blocks.iter().map(|block| block.bytes.clone()).collect()
}

/// A new node in this folder with these blocks.
pub(crate) fn synced(folder: &Path, blocks: &[varve_sim::Block]) -> Node {
    let node = Node::builder().network(NETWORK).datadir(folder).create().unwrap();
    node.sync(Source::blocks(bytes(blocks))).run().unwrap();
    node
}

/// The active chain, read from bytes.
pub(crate) struct Expected {
    pub(crate) tip: Tip,
    /// Height and position of each transaction.
    txs: HashMap<Txid, (Height, u32)>,
    /// Every output, whether it enters the set, and the input that spends it.
    outputs: HashMap<Outpoint, (bool, Option<(Txid, u32)>)>,
}

impl Expected {
    /// The chain up to this height, without the branches that lose.
    pub(crate) fn up_to(blocks: &[varve_sim::Block], height: u32) -> Self {
        let active = blocks.iter().filter(|block| !block.stale && block.height <= height);
        let mut expected = Self {
            tip: Tip { height: Height::GENESIS, hash: NETWORK.genesis_hash() },
            txs: HashMap::new(),
            outputs: HashMap::new(),
        };
        active.for_each(|block| expected.add(block));
        expected
    }

    fn add(&mut self, block: &varve_sim::Block) {
        let height = Height::new(block.height);
        self.tip = Tip { height, hash: block.hash };
        let parsed = Block::parse(&block.bytes, NETWORK.format()).unwrap();
        for (position, (txid, tx)) in (0..).zip(parsed.txids().into_iter().zip(parsed.txs())) {
            self.txs.insert(txid, (height, position));
            for (vin, input) in (0..).zip(tx.inputs()).filter(|_| !tx.is_coinbase()) {
                self.outputs.get_mut(&input.outpoint).unwrap().1 = Some((txid, vin));
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                let never = block.height == 0 || unspendable(NETWORK, height, output.script);
                self.outputs.insert(Outpoint::new(txid, vout), (!never, None));
            }
        }
    }

    /// Compares every answer of a snapshot.
    pub(crate) fn check(&self, snapshot: &Snapshot) {
        assert_eq!(snapshot.tip(), self.tip);
        for (txid, (height, position)) in &self.txs {
            let tx = snapshot.tx(*txid).unwrap().unwrap();
            assert_eq!((tx.block.height, tx.position), (*height, *position), "{txid}");
            assert!(tx.is_confirmed() && tx.blocks.contains(&tx.block.hash));
            assert_eq!(tx.parse().unwrap().txid(), *txid);
        }
        let mut unspent = 0;
        for (outpoint, (enters, spender)) in &self.outputs {
            let found = snapshot.spender(*outpoint).unwrap();
            assert_eq!(found.map(|found| (found.txid, found.vin)), *spender, "{outpoint}");
            let is_unspent = *enters && spender.is_none();
            unspent += u64::from(is_unspent);
            let utxo = snapshot.utxo(*outpoint).unwrap();
            let archived = snapshot.output(*outpoint).unwrap();
            assert_eq!(utxo, archived.filter(|_| is_unspent), "{outpoint}");
        }
        let set = snapshot.unspent().unwrap();
        assert_eq!((set.tip(), set.coin_count()), (Some(self.tip), unspent));
        assert!(unspent > 0 && self.outputs.values().any(|(_, spender)| spender.is_some()));
    }
}
