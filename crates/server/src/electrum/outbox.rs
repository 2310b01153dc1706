//! What waits for one client to read it.
//!
//! ```text
//!  session ── answers ──────┐
//!                           ├─► outbox ─► writer ─► socket
//!  notifier ─ notifications ┘
//! ```
//!
//! A client that does not read is not waited for. Its session takes no further request while the
//! last answer waits ([`Outbox::drained`]); notifications are queued up to a limit, past which the
//! client is disconnected; and a socket that takes no byte for a while is closed by the writer.
//! All outboxes together share one budget. When it is used up, those that have not moved for
//! [`STALLED`] are closed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long an outbox may stand still while the budget of all is used up.
const STALLED: Duration = Duration::from_millis(500);
/// Bytes that may wait while the next request is read.
const LOW: usize = 64 << 10;

/// The queue of one client.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Something was queued, or the outbox was closed.
    filled: Notify,
    /// Something was written, or the outbox was closed.
    emptied: Notify,
    closed: Notify,
    /// Bytes in all outboxes.
    total: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Arc<[u8]>>,
    bytes: usize,
    /// Bytes of notifications among them, at most.
    notified: usize,
    /// When the socket last took something, or the queue was last empty.
    moved: Instant,
    closed: bool,
    /// What is queued is still written.
    finishing: bool,
}

impl Outbox {
    pub(super) fn new(total: &Arc<AtomicUsize>) -> Arc<Self> {
        let state = State {
            queue: VecDeque::new(),
            bytes: 0,
            notified: 0,
            moved: Instant::now(),
            closed: false,
            finishing: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            filled: Notify::new(),
            emptied: Notify::new(),
            closed: Notify::new(),
            total: Arc::clone(total),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an answer.
    pub(super) fn answer(&self, bytes: Arc<[u8]>) {
        self.push(&mut self.lock(), bytes);
    }

    /// Queues a notification, unless `limit` bytes of them wait already: then the client is
    /// disconnected. False when it is.
    pub(super) fn notify(&self, bytes: Arc<[u8]>, limit: usize) -> bool {
        let mut state = self.lock();
        if state.notified + bytes.len() > limit {
            drop(state);
            self.close();
            return false;
        }
        state.notified += bytes.len();
        self.push(&mut state, bytes);
        !state.closed
    }

    fn push(&self, state: &mut State, bytes: Arc<[u8]>) {
        if state.closed || state.finishing {
            return;
        }
        if state.queue.is_empty() {
            state.moved = Instant::now();
        }
        state.bytes += bytes.len();
        self.total.fetch_add(bytes.len(), Ordering::Relaxed);
        state.queue.push_back(bytes);
        self.filled.notify_one();
    }

    /// The next piece to write; `None` when the outbox is closed, or empty and finished.
    pub(super) async fn next(&self) -> Option<Arc<[u8]>> {
        loop {
            {
                let state = self.lock();
                if state.closed {
                    return None;
                }
                if let Some(bytes) = state.queue.front() {
                    return Some(Arc::clone(bytes));
                }
                if state.finishing {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// The piece was written.
    pub(super) fn written(&self) {
        let mut state = self.lock();
        if let Some(bytes) = state.queue.pop_front() {
            state.bytes -= bytes.len();
            self.total.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
        state.moved = Instant::now();
        if state.queue.is_empty() {
            state.notified = 0;
        }
        drop(state);
        self.emptied.notify_one();
    }

    /// The socket took some bytes of the piece.
    pub(super) fn moved(&self) {
        self.lock().moved = Instant::now();
    }

    /// Waits until little is queued. False when the outbox was closed.
    pub(super) async fn drained(&self) -> bool {
        loop {
            {
                let state = self.lock();
                if state.closed {
                    return false;
                }
                if state.bytes <= LOW {
                    return true;
                }
            }
            self.emptied.notified().await;
        }
    }

    /// Takes nothing more; what is queued is written.
    pub(super) fn finish(&self) {
        self.lock().finishing = true;
        self.filled.notify_one();
    }

    /// Drops what is queued and disconnects the client.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.total.fetch_sub(state.bytes, Ordering::Relaxed);
        state.queue = VecDeque::new();
        (state.bytes, state.notified) = (0, 0);
        drop(state);
        self.filled.notify_one();
        self.emptied.notify_one();
        self.closed.notify_one();
    }

    /// Waits until the outbox is closed. One task at a time may wait.
    pub(super) async fn closed(&self) {
        while !self.is_closed() {
            self.closed.notified().await;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether the client has left what is queued unread.
    pub(super) fn is_stalled(&self) -> bool {
        let state = self.lock();
        state.bytes > 0 && !state.closed && state.moved.elapsed() >= STALLED
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> (Arc<AtomicUsize>, Arc<Outbox>) {
        let total = Arc::new(AtomicUsize::new(0));
        let outbox = Outbox::new(&total);
        (total, outbox)
    }

    fn bytes(count: usize) -> Arc<[u8]> {
        vec![7; count].into()
    }

    #[tokio::test]
    async fn answers_wait_and_the_budget_counts_them() {
        let (total, outbox) = outbox();
        outbox.answer(bytes(10));
        outbox.notify(bytes(5), 100);
        assert_eq!(total.load(Ordering::Relaxed), 15);
        assert_eq!(outbox.next().await.unwrap().len(), 10);
        outbox.written();
        assert_eq!(total.load(Ordering::Relaxed), 5);
        outbox.finish();
        assert_eq!(outbox.next().await.unwrap().len(), 5, "what was queued is written");
        outbox.written();
        assert!(outbox.next().await.is_none());
        drop(outbox);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_backlog_of_notifications_disconnects() {
        let (total, outbox) = outbox();
        outbox.answer(bytes(1_000));
        outbox.notify(bytes(60), 100);
        assert!(!outbox.is_closed());
        outbox.notify(bytes(60), 100);
        assert!(outbox.is_closed() && outbox.next().await.is_none());
        assert!(!outbox.drained().await);
        assert_eq!(total.load(Ordering::Relaxed), 0);
        outbox.answer(bytes(1));
        assert_eq!(total.load(Ordering::Relaxed), 0, "nothing is queued any more");
    }
}
