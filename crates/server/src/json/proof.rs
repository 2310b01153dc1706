//! Proofs that a transaction is in a block, in the two forms that wallets read.

use hex_conservative::DisplayHex as _;
use serde::{Serialize, Serializer};
use varve::types::proof::{ProofNode, Subject, Target};
use varve::types::{Txid, proof};
use varve::{BlockHash, Proof};

use super::{Text, optional_text};

/// The answer of Electrum's `blockchain.transaction.get_merkle`.
///
/// A height names a block of the confirmed chain alone, so the proof of a transaction on a stale
/// branch names its block by `blockhash` as well.
#[derive(Debug, Serialize)]
pub struct ElectrumProof {
    #[serde(serialize_with = "nodes")]
    merkle: Vec<[u8; 32]>,
    block_height: u32,
    pos: u64,
    #[serde(serialize_with = "optional_text", skip_serializing_if = "Option::is_none")]
    blockhash: Option<BlockHash>,
}

impl From<&Proof> for ElectrumProof {
    fn from(proof: &Proof) -> Self {
        let block = &proof.tx.block;
        Self {
            merkle: proof.branch.siblings.clone(),
            block_height: block.height.to_u32(),
            pos: proof.branch.index,
            blockhash: (!block.confirmed).then_some(block.hash),
        }
    }
}

fn nodes<S: Serializer>(nodes: &[[u8; 32]], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(nodes.iter().map(|node| Text(shown(*node))))
}

/// A node of a merkle tree, in the byte order of a txid.
fn shown(node: [u8; 32]) -> Txid {
    Txid::from_bytes(node)
}

/// The JSON form of the TSC standard: hashes reversed as txids are, `*` for a repeated node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TscProof {
    index: u64,
    tx_or_id: String,
    target: String,
    nodes: Vec<String>,
    target_type: &'static str,
}

impl From<&proof::TscProof> for TscProof {
    fn from(proof: &proof::TscProof) -> Self {
        let (target, target_type) = match &proof.target {
            Target::BlockHash(hash) => (hash.to_string(), "hash"),
            Target::Header(header) => (header.to_lower_hex_string(), "header"),
            Target::MerkleRoot(root) => (root.to_string(), "merkleRoot"),
        };
        let node = |node: &ProofNode| match node {
            ProofNode::Hash(hash) => shown(*hash).to_string(),
            ProofNode::Duplicate => "*".to_owned(),
        };
        Self {
            index: proof.index,
            tx_or_id: match &proof.subject {
                Subject::Txid(txid) => txid.to_string(),
                Subject::Transaction(bytes) => bytes.to_lower_hex_string(),
            },
            target,
            nodes: proof.nodes.iter().map(node).collect(),
            target_type,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use varve::Network;
    use varve::types::Block;
    use varve::types::merkle::MerkleBranch;

    use super::*;

    /// The proofs that Conduit publishes for all transactions of mainnet block 413567. It spells
    /// repeated nodes out; ours marks them.
    #[test]
    fn proofs_are_those_of_conduit() {
        let Some(raw) = varve_testdata::data("blocks/mainnet_413567_core.raw") else { return };
        let name = "vectors/conduit/block413567_tsc_merkle_proofs";
        let Some(vectors) = varve_testdata::data(name) else { return };
        let expected: BTreeMap<String, Value> =
            serde_json::from_slice(&std::fs::read(vectors).unwrap()).unwrap();
        let raw = std::fs::read(raw).unwrap();
        let block = Block::parse(&raw, Network::Mainnet.format()).unwrap();
        let txids = block.txids();
        assert_eq!((txids.len(), expected.len()), (1557, 1557));
        let leaves: Vec<_> = txids.iter().map(|txid| txid.to_bytes()).collect();
        let mut marked = 0;
        for (index, txid) in txids.iter().enumerate() {
            let branch = MerkleBranch::new(leaves.clone(), index).unwrap();
            let target = Target::BlockHash(block.hash());
            let ours = TscProof::from(&proof::TscProof::new(&branch, *txid, target));
            let mut ours = serde_json::to_value(&ours).unwrap();
            for (node, sibling) in
                ours["nodes"].as_array_mut().unwrap().iter_mut().zip(&branch.siblings)
            {
                if *node == "*" {
                    marked += 1;
                    *node = shown(*sibling).to_string().into();
                }
            }
            assert_eq!(ours, expected[&txid.to_string()]);
        }
        assert!(marked > 0, "a tree of 1,557 leaves has odd nodes");
    }
}
