//! Blocks, whole and in pieces.

use super::transaction;
use crate::examples::Examples;
use bitcoin::consensus::encode::deserialize;
use bitcoin::hashes::Hash as _;
use varve_types::stream::{BlockStream, Item, Summary};
use varve_types::{Block, DecodeError, Format, Txid};

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

/// The first byte says how long the pieces are, the rest is a block. In pieces and in one piece
/// the stream gives the same transactions and the same end, and what parsing the block gives.
pub(super) fn stream(bytes: &[u8]) {
    let Some((length, bytes)) = bytes.split_first() else { return };
    for format in [Format::Segwit, Format::Legacy] {
        let whole = run_stream(format, bytes, bytes.len().max(1));
        let pieces = run_stream(format, bytes, usize::from(*length).max(1));
        assert_eq!(whole, pieces);
        let (txids, summary) = whole;
        let parsed = Block::parse(bytes, format);
        let errors = (summary.as_ref().err(), parsed.as_ref().err());
        assert_eq!(summary.is_ok(), parsed.is_ok(), "one of them refuses: {errors:?}");
        if let (Ok(summary), Ok(parsed)) = (summary, parsed) {
            assert_eq!(txids, parsed.txids());
            assert_eq!(summary.tx_count, parsed.txs().len() as u64);
            assert_eq!(summary.length, bytes.len() as u64);
            assert_eq!(summary.header, *parsed.header().bytes());
            assert_eq!(summary.merkle, parsed.merkle_tree());
        }
    }
}

fn run_stream(
    format: Format,
    bytes: &[u8],
    length: usize,
) -> (Vec<Txid>, Result<Summary, DecodeError>) {
    let mut stream = BlockStream::new(format);
    let mut txids = Vec::new();
    for piece in bytes.chunks(length) {
        let pushed = stream.push(piece, |item| match item {
            Item::Header(header) => assert!(bytes.starts_with(header.bytes())),
            Item::Tx { txid, .. } => txids.push(txid),
        });
        if pushed.is_err() {
            break;
        }
    }
    (txids, stream.finish())
}

/// The example blocks, in pieces of 100 bytes.
pub(super) fn stream_seeds(examples: &Examples) -> Vec<Vec<u8>> {
    examples.blocks.iter().map(|block| [&[100], block.as_slice()].concat()).collect()
}
