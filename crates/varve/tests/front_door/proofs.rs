//! Proofs that a transaction is in a block, checked as a stranger would: by the header alone.

use std::collections::HashMap;

use varve::types::Block;
use varve::types::proof::{ProofNode, TscProof};
use varve::{BlockHash, Node, Proof, ProofTarget, Txid};

use crate::chain::{NETWORK, blocks, synced};

const TARGETS: [ProofTarget; 3] = [ProofTarget::Hash, ProofTarget::Header, ProofTarget::MerkleRoot];

/// Verifies every form of a proof against the header of this block.
fn check(proof: &Proof, txid: Txid, block: &Block<'_>) {
    let header = block.header();
    assert_eq!(proof.header().bytes(), header.bytes());
    assert_eq!(proof.branch.root(txid.to_bytes()), Some(header.merkle_root()));
    for target in TARGETS {
        let by_txid = proof.tsc(target);
        let in_full = by_txid.clone().with_transaction(proof.tx.bytes().to_vec());
        for tsc in [by_txid, in_full] {
            assert_eq!(tsc.verify(header, NETWORK.format()), Ok(txid));
            let mut bytes = Vec::new();
            tsc.encode(&mut bytes);
            assert_eq!(TscProof::decode(&bytes), Ok(tsc));
        }
    }
}

#[test]
fn every_transaction_of_every_branch_is_proven_live_and_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(125, 3);
    let parsed: Vec<_> = blocks
        .iter()
        .map(|block| (block, Block::parse(&block.bytes, NETWORK.format()).unwrap()))
        .collect();
    let by_hash: HashMap<BlockHash, usize> =
        parsed.iter().enumerate().map(|(index, (block, _))| (block.hash, index)).collect();
    let live = synced(folder.path(), &blocks);
    let (mut stale, mut duplicates) = (0, 0);
    let mut check_all = |node: &Node| {
        let snapshot = node.snapshot();
        for (_, block) in &parsed {
            for txid in block.txids() {
                let proof = snapshot.proof(txid).unwrap().unwrap();
                let (found, block) = &parsed[by_hash[&proof.tx.block.hash]];
                assert_eq!(block.txids()[proof.tx.position as usize], txid);
                assert_eq!(proof.tx.is_confirmed(), !found.stale, "{txid}");
                check(&proof, txid, block);
                stale += usize::from(found.stale);
                let nodes = proof.tsc(ProofTarget::Hash).nodes;
                duplicates += nodes.iter().filter(|node| **node == ProofNode::Duplicate).count();
            }
        }
        assert!(snapshot.proof(Txid::from_bytes([7; 32])).unwrap().is_none());
    };
    check_all(&live);
    drop(live);
    check_all(&Node::open(folder.path()).unwrap());
    assert!(stale > 0 && duplicates > 0, "{stale} on stale branches, {duplicates} odd nodes");
}
