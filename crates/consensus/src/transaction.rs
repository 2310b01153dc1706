//! The rules for a transaction by itself.
//!
//! There are inputs and outputs, not too many bytes, no amount and no sum above 21 million coins,
//! no output spent twice. A coinbase has 2 to 100 bytes of script; every other transaction spends
//! outputs that can exist.
//!
//! BSV: the size limit is on the bytes, and grows with its Genesis upgrade, which also forbids
//! new P2SH outputs. Before it a transaction has at most 20,000 signature operations.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;

use varve_types::script::Class;
use varve_types::{Amount, Height, Outpoint, Tx};

use crate::params::Params;
use crate::sigops;
use crate::weight::{MAX_BLOCK_WEIGHT, WITNESS_SCALE, base_size};

/// BSV before its Genesis upgrade: bytes of a transaction.
const BSV_MAX_TX_SIZE: u64 = 1_000_000;
/// BSV from its Genesis upgrade on: what fits a message.
const BSV_GENESIS_MAX_TX_SIZE: u64 = u32::MAX as u64;
/// BSV before its Genesis upgrade: signature operations of a transaction.
pub(crate) const BSV_MAX_TX_SIGOPS: u64 = 20_000;
/// Up to this many inputs are compared pairwise; more go through a hash set.
const FEW_INPUTS: usize = 8;

/// Why a transaction is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// It has no inputs.
    #[error("no inputs")]
    NoInputs,
    /// It has no outputs.
    #[error("no outputs")]
    NoOutputs,
    /// It has too many bytes.
    #[error("{size} bytes, more than any transaction may have")]
    TooLarge {
        /// Bytes without witness.
        size: u64,
    },
    /// An amount with the sign bit set.
    #[error("output {output} has a negative amount")]
    NegativeAmount {
        /// The output.
        output: usize,
    },
    /// More than 21 million coins.
    #[error("output {output} is worth {amount}, more than can exist")]
    AmountTooLarge {
        /// The output.
        output: usize,
        /// Its amount.
        amount: Amount,
    },
    /// The sum is more than 21 million coins.
    #[error("the outputs are worth {total}, more than can exist")]
    TotalTooLarge {
        /// The sum so far.
        total: Amount,
    },
    /// Two inputs spend the same output.
    #[error("two inputs spend {outpoint}")]
    DuplicateInput {
        /// The output.
        outpoint: Outpoint,
    },
    /// The script of a coinbase is too short or too long.
    #[error("the coinbase has {length} bytes of script, but 2 to 100 are allowed")]
    CoinbaseScript {
        /// Its length.
        length: usize,
    },
    /// An input spends nothing.
    #[error("input {input} spends no output")]
    NullPrevout {
        /// The input.
        input: usize,
    },
    /// BSV: an output that pays to a script hash.
    #[error("output {output} pays to a script hash, which the Genesis upgrade forbids")]
    P2shOutput {
        /// The output.
        output: usize,
    },
    /// BSV: too many signature operations.
    #[error("{count} signature operations, more than the {BSV_MAX_TX_SIGOPS} allowed")]
    TooManySigops {
        /// How many.
        count: u64,
    },
}

impl TransactionError {
    /// The reason as Core, or the BSV node, gives it.
    #[must_use]
    pub fn reject_reason(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::NoInputs => "bad-txns-vin-empty",
            Self::NoOutputs => "bad-txns-vout-empty",
            Self::TooLarge { .. } => "bad-txns-oversize",
            Self::NegativeAmount { .. } => "bad-txns-vout-negative",
            Self::AmountTooLarge { .. } => "bad-txns-vout-toolarge",
            Self::TotalTooLarge { .. } => "bad-txns-txouttotal-toolarge",
            Self::DuplicateInput { .. } => "bad-txns-inputs-duplicate",
            Self::CoinbaseScript { .. } => "bad-cb-length",
            Self::NullPrevout { .. } => "bad-txns-prevout-null",
            Self::P2shOutput { .. } => "bad-txns-vout-p2sh",
            Self::TooManySigops { .. } => "bad-txn-sigops",
        }))
    }
}

/// Checks a transaction for a block at this height. The height matters on BSV only.
pub fn check_transaction(
    params: &Params,
    height: Height,
    tx: &Tx<'_>,
) -> Result<(), TransactionError> {
    if tx.inputs().len() == 0 {
        return Err(TransactionError::NoInputs);
    }
    if tx.outputs().len() == 0 {
        return Err(TransactionError::NoOutputs);
    }
    check_size(params, height, tx)?;
    check_outputs(tx)?;
    if params.network.is_bsv() {
        check_bsv(params, height, tx)?;
    }
    check_inputs(tx)
}

fn check_size(params: &Params, height: Height, tx: &Tx<'_>) -> Result<(), TransactionError> {
    let size = base_size(tx);
    let limit = match params.network.is_bsv() {
        false => MAX_BLOCK_WEIGHT / WITNESS_SCALE,
        true if params.is_genesis_upgraded(height) => BSV_GENESIS_MAX_TX_SIZE,
        true => BSV_MAX_TX_SIZE,
    };
    if size > limit { Err(TransactionError::TooLarge { size }) } else { Ok(()) }
}

fn check_outputs(tx: &Tx<'_>) -> Result<(), TransactionError> {
    let mut total = Amount::ZERO;
    for (output, out) in tx.outputs().enumerate() {
        let amount = out.value;
        if i64::try_from(amount.to_sat()).is_err() {
            return Err(TransactionError::NegativeAmount { output });
        }
        if !amount.is_money() {
            return Err(TransactionError::AmountTooLarge { output, amount });
        }
        total = total.checked_add(amount).expect("two amounts of money do not overflow");
        if !total.is_money() {
            return Err(TransactionError::TotalTooLarge { total });
        }
    }
    Ok(())
}

fn check_inputs(tx: &Tx<'_>) -> Result<(), TransactionError> {
    if let Some(outpoint) = spent_twice(tx) {
        return Err(TransactionError::DuplicateInput { outpoint });
    }
    if tx.is_coinbase() {
        let length = tx.inputs().next().map_or(0, |input| input.script.len());
        return match length {
            2..=100 => Ok(()),
            _ => Err(TransactionError::CoinbaseScript { length }),
        };
    }
    match tx.inputs().position(|input| input.outpoint.is_null()) {
        Some(input) => Err(TransactionError::NullPrevout { input }),
        None => Ok(()),
    }
}

/// The first outpoint that an earlier input has spent. The inputs of a usual transaction are
/// compared with one another, which costs less than a table.
fn spent_twice(tx: &Tx<'_>) -> Option<Outpoint> {
    let mut outpoints = tx.inputs().map(|input| input.outpoint);
    if outpoints.len() <= FEW_INPUTS {
        let earlier = |count| tx.inputs().take(count).map(|input| input.outpoint);
        let repeated =
            |(count, outpoint): &(usize, Outpoint)| earlier(*count).any(|o| o == *outpoint);
        return outpoints.enumerate().find(repeated).map(|(_, outpoint)| outpoint);
    }
    let mut seen = HashSet::with_capacity(outpoints.len());
    outpoints.find(|outpoint| !seen.insert(*outpoint))
}

fn check_bsv(params: &Params, height: Height, tx: &Tx<'_>) -> Result<(), TransactionError> {
    if !params.is_genesis_upgraded(height) {
        let count = sigops::legacy(tx);
        let allowed = count <= BSV_MAX_TX_SIGOPS;
        return if allowed { Ok(()) } else { Err(TransactionError::TooManySigops { count }) };
    }
    if tx.is_coinbase() {
        return Ok(());
    }
    match tx.outputs().position(|output| Class::of(output.script) == Class::P2sh) {
        Some(output) => Err(TransactionError::P2shOutput { output }),
        None => Ok(()),
    }
}
