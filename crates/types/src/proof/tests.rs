//! Proofs of every transaction of small trees, their bytes, and proofs that must not hold.

use hex_conservative::{DisplayHex as _, FromHex as _};
use proptest::prelude::*;

use super::*;
use crate::Network;
use crate::merkle::merkle_root;

fn txid(number: u64) -> Txid {
    Txid::from_bytes(sha256d(&number.to_le_bytes()))
}

fn branch(count: u64, index: u64) -> MerkleBranch {
    let leaves = (0..count).map(|number| txid(number).to_bytes()).collect();
    MerkleBranch::new(leaves, usize::try_from(index).unwrap()).unwrap()
}

/// A header over a tree of this many transactions; nothing else of it matters here.
fn header(count: u64) -> [u8; Header::LEN] {
    let leaves = (0..count).map(|number| txid(number).to_bytes()).collect();
    let mut header = [7; Header::LEN];
    header[36..68].copy_from_slice(merkle_root(leaves).root.as_bytes());
    header
}

fn targets(header: &[u8; Header::LEN]) -> [Target; 3] {
    let view = Header::new(header);
    [
        Target::BlockHash(view.hash()),
        Target::Header(*header),
        Target::MerkleRoot(view.merkle_root()),
    ]
}

fn encoded(proof: &TscProof) -> Vec<u8> {
    let mut bytes = Vec::new();
    proof.encode(&mut bytes);
    bytes
}

/// The published example: the coinbase of mainnet's block 1.
#[test]
fn the_bytes_of_block_1() {
    let coinbase = "0e3e2357e806b6cdb1f70b54c3a3a17b6714ee1f0e68bebb44a74b1efd512098";
    let block = "00000000839a8e6886ab5951d76f411475428afc90947ee320161bbf18eb6048";
    let branch = MerkleBranch { index: 0, siblings: Vec::new() };
    let target = Target::BlockHash(block.parse().unwrap());
    let proof = TscProof::new(&branch, coinbase.parse().unwrap(), target);
    let bytes = "0000982051fd1e4ba744bbbe680e1fee14677ba1a3c3540bf7b1cdb606e857233e0e\
                 4860eb18bf1b1620e37e9490fc8a427514416fd75159ab86688e9a830000000000";
    assert_eq!(encoded(&proof).to_lower_hex_string(), bytes);
    assert_eq!(TscProof::decode(&Vec::from_hex(bytes).unwrap()), Ok(proof));
}

#[test]
fn every_transaction_of_small_trees_with_every_target() {
    for count in 1..40 {
        let header = header(count);
        for (index, target) in (0..count).flat_map(|at| targets(&header).map(|to| (at, to))) {
            let proof = TscProof::new(&branch(count, index), txid(index), target);
            let decoded = TscProof::decode(&encoded(&proof)).unwrap();
            assert_eq!(decoded, proof);
            let verified = decoded.verify(Header::new(&header), Format::Segwit);
            assert_eq!(verified, Ok(txid(index)), "{index} of {count}");
        }
    }
}

#[test]
fn repeated_nodes_are_marked_and_may_be_spelled_out() {
    // The last of five is repeated on two levels: as a leaf and as its parent.
    let header = header(5);
    let [target, ..] = targets(&header);
    let branch = branch(5, 4);
    let proof = TscProof::new(&branch, txid(4), target);
    let [ProofNode::Duplicate, ProofNode::Duplicate, ProofNode::Hash(_)] = proof.nodes[..] else {
        panic!("{:?}", proof.nodes);
    };
    let spelled = branch.siblings.iter().map(|sibling| ProofNode::Hash(*sibling)).collect();
    let spelled = TscProof { nodes: spelled, ..proof.clone() };
    for proof in [proof, spelled] {
        assert_eq!(proof.verify(Header::new(&header), Format::Segwit), Ok(txid(4)));
        // The same transaction at the place of its copy.
        let moved = TscProof { index: 5, ..proof };
        let error = moved.verify(Header::new(&header), Format::Segwit).unwrap_err();
        assert_eq!(error, ProofError::LeftDuplicate { level: 0 });
    }
}

#[test]
fn the_whole_transaction_proves_itself() {
    let block = Network::Mainnet.genesis_block();
    let header = Header::new(block.first_chunk().unwrap());
    let branch = MerkleBranch { index: 0, siblings: Vec::new() };
    let coinbase = Tx::parse(&block[81..], Format::Segwit).unwrap();
    for target in targets(header.bytes()) {
        let proof = TscProof::new(&branch, coinbase.txid(), target)
            .with_transaction(coinbase.bytes().to_vec());
        assert_eq!(TscProof::decode(&encoded(&proof)), Ok(proof.clone()));
        assert_eq!(proof.verify(header, Format::Segwit), Ok(coinbase.txid()));
        let cut = proof.with_transaction(coinbase.bytes()[1..].to_vec());
        let error = cut.verify(header, Format::Segwit).unwrap_err();
        assert!(matches!(error, ProofError::Transaction(_)), "{error}");
    }
}

#[test]
fn proofs_that_do_not_hold() {
    let (ours, other) = (header(7), header(8));
    let proof = TscProof::new(&branch(7, 2), txid(2), targets(&ours)[0]);
    let verify = |proof: &TscProof| proof.verify(Header::new(&ours), Format::Segwit).unwrap_err();
    assert_eq!(proof.verify(Header::new(&other), Format::Segwit), Err(ProofError::OtherBlock));
    let stranger = TscProof { subject: Subject::Txid(txid(3)), ..proof.clone() };
    assert!(matches!(verify(&stranger), ProofError::OtherRoot { .. }));
    let moved = TscProof { index: 3, ..proof.clone() };
    assert!(matches!(verify(&moved), ProofError::OtherRoot { .. }));
    let beyond = TscProof { index: 2 + 8, ..proof };
    assert_eq!(verify(&beyond), ProofError::IndexTooLarge { index: 10, levels: 3 });
}

#[test]
fn forms_that_nobody_writes_are_refused() {
    let bytes = encoded(&TscProof::new(&branch(3, 0), txid(0), targets(&header(3))[0]));
    for flags in [6, 7, 8, 16, 32, 128] {
        let mut other = bytes.clone();
        other[0] = flags;
        let kind = DecodeErrorKind::UnsupportedProof { flags };
        assert_eq!(TscProof::decode(&other), Err(kind.at(0)));
    }
    let first_node = 1 + 1 + 32 + 32 + 1;
    let mut other = bytes.clone();
    other[first_node] = 2;
    assert_eq!(
        TscProof::decode(&other),
        Err(DecodeErrorKind::UnknownProofNode { kind: 2 }.at(first_node))
    );
    let mut other = bytes.clone();
    other[first_node - 1] = 65;
    assert!(TscProof::decode(&other).is_err());
    for length in 0..bytes.len() {
        assert!(TscProof::decode(&bytes[..length]).unwrap_err().is_incomplete(), "{length}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(TscProof::decode(&longer).unwrap_err().kind, DecodeErrorKind::TrailingBytes);
}

proptest! {
    /// Whatever decodes encodes to the same bytes: there is one form of a proof.
    #[test]
    fn one_form(mut bytes in prop::collection::vec(any::<u8>(), 0..300), flags in 0_u8..8) {
        if let Some(first) = bytes.first_mut() {
            *first = flags;
        }
        if let Ok(proof) = TscProof::decode(&bytes) {
            prop_assert_eq!(encoded(&proof), bytes);
        }
    }
}
