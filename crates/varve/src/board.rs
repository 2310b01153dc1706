//! A board with one slot, for subscribers who want the newest state alone.
//!
//! The thread that syncs puts a state up after readers can see it. A subscriber in any other thread
//! waits for the next. A slow subscriber costs no memory: it skips states, but never misses the
//! last.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the announcing thread and the subscribers share.
#[derive(Debug)]
struct Slot<T> {
    /// The newest state.
    state: Option<T>,
    /// How many states have been put up.
    count: u64,
    /// The announcing end is gone.
    is_closed: bool,
}

#[derive(Debug)]
struct Board<T> {
    slot: Mutex<Slot<T>>,
    changed: Condvar,
}

impl<T> Board<T> {
    fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The announcing end. Closes the board when it is dropped.
#[derive(Debug)]
pub(crate) struct Announcer<T>(Arc<Board<T>>);

impl<T> Default for Announcer<T> {
    fn default() -> Self {
        let slot = Mutex::new(Slot { state: None, count: 0, is_closed: false });
        Self(Arc::new(Board { slot, changed: Condvar::new() }))
    }
}

impl<T: Copy + PartialEq> Announcer<T> {
    /// Puts a state up. The one that is up already is no news.
    pub(crate) fn announce(&self, state: T) {
        let mut slot = self.0.lock();
        if slot.state == Some(state) {
            return;
        }
        slot.state = Some(state);
        slot.count += 1;
        drop(slot);
        self.0.changed.notify_all();
    }

    /// A subscription to the states from now on.
    pub(crate) fn subscribe(&self) -> Subscription<T> {
        let seen = self.0.lock().count;
        Subscription { board: Arc::clone(&self.0), seen }
    }
}

impl<T> Drop for Announcer<T> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

/// The end of a subscriber.
#[derive(Debug)]
pub(crate) struct Subscription<T> {
    board: Arc<Board<T>>,
    /// How many of the states this subscriber has seen or skipped.
    seen: u64,
}

impl<T: Copy> Subscription<T> {
    /// The newest state, if it is new since the last call. Does not block.
    pub(crate) fn try_next(&mut self) -> Option<T> {
        let slot = self.board.lock();
        let is_new = slot.count > self.seen;
        self.seen = slot.count;
        slot.state.filter(|_| is_new)
    }

    /// Waits at most `timeout` for a new state.
    pub(crate) fn next_within(&mut self, timeout: Duration) -> Option<T> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Waits for a new state; `None` when none will come.
    pub(crate) fn next(&mut self) -> Option<T> {
        self.wait_until(None)
    }

    /// Whether no state will come any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.board.lock().is_closed
    }

    /// Waits for a new state, up to a moment if there is one.
    fn wait_until(&mut self, end: Option<Instant>) -> Option<T> {
        let mut slot = self.board.lock();
        while slot.count == self.seen && !slot.is_closed {
            let changed = &self.board.changed;
            slot = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => changed.wait(slot).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return None,
                Some(left) => {
                    let waited = changed.wait_timeout(slot, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let is_new = slot.count > self.seen;
        self.seen = slot.count;
        slot.state.filter(|_| is_new)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_subscriber_sees_what_comes_after_it_and_skips_to_the_newest() {
        let announcer = Announcer::default();
        announcer.announce(1);
        let mut states = announcer.subscribe();
        assert_eq!(states.try_next(), None);
        announcer.announce(2);
        announcer.announce(3);
        assert_eq!(states.try_next(), Some(3));
        announcer.announce(3);
        assert_eq!(states.next_within(Duration::from_millis(1)), None, "the same is no news");
        announcer.announce(2);
        assert_eq!(states.next(), Some(2), "one that comes again is");
    }

    #[test]
    fn the_last_state_comes_before_the_end() {
        let announcer = Announcer::default();
        let mut states = announcer.subscribe();
        let waiting =
            thread::spawn(move || std::iter::from_fn(|| states.next()).collect::<Vec<_>>());
        announcer.announce(1);
        announcer.announce(2);
        drop(announcer);
        let seen = waiting.join().unwrap();
        assert_eq!(seen.last(), Some(&2), "{seen:?}");
    }
}
