//! Bitcoin Core's verifier.
//!
//! `bitcoinconsensus` is the script code of Bitcoin Core 26 behind a C interface: one input a
//! call, the transaction in bytes. It parses these bytes in every call, so that a transaction with
//! n inputs costs n². Two things keep that in bounds:
//!
//! * The outputs that the other inputs spend are passed only for a taproot spend, which alone
//!   looks at them.
//! * An input of a large transaction that cannot come to a signature check is shown to the code
//!   in a stand-in with this one input and no outputs. A script sees its transaction through
//!   signatures, and else only the version, the lock time and its own sequence, which the stand-in
//!   has. (Block 367,891 of mainnet has a transaction of 20,000 such inputs.)
//!
//! With signatures a large legacy transaction stays quadratic, as it is in Core: each signature
//! hashes it anew, and the limit on signature operations bounds it.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bitcoinconsensus::{Error, Utxo, verify_with_flags};
use varve_types::script::Class;
use varve_types::script::opcode::{OP_CHECKMULTISIG, OP_CHECKSIG};
use varve_types::{Tx, TxIn, TxOut, Witness};

use super::{ScriptVerifier, SpendingTx, VerifyError};
use crate::script::ScriptFlags;

/// From this size on stand-ins are worth it: parsing takes longer than a signature check.
const LARGE: usize = 20_000;

/// Checks scripts with Bitcoin Core's own code.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreVerifier;

impl ScriptVerifier for CoreVerifier {
    fn verify(
        &self,
        tx: &SpendingTx<'_>,
        inputs: Range<usize>,
        flags: ScriptFlags,
    ) -> Result<(), (usize, VerifyError)> {
        let refuse = |why: &str| (inputs.start, VerifyError::Refused(why.to_owned()));
        // The C++ code asserts this and would end the process.
        if flags.contains(ScriptFlags::WITNESS) && !flags.contains(ScriptFlags::P2SH) {
            return Err(refuse("WITNESS needs P2SH"));
        }
        if tx.spent.len() != tx.tx.inputs().len() || inputs.end > tx.spent.len() {
            return Err(refuse("each input needs the output that it spends"));
        }
        let all = tx.tx.inputs().zip(tx.tx.witnesses()).zip(tx.spent).enumerate();
        let mut utxos = None;
        for (index, ((input, witness), output)) in all.skip(inputs.start).take(inputs.len()) {
            let taproot = Class::of(output.script) == Class::P2tr;
            let result = if taproot && flags.contains(ScriptFlags::TAPROOT) {
                let utxos = utxos.get_or_insert_with(|| tx.spent.iter().map(utxo).collect());
                let utxos: &Vec<Utxo> = utxos;
                call(tx.tx.bytes(), index, output, Some(utxos), flags.bits())
            } else {
                let bits = flags.bits() & !ScriptFlags::TAPROOT.bits();
                match stand_in(tx.tx, &input, &witness, output) {
                    Some(bytes) => call(&bytes, 0, output, None, bits),
                    None => call(tx.tx.bytes(), index, output, None, bits),
                }
            };
            result.map_err(|error| (index, error))?;
        }
        Ok(())
    }
}

/// An output as the C interface has it. An amount or a length that is out of range cannot be in
/// the set; it is cut, and the signature is then wrong.
fn utxo(output: &TxOut<'_>) -> Utxo {
    Utxo {
        script_pubkey: output.script.as_ptr(),
        script_pubkey_len: u32::try_from(output.script.len()).unwrap_or(0),
        value: i64::try_from(output.value.to_sat()).unwrap_or(-1),
    }
}

fn call(
    tx: &[u8],
    input: usize,
    output: &TxOut<'_>,
    spent: Option<&[Utxo]>,
    bits: u32,
) -> Result<(), VerifyError> {
    verify_with_flags(output.script, output.value.to_sat(), tx, spent, input, bits).map_err(
        |error| match error {
            Error::ERR_SCRIPT => VerifyError::Script,
            other => VerifyError::Refused(other.to_string()),
        },
    )
}

/// A transaction of this input alone, when the transaction is large and nothing in the scripts
/// can be a signature check. Bytes in pushes count too: better one stand-in too few.
fn stand_in(
    tx: &Tx<'_>,
    input: &TxIn<'_>,
    witness: &Witness<'_>,
    output: &TxOut<'_>,
) -> Option<Vec<u8>> {
    // CHECKSIG, CHECKSIGVERIFY, CHECKMULTISIG, CHECKMULTISIGVERIFY. CHECKSIGADD needs a witness,
    // and so do the programs that check a signature without saying so.
    let checks = |script: &[u8]| {
        script.iter().any(|byte| (OP_CHECKSIG..=OP_CHECKMULTISIG + 1).contains(byte))
    };
    let small = tx.bytes().len() < LARGE;
    if small || !witness.is_empty() || checks(input.script) || checks(output.script) {
        return None;
    }
    let mut bytes = tx.version().to_le_bytes().to_vec();
    bytes.push(1);
    input.write(&mut bytes);
    bytes.push(0);
    bytes.extend_from_slice(&tx.lock_time().to_le_bytes());
    Some(bytes)
}
