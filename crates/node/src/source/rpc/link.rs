//! What the threads of the source share: the way back to the receiver, and how the node is doing.
//!
//! Every thread asks the node on its own and waits for it on its own. What it learns about the
//! node's health goes here, so that the user reads one sentence about a dead node, not one from
//! every thread:
//!
//! | trouble | examples | what happens |
//! |---|---|---|
//! | unreachable | refused, reset, no answer | a warning, and it is asked again |
//! | busy | warming up, work queue full | a warning, and it is asked again |
//! | refused | wrong login, not a node | an error |
//!
//! An *outage* lasts from the first trouble of a kind to the next answer, and is reported once, and
//! again when its reason changes. A node that is busy answers, so that ends an outage of the other
//! kind. Without `follow` an unreachable node is an error too: at once when it was never reached,
//! else when it has been gone for [`PATIENCE`].
//!
//! A thread that waits looks at [`Link::is_closed`] every [`TICK`], so dropping the source ends all
//! of them promptly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use varve_types::{BlockHash, Network, Txid};

use crate::source::queue::{Outbox, Weigh};
use crate::source::transactions::TxNews;
use crate::source::{Clock, HeaderBytes, SourceError, Warning};

/// How often a waiting thread looks whether it should end.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// How long a node that was reached before may be gone, when it is not followed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The least time between two warnings: the second is about a node that is gone, or about one that
/// is busy or has another reason than before.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(10);

/// What a thread sends to the receiver.
pub(super) enum Message {
    /// The node is one of the right network and answers.
    Greeted,
    /// Headers, each above the one before it.
    Headers(Vec<HeaderBytes>),
    /// There are no more headers; answers the `seek` with this number.
    Done(u64),
    /// A block, or `None` when the node does not have it.
    Block {
        hash: BlockHash,
        bytes: Option<Vec<u8>>,
    },
    /// Something about unconfirmed transactions.
    Transactions(TxNews),
    Warning(Warning),
    /// The source cannot continue.
    Failed(SourceError),
}

impl Weigh for Message {
    fn weight(&self) -> u64 {
        match self {
            Self::Block { bytes: Some(bytes), .. } => bytes.len() as u64,
            Self::Transactions(TxNews::Fetched(txs)) => {
                let length =
                    |(_, tx): &(Txid, Option<Bytes>)| tx.as_ref().map_or(0, Bytes::len) as u64;
                txs.iter().map(length).sum()
            }
            _ => 0,
        }
    }
}

/// Why a thread ends.
#[derive(Debug)]
pub(super) enum Stop {
    /// The source was dropped.
    Closed,
    Failed(SourceError),
}

/// Why the node has no answer for the moment.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nothing is heard from it.
    Unreachable(String),
    /// It answers that it cannot answer yet.
    Busy(String),
}

/// What the threads of one source share.
pub(super) struct Link {
    pub(super) address: String,
    pub(super) network: Network,
    pub(super) clock: Clock,
    follow: bool,
    closed: AtomicBool,
    /// Whether the node answers REST.
    rest: AtomicBool,
    health: Mutex<Health>,
    messages: Outbox<Message>,
}

/// How the node is doing.
#[derive(Default)]
struct Health {
    /// Whether it has ever answered.
    reached: bool,
    gone: Option<Outage>,
    busy: Option<Outage>,
    /// When the last warning was given.
    warned: Option<Duration>,
}

/// A time without answers of one kind.
struct Outage {
    since: Duration,
    /// The reason that was reported, if one was.
    reported: Option<String>,
}

impl Health {
    /// Notes a trouble. Whether a warning is due, and how long the node has been gone.
    fn trouble(&mut self, trouble: &Trouble, now: Duration) -> (bool, Duration) {
        let (outage, reason, wait) = match trouble {
            Trouble::Unreachable(reason) => (&mut self.gone, reason, SOON),
            Trouble::Busy(reason) => {
                // An answer that there is no answer yet is still one.
                (self.reached, self.gone) = (true, None);
                (&mut self.busy, reason, LATER)
            }
        };
        let outage = outage.get_or_insert(Outage { since: now, reported: None });
        let wait = if outage.reported.is_some() { LATER } else { wait };
        let is_news = outage.reported.as_ref() != Some(reason);
        let is_due = is_news && self.warned.is_none_or(|at| now.saturating_sub(at) >= wait);
        if is_due {
            outage.reported = Some(reason.clone());
            self.warned = Some(now);
        }
        (is_due, now.saturating_sub(outage.since))
    }
}

impl Link {
    pub(super) fn new(
        address: String,
        network: Network,
        clock: Clock,
        follow: bool,
        messages: Outbox<Message>,
    ) -> Self {
        Self {
            address,
            network,
            clock,
            follow,
            closed: AtomicBool::new(false),
            rest: AtomicBool::new(false),
            health: Mutex::default(),
            messages,
        }
    }

    /// Whether new blocks are waited for when everything is there.
    pub(super) const fn follows(&self) -> bool {
        self.follow
    }

    pub(super) fn uses_rest(&self) -> bool {
        self.rest.load(Ordering::Relaxed)
    }

    pub(super) fn set_rest(&self, rest: bool) {
        self.rest.store(rest, Ordering::Relaxed);
    }

    /// Ends the threads.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Gives a message to the receiver, when there is room for it.
    pub(super) fn send(&self, message: Message) -> Result<(), Stop> {
        self.messages.send(message).map_err(|_| Stop::Closed)
    }

    /// The node has answered.
    pub(super) fn well(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        (health.reached, health.gone, health.busy) = (true, None, None);
    }

    /// The node has not answered. `Ok`: ask again later.
    pub(super) fn trouble(&self, trouble: &Trouble) -> Result<(), Stop> {
        let (Trouble::Unreachable(reason) | Trouble::Busy(reason)) = trouble;
        let now = (self.clock)();
        let due = {
            let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
            let (due, lasts) = health.trouble(trouble, now);
            let is_gone = matches!(trouble, Trouble::Unreachable(_))
                && (!health.reached || lasts >= PATIENCE);
            if is_gone && !self.follow {
                let advice = "; start the node, or pass --follow to wait for it";
                return Err(Stop::Failed(self.silent(format!("{reason}{advice}"))));
            }
            due
        };
        if due {
            let (peer, reason) = (self.address.clone(), reason.clone());
            self.send(Message::Warning(Warning::Lost { peer, reason }))?;
        }
        Ok(())
    }

    /// Waits, unless the source is dropped.
    pub(super) fn pause(&self, time: Duration) -> Result<(), Stop> {
        let mut left = time;
        while !left.is_zero() {
            if self.is_closed() {
                return Err(Stop::Closed);
            }
            thread::sleep(left.min(TICK));
            left = left.saturating_sub(TICK);
        }
        Ok(())
    }

    /// The node does not answer.
    pub(super) fn silent(&self, reason: String) -> SourceError {
        SourceError::Silent { address: self.address.clone(), reason }
    }

    /// The node refuses, or is not one.
    pub(super) fn refused(&self, reason: &str) -> Stop {
        let (address, reason) = (self.address.clone(), reason.to_owned());
        Stop::Failed(SourceError::Rpc { address, reason })
    }
}

#[cfg(test)]
mod tests;
