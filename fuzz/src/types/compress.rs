//! Core's compression of scripts and outputs.

use crate::examples::Examples;
use bitcoin::Transaction;
use bitcoin::consensus::encode::deserialize;
use varve_types::compress::{
    compress_amount, decompress_amount, read_output, read_script, write_output, write_script,
};
use varve_types::{Amount, Reader};

/// Every script comes back from its compressed form.
pub(super) fn script(bytes: &[u8]) {
    let mut compressed = Vec::new();
    write_script(bytes, &mut compressed);
    let mut reader = Reader::new(&compressed);
    let mut again = Vec::new();
    read_script(&mut reader, &mut again).expect("we have just compressed it");
    assert_eq!(again, bytes);
    assert_eq!(reader.rest(), &[0; 0]);
}

/// What decodes compresses again to no more bytes, which decode to the same. The bytes themselves
/// may differ: a script that has a short form may come in the long one.
pub(super) fn output(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut script = Vec::new();
    let Ok(value) = read_output(&mut reader, &mut script) else { return };
    let mut compressed = Vec::new();
    write_output(value, &script, &mut compressed);
    assert!(compressed.len() <= reader.offset());
    let mut script_again = Vec::new();
    let value_again = read_output(&mut Reader::new(&compressed), &mut script_again);
    assert_eq!((value_again, script_again), (Ok(value), script));
    assert_eq!(decompress_amount(compress_amount(value)), Some(value));
}

/// The outputs of the example transactions.
pub(super) fn output_seeds(examples: &Examples) -> Vec<Vec<u8>> {
    let transactions = examples.transactions.iter();
    let decoded = transactions.filter_map(|bytes| deserialize::<Transaction>(bytes).ok());
    let outputs = decoded.flat_map(|transaction| transaction.output);
    let mut seeds: Vec<Vec<u8>> = outputs
        .map(|output| {
            let mut seed = Vec::new();
            let value = Amount::from_sat(output.value.to_sat());
            write_output(value, output.script_pubkey.as_bytes(), &mut seed);
            seed
        })
        .collect();
    seeds.sort();
    seeds.dedup();
    seeds
}
