//! What the Conduit indexer publishes about block 413567.
//!
//! `block413567_pushdata_hashes` lists, a line each and in block order, the hash of every key or
//! hash that an *input* script pushes: the indexer's test walks the inputs only, takes an item
//! once a script, and shows the hashes reversed. (Its index itself takes the outputs only.)

use std::fs;

use varve_types::merkle::MerkleBranch;
use varve_types::pushdata::Pushes;
use varve_types::{Block, Format, Txid};

use crate::load;

fn block() -> Option<Vec<u8>> {
    Some(fs::read(varve_testdata::data("blocks/mainnet_413567_core.raw")?).unwrap())
}

#[test]
fn hashes_of_keys_in_inputs() {
    let Some(list) = varve_testdata::data("vectors/conduit/block413567_pushdata_hashes") else {
        return;
    };
    let Some(bytes) = block() else { return };
    let list = fs::read_to_string(list).unwrap();
    let block = Block::parse(&bytes, Format::Segwit).unwrap();

    let mut hashes = Vec::new();
    for input in block.txs().iter().flat_map(|tx| tx.inputs()) {
        let mut items: Vec<_> =
            Pushes::new(input.script).filter(|push| push.is_key_or_hash()).collect();
        items.dedup_by_key(|push| push.data);
        hashes.extend(items.iter().map(|push| Txid::from_bytes(push.hash()).to_string()));
    }
    assert_eq!(hashes.len(), 3957);
    assert!(hashes.iter().map(String::as_str).eq(list.lines()));
}

#[test]
fn merkle_proofs_of_every_transaction() {
    let Some(proofs) = varve_testdata::data("vectors/conduit/block413567_tsc_merkle_proofs") else {
        return;
    };
    let Some(bytes) = block() else { return };
    let proofs = load::json(&proofs);
    let block = Block::parse(&bytes, Format::Segwit).unwrap();
    let txids = block.txids();
    assert_eq!(proofs.as_object().unwrap().len(), txids.len());
    for (index, txid) in txids.iter().enumerate() {
        let proof = &proofs[txid.to_string()];
        assert_eq!(proof["index"], index);
        assert_eq!(proof["target"].as_str().unwrap(), block.hash().to_string());
        let nodes = proof["nodes"].as_array().unwrap().iter();
        let published = MerkleBranch {
            index: index as u64,
            // `*` stands for a node that is paired with itself; this file repeats the node.
            siblings: nodes
                .map(|node| node.as_str().unwrap().parse::<Txid>().unwrap().to_bytes())
                .collect(),
        };
        assert_eq!(published.root(txid.to_bytes()), Some(block.header().merkle_root()));
        if index % 100 == 0 {
            let leaves = txids.iter().map(|txid| txid.to_bytes()).collect();
            assert_eq!(MerkleBranch::new(leaves, index), Some(published));
        }
    }
}
