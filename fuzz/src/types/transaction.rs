//! Transactions in their three formats.

use crate::examples::Examples;
use bitcoin::Transaction;
use bitcoin::consensus::encode::{deserialize, serialize};
use bitcoin::hashes::Hash as _;
use varve_types::{Format, Tx, compact_size, sha256d};

/// Accepts and refuses what `bitcoin` does, with the same fields and hashes.
///
/// Without inputs the two differ, and we do as Core does: it reads `00 00` after the version as no
/// inputs and no outputs, which `bitcoin` refuses; and it refuses a witness for no inputs, which
/// `bitcoin` accepts.
pub(super) fn transaction(bytes: &[u8]) {
    let ours = Tx::parse(bytes, Format::Segwit);
    let theirs = deserialize::<Transaction>(bytes);
    if let Ok(ours) = &ours {
        assert!(encode(ours) == bytes, "encodes to other bytes");
    }
    let errors = (ours.as_ref().err(), format!("{:?}", theirs.as_ref().err()));
    let ours = ours.ok().filter(|tx| tx.inputs().len() > 0);
    let theirs = theirs.ok().filter(|tx| !tx.input.is_empty());
    assert_eq!(ours.is_some(), theirs.is_some(), "one of us refuses: {errors:?}");
    if let Some((ours, theirs)) = ours.zip(theirs) {
        agree(&ours, &theirs);
    }
}

/// All fields and hashes are equal.
pub(super) fn agree(ours: &Tx<'_>, theirs: &Transaction) {
    assert!(serialize(theirs) == ours.bytes(), "encodes to other bytes");
    assert_eq!(ours.txid().to_bytes(), theirs.compute_txid().to_byte_array());
    assert_eq!(ours.wtxid().to_bytes(), theirs.compute_wtxid().to_byte_array());
    assert_eq!(ours.version(), theirs.version.0.cast_unsigned());
    assert_eq!(ours.lock_time(), theirs.lock_time.to_consensus_u32());
    assert_eq!(ours.is_coinbase(), theirs.is_coinbase());
    assert_eq!(ours.inputs().len(), theirs.input.len());
    assert_eq!(ours.outputs().len(), theirs.output.len());
    let inputs = ours.inputs().zip(ours.witnesses()).zip(&theirs.input);
    for ((input, witness), theirs) in inputs {
        assert_eq!(input.outpoint.txid.to_bytes(), theirs.previous_output.txid.to_byte_array());
        assert_eq!(input.outpoint.vout, theirs.previous_output.vout);
        assert_eq!(input.script, theirs.script_sig.as_bytes());
        assert_eq!(input.sequence, theirs.sequence.0);
        assert!(witness.items().eq(theirs.witness.iter()));
    }
    for (output, theirs) in ours.outputs().zip(&theirs.output) {
        assert_eq!(output.value.to_sat(), theirs.value.to_sat());
        assert_eq!(output.script, theirs.script_pubkey.as_bytes());
    }
}

/// The legacy format accepts exactly what its fields encode to, and what the segwit format
/// accepts of the same form.
pub(super) fn legacy(bytes: &[u8]) {
    let Ok(ours) = Tx::parse(bytes, Format::Legacy) else { return };
    assert!(encode(&ours) == bytes, "encodes to other bytes");
    assert!(ours.to_legacy() == bytes, "encodes to other bytes");
    assert_eq!(ours.txid().to_bytes(), sha256d(bytes));
    assert_eq!(ours.wtxid().to_bytes(), sha256d(bytes));
    assert!(!ours.has_witness());
    if ours.inputs().len() > 0 {
        let segwit = Tx::parse(bytes, Format::Segwit).expect("the formats differ in no inputs");
        assert_eq!(segwit.txid(), ours.txid());
    }
}

/// The extended format encodes to the same bytes, and is the legacy one with more in it.
pub(super) fn extended(bytes: &[u8]) {
    let Ok(ours) = Tx::parse(bytes, Format::Extended) else { return };
    assert!(Tx::is_extended(bytes));
    assert!(encode(&ours) == bytes, "encodes to other bytes");
    let legacy = ours.to_legacy();
    let without = Tx::parse(&legacy, Format::Legacy).expect("we have just encoded it");
    assert_eq!(without.txid(), ours.txid());
    assert_eq!(ours.wtxid().to_bytes(), ours.txid().to_bytes());
    assert_eq!(without.version(), ours.version());
    assert_eq!(without.lock_time(), ours.lock_time());
    assert!(without.outputs().eq(ours.outputs()));
    assert!(ours.inputs().all(|input| input.spent.is_some()));
}

/// The example transactions, each input with an output that it might spend.
pub(super) fn extended_seeds(examples: &Examples) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for bytes in &examples.transactions {
        let Ok(transaction) = Tx::parse(bytes, Format::Segwit) else { continue };
        let mut seed = transaction.version().to_le_bytes().to_vec();
        seed.extend(EXTENDED_MARKER);
        compact_size::write(transaction.inputs().len() as u64, &mut seed);
        for input in transaction.inputs() {
            input.write(&mut seed);
            // 9 satoshi, with a script of three bytes.
            seed.extend([9, 0, 0, 0, 0, 0, 0, 0, 3, 0x51, 0x52, 0x53]);
        }
        compact_size::write(transaction.outputs().len() as u64, &mut seed);
        transaction.outputs().for_each(|output| output.write(&mut seed));
        seed.extend(transaction.lock_time().to_le_bytes());
        seeds.push(seed);
    }
    seeds
}

/// BIP239: what follows the version of an extended transaction.
const EXTENDED_MARKER: [u8; 6] = [0, 0, 0, 0, 0, 0xef];

/// The transaction from its fields, in the format it came in.
fn encode(tx: &Tx<'_>) -> Vec<u8> {
    let mut bytes = tx.version().to_le_bytes().to_vec();
    match tx.format() {
        Format::Legacy => {}
        Format::Segwit => bytes.extend([0, 1]),
        Format::Extended => bytes.extend(EXTENDED_MARKER),
    }
    compact_size::write(tx.inputs().len() as u64, &mut bytes);
    for input in tx.inputs() {
        input.write(&mut bytes);
        if let Some(spent) = input.spent {
            spent.write(&mut bytes);
        }
    }
    compact_size::write(tx.outputs().len() as u64, &mut bytes);
    tx.outputs().for_each(|output| output.write(&mut bytes));
    if tx.format() == Format::Segwit {
        tx.witnesses().for_each(|witness| witness.write(&mut bytes));
    }
    bytes.extend(tx.lock_time().to_le_bytes());
    bytes
}
