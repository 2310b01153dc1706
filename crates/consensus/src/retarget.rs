//! The target that a block must have.
//!
//! Bitcoin, every 2,016 blocks:
//!
//! ```text
//! new target = old target · (time of the last block − time of the first) / two weeks
//! ```
//!
//! * The period is measured from its first block to its last: 2,015 intervals, not 2,016. That is
//!   an old mistake, and a rule.
//! * The factor is kept within 1/4 and 4, and the target within the limit.
//! * Between two adjustments the target stays, except on the test networks: there a block more than
//!   20 minutes after its parent may have the easiest target, and the next block returns to the
//!   last target that was not the easiest, walking back at most to the start of the period.
//! * Testnet4 (BIP94) adjusts from the target of the *first* block of the period, which such an
//!   easy block cannot be; so an easy last block no longer resets the difficulty.
//! * Regtest never moves.
//!
//! BSV has different rules since it split from Bitcoin: [`bsv`].

mod bsv;
#[cfg(test)]
mod tests;

use varve_types::Height;

use crate::ancestors::{Ancestor, Ancestors, MissingAncestorError, ancestor_at};
use crate::params::{Params, PowParams};
use crate::u256::U256;
use crate::work::Target;

/// The bits that a block at `height` must have when its header says `time`.
pub(crate) fn next_bits<A: Ancestors + ?Sized>(
    params: &Params,
    height: Height,
    time: u32,
    ancestors: &A,
) -> Result<u32, MissingAncestorError> {
    let pow = &params.pow;
    let Some(parent_height) = height.checked_sub(1) else {
        return Ok(pow.limit.to_bits());
    };
    let parent = ancestor_at(ancestors, parent_height)?;
    if params.network.is_bsv() {
        return bsv::next_bits(pow, height, parent, ancestors);
    }
    if height.to_u32().is_multiple_of(pow.interval) {
        return adjusted(pow, height, parent, ancestors);
    }
    if !pow.min_difficulty {
        return Ok(parent.bits);
    }
    if u64::from(time) > u64::from(parent.time) + 2 * u64::from(pow.spacing) {
        return Ok(pow.limit.to_bits());
    }
    last_real_bits(pow, parent_height, ancestors)
}

/// Whether the rules can require `bits` at `height` when the block below has the bits `below`,
/// whatever the times of the blocks are.
///
/// This is for headers whose ancestors are not all available: it keeps a chain from claiming much
/// work in few blocks. Chains where a block can always have the easiest target, and BSV, which
/// adjusts every block, allow every step here.
#[must_use]
pub fn is_permitted_transition(params: &Params, height: Height, below: u32, bits: u32) -> bool {
    let pow = &params.pow;
    if pow.min_difficulty || params.network.is_bsv() {
        return true;
    }
    if pow.no_retarget || !height.to_u32().is_multiple_of(pow.interval) {
        return bits == below;
    }
    let timespan = i64::from(pow.timespan());
    let bounds = [timespan / 4, timespan * 4].map(|elapsed| {
        Target::from_bits(scaled(pow, below, elapsed)).map_or(U256::ZERO, Target::number)
    });
    let [hardest, easiest] = bounds;
    Target::from_bits(bits)
        .is_some_and(|target| hardest <= target.number() && target.number() <= easiest)
}

/// The bits at the start of a period.
fn adjusted<A: Ancestors + ?Sized>(
    pow: &PowParams,
    height: Height,
    last: Ancestor,
    ancestors: &A,
) -> Result<u32, MissingAncestorError> {
    if pow.no_retarget {
        return Ok(last.bits);
    }
    let first_height = Height::new(height.to_u32().saturating_sub(pow.interval));
    let first = ancestor_at(ancestors, first_height)?;
    let old_bits = if pow.bip94 { first.bits } else { last.bits };
    let elapsed = i64::from(last.time) - i64::from(first.time);
    Ok(scaled(pow, old_bits, elapsed))
}

/// The bits of the old target times the time that a period took, over the time it should take.
fn scaled(pow: &PowParams, old_bits: u32, elapsed: i64) -> u32 {
    let timespan = pow.timespan();
    let elapsed = elapsed.clamp(i64::from(timespan / 4), i64::from(timespan) * 4);
    let elapsed = u32::try_from(elapsed).expect("eight weeks in seconds");
    let old = Target::from_bits(old_bits).map_or(U256::ZERO, Target::number);
    // A target has at most 224 bits, on signet 234, and eight weeks have 23. Overflow wraps, as it
    // does in Core.
    let new = old.wrapping_mul(elapsed).checked_div(U256::from_u64(u64::from(timespan)));
    within_limit(pow, new.expect("no period is zero"))
}

/// The bits of a target that has been computed.
fn within_limit(pow: &PowParams, target: U256) -> u32 {
    Target::new(target).map_or(0, |target| target.min(pow.limit).to_bits())
}

/// The bits of the last block that was not an easy one.
fn last_real_bits<A: Ancestors + ?Sized>(
    pow: &PowParams,
    mut height: Height,
    ancestors: &A,
) -> Result<u32, MissingAncestorError> {
    let limit = pow.limit.to_bits();
    loop {
        let bits = ancestor_at(ancestors, height)?.bits;
        if bits != limit || height.to_u32().is_multiple_of(pow.interval) {
            return Ok(bits);
        }
        height = height.checked_sub(1).expect("genesis begins a period");
    }
}
