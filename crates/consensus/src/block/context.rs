//! The rules of a block that depend on its height and on the headers below it.
//!
//! 1. Every lock time has been reached.
//! 2. The script of the coinbase begins with the height (BIP34), so that no two coinbases are
//!    equal.
//! 3. The coinbase commits to the witnesses, when there are any (BIP141).
//! 4. The block is not too heavy. This comes last: before the commitment holds, anyone could have
//!    added weight to the witnesses.

use varve_types::script::opcode::{OP_0, OP_1};
use varve_types::{Height, Tx};

use super::BlockError;
use crate::ancestors::{Ancestors, median_time_past};
use crate::block_at::BlockAt;
use crate::lock_time::is_final;
use crate::params::Params;
use crate::weight::{MAX_BLOCK_WEIGHT, block_weight};

/// Checks a block on the branch that `ancestors` gives.
pub fn check_block_context<A: Ancestors + ?Sized>(
    params: &Params,
    block: &BlockAt<'_>,
    ancestors: &A,
) -> Result<(), BlockError> {
    check_lock_times(params, block, ancestors)?;
    let height = block.height();
    if height >= params.heights.bip34 && !begins_with_height(block, height) {
        return Err(BlockError::CoinbaseHeight);
    }
    if params.network.is_bsv() {
        return Ok(());
    }
    check_witnesses(params, block)?;
    let weight = block_weight(block.block());
    if weight > MAX_BLOCK_WEIGHT { Err(BlockError::TooHeavy { weight }) } else { Ok(()) }
}

fn check_lock_times<A: Ancestors + ?Sized>(
    params: &Params,
    block: &BlockAt<'_>,
    ancestors: &A,
) -> Result<(), BlockError> {
    let height = block.height();
    let time = match height.checked_sub(1) {
        Some(below) if height >= params.heights.csv => median_time_past(ancestors, below)?,
        _ => block.block().header().time(),
    };
    match block.txs().find(|(_, tx)| !is_final(tx, height, time)) {
        Some((txid, _)) => Err(BlockError::NotFinal { txid }),
        None => Ok(()),
    }
}

fn begins_with_height(block: &BlockAt<'_>, height: Height) -> bool {
    let coinbase = block.block().txs().first();
    let script = coinbase.and_then(|tx| tx.inputs().next()).map_or(&[][..], |input| input.script);
    script.starts_with(&height_push(height))
}

/// The shortest script that pushes a height as a number.
pub(crate) fn height_push(height: Height) -> Vec<u8> {
    let number = height.to_u32();
    match u8::try_from(number) {
        Ok(0) => return vec![OP_0],
        Ok(small @ 1..=16) => return vec![OP_1 + small - 1],
        _ => {}
    }
    // Little-endian, with room for the sign in the topmost bit.
    let bytes = u64::from(number).to_le_bytes();
    let length = u64::BITS - u64::from(number).leading_zeros();
    let length = length / 8 + 1;
    let mut push = vec![u8::try_from(length).expect("at most five bytes")];
    push.extend(bytes.iter().take(length as usize));
    push
}

fn check_witnesses(params: &Params, block: &BlockAt<'_>) -> Result<(), BlockError> {
    let commitment = block.block().witness_commitment();
    match commitment.filter(|_| block.height() >= params.heights.segwit) {
        Some(commitment) => match block.block().compute_witness_commitment() {
            None => Err(BlockError::WitnessReservedValue),
            Some(computed) if computed != commitment => Err(BlockError::WitnessCommitment),
            Some(_) => Ok(()),
        },
        None => match block.txs().find(|(_, tx): &(_, &Tx<'_>)| tx.has_witness()) {
            Some((txid, _)) => Err(BlockError::UnexpectedWitness { txid }),
            None => Ok(()),
        },
    }
}
