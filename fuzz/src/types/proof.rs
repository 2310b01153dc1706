//! Merkle proofs that others send.

use crate::examples::Examples;
use varve_types::merkle::MerkleBranch;
use varve_types::proof::{Target, TscProof};
use varve_types::{Block, Format, Header};

/// What decodes encodes to the same bytes, and verifying it gives an answer.
pub(super) fn proof(bytes: &[u8]) {
    let Ok(proof) = TscProof::decode(bytes) else { return };
    let mut encoded = Vec::new();
    proof.encode(&mut encoded);
    assert_eq!(encoded, bytes);
    let header = match &proof.target {
        Target::Header(header) => *header,
        Target::BlockHash(_) | Target::MerkleRoot(_) => [0; Header::LEN],
    };
    // Mutations seldom hold; no answer may panic.
    let _ = proof.verify(Header::new(&header), Format::Segwit);
}

/// Proofs of the last transaction of every example block, in all forms.
pub(super) fn seeds(examples: &Examples) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for block in &examples.blocks {
        let Ok(block) = Block::parse(block, Format::Segwit) else { continue };
        let (txids, header) = (block.txids(), block.header());
        // Some examples are no blocks of a chain.
        if block.merkle_tree().root != header.merkle_root() {
            continue;
        }
        let Some((txid, tx)) = txids.last().zip(block.txs().last()) else { continue };
        let leaves = txids.iter().map(|txid| txid.to_bytes()).collect();
        let branch = MerkleBranch::new(leaves, txids.len() - 1).expect("the last leaf is one");
        let targets = [
            Target::BlockHash(header.hash()),
            Target::Header(*header.bytes()),
            Target::MerkleRoot(header.merkle_root()),
        ];
        for target in targets {
            let short = TscProof::new(&branch, *txid, target);
            let long = short.clone().with_transaction(tx.bytes().to_vec());
            for proof in [short, long] {
                let mut bytes = Vec::new();
                proof.encode(&mut bytes);
                assert_eq!(proof.verify(header, Format::Segwit), Ok(*txid));
                seeds.push(bytes);
            }
        }
    }
    seeds
}
