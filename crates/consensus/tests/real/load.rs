//! Loading the data from the formats of other projects.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use varve_types::{Amount, Block, BlockHash, Format, Header, Reader, TxOut, compact_size};

pub(crate) use varve_testdata::chains::{blk_file, core31, hex, json, mainnet, satoshi, signet};

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

/// Regtest from its genesis block on.
pub(crate) fn kernel() -> Option<Vec<Vec<u8>>> {
    varve_testdata::chains::kernel(varve_types::Network::Regtest.genesis_block())
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
