//! The transactions of Core's JSON vectors, as far as decoding goes.

use serde_json::Value;
use varve_types::{Format, Tx};

use crate::blocks::reassemble_tx;
use crate::load::{json, unhex};

/// The entries of a vector file, without the comments.
fn entries(file: &str) -> Option<Vec<Value>> {
    let entries = json(&varve_testdata::data(file)?);
    let entries = entries.as_array().unwrap().iter();
    Some(entries.filter(|entry| entry.as_array().unwrap().len() > 1).cloned().collect())
}

/// Decodes, reassembles, and compares with the `bitcoin` crate.
fn check(bytes: &[u8]) {
    let tx = Tx::parse(bytes, Format::Segwit).unwrap();
    let mut out = Vec::new();
    reassemble_tx(&tx, &mut out);
    assert_eq!(out, bytes);
    let theirs: bitcoin::Transaction = bitcoin::consensus::deserialize(bytes).unwrap();
    assert_eq!(tx.txid().to_string(), theirs.compute_txid().to_string());
    assert_eq!(tx.wtxid().to_string(), theirs.compute_wtxid().to_string());
    assert_eq!(tx.inputs().len(), theirs.input.len());
    for (ours, theirs) in tx.inputs().zip(&theirs.input) {
        assert_eq!(ours.outpoint.to_string(), theirs.previous_output.to_string());
        assert_eq!(ours.script, theirs.script_sig.as_bytes());
        assert_eq!(ours.sequence, theirs.sequence.0);
    }
    for (ours, theirs) in tx.outputs().zip(&theirs.output) {
        assert_eq!(ours.value.to_sat(), theirs.value.to_sat());
        assert_eq!(ours.script, theirs.script_pubkey.as_bytes());
    }
    for (ours, theirs) in tx.witnesses().zip(&theirs.input) {
        assert!(ours.items().eq(theirs.witness.iter()));
    }
}

#[test]
fn valid_transactions() {
    let Some(entries) = entries("vectors/core/tx_valid.json") else { return };
    assert!(entries.len() >= 115, "{}", entries.len());
    entries.iter().for_each(|entry| check(&unhex(entry[1].as_str().unwrap())));
}

#[test]
fn invalid_transactions_that_decode() {
    let Some(entries) = entries("vectors/core/tx_invalid.json") else { return };
    assert!(entries.len() >= 85, "{}", entries.len());
    entries.iter().for_each(|entry| check(&unhex(entry[1].as_str().unwrap())));
}

#[test]
fn transactions_of_the_sighash_vectors() {
    let Some(entries) = entries("vectors/core/sighash.json") else { return };
    assert_eq!(entries.len(), 500);
    for entry in entries {
        let bytes = unhex(entry[0].as_str().unwrap());
        check(&bytes);
        let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
        assert!(entry[2].as_u64().unwrap() < tx.inputs().len() as u64, "the input is there");
    }
}
