//! A channel that is bounded by messages and by bytes.
//!
//! A channel of eight blocks is 8 MB on one chain and 32 GB on another. So a sender also waits
//! while the bytes in the channel and its own message exceed the receiver's limit. A message is
//! always let into an empty channel, so the largest block gets through.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Something with bytes of blocks in it.
pub(super) trait Weigh {
    /// How many.
    fn weight(&self) -> u64;
}

/// The sending end; cloned into other threads.
pub(super) struct Outbox<T> {
    messages: SyncSender<T>,
    load: Arc<Load>,
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), load: Arc::clone(&self.load) }
    }
}

/// The receiving end. When it is dropped, senders get an error.
pub(super) struct Inbox<T> {
    messages: Receiver<T>,
    load: Arc<Load>,
}

/// The receiver is gone.
#[derive(Debug)]
pub(super) struct Unheard;

struct Load {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    bytes: u64,
    limit: u64,
    closed: bool,
}

impl Load {
    /// No change is half made under the lock, so a panic elsewhere leaves it in order.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel of at most `messages` messages, without a limit of bytes yet.
pub(super) fn queue<T>(messages: usize) -> (Outbox<T>, Inbox<T>) {
    let (sender, receiver) = sync_channel(messages);
    let state = Mutex::new(State { bytes: 0, limit: u64::MAX, closed: false });
    let load = Arc::new(Load { state, changed: Condvar::new() });
    let outbox = Outbox { messages: sender, load: Arc::clone(&load) };
    (outbox, Inbox { messages: receiver, load })
}

impl<T: Weigh> Outbox<T> {
    /// Sends a message when there is room for it.
    pub(super) fn send(&self, message: T) -> Result<(), Unheard> {
        let weight = message.weight();
        let mut state = self.load.lock();
        while !state.closed && state.bytes > 0 && state.bytes.saturating_add(weight) > state.limit {
            state = self.load.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes = state.bytes.saturating_add(weight);
        drop(state);
        self.messages.send(message).map_err(|_| Unheard)
    }
}

impl<T: Weigh> Inbox<T> {
    /// Sets the most bytes that may wait.
    pub(super) fn bound(&self, bytes: u64) {
        self.load.lock().limit = bytes;
        self.load.changed.notify_all();
    }

    /// The next message, waiting at most `timeout` for it.
    pub(super) fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let message = self.messages.recv_timeout(timeout)?;
        let weight = message.weight();
        if weight > 0 {
            let mut state = self.load.lock();
            state.bytes = state.bytes.saturating_sub(weight);
            self.load.changed.notify_all();
        }
        Ok(message)
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        self.load.lock().closed = true;
        self.load.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    impl Weigh for Vec<u8> {
        fn weight(&self) -> u64 {
            self.len() as u64
        }
    }

    #[test]
    fn bytes_are_bounded_and_a_large_message_goes_alone() {
        let (outbox, inbox) = queue::<Vec<u8>>(8);
        inbox.bound(100);
        let (told, sent) = channel();
        let sender = thread::spawn(move || {
            for length in [40, 60, 1, 1_000, 100] {
                outbox.send(vec![0; length]).unwrap();
                told.send(length).unwrap();
            }
        });
        assert_eq!(sent.recv_timeout(LONG), Ok(40));
        assert_eq!(sent.recv_timeout(LONG), Ok(60));
        let short = Duration::from_millis(50);
        assert!(sent.recv_timeout(short).is_err(), "a hundred bytes are there");
        assert_eq!(inbox.recv_timeout(LONG).unwrap().len(), 40);
        assert_eq!(sent.recv_timeout(LONG), Ok(1));
        assert_eq!(inbox.recv_timeout(LONG).unwrap().len(), 60);
        assert!(sent.recv_timeout(short).is_err(), "it is too large to go with others");
        assert_eq!(inbox.recv_timeout(LONG).unwrap().len(), 1);
        assert_eq!(sent.recv_timeout(LONG), Ok(1_000));
        assert_eq!(inbox.recv_timeout(LONG).unwrap().len(), 1_000);
        assert_eq!(inbox.recv_timeout(LONG).unwrap().len(), 100);
        sender.join().unwrap();
    }

    #[test]
    fn a_sender_that_waits_hears_that_nobody_receives() {
        let (outbox, inbox) = queue::<Vec<u8>>(8);
        inbox.bound(1);
        outbox.send(vec![0; 5]).unwrap();
        let sender = thread::spawn(move || outbox.send(vec![0; 5]).is_err());
        drop(inbox);
        assert!(sender.join().unwrap());
    }
}
