//! Signed blocks (BIP325).
//!
//! A signet block is signed: some push of the script that holds the witness commitment begins with
//! `ecc7daa2`, and the *solution* follows: a signature script and a witness. They must satisfy the
//! challenge of the network, as if the block were a transaction:
//!
//! ```text
//! to_spend   spends nothing, its script pushes the block data; one output with the challenge
//! to_sign    spends that output with the solution
//!
//! block data   version 4 │ previous 32 │ merkle root 32 │ time 4
//! ```
//!
//! The merkle root is that of the block without its solution, else it would have to contain itself.
//! A challenge that anyone can satisfy needs no solution, and the genesis block has none.

#[cfg(test)]
mod tests;

use varve_types::merkle::merkle_root;
use varve_types::script::opcode::{OP_0, OP_PUSHDATA1, OP_PUSHDATA2, OP_PUSHDATA4, OP_RETURN};
use varve_types::script::{Instruction, Instructions};
use varve_types::{
    Amount, Format, Height, Outpoint, Reader, Tx, TxIn, TxOut, Txid, compact_size, sha256d,
};

use crate::block::BlockError;
use crate::block_at::BlockAt;
use crate::params::Params;
use crate::script::ScriptFlags;
use crate::verifier::{PreparedTx as _, ScriptVerifier, SpendingTx};

const HEADER: [u8; 4] = [0xec, 0xc7, 0xda, 0xa2];
/// The prefix of a witness commitment's script.
const COMMITMENT: [u8; 6] = [OP_RETURN, 0x24, 0xaa, 0x21, 0xa9, 0xed];

/// Checks the solution of a signet block. Every block passes on networks without a challenge.
pub fn check_signet_solution<S: ScriptVerifier>(
    params: &Params,
    block: &BlockAt<'_>,
    verifier: &S,
) -> Result<(), BlockError> {
    let Some(challenge) = &params.signet_challenge else { return Ok(()) };
    if block.height() == Height::GENESIS {
        return Ok(());
    }
    let fail = |reason| BlockError::SignetSolution { reason };
    let coinbase = block.block().txs().first().ok_or_else(|| fail("there is no coinbase"))?;
    let unsigned = Unsigned::new(coinbase).ok_or_else(|| fail("there is no witness commitment"))?;
    let solution = Solution::parse(&unsigned.solution)
        .ok_or_else(|| fail("it is not a script and a witness"))?;
    let to_spend = to_spend(challenge, &block_data(block, unsigned.txid));
    let to_sign = to_sign(&to_spend, &solution);
    let to_sign = Tx::parse(&to_sign, Format::Segwit).expect("written as it is parsed");
    let spent = [TxOut { value: Amount::ZERO, script: challenge }];
    let flags = ScriptFlags::P2SH | ScriptFlags::WITNESS | ScriptFlags::DERSIG;
    verifier
        .prepare(&SpendingTx { tx: &to_sign, spent: &spent })
        .and_then(|signed| signed.verify(0, flags | ScriptFlags::NULLDUMMY))
        .map_err(|_| fail("it does not satisfy the challenge"))
}

/// A coinbase from which the solution has been taken.
struct Unsigned {
    txid: Txid,
    solution: Vec<u8>,
}

impl Unsigned {
    fn new(coinbase: &Tx<'_>) -> Option<Self> {
        let outputs: Vec<_> = coinbase.outputs().collect();
        let long_enough = |script: &[u8]| script.len() >= COMMITMENT.len() + 32;
        let at = outputs.iter().rposition(|output| {
            output.script.starts_with(&COMMITMENT) && long_enough(output.script)
        })?;
        let (script, solution) = cut_solution(outputs.get(at)?.script);
        let mut bytes = coinbase.version().to_le_bytes().to_vec();
        compact_size::write(coinbase.inputs().len() as u64, &mut bytes);
        coinbase.inputs().for_each(|input| input.write(&mut bytes));
        compact_size::write(outputs.len() as u64, &mut bytes);
        for (index, output) in outputs.iter().enumerate() {
            let script = if index == at { &script } else { output.script };
            TxOut { value: output.value, script }.write(&mut bytes);
        }
        bytes.extend_from_slice(&coinbase.lock_time().to_le_bytes());
        Some(Self { txid: Txid::from_bytes(sha256d(&bytes)), solution })
    }
}

/// The script without the solution, and the solution: what follows the header in the first push
/// that has one. Both as they are when there is none.
fn cut_solution(script: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut without = Vec::with_capacity(script.len());
    let mut solution = None;
    for Instruction { opcode, data } in Instructions::new(script).map_while(Result::ok) {
        let found =
            data.and_then(|data| data.strip_prefix(&HEADER)).filter(|rest| !rest.is_empty());
        match (found, data) {
            (Some(rest), _) if solution.is_none() => {
                solution = Some(rest.to_vec());
                push(&HEADER, &mut without);
            }
            (_, Some(data)) if !data.is_empty() => push(data, &mut without),
            _ => without.push(opcode),
        }
    }
    match solution {
        Some(solution) => (without, solution),
        None => (script.to_vec(), Vec::new()),
    }
}

/// Appends the shortest push of these bytes.
fn push(data: &[u8], script: &mut Vec<u8>) {
    let length = data.len() as u64;
    let bytes = length.to_le_bytes();
    let (opcode, width) = match length {
        0..0x4c => (None, 1),
        0x4c..=0xff => (Some(OP_PUSHDATA1), 1),
        0x100..=0xffff => (Some(OP_PUSHDATA2), 2),
        _ => (Some(OP_PUSHDATA4), 4),
    };
    script.extend(opcode);
    script.extend(bytes.iter().take(width));
    script.extend_from_slice(data);
}

/// A signature script, and a witness with its count.
struct Solution<'a> {
    script: &'a [u8],
    witness: &'a [u8],
}

impl<'a> Solution<'a> {
    /// No bytes are an empty solution. Nothing may follow the witness.
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self { script: &[], witness: &[0] });
        }
        let mut reader = Reader::new(bytes);
        let script = item(&mut reader)?;
        let start = reader.offset();
        for _ in 0..count(&mut reader)? {
            item(&mut reader)?;
        }
        reader.end().ok()?;
        Some(Self { script, witness: bytes.get(start..)? })
    }
}

fn count(reader: &mut Reader<'_>) -> Option<u64> {
    compact_size::read(reader, compact_size::MAX_SIZE, "a signet solution").ok()
}

fn item<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = count(reader)?;
    reader.take(length, "a signet solution").ok()
}

/// What is signed.
fn block_data(block: &BlockAt<'_>, coinbase: Txid) -> Vec<u8> {
    let others = block.txids().iter().skip(1);
    let leaves = [coinbase].iter().chain(others).map(|txid| txid.to_bytes()).collect();
    let header = block.block().header();
    let mut data = header.version().to_le_bytes().to_vec();
    data.extend_from_slice(header.previous().as_bytes());
    data.extend_from_slice(merkle_root(leaves).root.as_bytes());
    data.extend_from_slice(&header.time().to_le_bytes());
    data
}

/// The transaction that would be spent, in bytes.
fn to_spend(challenge: &[u8], data: &[u8]) -> Vec<u8> {
    let mut script = vec![OP_0];
    push(data, &mut script);
    let input = TxIn { outpoint: Outpoint::NULL, script: &script, sequence: 0, spent: None };
    let mut bytes = vec![0; 4];
    bytes.push(1);
    input.write(&mut bytes);
    bytes.push(1);
    TxOut { value: Amount::ZERO, script: challenge }.write(&mut bytes);
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// The transaction that spends it, in bytes.
fn to_sign(to_spend: &[u8], solution: &Solution<'_>) -> Vec<u8> {
    let outpoint = Outpoint::new(Txid::from_bytes(sha256d(to_spend)), 0);
    let input = TxIn { outpoint, script: solution.script, sequence: 0, spent: None };
    let has_witness = solution.witness != [0];
    let mut bytes = vec![0; 4];
    if has_witness {
        bytes.extend_from_slice(&[0, 1]);
    }
    bytes.push(1);
    input.write(&mut bytes);
    bytes.push(1);
    TxOut { value: Amount::ZERO, script: &[OP_RETURN] }.write(&mut bytes);
    if has_witness {
        bytes.extend_from_slice(solution.witness);
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes
}
