//! Bitcoin Core's verifier.
//!
//! `bitcoinconsensus` is the script code of Bitcoin Core 26 behind a C interface: one input a
//! call, the transaction in bytes. It parses these bytes in every call, so transactions with
//! thousands of inputs cost more than they would in a node.

use std::ops::Range;

use bitcoinconsensus::{Error, Utxo, verify_with_flags};
use varve_types::script::Class;

use super::{ScriptVerifier, SpendingTx, VerifyError};
use crate::script::ScriptFlags;

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
        // The C++ code asserts these and would end the process.
        if flags.contains(ScriptFlags::WITNESS) && !flags.contains(ScriptFlags::P2SH) {
            return Err(refuse("WITNESS needs P2SH"));
        }
        if tx.spent.len() != tx.tx.inputs().len() || inputs.end > tx.spent.len() {
            return Err(refuse("each input needs the output that it spends"));
        }
        let mut utxos = Vec::with_capacity(tx.spent.len());
        for output in tx.spent {
            let value = i64::try_from(output.value.to_sat());
            let length = u32::try_from(output.script.len());
            let (Ok(value), Ok(script_pubkey_len)) = (value, length) else {
                return Err(refuse("an amount or a script is out of range"));
            };
            utxos.push(Utxo { script_pubkey: output.script.as_ptr(), script_pubkey_len, value });
        }
        for input in inputs {
            verify_input(tx, input, &utxos, flags).map_err(|error| (input, error))?;
        }
        Ok(())
    }
}

fn verify_input(
    tx: &SpendingTx<'_>,
    input: usize,
    utxos: &[Utxo],
    flags: ScriptFlags,
) -> Result<(), VerifyError> {
    let output = tx.spent.get(input).expect("the range was checked");
    // Only a taproot spend looks at the other outputs; for the rest they need not be copied.
    let taproot = Class::of(output.script) == Class::P2tr;
    let (spent, bits) = match taproot && flags.contains(ScriptFlags::TAPROOT) {
        true => (Some(utxos), flags.bits()),
        false => (None, flags.bits() & !ScriptFlags::TAPROOT.bits()),
    };
    let value = output.value.to_sat();
    verify_with_flags(output.script, value, tx.tx.bytes(), spent, input, bits).map_err(|error| {
        match error {
            Error::ERR_SCRIPT => VerifyError::Script,
            other => VerifyError::Refused(other.to_string()),
        }
    })
}
