//! Scripts: what they are made of, what kind they are, and which can never be spent.
//!
//! A script is a string of opcodes. Those up to `4e` push data, the others do something:
//!
//! ```text
//! 00          push nothing
//! 01 ..= 4b   push that many bytes, which follow
//! 4c          push; the length follows as u8      (OP_PUSHDATA1)
//! 4d          push; the length follows as u16le   (OP_PUSHDATA2)
//! 4e          push; the length follows as u32le   (OP_PUSHDATA4)
//! ```
//!
//! Anyone can put any bytes in an output, so a script may end within a push. The walk
//! ([`Instructions`]) reports that as an error and ends there.

mod class;
mod instruction;
pub mod opcode;

pub use class::Class;
pub use instruction::{Instruction, Instructions, TruncatedPushError};

use crate::height::Height;
use crate::network::Network;

/// The longest script that Core executes.
pub const MAX_SCRIPT_SIZE: usize = 10_000;

/// Whether an output with this script, created at this height, can never be spent, and therefore
/// never enters the set of unspent outputs.
///
/// * Bitcoin: the script begins with `OP_RETURN` or is longer than [`MAX_SCRIPT_SIZE`].
/// * BSV before its Genesis upgrade: the same, or it begins with `OP_FALSE OP_RETURN`.
/// * BSV from its Genesis upgrade on: it begins with `OP_FALSE OP_RETURN`. A plain `OP_RETURN` then
///   ends a script with whatever is on the stack, and there is no length limit.
///
/// The outputs of the genesis block's coinbase cannot be spent either, whatever their script: nodes
/// never add them. That depends on the block, not on the script, and is left to callers.
#[must_use]
pub fn unspendable(network: Network, height: Height, script: &[u8]) -> bool {
    let op_return = script.first() == Some(&opcode::OP_RETURN);
    let false_return = script.starts_with(&[opcode::OP_0, opcode::OP_RETURN]);
    let too_long = script.len() > MAX_SCRIPT_SIZE;
    match network.genesis_upgrade() {
        None => op_return || too_long,
        Some(upgrade) if height < upgrade => op_return || false_return || too_long,
        Some(_) => false_return,
    }
}

#[cfg(test)]
mod tests;
