//! Real chains.

use serde_json::Value;
use varve_types::{Header, Network};

pub(crate) use varve_testdata::chains::{json, mainnet, satoshi, signet};

/// Regtest from its genesis block on.
pub(crate) fn kernel() -> Option<Vec<Vec<u8>>> {
    varve_testdata::chains::kernel(Network::Regtest.genesis_block())
}

/// The active branch of Core 31's chain.
pub(crate) fn core31(expected: &Value) -> Option<Vec<Vec<u8>>> {
    let blocks = varve_testdata::chains::core31()?;
    let hash = |block: &[u8]| Header::new(block.first_chunk().unwrap()).hash().to_string();
    let active = expected["blockhash"].as_array().unwrap().iter();
    Some(active.map(|of| blocks.iter().find(|block| hash(block) == *of).unwrap().clone()).collect())
}
