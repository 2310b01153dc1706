//! Lock times: until when a transaction must not be in a block.
//!
//! *Absolute* (the lock time of the transaction):
//!
//! ```text
//! 0                     none
//! below 500,000,000     a height: the block must be above it
//! else                  a time: the median time past of the block below must be above it
//!                       (before BIP113 the time of the block itself)
//! ```
//!
//! It applies unless every input has the sequence ffffffff.
//!
//! *Relative* (BIP68, the sequence of an input, in transactions of version 2 and above):
//!
//! ```text
//! │ 31 off │ 30..23 │ 22 time │ 21..16 │ 15..0 count │
//! blocks:  the block must be `count` above the block that made the output
//! time:    the median time past below the block must be count · 512 s after that below the
//!          block that made the output
//! ```

#[cfg(test)]
mod tests;

use varve_types::{Height, Tx};

use crate::ancestors::{Ancestors, MissingAncestorError, median_time_past};

/// Lock times below are heights, the others times.
const THRESHOLD: u32 = 500_000_000;
/// The sequence that switches the lock time off.
const FINAL: u32 = u32::MAX;
const RELATIVE_OFF: u32 = 1 << 31;
const RELATIVE_TIME: u32 = 1 << 22;
const RELATIVE_MASK: u32 = 0xffff;
/// A unit of relative time is 2^9 seconds.
const RELATIVE_SHIFT: u32 = 9;

/// Whether the lock time lets the transaction into a block at this height; `time` is the median
/// time past of the block below, or the block's own time before BIP113.
#[must_use]
pub fn is_final(tx: &Tx<'_>, height: Height, time: u32) -> bool {
    let lock_time = tx.lock_time();
    let reached = if lock_time < THRESHOLD { height.to_u32() } else { time };
    lock_time == 0 || lock_time < reached || tx.inputs().all(|input| input.sequence == FINAL)
}

/// Whether the sequences of a transaction mean relative lock times.
#[must_use]
pub fn has_relative(tx: &Tx<'_>) -> bool {
    tx.version() >= 2
}

/// Whether an input with this sequence, of an output made at `funded`, may be in the block at
/// `height`.
pub fn is_relatively_final<A: Ancestors + ?Sized>(
    sequence: u32,
    funded: Height,
    height: Height,
    ancestors: &A,
) -> Result<bool, MissingAncestorError> {
    if sequence & RELATIVE_OFF != 0 {
        return Ok(true);
    }
    let count = u64::from(sequence & RELATIVE_MASK);
    if sequence & RELATIVE_TIME == 0 {
        return Ok(u64::from(height.to_u32()) >= u64::from(funded.to_u32()) + count);
    }
    let below = |height: Height| {
        let below = height.checked_sub(1).unwrap_or(Height::GENESIS);
        median_time_past(ancestors, below).map(u64::from)
    };
    Ok(below(height)? >= below(funded)? + (count << RELATIVE_SHIFT))
}
