//! Who leaves when there is no room, and what a newcomer has to pay then.
//!
//! While the transactions take more than the memory share, the one with the lowest eviction rate
//! goes, with all that builds on it. The rate is the better of its own and that of it with its
//! descendants, so a parent stays for the sake of a child that pays for both.
//!
//! The rate of what was evicted last, plus the incremental rate, becomes the floor: whoever pays no
//! more would be evicted next. It halves every twelve hours and never goes below the relay rate.

use super::draft::Draft;
use super::event::Removal;
use super::fee_rate::FeeRate;
use super::policy::Policy;
use super::version::Ids;

/// Seconds in which the floor halves.
const HALF_LIFE: u64 = 12 * 3_600;

/// The lowest rate that is taken, after evictions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    rate: FeeRate,
    since: u64,
}

impl Floor {
    /// The lowest rate that is taken now.
    pub(super) fn rate(&self, policy: &Policy, now: u64) -> FeeRate {
        let halvings = now.saturating_sub(self.since) / HALF_LIFE;
        self.rate.halved(halvings).max(policy.min_relay)
    }

    fn raise(&mut self, rate: FeeRate, policy: &Policy, now: u64) {
        if rate > self.rate(policy, now) {
            *self = Self { rate, since: now };
        }
    }

    /// Evicts until the draft fits the memory share.
    pub(super) fn make_room(&mut self, draft: &mut Draft, policy: &Policy, now: u64) {
        while draft.version.memory > policy.memory {
            let Some((&(_, worst), ())) = draft.version.by_worth.iter().next() else { return };
            let package = draft.version.at(worst).descendants;
            let leaving = draft.version.with_descendants(&Ids::from([worst]));
            draft.remove(&leaving, Removal::Evicted);
            self.raise(package.rate().plus(policy.incremental), policy, now);
        }
    }
}

/// Drops what came before this time, with all that builds on it.
pub(super) fn expire(draft: &mut Draft, before: u64) {
    let old = draft.version.entries.iter().filter(|(_, entry)| entry.time() < before);
    let old: Ids = old.map(|(id, _)| *id).collect();
    let leaving = draft.version.with_descendants(&old);
    if !leaving.is_empty() {
        draft.remove(&leaving, Removal::Expired);
    }
}
