//! Real chains, in the forms in which others have kept them.

use std::fs;
use std::io::Read as _;

use hex_conservative::FromHex as _;
use serde_json::Value;
use varve_types::Network;

/// The bytes of a file of the data, or `None` after the skip was recorded.
fn bytes(path: &str) -> Option<Vec<u8>> {
    varve_testdata::data(path).map(|path| fs::read(path).unwrap())
}

pub(crate) fn json(path: &str) -> Option<Value> {
    bytes(path).map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// The blocks of a block file: `magic 4 │ size u32le │ block`, zeroes behind the last.
pub(crate) fn blk_file(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    let mut rest = bytes;
    while let Some((head, tail)) = rest.split_first_chunk::<8>() {
        let size = u32::from_le_bytes(*head.last_chunk().unwrap()) as usize;
        if head[..4] != bytes[..4] || tail.len() < size {
            break;
        }
        blocks.push(tail[..size].to_vec());
        rest = &tail[size..];
    }
    blocks
}

pub(crate) fn mainnet() -> Option<Vec<Vec<u8>>> {
    bytes("chains/mainnet-0-4312.blk.dat").map(|bytes| blk_file(&bytes))
}

/// Regtest from its genesis block on, which the file leaves out.
pub(crate) fn kernel() -> Option<Vec<Vec<u8>>> {
    let text = String::from_utf8(bytes("chains/regtest-kernel-1-206.hexlines.txt")?).unwrap();
    let genesis = Network::Regtest.genesis_block();
    let lines = text.lines().map(|line| Vec::from_hex(line).unwrap());
    Some([genesis].into_iter().chain(lines).collect())
}

/// All blocks of Core 31's chain, stale ones too, whose one block file is masked.
pub(crate) fn core31() -> Option<Vec<Vec<u8>>> {
    let key = bytes("regtest-core31/blocks/xor.dat")?;
    let mut file = bytes("regtest-core31/blocks/blk00000.dat")?;
    file.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some(blk_file(&file))
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
