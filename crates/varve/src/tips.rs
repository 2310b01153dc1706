//! Subscriptions to the tip, and to everything that readers can see change.

use std::time::Duration;

use crate::answer::Tip;
use crate::board::Subscription;

/// A subscription to the tips of a node: [`Node::tips`](crate::Node::tips).
///
/// As an iterator it blocks until the tip has moved, gives the newest tip, and ends when the last
/// handle of the node is dropped. A subscriber that is slow skips tips; it never misses the last.
/// It does not keep the node open.
#[derive(Debug)]
pub struct Tips(pub(crate) Subscription<Tip>);

impl Tips {
    /// The newest tip, if it has moved since the last call. Does not block.
    pub fn try_next(&mut self) -> Option<Tip> {
        self.0.try_next()
    }

    /// Waits at most `timeout` for the tip to move; `None` when it has not, or the node is closed.
    pub fn next_within(&mut self, timeout: Duration) -> Option<Tip> {
        self.0.next_within(timeout)
    }
}

impl Iterator for Tips {
    type Item = Tip;

    fn next(&mut self) -> Option<Tip> {
        self.0.next()
    }
}

/// What readers can see since a moment: a snapshot that is taken now is at this tip or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The tip.
    pub tip: Tip,
    /// The number of the change: it grows with every new tip and every new version of the mempool.
    pub number: u64,
}

/// A subscription to all that readers can see change, tip or mempool:
/// [`Node::changes`](crate::Node::changes).
///
/// It gives the newest change alone, so a subscriber that is slow skips some and never misses the
/// last; what has changed is found by taking a snapshot. As an iterator it ends when the last
/// handle of the node is dropped. It does not keep the node open.
#[derive(Debug)]
pub struct Changes(pub(crate) Subscription<Change>);

impl Changes {
    /// The newest change since the last call. Does not block.
    pub fn try_next(&mut self) -> Option<Change> {
        self.0.try_next()
    }

    /// Waits at most `timeout` for a change; `None` when there is none, or the node is
    /// [closed](Self::is_closed).
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Change> {
        self.0.next_within(timeout)
    }

    /// Whether the last handle of the node is gone: nothing will change any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Iterator for Changes {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        self.0.next()
    }
}
