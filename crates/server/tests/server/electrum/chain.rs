//! Chains to serve: simulated ones, and the one that Bitcoin Core wrote.

use std::collections::HashMap;

use varve::types::{Block, Network};
use varve_sim::{Chain, Config, Profile};
use varve_testdata::chains;

pub(crate) const NETWORK: Network = Network::Regtest;

/// A simulated chain with spends from height 101 on.
pub(crate) fn simulated(blocks: u32, seed: u64, reorg_depth: Option<u32>) -> Vec<varve_sim::Block> {
    let config = Config {
        transactions: Some(10),
        coins: Some(150),
        reorg_depth,
        ..Config::new(Profile::Mainnet, blocks, seed)
    };
    Chain::new(&config).unwrap().collect()
}

pub(crate) fn bytes(blocks: &[varve_sim::Block]) -> Vec<Vec<u8>> {
    blocks.iter().map(|block| block.bytes.clone()).collect()
}

/// The branch that a chain ends with, genesis first, out of blocks in any order.
pub(crate) fn branch(blocks: &[Vec<u8>], tip: varve::BlockHash) -> Vec<Vec<u8>> {
    let by_hash: HashMap<_, _> = blocks
        .iter()
        .map(|bytes| (Block::parse(bytes, NETWORK.format()).unwrap().hash(), bytes))
        .collect();
    let (mut branch, mut next) = (Vec::new(), tip);
    while let Some(bytes) = by_hash.get(&next) {
        branch.push((*bytes).clone());
        next = Block::parse(bytes, NETWORK.format()).unwrap().header().previous();
    }
    branch.reverse();
    branch
}

/// All blocks of Core's chain with its stale branches, and its tip; `None` when it is not there.
pub(crate) fn of_core() -> Option<(Vec<Vec<u8>>, varve::BlockHash)> {
    let expected = chains::json("regtest-core31/expected.json")?;
    let tip = expected["tip"].as_str().unwrap().parse().unwrap();
    Some((chains::core31()?, tip))
}
