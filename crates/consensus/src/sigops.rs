//! Signature operations, counted without executing a script.
//!
//! ```text
//! CHECKSIG, CHECKSIGVERIFY              1
//! CHECKMULTISIG, CHECKMULTISIGVERIFY    20, or n where it is read exactly and the opcode before
//!                                       it is the number n of keys, from 1 to 16
//! ```
//!
//! * *legacy*: in all input and output scripts of a transaction, multisig always as 20.
//! * *P2SH*: in the script that an input of a P2SH output pushes last, read exactly.
//! * *witness*: 1 for P2WPKH; in the last witness item of P2WSH, read exactly; also within P2SH.
//!
//! A block may have a cost of 80,000, where a legacy or P2SH operation costs 4 and a witness
//! operation 1. A script that ends within a push is counted up to there.

#[cfg(test)]
mod tests;

use varve_types::script::opcode::{OP_1, OP_16, OP_CHECKMULTISIG, OP_CHECKSIG};
use varve_types::script::{Class, Instruction, Instructions};
use varve_types::{Tx, Witness};

use crate::script::ScriptFlags;
use crate::weight::WITNESS_SCALE;

/// The most that the signature operations of a block may cost.
pub const MAX_BLOCK_SIGOP_COST: u64 = 80_000;

const OP_CHECKSIGVERIFY: u8 = OP_CHECKSIG + 1;
const OP_CHECKMULTISIGVERIFY: u8 = OP_CHECKMULTISIG + 1;
const MAX_MULTISIG_KEYS: u64 = 20;

/// How a multisig is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Multisig {
    /// As 20 keys.
    Most,
    /// By the number before it.
    Exact,
}

/// The operations in all scripts of a transaction.
#[must_use]
pub fn legacy(tx: &Tx<'_>) -> u64 {
    let inputs = tx.inputs().map(|input| count(input.script, Multisig::Most));
    let outputs = tx.outputs().map(|output| count(output.script, Multisig::Most));
    inputs.sum::<u64>() + outputs.sum::<u64>()
}

/// What one input adds to the cost of the legacy operations of its transaction.
#[must_use]
pub fn input_cost(
    script: &[u8],
    witness: &Witness<'_>,
    spent_script: &[u8],
    flags: ScriptFlags,
) -> u64 {
    let p2sh = Class::of(spent_script) == Class::P2sh;
    let mut cost = 0;
    if p2sh && flags.contains(ScriptFlags::P2SH) {
        let redeem = last_push(script).unwrap_or_default();
        cost += WITNESS_SCALE * count(redeem, Multisig::Exact);
    }
    if flags.contains(ScriptFlags::WITNESS) {
        let program = if p2sh { last_push(script).unwrap_or_default() } else { spent_script };
        cost += witness_operations(program, witness);
    }
    cost
}

fn witness_operations(program: &[u8], witness: &Witness<'_>) -> u64 {
    match Class::of(program) {
        Class::P2wpkh => 1,
        Class::P2wsh => witness.items().last().map_or(0, |script| count(script, Multisig::Exact)),
        _ => 0,
    }
}

fn count(script: &[u8], multisig: Multisig) -> u64 {
    let mut total = 0;
    let mut before = None;
    for Instruction { opcode, .. } in Instructions::new(script).map_while(Result::ok) {
        total += match (opcode, before) {
            (OP_CHECKSIG | OP_CHECKSIGVERIFY, _) => 1,
            (OP_CHECKMULTISIG | OP_CHECKMULTISIGVERIFY, Some(keys @ OP_1..=OP_16))
                if multisig == Multisig::Exact =>
            {
                u64::from(keys - OP_1 + 1)
            }
            (OP_CHECKMULTISIG | OP_CHECKMULTISIGVERIFY, _) => MAX_MULTISIG_KEYS,
            _ => 0,
        };
        before = Some(opcode);
    }
    total
}

/// The data that the last opcode pushes, or `None` when the script does more than push.
/// The opcodes for the numbers 1 to 16 count as pushes of nothing here.
fn last_push(script: &[u8]) -> Option<&[u8]> {
    let mut last: &[u8] = &[];
    for instruction in Instructions::new(script) {
        let Instruction { opcode, data } = instruction.ok()?;
        if opcode > OP_16 {
            return None;
        }
        last = data.unwrap_or_default();
    }
    Some(last)
}
