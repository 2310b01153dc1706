//! Every real block: parsed, reassembled, hashed, and compared with the `bitcoin` crate.

use std::collections::BTreeSet;

use varve_types::script::Instructions;
use varve_types::{Block, DecodeError, Format, Tx, compact_size};

use crate::load::{self, RealBlock};

/// The height from which every coinbase begins with its height.
const BIP34: u32 = 227_931;

#[test]
fn every_block_parses_and_hashes() {
    let Some(blocks) = load::all() else { return };
    let (mut txs, mut with_witness, mut committed) = (0, 0, 0);
    let mut distinct = BTreeSet::new();
    for real in &blocks {
        let block = Block::parse(&real.bytes, real.format)
            .unwrap_or_else(|error| panic!("{}: {error}", real.source));
        check(real, &block);
        distinct.insert(block.hash());
        txs += block.txs().len();
        with_witness += block.txs().iter().filter(|tx| tx.has_witness()).count();
        committed += usize::from(block.witness_commitment().is_some());
    }
    // What the data held when this was written; data may be added, but not removed.
    println!(
        "{} blocks, {} distinct, {txs} transactions, {with_witness} with witness, \
         {committed} blocks with commitment",
        blocks.len(),
        distinct.len()
    );
    assert!(blocks.len() >= 5_784 && distinct.len() >= 5_434);
    assert!(txs >= 115_942 && with_witness >= 95_081 && committed >= 845);
}

fn check(real: &RealBlock, block: &Block<'_>) {
    let source = &real.source;
    if let Some(hash) = real.hash {
        assert_eq!(block.hash(), hash, "{source}");
    }
    if let Some(height) = real.height.filter(|height| *height >= BIP34) {
        assert_eq!(coinbase_height(block), Some(height), "{source}");
    }
    let root = block.merkle_tree();
    assert_eq!(root.root, block.header().merkle_root(), "{source}");
    assert!(!root.mutated, "{source}");
    assert_eq!(reassemble(block), real.bytes, "{source}");
    compare_with_bitcoin_crate(real, block);
    let commitment = block.witness_commitment();
    if block.txs().iter().any(|tx| tx.has_witness()) {
        assert!(commitment.is_some(), "{source}");
        assert_eq!(block.compute_witness_commitment(), commitment, "{source}");
    }
}

fn coinbase_height(block: &Block<'_>) -> Option<u32> {
    let input = block.txs().first()?.inputs().next()?;
    let data = Instructions::new(input.script).next()?.ok()?.data?;
    let mut bytes = [0; 4];
    bytes.get_mut(..data.len())?.copy_from_slice(data);
    Some(u32::from_le_bytes(bytes))
}

/// The block reassembled from its fields, without using its bytes.
fn reassemble(block: &Block<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(block.bytes().len());
    out.extend_from_slice(block.header().bytes());
    compact_size::write(block.txs().len() as u64, &mut out);
    block.txs().iter().for_each(|tx| reassemble_tx(tx, &mut out));
    out
}

pub(crate) fn reassemble_tx(tx: &Tx<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&tx.version().to_le_bytes());
    if tx.has_witness() {
        out.extend_from_slice(&[0, 1]);
    }
    compact_size::write(tx.inputs().len() as u64, out);
    tx.inputs().for_each(|input| input.write(out));
    compact_size::write(tx.outputs().len() as u64, out);
    tx.outputs().for_each(|output| output.write(out));
    if tx.has_witness() {
        for witness in tx.witnesses() {
            compact_size::write(witness.len() as u64, out);
            for item in witness.items() {
                compact_size::write(item.len() as u64, out);
                out.extend_from_slice(item);
            }
        }
    }
    out.extend_from_slice(&tx.lock_time().to_le_bytes());
}

fn compare_with_bitcoin_crate(real: &RealBlock, block: &Block<'_>) {
    use bitcoin::hashes::Hash as _;
    let source = &real.source;
    let theirs: bitcoin::Block = bitcoin::consensus::deserialize(&real.bytes).unwrap();
    assert_eq!(block.hash().to_bytes(), theirs.block_hash().to_byte_array(), "{source}");
    assert!(theirs.check_merkle_root(), "{source}");
    let txids = theirs.txdata.iter().map(|tx| tx.compute_txid().to_byte_array());
    assert!(block.txids().into_iter().map(|txid| txid.to_bytes()).eq(txids), "{source}");
    let wtxids = theirs.txdata.iter().map(|tx| tx.compute_wtxid().to_byte_array());
    assert!(block.wtxids().into_iter().map(|wtxid| wtxid.to_bytes()).eq(wtxids), "{source}");
    let ours = block.compute_witness_commitment() == block.witness_commitment()
        || !block.txs().iter().any(|tx| tx.has_witness());
    assert_eq!(ours, theirs.check_witness_commitment(), "{source}");
    let coinbase = block.txs().first().is_some_and(Tx::is_coinbase);
    assert_eq!(coinbase, theirs.txdata.first().is_some_and(bitcoin::Transaction::is_coinbase));
}

#[test]
fn every_cut_of_a_real_block_is_an_error() {
    let Some(blocks) = load::regtest() else { return };
    // The last blocks of this chain spend segwit and taproot outputs.
    for bytes in blocks.iter().rev().take(8) {
        for end in 0..bytes.len() {
            let error = Block::parse(&bytes[..end], Format::Segwit).unwrap_err();
            assert!(is_incomplete(&error) && error.offset <= end as u64, "{end}: {error}");
        }
    }
}

fn is_incomplete(error: &DecodeError) -> bool {
    use varve_types::DecodeErrorKind::{CountTooLarge, UnexpectedEnd};
    matches!(error.kind, UnexpectedEnd { .. } | CountTooLarge { .. })
}
