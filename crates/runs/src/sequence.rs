//! The order of everything in a store: one number per step of its owner.
//!
//! The owner defines what a step is. In the unspent set, connecting a block is one step and
//! disconnecting it is another: heights repeat when the chain reorganises, sequences never do, so
//! "before" and "after" always refer to sequences.

use std::fmt;

/// The number of a step. The empty store is at sequence 0, the first change is step 1.
///
/// 32 bits suffice: a chain with a block every ten minutes takes 80,000 years to use them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u32);

impl Sequence {
    /// Before the first step.
    pub const ZERO: Self = Self(0);
    /// After every step: the end sequence of what has not ended.
    pub const MAX: Self = Self(u32::MAX);

    /// The step with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number of the step.
    #[must_use]
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// The step after this one; `None` when the numbers are used up.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0 {
            number if number >= u32::MAX - 1 => None,
            number => Some(Self(number + 1)),
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
