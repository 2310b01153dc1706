//! The decoders of `varve-records`: what comes from other nodes, from blobs and from files.
//!
//! All of these formats have one way to write a thing, so the claim is: what was decoded and is
//! encoded again gives the same bytes. Flags without a meaning are the one exception.

#![expect(clippy::indexing_slicing, reason = "what was decoded has these bytes")]

use bitcoin::consensus::encode::deserialize;
use varve_records::extended::Transaction;
use varve_records::file_type::FileType;
use varve_records::inpoints::TxInpoints;
use varve_records::key::PartKey;
use varve_records::meta::Meta;
use varve_records::slot::Slot;
use varve_records::spend_response::SpendResponse;
use varve_records::spending_data::SpendingData;
use varve_records::utxo_files::{
    AdditionsReader, AdditionsWriter, DeletionsReader, DeletionsWriter, FileHead, HeadersReader,
    SetReader, SetWriter, write_headers_head,
};
use varve_records::utxo_wrapper::{UtxoWrapper, WrappedOutput, WrapperHead, write_wrapper};
use varve_types::{Amount, BlockHash, Format, Height, Outpoint, TxOut, Txid};

use crate::Target;
use crate::examples::Examples;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "record_slot", run: record_slot, seeds: |_| slots() },
    Target { name: "record_answer", run: record_answer, seeds: |_| vec![vec![0; 12], vec![0; 48]] },
    Target { name: "record_transaction", run: record_transaction, seeds: transactions },
    Target { name: "record_inpoints", run: record_inpoints, seeds: |_| vec![inpoints()] },
    Target { name: "record_meta", run: record_meta, seeds: metas },
    Target { name: "utxo_wrapper", run: utxo_wrapper, seeds: |_| vec![wrapper()] },
    Target { name: "utxo_transfer", run: utxo_transfer, seeds: |_| files() },
];

fn record_slot(bytes: &[u8]) {
    if let Ok(slot) = Slot::decode(bytes) {
        let mut again = Vec::new();
        slot.encode(&mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(key) = PartKey::decode(bytes) {
        assert_eq!(key.to_bytes(), bytes);
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

fn record_answer(bytes: &[u8]) {
    if let Ok(answer) = SpendResponse::decode(bytes) {
        assert_eq!(answer.to_bytes(), bytes);
    }
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

/// Every reader on every file; what one of them takes to the end, it writes again.
fn utxo_transfer(bytes: &[u8]) {
    if let Some(again) = copy_additions(bytes) {
        assert_same(&again, bytes);
    }
    if let Some(again) = copy_deletions(bytes) {
        assert!(again.len() <= bytes.len());
    }
    if let Some(again) = copy_set(bytes) {
        assert!(again.len() <= bytes.len(), "empty wrappers are dropped");
    }
    let Ok(mut headers) = HeadersReader::new(bytes) else { return };
    let mut again = Vec::new();
    write_headers_head(&mut again).expect("a vector takes all");
    while let Ok(Some(entry)) = headers.next_entry() {
        entry.write(&mut again).expect("a vector takes all");
    }
    assert!(bytes[8..].starts_with(&again[8..]));
}

/// The magic of old files is padded with other bytes.
fn assert_same(again: &[u8], bytes: &[u8]) {
    assert_eq!(again[8..], bytes[8..]);
    let magic = bytes[..8].try_into().expect("eight bytes");
    assert!(FileType::from_magic(magic).is_some());
}

fn copy_additions(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = AdditionsReader::new(bytes).ok()?;
    let mut writer = AdditionsWriter::new(Vec::new(), reader.head()).ok()?;
    let mut wrapper_bytes = Vec::new();
    while let Some(wrapper) = reader.next_wrapper().ok()? {
        wrapper_bytes.clear();
        let UtxoWrapper { txid, height, coinbase, .. } = wrapper;
        let head = WrapperHead { txid, height, coinbase };
        write_wrapper(&head, wrapper.outputs(), &mut wrapper_bytes);
        writer.push(&wrapper_bytes).ok()?;
    }
    Some(writer.into_inner())
}

fn copy_deletions(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = DeletionsReader::new(bytes).ok()?;
    let mut writer = DeletionsWriter::new(Vec::new(), reader.head()).ok()?;
    while let Some(outpoint) = reader.next_outpoint().ok()? {
        writer.push(&outpoint).ok()?;
    }
    Some(writer.into_inner())
}

fn copy_set(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = SetReader::new(bytes, bytes.len() as u64).ok()?;
    let mut writer = SetWriter::new(Vec::new(), reader.head(), reader.previous()).ok()?;
    let mut wrapper_bytes = Vec::new();
    while let Some(wrapper) = reader.next_wrapper().ok()? {
        wrapper_bytes.clear();
        let UtxoWrapper { txid, height, coinbase, .. } = wrapper;
        let head = WrapperHead { txid, height, coinbase };
        write_wrapper(&head, wrapper.outputs(), &mut wrapper_bytes);
        writer.push(&wrapper_bytes).ok()?;
    }
    writer.finish().ok()
}

fn files() -> Vec<Vec<u8>> {
    let head = FileHead { block: BlockHash::from_bytes([5; 32]), height: Height::new(6) };
    let full = "a vector takes all";
    let mut additions = AdditionsWriter::new(Vec::new(), &head).expect(full);
    additions.push(&wrapper()).expect(full);
    let mut deletions = DeletionsWriter::new(Vec::new(), &head).expect(full);
    deletions.push(&Outpoint::new(Txid::ZERO, 1)).expect(full);
    let mut set = SetWriter::new(Vec::new(), &head, &head.block).expect(full);
    set.push(&wrapper()).expect(full);
    let mut headers = FileType::UtxoHeaders.magic().to_vec();
    headers.extend([9; 124]);
    vec![additions.into_inner(), deletions.into_inner(), set.finish().expect(full), headers]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Were the examples refused, the targets would claim nothing.
    #[test]
    fn the_examples_decode() {
        let [additions, deletions, set, _] = files().try_into().unwrap();
        assert_eq!(copy_additions(&additions), Some(additions));
        assert_eq!(copy_deletions(&deletions), Some(deletions));
        assert_eq!(copy_set(&set), Some(set));
        assert!(UtxoWrapper::parse(&wrapper()).is_ok());
        let examples = Examples::built_in();
        let metas = metas(&examples);
        let decoded = metas.iter().filter(|meta| Meta::decode(&(*meta).clone().into()).is_ok());
        assert_eq!(decoded.count(), 1 + examples.transactions.len(), "the extended ones");
        let parse = |tx: Vec<u8>| Transaction::parse(tx.into(), Format::Segwit);
        assert!(transactions(&examples).into_iter().all(|tx| parse(tx).is_ok()));
    }
}
