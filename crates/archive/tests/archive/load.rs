//! Real chains: those that all tests share, and btcd's.

use std::io::Read as _;

use varve_testdata::chains::bytes;
use varve_types::Network;

pub(crate) use varve_testdata::chains::{blk_file, core31, json, mainnet};

/// Regtest from its genesis block on.
pub(crate) fn kernel() -> Option<Vec<Vec<u8>>> {
    varve_testdata::chains::kernel(Network::Regtest.genesis_block())
}

/// The blocks 0 to 4 of btcd's test, then 3A, 4A and 5A, which overtake them.
pub(crate) fn btcd_reorg() -> Option<Vec<Vec<u8>>> {
    let mut blocks = Vec::new();
    for name in ["blk_0_to_4", "blk_3A", "blk_4A", "blk_5A"] {
        let packed = bytes(&format!("chains/btcd-reorg/{name}.dat.bz2"))?;
        let mut file = Vec::new();
        bzip2::read::BzDecoder::new(packed.as_slice()).read_to_end(&mut file).unwrap();
        blocks.extend(blk_file(&file));
    }
    Some(blocks)
}
