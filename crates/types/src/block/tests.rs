//! Blocks made by hand: counts, ends and commitments.

use proptest::prelude::*;

use super::*;
use crate::network::Network;

/// A coinbase with these output scripts.
fn coinbase(scripts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![1, 0, 0, 0, 1];
    bytes.extend_from_slice(&crate::Outpoint::NULL.to_bytes());
    bytes.extend_from_slice(&[0, 0xff, 0xff, 0xff, 0xff]);
    compact_size::write(scripts.len() as u64, &mut bytes);
    for script in scripts {
        bytes.extend_from_slice(&[0; 8]);
        compact_size::write(script.len() as u64, &mut bytes);
        bytes.extend_from_slice(script);
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

fn block(count: u64, txs: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; Header::LEN];
    compact_size::write(count, &mut bytes);
    bytes.extend_from_slice(txs);
    bytes
}

#[test]
fn a_count_is_not_believed() {
    let tx = coinbase(&[&[0x51]]);
    for count in [8, 1 << 24, 1 << 40, u64::MAX] {
        let bytes = block(count, &tx);
        let what = "transactions";
        let expected = DecodeErrorKind::CountTooLarge { what, count }.at(80);
        assert_eq!(Block::parse(&bytes, Format::Legacy), Err(expected));
    }
    // A count that could fit, of transactions that are not there.
    let error = Block::parse(&block(2, &tx), Format::Segwit).unwrap_err();
    assert_eq!((error.is_incomplete(), error.offset), (true, 81 + tx.len() as u64));
}

#[test]
fn errors_count_from_the_start_of_the_block() {
    let tx = coinbase(&[&[0x51]]);
    let mut txs = [tx.clone(), tx.clone()].concat();
    // The count of inputs of the second transaction, in a form that is too long.
    txs.splice(tx.len() + 4..tx.len() + 5, [0xfd, 1, 0]);
    let error = Block::parse(&block(2, &txs), Format::Segwit).unwrap_err();
    assert_eq!(error, DecodeErrorKind::NonCanonicalCompactSize.at(81 + tx.len() + 4));
    let text = error.to_string();
    assert!(text.starts_with(&format!("at byte {}: expected", 81 + tx.len() + 4)), "{text}");
}

#[test]
fn no_transactions_at_all() {
    let bytes = block(0, &[]);
    let block = Block::parse(&bytes, Format::Segwit).unwrap();
    assert_eq!((block.txs().len(), block.txids().len()), (0, 0));
    assert_eq!(block.witness_commitment(), None);
    assert_eq!(block.compute_witness_commitment(), None);
}

#[test]
fn the_last_commitment_counts() {
    let commitment = |byte: u8| {
        let mut script = vec![0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];
        script.extend([byte; 32]);
        script
    };
    let longer = [commitment(2), vec![0x51]].concat();
    let short = &commitment(3)[..37];
    let tx = coinbase(&[&commitment(1), &[0x51], &longer, short, &[]]);
    let bytes = block(1, &tx);
    let block = Block::parse(&bytes, Format::Segwit).unwrap();
    assert_eq!(block.witness_commitment(), Some([2; 32]));
    // Its coinbase has no witness, hence no reserved value.
    assert_eq!(block.compute_witness_commitment(), None);
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic(
        tail in prop::collection::vec(any::<u8>(), 0..100),
        damage: [(prop::sample::Index, u8); 3],
    ) {
        let mut genesis = Network::Mainnet.genesis_block();
        for (at, byte) in damage {
            let at = at.index(genesis.len());
            genesis[at] = byte;
        }
        for bytes in [genesis, block(2, &tail), tail] {
            for format in [Format::Segwit, Format::Legacy] {
                match Block::parse(&bytes, format) {
                    Ok(block) => prop_assert_eq!(block.txids().len(), block.txs().len()),
                    Err(error) => prop_assert!(error.offset <= bytes.len() as u64),
                }
            }
        }
    }
}

/// No block holds extended transactions, but a caller may ask for the format, and hostile bytes may
/// then decode: hashing them must give txids, not a panic.
#[test]
fn extended_transactions_have_their_txids_in_a_block_too() {
    let legacy = coinbase(&[&[0x51]]);
    let mut extended = legacy[..4].to_vec();
    extended.extend_from_slice(&[0, 0, 0, 0, 0, 0xef]);
    extended.extend_from_slice(&legacy[4..46]);
    extended.extend_from_slice(&[5, 0, 0, 0, 0, 0, 0, 0, 1, 0x52]);
    extended.extend_from_slice(&legacy[46..]);
    let expected = Tx::parse(&legacy, Format::Legacy).unwrap().txid();

    let bytes = block(1, &extended);
    let block = Block::parse(&bytes, Format::Extended).unwrap();
    assert_eq!(block.txids(), [expected]);
    assert_eq!(block.wtxids(), [Wtxid::from_bytes(expected.to_bytes())]);
    assert_eq!(block.merkle_tree().root.to_bytes(), expected.to_bytes());
}
