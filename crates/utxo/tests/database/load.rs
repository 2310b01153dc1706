//! Real chains, in the forms in which others have kept them.

use std::fs;

use hex_conservative::FromHex as _;
use serde_json::Value;
use varve_types::{Header, Network};

/// The bytes of a file of the data, or `None` after the skip was recorded.
fn bytes(path: &str) -> Option<Vec<u8>> {
    varve_testdata::data(path).map(|path| fs::read(path).unwrap())
}

pub(crate) fn json(path: &str) -> Option<Value> {
    bytes(path).map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// The blocks of a block file: `magic 4 │ size u32le │ block`, zeroes behind the last.
fn blk_file(bytes: &[u8]) -> Vec<Vec<u8>> {
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

pub(crate) fn signet() -> Option<Vec<Vec<u8>>> {
    let json = json("chains/signet-0-120.json")?;
    let blocks = json.as_array().unwrap().iter();
    Some(blocks.map(|block| Vec::from_hex(block["block"].as_str().unwrap()).unwrap()).collect())
}

/// Regtest from its genesis block on, which the file leaves out.
pub(crate) fn kernel() -> Option<Vec<Vec<u8>>> {
    let text = String::from_utf8(bytes("chains/regtest-kernel-1-206.hexlines.txt")?).unwrap();
    let genesis = Network::Regtest.genesis_block();
    let lines = text.lines().map(|line| Vec::from_hex(line).unwrap());
    Some([genesis].into_iter().chain(lines).collect())
}

/// The active branch of Core 31's chain, whose one block file is masked.
pub(crate) fn core31(expected: &Value) -> Option<Vec<Vec<u8>>> {
    let key = bytes("regtest-core31/blocks/xor.dat")?;
    let mut file = bytes("regtest-core31/blocks/blk00000.dat")?;
    file.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    let blocks = blk_file(&file);
    let hash = |block: &[u8]| Header::new(block.first_chunk().unwrap()).hash().to_string();
    let active = expected["blockhash"].as_array().unwrap().iter();
    Some(active.map(|of| blocks.iter().find(|block| hash(block) == *of).unwrap().clone()).collect())
}

/// An amount in coins, as a number or as a text. Below 2^53 satoshi a double is exact.
pub(crate) fn satoshi(value: &Value) -> u64 {
    let coins = value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap();
    format!("{:.0}", coins * 1e8).parse().unwrap()
}
