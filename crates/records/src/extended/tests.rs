//! Both forms of a transaction, against the standard form built by hand.

use proptest::collection::vec;
use proptest::prelude::*;
use varve_types::{Amount, sha256d};

use super::*;

/// A transaction of these parts in standard form, and the outputs that its inputs spend.
fn standard(scripts: &[Vec<u8>], outputs: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0];
    compact_size::write(scripts.len() as u64, &mut out);
    for (index, script) in scripts.iter().enumerate() {
        let vout = u32::try_from(index).unwrap();
        let outpoint = Outpoint::new(Txid::from_bytes([7; 32]), vout);
        TxIn { outpoint, script, sequence: 5, spent: None }.write(&mut out);
    }
    compact_size::write(outputs.len() as u64, &mut out);
    for (value, script) in outputs {
        TxOut { value: Amount::from_sat(*value), script }.write(&mut out);
    }
    out.extend([9, 0, 0, 0]);
    out
}

fn parse(bytes: Vec<u8>) -> Transaction {
    Transaction::parse(bytes.into(), Format::Legacy).unwrap()
}

#[test]
fn the_marker_makes_it_extended() {
    let bytes = standard(&[vec![1, 2]], &[(5, vec![0x51])]);
    let tx = parse(bytes.clone());
    assert!(!tx.is_extended());
    let spent = [TxOut { value: Amount::from_sat(6), script: &[0x52; 300] }];
    let extended = tx.extend(&spent).unwrap();
    assert!(extended.is_extended());
    assert_eq!(extended.bytes()[4..10], [0, 0, 0, 0, 0, 0xef]);
    assert_eq!(extended.view().inputs().next().unwrap().spent, Some(spent[0]));
    assert_eq!(extended.txid(), Txid::from_bytes(sha256d(&bytes)));
    assert_eq!(extended.size(), bytes.len() as u64);
    assert_eq!(extended.extended_size(), (bytes.len() + 6 + 8 + 3 + 300) as u64);
    assert_eq!(tx.extended_size(), (bytes.len() + 6 + 8 + 1) as u64);
    assert_eq!(tx.extend(&[]), None, "one output for each input");
}

/// The same with a witness of one item for each input.
fn with_witness(standard: &[u8], inputs: usize) -> Vec<u8> {
    let (head, lock_time) = standard.split_at(standard.len() - 4);
    let witness = [1, 2, 0xaa, 0xbb].repeat(inputs);
    [&head[..4], &[0, 1], &head[4..], &witness, lock_time].concat()
}

#[test]
fn a_witness_stays_in_front_of_what_is_spent() {
    let bytes = standard(&[vec![], vec![1]], &[(5, vec![0x51])]);
    let whole = with_witness(&bytes, 2);
    let tx = Transaction::parse(whole.clone().into(), Format::Segwit).unwrap();
    assert!(!tx.is_extended());
    assert_eq!(tx.extended_size(), (whole.len() + 2 * 9) as u64, "as if it spent nothing");
    let output = |value| TxOut { value: Amount::from_sat(value), script: &[0x52; 300] };
    let spent = [output(6), output(7)];
    let extended = tx.extend(&spent).unwrap();
    assert!(extended.is_extended());
    assert_eq!(extended.view().bytes(), whole, "as in a block");
    assert!(extended.inputs().map(|input| input.spent).eq(spent.map(Some)));
    assert_eq!(extended.txid(), Txid::from_bytes(sha256d(&bytes)));
    assert_eq!(extended.size(), whole.len() as u64);
    assert_eq!(extended.extended_size(), extended.bytes().len() as u64);
    let again = Transaction::parse(extended.bytes().clone(), Format::Segwit);
    assert_eq!(again, Ok(extended.clone()));
    assert_eq!(extended.extend(&spent), Some(extended.clone()), "once");
    let without = parse(bytes).extend(&spent).unwrap();
    assert_eq!(extended.extended_bytes(), without.bytes(), "that form has no place for it");
}

#[test]
fn what_stands_behind_a_witness_is_whole() {
    let bytes = with_witness(&standard(&[vec![]], &[(5, vec![0x51])]), 1);
    let tx = Transaction::parse(bytes.clone().into(), Format::Segwit).unwrap();
    let spent = [TxOut { value: Amount::from_sat(6), script: &[0x52; 3] }];
    let extended = tx.extend(&spent).unwrap().bytes().to_vec();
    for cut in bytes.len() + 1..extended.len() {
        let cut = Bytes::copy_from_slice(&extended[..cut]);
        assert!(Transaction::parse(cut, Format::Segwit).is_err());
    }
    let longer = [&extended[..], &[0]].concat();
    assert!(Transaction::parse(longer.into(), Format::Segwit).is_err());
    let without = [standard(&[vec![]], &[(5, vec![0x51])]), extended[bytes.len()..].to_vec()];
    let without = Transaction::parse(without.concat().into(), Format::Segwit);
    assert!(without.is_err(), "without a witness there is the extended form");
}

#[test]
fn an_empty_transaction_has_a_lock_time_there() {
    let bytes = vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0xee];
    assert_eq!(parse(bytes).view().lock_time(), 0xee00_0000);
    let marker_only = Bytes::from_static(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0xef]);
    assert!(Transaction::parse(marker_only, Format::Legacy).is_err());
}

#[test]
fn a_coinbase_spends_nothing() {
    let block = varve_types::Network::Mainnet.genesis_block();
    let tx = Transaction::parse(block.get(81..).unwrap().to_vec().into(), Format::Segwit).unwrap();
    assert!(tx.outpoints().is_empty() && tx.view().is_coinbase());
    let known = Transaction::parse_with_txid(tx.bytes().clone(), Format::Segwit, Txid::ZERO);
    assert_eq!(known.unwrap().txid(), Txid::ZERO);
}

#[test]
fn the_bytes_are_shared() {
    let bytes = Bytes::from(standard(&[vec![]], &[(5, vec![])]));
    let tx = Transaction::parse(bytes.clone(), Format::Legacy).unwrap();
    assert_eq!(tx.clone().bytes().as_ptr(), bytes.as_ptr());
}

proptest! {
    #[test]
    fn the_txid_is_that_of_the_standard_form(
        inputs in vec((vec(any::<u8>(), 0..300), any::<u64>()), 1..5),
        outputs in vec((any::<u64>(), vec(any::<u8>(), 0..300)), 0..5),
    ) {
        let scripts: Vec<_> = inputs.iter().map(|(script, _)| script.clone()).collect();
        let bytes = standard(&scripts, &outputs);
        let tx = parse(bytes.clone());
        let spent: Vec<_> = inputs
            .iter()
            .map(|(script, value)| TxOut { value: Amount::from_sat(*value), script })
            .collect();
        let extended = tx.extend(&spent).unwrap();
        let again = Transaction::parse(extended.bytes().clone(), Format::Legacy).unwrap();
        prop_assert_eq!(&again, &extended);
        prop_assert_eq!(again.txid(), Txid::from_bytes(sha256d(&bytes)));
        prop_assert_eq!(again.size(), bytes.len() as u64);
        prop_assert_eq!(again.view().to_legacy(), bytes);
    }
}
