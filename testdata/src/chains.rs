//! Real chains, from the formats of other projects.
//!
//! A chain is its blocks in bytes, by height. Every function returns `None`, after recording the
//! skip, when the data is missing, and panics when it is not what it should be.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test stops where it fails")]

use std::collections::HashMap;
use std::fs;

use bitcoin::hashes::{Hash as _, sha256d};
use hex_conservative::FromHex as _;
use serde_json::Value;

/// The bytes of a file of the data.
#[must_use]
pub fn bytes(path: &str) -> Option<Vec<u8>> {
    crate::data(path).map(|path| fs::read(path).unwrap())
}

/// A file of the data that is JSON.
#[must_use]
pub fn json(path: &str) -> Option<Value> {
    bytes(path).map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// The bytes that a text of hexadecimal digits stands for.
#[must_use]
pub fn hex(text: &str) -> Vec<u8> {
    Vec::from_hex(text.trim()).unwrap()
}

/// The blocks of a block file: `magic 4 │ size u32le │ block`. Ends where the magic does not match
/// or a block is truncated.
#[must_use]
pub fn blk_file(bytes: &[u8]) -> Vec<Vec<u8>> {
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

/// Mainnet 0–4312.
#[must_use]
pub fn mainnet() -> Option<Vec<Vec<u8>>> {
    bytes("chains/mainnet-0-4312.blk.dat").map(|bytes| blk_file(&bytes))
}

/// Signet 0–120.
#[must_use]
pub fn signet() -> Option<Vec<Vec<u8>>> {
    let json = json("chains/signet-0-120.json")?;
    let blocks = json.as_array().unwrap().iter();
    Some(blocks.map(|block| hex(block["block"].as_str().unwrap())).collect())
}

/// Regtest 0–206: the given genesis block, which the file omits, and the blocks of the file.
#[must_use]
pub fn kernel(genesis: Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let text = String::from_utf8(bytes("chains/regtest-kernel-1-206.hexlines.txt")?).unwrap();
    Some([genesis].into_iter().chain(text.lines().map(hex)).collect())
}

/// Every block in the one file of Core 31's chain, without the mask: stale ones too, in order of
/// arrival.
#[must_use]
pub fn core31() -> Option<Vec<Vec<u8>>> {
    let key = bytes("regtest-core31/blocks/xor.dat")?;
    let mut file = bytes("regtest-core31/blocks/blk00000.dat")?;
    file.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some(blk_file(&file))
}

/// A chain, and a real node's answers to `gettxoutsetinfo` at some of its heights.
#[derive(Debug)]
pub struct Answered {
    /// The blocks by height.
    pub blocks: Vec<Vec<u8>>,
    /// The answers. Each names its `height`.
    pub answers: Vec<Value>,
}

impl Answered {
    /// [`mainnet`].
    #[must_use]
    pub fn mainnet() -> Option<Self> {
        Self::load(mainnet()?, "vectors/oracle_mainnet_0-4312.json", 9)
    }

    /// [`signet`].
    #[must_use]
    pub fn signet() -> Option<Self> {
        Self::load(signet()?, "vectors/oracle_signet_0-120.json", 4)
    }

    /// [`kernel`].
    #[must_use]
    pub fn kernel(genesis: Vec<u8>) -> Option<Self> {
        Self::load(kernel(genesis)?, "vectors/oracle_regtest_kernel_0-206.json", 5)
    }

    /// The active branch of [`core31`].
    #[must_use]
    pub fn core31() -> Option<Self> {
        let (all, expected) = (core31()?, json("regtest-core31/expected.json")?);
        let hash = |block: &[u8]| sha256d::Hash::hash(&block[..80]).to_string();
        let by_hash: HashMap<String, Vec<u8>> =
            all.into_iter().map(|block| (hash(&block), block)).collect();
        let active = expected["blockhash"].as_array().unwrap().iter();
        let blocks = active.map(|hash| by_hash[hash.as_str().unwrap()].clone()).collect();
        let muhashes = expected["muhash"].as_object().unwrap().values();
        let answers = muhashes.chain([&expected["hash_serialized_3"]]).cloned().collect();
        Some(Self { blocks, answers })
    }

    /// `count` is how many answers the file had when this was written, the tip's included.
    fn load(blocks: Vec<Vec<u8>>, file: &str, count: usize) -> Option<Self> {
        let json = json(file)?;
        let heights = json["heights"].as_array().unwrap().iter();
        let answers: Vec<Value> = heights.chain([&json["tip"]]).cloned().collect();
        assert!(answers.len() >= count, "{file} has {} answers", answers.len());
        Some(Self { blocks, answers })
    }
}

/// The height of an answer to `gettxoutsetinfo`.
#[must_use]
pub fn height(answer: &Value) -> u32 {
    u32::try_from(answer["height"].as_u64().unwrap()).unwrap()
}

/// An amount in coins, as a number or as a text. Below 2^53 satoshi a double is exact.
#[must_use]
pub fn satoshi(value: &Value) -> u64 {
    let coins = value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap();
    format!("{:.0}", coins * 1e8).parse().unwrap()
}
