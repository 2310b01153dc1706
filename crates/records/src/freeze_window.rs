//! A freeze that begins and ends at given heights.
//!
//! ```text
//! stored (from, until)   consensus forbids a spend at height h when
//! (0, 0)                 always
//! (from, 0)              from ≤ h
//! (from, until)          from ≤ h < until
//! (max, max)             never: what an empty interval becomes
//! ```
//!
//! Two tiers ask. *Consensus* judges the transactions of blocks and follows the window to the
//! block. *Policy* judges what is not in a block yet; it is stricter: from the order on it
//! refuses, before the window has begun too, and after its end unless the order says that the
//! policy expires with it.

use varve_types::Height;

/// Who asks whether an output may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tier {
    /// A transaction of a block.
    Consensus,
    /// A transaction that is not in a block.
    #[default]
    Policy,
}

/// When an output is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FreezeWindow {
    /// The first frozen height.
    pub from: Height,
    /// The first height that is free again; 0 for no end.
    pub until: Height,
    /// Whether the policy ends with the window.
    pub policy_expires: bool,
}

impl FreezeWindow {
    /// Frozen at every height.
    pub const ALWAYS: Self =
        Self { from: Height::GENESIS, until: Height::GENESIS, policy_expires: false };

    /// The window of an order. Heights beyond 32 bits are cut to the largest; an interval that
    /// ends where it begins or before freezes nothing.
    #[must_use]
    pub fn from_interval(start: u64, stop: Option<u64>, policy_expires: bool) -> Self {
        let height = |height| Height::new(u32::try_from(height).unwrap_or(u32::MAX));
        let (from, until) = match stop {
            None => (height(start), Height::GENESIS),
            Some(stop) if stop <= start => (Height::new(u32::MAX), Height::new(u32::MAX)),
            Some(stop) => (height(start), height(stop)),
        };
        Self { from, until, policy_expires }
    }

    /// Whether consensus forbids a spend at this height.
    #[must_use]
    pub(crate) fn is_active(&self, height: Height) -> bool {
        self.from <= height && !self.has_ended(height)
    }

    /// Whether this tier forbids a spend at this height.
    #[must_use]
    pub(crate) fn forbids(&self, tier: Tier, height: Height) -> bool {
        match tier {
            Tier::Consensus => self.is_active(height),
            Tier::Policy => !(self.policy_expires && self.has_ended(height)),
        }
    }

    fn has_ended(&self, height: Height) -> bool {
        self.until != Height::GENESIS && height >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(window: FreezeWindow, heights: [u32; 4]) -> [bool; 4] {
        heights.map(|height| window.is_active(Height::new(height)))
    }

    #[test]
    fn the_end_is_free() {
        let window = FreezeWindow::from_interval(10, Some(20), false);
        assert_eq!(active(window, [9, 10, 19, 20]), [false, true, true, false]);
        let open = FreezeWindow::from_interval(10, None, false);
        assert_eq!(active(open, [9, 10, 19, u32::MAX]), [false, true, true, true]);
        assert_eq!(active(FreezeWindow::ALWAYS, [0, 1, 19, u32::MAX]), [true; 4]);
    }

    #[test]
    fn an_empty_interval_freezes_nothing() {
        for (start, stop) in [(0, 0), (10, 10), (10, 9)] {
            let window = FreezeWindow::from_interval(start, Some(stop), true);
            assert_eq!(active(window, [0, 9, 10, u32::MAX]), [false; 4]);
        }
    }

    #[test]
    fn large_heights_are_cut() {
        let window = FreezeWindow::from_interval(5, Some(u64::MAX), false);
        assert_eq!(window.until, Height::new(u32::MAX));
        let never = FreezeWindow::from_interval(u64::MAX - 1, Some(u64::MAX), false);
        assert!(!never.is_active(Height::new(u32::MAX)));
    }

    #[test]
    fn policy_is_stricter_than_consensus() {
        let forbids = |expires, height| {
            let window = FreezeWindow::from_interval(10, Some(20), expires);
            window.forbids(Tier::Policy, Height::new(height))
        };
        assert!(forbids(false, 5) && forbids(true, 5), "before the window too");
        assert!(forbids(false, 20), "and after it");
        assert!(!forbids(true, 20), "unless the policy expires with it");
    }
}
