//! What to fetch and drop so that our mempool equals that of a node whose policy decides.
//!
//! The node tells of its mempool in two ways: a *listing* (all txids, with the mempool sequence of
//! the next event) and a stream of *events* (ZMQ `sequence`: added and removed with their mempool
//! sequence, blocks without one). The stream is lossy; each message has a counter, which wraps at
//! 2^32.
//!
//! ```text
//!              Unlisted ── listing ──► Following ── counter gap ──► Unlisted
//! events:      kept                    applied
//! ```
//!
//! 1. Without a listing events are kept, up to a number; when there are more, the oldest are
//!    dropped and the listing must be newer than them.
//! 2. A listing says what to fetch and what to drop. Kept events with a sequence at or above its
//!    own are applied on top; those below are part of it.
//! 3. A gap in the counter, or a mempool sequence that goes back, voids everything: a new listing
//!    is asked for.
//! 4. While node and mempool stand on different tips nothing is dropped because a listing lacks it:
//!    it may be in a block that is on its way. Another listing is asked for then.
//!
//! It is pure: the caller has the connections, and does what it says.

use std::collections::{BTreeSet, VecDeque};

use varve_types::{BlockHash, Txid};

use super::version::Version;

/// Events that are kept while there is no listing.
const KEPT: usize = 100_000;

/// The node's mempool at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// All transactions.
    pub txids: Vec<Txid>,
    /// The mempool sequence that the next event has.
    pub sequence: u64,
    /// The node's tip, when it was the same before and after the listing was made.
    pub tip: Option<BlockHash>,
}

/// One message of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedEvent {
    /// The counter of the message.
    pub counter: u32,
    /// What it says.
    pub what: FeedChange,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedChange {
    /// A transaction was accepted.
    Added {
        /// The transaction.
        txid: Txid,
        /// The mempool sequence.
        sequence: u64,
    },
    /// A transaction was removed, other than by a block.
    Removed {
        /// The transaction.
        txid: Txid,
        /// The mempool sequence.
        sequence: u64,
    },
    /// A block was connected or disconnected: the organizer's business.
    Block(BlockHash),
}

/// What the caller has to do, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedActions {
    /// Transactions to drop.
    pub drop: Vec<Txid>,
    /// Transactions to fetch and accept as the node's.
    pub fetch: Vec<Txid>,
    /// Whether a listing is needed.
    pub list: bool,
}

/// Follows the mempool of one node.
#[derive(Debug, Default)]
pub struct Feed {
    /// The counter that the next message must have.
    counter: Option<u32>,
    /// The mempool sequence that the next event must have; `None` without a listing.
    sequence: Option<u64>,
    kept: VecDeque<FeedEvent>,
}

impl Feed {
    /// A feed that has heard nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a listing was taken and no message was missed since.
    #[must_use]
    pub const fn is_following(&self) -> bool {
        self.sequence.is_some()
    }

    /// Takes a message.
    pub fn event(&mut self, event: FeedEvent) -> FeedActions {
        let gap = self.counter.is_some_and(|counter| counter != event.counter);
        self.counter = Some(event.counter.wrapping_add(1));
        if gap {
            return self.lose(event);
        }
        if self.sequence.is_none() {
            self.keep(event);
            return FeedActions { list: true, ..FeedActions::default() };
        }
        self.apply(&event).unwrap_or_else(|| self.lose(event))
    }

    /// Takes a listing, and compares it with our mempool.
    pub fn listing(&mut self, listing: &Listing, ours: &Version) -> FeedActions {
        let mut listed: BTreeSet<Txid> = listing.txids.iter().copied().collect();
        self.sequence = Some(listing.sequence);
        for event in std::mem::take(&mut self.kept) {
            let (FeedChange::Added { sequence, .. } | FeedChange::Removed { sequence, .. }) =
                event.what
            else {
                continue;
            };
            if sequence < listing.sequence {
                continue;
            }
            let Some(actions) = self.apply(&event) else {
                return self.lose(event);
            };
            for txid in &actions.drop {
                listed.remove(txid);
            }
            listed.extend(actions.fetch);
        }
        let fetch = listed.iter().filter(|txid| !ours.contains(txid)).copied().collect();
        let same_tip = listing.tip == Some(ours.tip().hash);
        let extra = ours.entries().map(super::entry::Entry::txid);
        let extra: Vec<Txid> = extra.filter(|txid| !listed.contains(txid)).collect();
        let list = !same_tip && !extra.is_empty();
        FeedActions { drop: if same_tip { extra } else { Vec::new() }, fetch, list }
    }

    /// What an event in its place means; `None` when it is not the next one.
    fn apply(&mut self, event: &FeedEvent) -> Option<FeedActions> {
        let expected = self.sequence?;
        let mut actions = FeedActions::default();
        let sequence = match event.what {
            FeedChange::Block(_) => return Some(actions),
            FeedChange::Added { txid, sequence } => {
                actions.fetch.push(txid);
                sequence
            }
            FeedChange::Removed { txid, sequence } => {
                actions.drop.push(txid);
                sequence
            }
        };
        // A block takes a sequence for each transaction that it removes and tells of none.
        if sequence < expected {
            return None;
        }
        self.sequence = Some(sequence.checked_add(1)?);
        Some(actions)
    }

    /// Messages were missed: everything begins again with this one.
    fn lose(&mut self, event: FeedEvent) -> FeedActions {
        self.sequence = None;
        self.kept.clear();
        self.keep(event);
        FeedActions { list: true, ..FeedActions::default() }
    }

    fn keep(&mut self, event: FeedEvent) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
    }
}

#[cfg(test)]
mod tests;
