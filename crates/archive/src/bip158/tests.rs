//! The published filters, and filters that are none.

use hex_conservative::FromHex as _;
use serde_json::Value;
use varve_types::{Block, Format};

use super::*;

/// Whether some of these scripts seem to be in the filter of the block. A filter that does not
/// decode matches everything: whoever asks must then look at the block.
fn matches(filter: &[u8], hash: BlockHash, scripts: &[&[u8]]) -> bool {
    decode(filter).is_none_or(|(count, numbers)| {
        let hasher = hasher(hash);
        let asked = |script: &&[u8]| numbers.binary_search(&place(&hasher, script, count)).is_ok();
        scripts.iter().any(asked)
    })
}

/// How many items a filter has, and their numbers in order; `None` when it does not decode.
fn decode(filter: &[u8]) -> Option<(u64, Vec<u64>)> {
    let mut reader = varve_types::Reader::new(filter);
    let count = compact_size::read(&mut reader, u64::from(u32::MAX), "a count").ok()?;
    let mut bits = reader.rest().iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1));
    let mut numbers = Vec::new();
    let mut last = 0_u64;
    for _ in 0..count {
        let mut step = 0_u64;
        while bits.next()? == 1 {
            step += 1;
        }
        for _ in 0..P {
            step = step << 1 | u64::from(bits.next()?);
        }
        last = last.checked_add(step)?;
        numbers.push(last);
    }
    Some((count, numbers))
}

fn bytes(value: &Value) -> Vec<u8> {
    Vec::from_hex(value.as_str().unwrap()).unwrap()
}

fn shown(hash: [u8; 32]) -> String {
    BlockHash::from_bytes(hash).to_string()
}

/// The vectors of BIP158 as Core carries them: the filters and headers of testnet blocks.
#[test]
fn published_vectors() {
    let Some(path) = varve_testdata::data("vectors/core/blockfilters.json") else { return };
    let rows: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let rows: Vec<_> = rows.as_array().unwrap().iter().skip(1).collect();
    assert!(rows.len() >= 9);
    for row in rows {
        let block = bytes(&row[2]);
        let block = Block::parse(&block, Format::Segwit).unwrap();
        assert_eq!(block.hash().to_string(), row[1].as_str().unwrap());
        let spent: Vec<_> = row[3].as_array().unwrap().iter().map(bytes).collect();
        let spent: Vec<_> = spent.iter().map(Vec::as_slice).collect();
        let filter = basic_filter(&block, spent.iter().copied());
        assert_eq!(filter, bytes(&row[5]), "{}", row[7]);
        let previous: BlockHash = row[4].as_str().unwrap().parse().unwrap();
        let header = filter_header(&filter, previous.to_bytes());
        assert_eq!(shown(header), row[6].as_str().unwrap());
        let known = spent.iter().filter(|script| !script.is_empty());
        for script in known {
            assert!(matches(&filter, block.hash(), &[script]));
        }
        let others: Vec<[u8; 8]> = (0..1000_u64).map(u64::to_le_bytes).collect();
        let others = others.iter().filter(|other| matches(&filter, block.hash(), &[&other[..]]));
        assert!(others.count() < 3, "one of 784,931 may match");
    }
}

#[test]
fn an_unreadable_filter_matches() {
    assert!(matches(&[], BlockHash::ZERO, &[b"x"]));
    assert!(matches(&[2, 0xff], BlockHash::ZERO, &[b"x"]));
    assert!(!matches(&[0], BlockHash::ZERO, &[b"x"]), "the filter of nothing");
}
