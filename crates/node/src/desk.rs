//! The desk: where other threads hand transactions in while a sync follows.
//!
//! ```text
//!  any thread ── hand_in ──► queue ──► organizer: between blocks ──► answer ──► the thread
//! ```
//!
//! The mempool has one writer, the organizer's thread. Others put an order into a bounded queue and
//! wait for its answer. While there is no mempool (no sync follows, or it has not caught up) the
//! desk is closed, and says why. Orders that wait when it closes are answered that way too.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::mempool::{Acceptance, Judge, Reject, Verdict};
use crate::source::transactions::Gateway;

/// Orders that wait, and the bytes of their transactions.
const MAX_ORDERS: usize = 256;
const MAX_BYTES: usize = 32 << 20;

/// How long an answer is waited for: longer than the largest block takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a thread wants of the mempool.
#[derive(Debug)]
pub enum Order {
    /// Take these transactions in, in their order.
    Accept(Vec<Bytes>, Judge),
    /// Take a child and its parents in, the child last: all or none.
    Package(Vec<Bytes>),
    /// Say what would become of these.
    Test(Vec<Bytes>),
}

impl Order {
    fn bytes(&self) -> usize {
        let (Self::Accept(txs, _) | Self::Package(txs) | Self::Test(txs)) = self;
        txs.iter().map(Bytes::len).sum()
    }
}

/// What became of an order.
#[derive(Debug)]
pub enum Reply {
    /// For each transaction that was to be taken in.
    Verdicts(Vec<Verdict>),
    /// For each transaction that was tested.
    Tested(Vec<Result<Acceptance, Reject>>),
}

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeskError {
    /// There is no mempool.
    #[error("{0}")]
    Closed(String),
    /// Too many wait.
    #[error("too many transactions wait for the mempool; send it again later")]
    Full,
    /// The organizer is busy.
    #[error("the node is busy with blocks; whether the transaction was taken is not known")]
    Late,
    /// The mempool failed.
    #[error("the mempool failed: {0}")]
    Failed(String),
}

/// The desk of one node; clones are the same.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<State>>);

struct State {
    /// Why there is no mempool; `None` while there is one.
    closed: Option<String>,
    gateway: Option<Arc<dyn Gateway>>,
    orders: VecDeque<Waiting>,
    bytes: usize,
}

/// An order and where its answer goes.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) order: Order,
    answer: SyncSender<Result<Reply, DeskError>>,
}

/// Why a desk is closed before any sync has begun.
const NOBODY: &str =
    "there is no mempool: no sync follows; start one with `sync --follow` or `serve`";
/// While a sync has not caught up.
pub(crate) const BEHIND: &str =
    "there is no mempool yet: the sync has not caught up with its source; try again later";

impl Default for State {
    fn default() -> Self {
        let (closed, orders) = (Some(NOBODY.to_owned()), VecDeque::new());
        Self { closed, gateway: None, orders, bytes: 0 }
    }
}

impl Desk {
    /// No change is half made under the lock, so a panic elsewhere leaves it in order.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to the node that decides, where the source is one; an error while there is no
    /// mempool.
    pub fn gateway(&self) -> Result<Option<Arc<dyn Gateway>>, DeskError> {
        let state = self.lock();
        match &state.closed {
            Some(reason) => Err(DeskError::Closed(reason.clone())),
            None => Ok(state.gateway.clone()),
        }
    }

    /// Hands an order in and waits for its answer.
    pub fn hand_in(&self, order: Order) -> Result<Reply, DeskError> {
        let answer = self.put(order)?;
        answer.recv_timeout(PATIENCE).unwrap_or(Err(DeskError::Late))
    }

    fn put(&self, order: Order) -> Result<Receiver<Result<Reply, DeskError>>, DeskError> {
        let mut state = self.lock();
        if let Some(reason) = &state.closed {
            return Err(DeskError::Closed(reason.clone()));
        }
        let bytes = order.bytes();
        if state.orders.len() >= MAX_ORDERS || state.bytes.saturating_add(bytes) > MAX_BYTES {
            return Err(DeskError::Full);
        }
        let (answer, receiver) = sync_channel(1);
        state.bytes += bytes;
        state.orders.push_back(Waiting { order, answer });
        Ok(receiver)
    }

    /// The order that has waited longest.
    pub(crate) fn take(&self) -> Option<Waiting> {
        let mut state = self.lock();
        let waiting = state.orders.pop_front()?;
        state.bytes -= waiting.order.bytes();
        Some(waiting)
    }

    /// There is a mempool.
    pub(crate) fn open(&self, gateway: Option<Arc<dyn Gateway>>) {
        let mut state = self.lock();
        (state.closed, state.gateway) = (None, gateway);
    }

    /// There is none, for this reason. Those that wait are answered.
    pub(crate) fn close(&self, reason: &str) {
        let mut state = self.lock();
        (state.closed, state.gateway, state.bytes) = (Some(reason.to_owned()), None, 0);
        for waiting in state.orders.drain(..) {
            waiting.reply(Err(DeskError::Closed(reason.to_owned())));
        }
    }

    /// No sync runs.
    pub(crate) fn close_for_good(&self) {
        self.close(NOBODY);
    }
}

impl Waiting {
    /// Answers. Whoever has given up waiting does not hear it.
    pub(crate) fn reply(&self, reply: Result<Reply, DeskError>) {
        let _ = self.answer.try_send(reply);
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let waiting = state.orders.len();
        f.debug_struct("Desk").field("closed", &state.closed).field("waiting", &waiting).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn accept(length: usize) -> Order {
        Order::Accept(vec![vec![0; length].into()], Judge::Ours)
    }

    #[test]
    fn a_closed_desk_says_why_and_answers_those_that_wait() {
        let desk = Desk::default();
        assert_eq!(desk.hand_in(accept(1)).unwrap_err(), DeskError::Closed(NOBODY.to_owned()));
        desk.open(None);
        let waiting = desk.put(accept(1)).unwrap();
        desk.close(BEHIND);
        let answer = waiting.recv().unwrap().unwrap_err();
        assert_eq!(answer, DeskError::Closed(BEHIND.to_owned()));
        assert!(desk.take().is_none() && desk.gateway().is_err());
    }

    #[test]
    fn an_answer_reaches_the_thread_that_waits() {
        let desk = Desk::default();
        desk.open(None);
        let other = desk.clone();
        let thread = thread::spawn(move || other.hand_in(accept(5)));
        let waiting = std::iter::repeat_with(|| desk.take()).flatten().next().unwrap();
        waiting.reply(Ok(Reply::Verdicts(Vec::new())));
        assert!(matches!(thread.join().unwrap(), Ok(Reply::Verdicts(list)) if list.is_empty()));
    }

    #[test]
    fn orders_are_bounded_by_number_and_by_bytes() {
        let desk = Desk::default();
        desk.open(None);
        let kept: Vec<_> = (0..MAX_ORDERS).map(|_| desk.put(accept(1)).unwrap()).collect();
        assert_eq!(desk.put(accept(1)).unwrap_err(), DeskError::Full);
        (0..kept.len()).for_each(|_| drop(desk.take()));
        desk.put(accept(MAX_BYTES)).unwrap();
        assert_eq!(desk.put(accept(1)).unwrap_err(), DeskError::Full);
        drop(desk.take());
        desk.put(accept(1)).unwrap();
    }
}
