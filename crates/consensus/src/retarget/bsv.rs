//! The target on BSV.
//!
//! 1. *Emergency adjustment* (from the first block on, since its condition was never met before the
//!    fork of August 2017): Bitcoin's rule, and when the last six blocks took twelve hours by
//!    median time, the target rises by a quarter at once.
//! 2. *Moving average* (for blocks whose parent is at 504,031 or above): every block gets the
//!    target at which the work of the last 144 blocks would have taken 144 times ten minutes:
//!
//! ```text
//! work = (work of the blocks above `first` up to `last`) · 600 / (time of last − time of first)
//! target = 2^256 / work − 1
//! ```
//!
//! `last` is the one with the median time of the parent and the two below it; `first` the same
//! 144 blocks lower. The time is kept within 72 and 288 times ten minutes.
//!
//! 3. The regression test network never moves.

use varve_types::Height;

use super::{adjusted, within_limit};
use crate::ancestors::{Ancestor, Ancestors, MissingAncestorError, ancestor_at, median_time_past};
use crate::params::PowParams;
use crate::u256::U256;
use crate::work::{Target, Work};

const EMERGENCY_BLOCKS: u32 = 6;
const EMERGENCY_SECONDS: u32 = 12 * 3600;
const AVERAGED_BLOCKS: u32 = 144;

pub(super) fn next_bits<A: Ancestors + ?Sized>(
    pow: &PowParams,
    height: Height,
    parent: Ancestor,
    ancestors: &A,
) -> Result<u32, MissingAncestorError> {
    if pow.no_retarget {
        return Ok(parent.bits);
    }
    match pow.daa_height {
        Some(daa) if height > daa => average(pow, height, ancestors),
        _ => emergency(pow, height, parent, ancestors),
    }
}

fn emergency<A: Ancestors + ?Sized>(
    pow: &PowParams,
    height: Height,
    parent: Ancestor,
    ancestors: &A,
) -> Result<u32, MissingAncestorError> {
    if height.to_u32().is_multiple_of(pow.interval) {
        return adjusted(pow, height, parent, ancestors);
    }
    let earlier = height.checked_sub(EMERGENCY_BLOCKS + 1);
    let (Some(old), Some(earlier)) = (Target::from_bits(parent.bits), earlier) else {
        return Ok(parent.bits);
    };
    if parent.bits == pow.limit.to_bits() {
        return Ok(parent.bits);
    }
    let parent_height = height.checked_sub(1).expect("above seven others");
    let now = median_time_past(ancestors, parent_height)?;
    let then = median_time_past(ancestors, earlier)?;
    if now.saturating_sub(then) < EMERGENCY_SECONDS {
        return Ok(parent.bits);
    }
    let old = old.number();
    Ok(within_limit(pow, old.wrapping_add(old.shr(2))))
}

fn average<A: Ancestors + ?Sized>(
    pow: &PowParams,
    height: Height,
    ancestors: &A,
) -> Result<u32, MissingAncestorError> {
    let (last_height, last) = suitable(height, 1, ancestors)?;
    let (first_height, first) = suitable(height, 1 + AVERAGED_BLOCKS, ancestors)?;
    let mut work = Work::ZERO;
    for height in first_height.to_u32() + 1..=last_height.to_u32() {
        work = work.plus(Work::of_bits(ancestor_at(ancestors, Height::new(height))?.bits));
    }
    let half = i64::from(pow.spacing) * i64::from(AVERAGED_BLOCKS / 2);
    let elapsed = (i64::from(last.time) - i64::from(first.time)).clamp(half, 4 * half);
    let elapsed = U256::from_u64(u64::try_from(elapsed).expect("not below half"));
    // 144 blocks would need 2^246 hashes to overflow here.
    let work = work.number().wrapping_mul(pow.spacing).checked_div(elapsed);
    let work = work.expect("at least half a day");
    // 2^256 / work − 1 is (2^256 − work) / work.
    let target = U256::ZERO.wrapping_sub(work).checked_div(work);
    Ok(target.map_or_else(|| pow.limit.to_bits(), |target| within_limit(pow, target)))
}

/// Of the three blocks from `below` under `height` downwards, the one with the median time.
fn suitable<A: Ancestors + ?Sized>(
    height: Height,
    below: u32,
    ancestors: &A,
) -> Result<(Height, Ancestor), MissingAncestorError> {
    let at = |back: u32| {
        let height = height.checked_sub(below + back).unwrap_or(Height::GENESIS);
        ancestor_at(ancestors, height).map(|ancestor| (height, ancestor))
    };
    // Oldest first, and a network of swaps that is not a stable sort: the choice among equal
    // times is part of the rule.
    let (mut low, mut middle, mut high) = (at(2)?, at(1)?, at(0)?);
    if low.1.time > high.1.time {
        std::mem::swap(&mut low, &mut high);
    }
    if low.1.time > middle.1.time {
        std::mem::swap(&mut low, &mut middle);
    }
    if middle.1.time > high.1.time {
        std::mem::swap(&mut middle, &mut high);
    }
    Ok(middle)
}
