//! Blocks.

use super::transaction;
use bitcoin::consensus::encode::deserialize;
use bitcoin::hashes::Hash as _;
use varve_types::{Block, Format};

/// Accepts and refuses what `bitcoin` does, with the same transactions, hashes and merkle root.
/// Transactions without inputs are left out, as for a single one.
pub(super) fn block(bytes: &[u8]) {
    let ours = Block::parse(bytes, Format::Segwit);
    let theirs = deserialize::<bitcoin::Block>(bytes);
    let odd = |block: &Block<'_>| block.txs().iter().any(|tx| tx.inputs().len() == 0);
    let their_odd = |block: &bitcoin::Block| block.txdata.iter().any(|tx| tx.input.is_empty());
    if ours.as_ref().is_ok_and(odd) || theirs.as_ref().is_ok_and(their_odd) {
        return;
    }
    let errors = (ours.as_ref().err(), theirs.as_ref().err());
    assert_eq!(ours.is_ok(), theirs.is_ok(), "one of us refuses: {errors:?}");
    if let Some((ours, theirs)) = ours.ok().zip(theirs.ok()) {
        agree(&ours, &theirs);
    }
}

fn agree(ours: &Block<'_>, theirs: &bitcoin::Block) {
    assert_eq!(ours.hash().to_bytes(), theirs.block_hash().to_byte_array());
    assert_eq!(ours.header().previous().to_bytes(), theirs.header.prev_blockhash.to_byte_array());
    assert_eq!(ours.header().time(), theirs.header.time);
    assert_eq!(ours.header().nonce(), theirs.header.nonce);
    assert_eq!(ours.txs().len(), theirs.txdata.len());
    for (ours, theirs) in ours.txs().iter().zip(&theirs.txdata) {
        transaction::agree(ours, theirs);
    }
    let txids = ours.txs().iter().map(|tx| tx.txid());
    assert!(txids.eq(ours.txids()), "all at once and one by one");
    let wtxids = ours.txs().iter().map(|tx| tx.wtxid());
    assert!(wtxids.eq(ours.wtxids()), "all at once and one by one");
    let root = theirs.compute_merkle_root().map(|root| root.to_byte_array());
    assert_eq!(Some(ours.merkle_tree().root.to_bytes()), root.or(Some([0; 32])));
    for (offset, tx) in ours.txs_with_offsets() {
        assert!(ours.bytes().get(offset..).is_some_and(|rest| rest.starts_with(tx.bytes())));
    }
    // Computing it may find nothing to commit to, but must not fail on what was decoded.
    let _ = (ours.witness_commitment(), ours.compute_witness_commitment());
}
