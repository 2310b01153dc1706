//! What the Conduit indexer publishes about block 413567, and about its test chain.
//!
//! `block413567_pushdata_hashes` lists, a line each and in block order, the hash of every key or
//! hash that an *input* script pushes: the indexer's test walks the inputs only, takes an item
//! once a script, and shows the hashes reversed. (Its index itself takes the outputs only.)

use std::fs;

use varve_types::merkle::MerkleBranch;
use varve_types::proof::{ProofNode, Target, TscProof};
use varve_types::pushdata::PushdataRule;
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
        let mut items: Vec<_> = PushdataRule::Documented.of_input(input.script).collect();
        items.dedup_by_key(|item| item.data);
        hashes
            .extend(items.iter().map(|item| Txid::from_bytes(item.hash().to_bytes()).to_string()));
    }
    assert_eq!(hashes.len(), 3957);
    assert!(hashes.iter().map(String::as_str).eq(list.lines()));
}

/// Every published proof equals ours, except that it spells out repeated nodes, which ours mark.
#[test]
fn tsc_proofs_of_every_transaction() {
    let Some(proofs) = varve_testdata::data("vectors/conduit/block413567_tsc_merkle_proofs") else {
        return;
    };
    let Some(bytes) = block() else { return };
    let proofs = load::json(&proofs);
    let block = Block::parse(&bytes, Format::Segwit).unwrap();
    let txids = block.txids();
    assert_eq!(proofs.as_object().unwrap().len(), txids.len());
    let leaves: Vec<_> = txids.iter().map(|txid| txid.to_bytes()).collect();
    let mut marked = 0;
    for (index, txid) in txids.iter().enumerate() {
        let published = &proofs[txid.to_string()];
        assert_eq!(published["index"], index);
        let target: varve_types::BlockHash = published["target"].as_str().unwrap().parse().unwrap();
        assert_eq!(target, block.hash());
        let nodes = published["nodes"].as_array().unwrap().iter();
        let siblings: Vec<_> =
            nodes.map(|node| node.as_str().unwrap().parse::<Txid>().unwrap().to_bytes()).collect();
        let spelled = TscProof {
            nodes: siblings.iter().map(|sibling| ProofNode::Hash(*sibling)).collect(),
            ..TscProof::new(
                &MerkleBranch { index: index as u64, siblings: siblings.clone() },
                *txid,
                Target::BlockHash(target),
            )
        };
        assert_eq!(spelled.verify(block.header(), Format::Segwit), Ok(*txid));
        // Building a branch hashes the whole tree: the first, some, and the last, which is
        // repeated.
        if index % 100 == 0 || index + 16 > txids.len() {
            let branch = MerkleBranch::new(leaves.clone(), index).unwrap();
            assert_eq!(branch.siblings, siblings);
            let ours = TscProof::new(&branch, *txid, Target::BlockHash(target));
            assert_eq!(ours.verify(block.header(), Format::Segwit), Ok(*txid));
            marked += ours.nodes.iter().filter(|node| **node == ProofNode::Duplicate).count();
        }
    }
    assert!(marked > 0, "a block of {} transactions repeats nodes", txids.len());
}
