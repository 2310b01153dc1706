//! One block in the joiner: its state, and what was computed for it so far.

use std::sync::Arc;

use varve_types::Height;

use crate::database::Appended;
use crate::prepare::{Prepared, Repeats};

/// The state of a block in the joiner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JoinState {
    /// Submitted.
    Init,
    /// Walked: its keys are known.
    Parsed,
    /// Looked up, except for pages that are being read.
    Queried,
    /// All its coins are known as far as they can be before its turn.
    Fetched,
    /// Its step is made, unpublished.
    Appended,
    /// Its check has passed.
    Joined,
    /// It was refused, or the set failed.
    Failed,
    /// A block below failed.
    Cancelled,
}

impl JoinState {
    /// Whether a block may change from this state to `next`.
    const fn leads_to(self, next: Self) -> bool {
        use JoinState::{Appended, Cancelled, Failed, Fetched, Init, Joined, Parsed, Queried};
        matches!(
            (self, next),
            (Init, Parsed)
                | (Parsed, Queried)
                | (Queried, Fetched)
                | (Fetched, Appended)
                | (Appended, Joined)
                | (Init | Parsed | Queried | Fetched | Appended, Failed)
                | (Init | Parsed | Queried | Fetched | Appended | Joined | Failed, Cancelled)
        )
    }

    /// Changes the state.
    ///
    /// # Panics
    ///
    /// When the state machine has no such transition.
    pub(super) fn go_to(&mut self, next: Self) {
        assert!(self.leads_to(next), "a block went from {self:?} to {next:?}");
        *self = next;
    }
}

/// Identifies a submission: a height may be submitted again after a failure, a ticket is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(pub(super) u32);

/// A submitted block: a height may be submitted again after a failure, with a new ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId {
    pub(super) height: Height,
    pub(super) ticket: Ticket,
}

/// What was computed for a block, while no worker holds it.
#[derive(Debug)]
pub(super) enum Held<R, X> {
    /// Nothing yet, or a worker holds it.
    Nothing,
    /// Fetched.
    Prepared(Box<Prepared>),
    /// Appended.
    Appended(Box<Appended>),
    /// Joined: the version to publish, and the result of the check.
    Joined(Arc<crate::version::Version>, R),
    /// Failed.
    Error(X),
}

/// A block under way.
#[derive(Debug)]
pub(super) struct Slot<T, R, X> {
    pub(super) block: Arc<T>,
    pub(super) repeats: Repeats,
    pub(super) ticket: Ticket,
    pub(super) state: JoinState,
    pub(super) held: Held<R, X>,
    /// The next block to be appended when its keys were looked up last.
    pub(super) seen: Height,
    /// Bytes of memory that it is charged for, and for pages that are being read for it.
    pub(super) charge: usize,
    pub(super) pages: usize,
    /// A worker holds it, or reads are under way for it.
    pub(super) busy: bool,
}

impl<T, R, X> Slot<T, R, X> {
    pub(super) const fn new(
        block: Arc<T>,
        repeats: Repeats,
        ticket: Ticket,
        charge: usize,
    ) -> Self {
        let (state, held, seen) = (JoinState::Init, Held::Nothing, Height::GENESIS);
        Self { block, repeats, ticket, state, held, seen, charge, pages: 0, busy: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_way_and_two_ends() {
        use JoinState::{Appended, Cancelled, Failed, Fetched, Init, Joined, Parsed, Queried};
        let way = [Init, Parsed, Queried, Fetched, Appended, Joined];
        for (place, from) in way.iter().enumerate() {
            for (next, to) in way.iter().enumerate() {
                assert_eq!(from.leads_to(*to), next == place + 1, "{from:?} to {to:?}");
            }
            assert_eq!(from.leads_to(Failed), *from != Joined);
            assert!(from.leads_to(Cancelled));
            assert!(!Failed.leads_to(*from) && !Cancelled.leads_to(*from), "the end");
        }
        assert!(Failed.leads_to(Cancelled), "when a block below failed too");
    }

    #[test]
    #[should_panic(expected = "from Init to Joined")]
    fn a_step_is_not_left_out() {
        JoinState::Init.go_to(JoinState::Joined);
    }
}
