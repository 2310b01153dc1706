//! The decoders of `varve-records`: what comes from other nodes, from blobs and from run files.
//!
//! All of these formats have one way to write a thing, so the claim is: what was decoded and is
//! encoded again gives the same bytes. Flags without a meaning are the one exception.

#![expect(clippy::indexing_slicing, reason = "what was decoded has these bytes")]

use bitcoin::consensus::encode::deserialize;
use varve_records::Transaction;
use varve_records::contract::index::{decode_leaf, encode_leaf, find_in_leaf, same_place};
use varve_records::exchange::{
    Meta, TxInpoints, UtxoWrapper, WrappedOutput, WrapperHead, write_wrapper,
};
use varve_records::record::{Slot, SpendingData};
use varve_types::{Amount, Format, Height, Outpoint, TxOut, Txid};

use crate::Target;
use crate::examples::Examples;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "record_slot", run: record_slot, seeds: |_| slots() },
    Target { name: "record_transaction", run: record_transaction, seeds: transactions },
    Target { name: "record_inpoints", run: record_inpoints, seeds: |_| vec![inpoints()] },
    Target { name: "record_meta", run: record_meta, seeds: metas },
    Target { name: "utxo_wrapper", run: utxo_wrapper, seeds: |_| vec![wrapper()] },
    Target { name: "record_leaf", run: record_leaf, seeds: |_| leaves() },
];

fn record_slot(bytes: &[u8]) {
    if let Ok(slot) = Slot::decode(bytes) {
        let mut again = Vec::new();
        slot.encode(&mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(data) = text.parse::<SpendingData>()
    {
        assert_eq!(data.to_string(), text.to_lowercase());
    }
}

fn slots() -> Vec<Vec<u8>> {
    let text = SpendingData::new(Txid::from_bytes([7; 32]), 9).to_string();
    vec![vec![1; 32], vec![2; 68], vec![3; 36], text.into_bytes()]
}

/// The streaming txid against the standard form, and that against the `bitcoin` crate.
fn record_transaction(bytes: &[u8]) {
    let Ok(tx) = Transaction::parse(bytes.to_vec().into(), Format::Segwit) else { return };
    let standard = tx.view().to_legacy();
    assert_eq!(tx.txid(), Txid::from_bytes(varve_types::sha256d(&standard)));
    if !tx.view().has_witness() {
        assert_eq!(tx.size(), standard.len() as u64);
    }
    if let Ok(theirs) = deserialize::<bitcoin::Transaction>(&standard) {
        assert_eq!(tx.txid().to_string(), theirs.compute_txid().to_string());
    }
    let spent: Vec<_> = tx.inputs().map(|input| input.spent.unwrap_or(NOTHING)).collect();
    let extended = tx.extend(&spent).expect("one output for each input");
    if tx.is_extended() {
        assert_eq!(extended.bytes(), bytes);
    }
    assert_eq!(extended.extended_size(), tx.extended_size());
    let again = Transaction::parse(extended.bytes().clone(), Format::Segwit);
    assert_eq!(again.expect("extended just now"), extended);
}

const NOTHING: TxOut<'static> = TxOut { value: Amount::ZERO, script: &[] };

/// In both forms.
fn transactions(examples: &Examples) -> Vec<Vec<u8>> {
    let mut all = examples.transactions.clone();
    for bytes in &examples.transactions {
        let tx = Transaction::parse(bytes.clone().into(), Format::Segwit).expect("an example");
        let spent = vec![TxOut { value: Amount::COIN, script: &[0x51] }; tx.view().inputs().len()];
        all.push(tx.extend(&spent).expect("one output for each input").bytes().to_vec());
    }
    all
}

fn record_inpoints(bytes: &[u8]) {
    let Ok(inpoints) = TxInpoints::decode(bytes) else { return };
    let mut again = Vec::new();
    inpoints.encode(&mut again);
    assert_eq!(again, bytes);
}

fn inpoints() -> Vec<u8> {
    let at = |byte, vout| Outpoint::new(Txid::from_bytes([byte; 32]), vout);
    let mut bytes = Vec::new();
    TxInpoints::from_outpoints(&[at(1, 0), at(2, 1), at(1, 2)]).encode(&mut bytes);
    bytes
}

fn record_meta(bytes: &[u8]) {
    let Ok(meta) = Meta::decode(&bytes.to_vec().into()) else { return };
    let again = meta.to_bytes();
    let without_flags = |bytes: &[u8]| [&bytes[..16], &bytes[17..]].concat();
    assert_eq!(without_flags(&again), without_flags(bytes));
    assert_eq!(Meta::decode(&again.into()).expect("encoded just now"), meta);
}

/// Short, and long with each transaction.
fn metas(examples: &Examples) -> Vec<Vec<u8>> {
    let short = [vec![0; 17], inpoints()].concat();
    let parse = |tx: &Vec<u8>| Transaction::parse(tx.clone().into(), Format::Segwit);
    let extended = |tx| parse(tx).expect("an example").extended_bytes().to_vec();
    let all =
        examples.transactions.iter().cloned().chain(examples.transactions.iter().map(extended));
    let long = all.map(|tx| [short.clone(), tx, vec![1; 8]].concat());
    [short.clone()].into_iter().chain(long).collect()
}

fn utxo_wrapper(bytes: &[u8]) {
    let Ok(wrapper) = UtxoWrapper::parse(bytes) else { return };
    let UtxoWrapper { txid, height, coinbase, .. } = wrapper;
    let mut again = Vec::new();
    write_wrapper(&WrapperHead { txid, height, coinbase }, wrapper.outputs(), &mut again);
    assert_eq!(again, bytes);
}

fn wrapper() -> Vec<u8> {
    let head = WrapperHead {
        txid: Txid::from_bytes([7; 32]),
        height: Height::new(70_000),
        coinbase: true,
    };
    let output = TxOut { value: Amount::COIN, script: &[0x51; 25] };
    let outputs = [0, 3].map(|index| WrappedOutput { index, output });
    let mut bytes = Vec::new();
    write_wrapper(&head, outputs.into_iter(), &mut bytes);
    bytes
}

/// What decodes encodes to the same bytes, and a search in a sorted leaf finds what a walk does.
/// What does not decode, or is out of order, can be searched without harm.
fn record_leaf(bytes: &[u8]) {
    let Some(rows) = decode_leaf(bytes) else {
        assert_eq!(find_in_leaf(bytes, 0), None);
        return;
    };
    assert!(bytes.starts_with(&encode_leaf(&rows)));
    let sorted = rows.is_sorted();
    for &row in rows.iter().chain(&[0, u128::MAX]) {
        let found = find_in_leaf(bytes, row).expect("it decodes");
        assert!(found.iter().all(|other| same_place(*other, row)));
        if sorted {
            assert!(found.iter().eq(rows.iter().filter(|other| same_place(**other, row))));
        }
    }
}

/// A leaf with several rows of one place, and a full one.
fn leaves() -> Vec<Vec<u8>> {
    let few: Vec<u128> = (0..6).map(|row| (row / 3) << 88 | row << 34).collect();
    let full: Vec<u128> = (0..255).map(|row| (row * 7) << 90 | row).collect();
    [few, full].map(|rows| encode_leaf(&rows)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the examples were refused, the targets would test nothing.
    #[test]
    fn the_examples_decode() {
        assert!(UtxoWrapper::parse(&wrapper()).is_ok());
        assert!(leaves().iter().all(|leaf| decode_leaf(leaf).is_some()));
        let examples = Examples::built_in();
        let metas = metas(&examples);
        let decoded = metas.iter().filter(|meta| Meta::decode(&(*meta).clone().into()).is_ok());
        assert_eq!(decoded.count(), 1 + examples.transactions.len(), "the extended ones");
        let parse = |tx: Vec<u8>| Transaction::parse(tx.into(), Format::Segwit);
        assert!(transactions(&examples).into_iter().all(|tx| parse(tx).is_ok()));
    }
}
