//! The data, in the forms in which others have kept it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use hex_conservative::FromHex as _;
use serde_json::Value;
use varve_types::{Amount, Block, BlockHash, Format, Header, Reader, TxOut, compact_size};

/// The bytes of a file of the data, or `None` after the skip was recorded.
pub(crate) fn bytes(path: &str) -> Option<Vec<u8>> {
    varve_testdata::data(path).map(|path| unpack(&path))
}

/// The bytes of a file, decompressed by the ending of its name.
pub(crate) fn unpack(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let mut out = Vec::new();
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("bz2") => bzip2::read::BzDecoder::new(&bytes[..]).read_to_end(&mut out).unwrap(),
        Some("zst") => {
            let mut decoder = ruzstd::decoding::StreamingDecoder::new(&bytes[..]).unwrap();
            decoder.read_to_end(&mut out).unwrap()
        }
        _ => return bytes,
    };
    out
}

pub(crate) fn json(path: &str) -> Option<Value> {
    bytes(path).map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

pub(crate) fn hex(text: &str) -> Vec<u8> {
    Vec::from_hex(text).unwrap()
}

/// The blocks of a block file: `magic 4 │ size u32le │ block`. Ends where the magic does not
/// match or a block is cut.
pub(crate) fn blk_file(bytes: &[u8]) -> Vec<Vec<u8>> {
    let magic = bytes[..4].to_vec();
    let mut blocks = Vec::new();
    let mut rest = bytes;
    while let Some((head, tail)) = rest.split_first_chunk::<8>() {
        let size = u32::from_le_bytes(*head.last_chunk().unwrap()) as usize;
        if head[..4] != magic || tail.len() < size {
            break;
        }
        blocks.push(tail[..size].to_vec());
        rest = &tail[size..];
    }
    blocks
}

/// The chain of Core 31: its one block file without the mask.
pub(crate) fn core31() -> Option<Vec<Vec<u8>>> {
    let key = bytes("regtest-core31/blocks/xor.dat")?;
    let mut file = bytes("regtest-core31/blocks/blk00000.dat")?;
    file.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some(blk_file(&file))
}

pub(crate) fn mainnet() -> Option<Vec<Vec<u8>>> {
    bytes("chains/mainnet-0-4312.blk.dat").map(|bytes| blk_file(&bytes))
}

pub(crate) fn signet() -> Option<Vec<Vec<u8>>> {
    let json = json("chains/signet-0-120.json")?;
    let blocks = json.as_array().unwrap().iter();
    Some(blocks.map(|block| hex(block["block"].as_str().unwrap())).collect())
}

/// Regtest from its genesis block on, which the file leaves out.
pub(crate) fn kernel() -> Option<Vec<Vec<u8>>> {
    let bytes = bytes("chains/regtest-kernel-1-206.hexlines.txt")?;
    let text = String::from_utf8(bytes).unwrap();
    let genesis = varve_types::Network::Regtest.genesis_block();
    Some([genesis].into_iter().chain(text.lines().map(hex)).collect())
}

/// The blocks of a folder, each in a file named by its hash, in any order.
pub(crate) fn folder(path: &str) -> Option<Vec<Vec<u8>>> {
    let folder = varve_testdata::data(path)?;
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.len() == 64));
    paths.sort();
    Some(paths.iter().map(|path| unpack(path)).collect())
}

pub(crate) fn header(block: &[u8]) -> Header<'_> {
    Header::new(block.first_chunk().unwrap())
}

/// The hash of a block in bytes.
pub(crate) fn hash(block: &[u8]) -> BlockHash {
    header(block).hash()
}

pub(crate) fn parse(block: &[u8]) -> Block<'_> {
    Block::parse(block, Format::Segwit).unwrap()
}

/// Outputs one after another, as they are in transactions.
pub(crate) fn outputs(bytes: &[u8]) -> Vec<TxOut<'_>> {
    let mut reader = Reader::new(bytes);
    let mut outputs = Vec::new();
    while reader.end().is_err() {
        let value = Amount::from_sat(reader.u64("a value").unwrap());
        let length = compact_size::read(&mut reader, u64::MAX, "a script").unwrap();
        outputs.push(TxOut { value, script: reader.take(length, "a script").unwrap() });
    }
    outputs
}

/// An amount in coins, as a number or as a text. Below 2^53 satoshi a double is exact.
pub(crate) fn satoshi(value: &Value) -> u64 {
    let coins = value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap();
    format!("{:.0}", coins * 1e8).parse().unwrap()
}
