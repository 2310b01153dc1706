//! Subscriptions to the tip.
//!
//! The thread that syncs announces each tip after readers can see it. A subscriber in any other
//! thread waits for the next. One slot holds the newest tip, so a slow subscriber costs no memory:
//! it skips tips, but never misses the last.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::answer::Tip;

/// What the announcing thread and the subscribers share.
#[derive(Debug, Default)]
struct Slot {
    /// The newest tip.
    tip: Option<Tip>,
    /// How many tips have been announced.
    count: u64,
    /// All handles of the node are gone.
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Board {
    slot: Mutex<Slot>,
    changed: Condvar,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The announcing end. Closes the board when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Announcer(Arc<Board>);

impl Announcer {
    pub(crate) fn announce(&self, tip: Tip) {
        let mut slot = self.0.lock();
        if slot.tip == Some(tip) {
            return;
        }
        slot.tip = Some(tip);
        slot.count += 1;
        drop(slot);
        self.0.changed.notify_all();
    }

    /// A subscription to the tips from now on.
    pub(crate) fn subscribe(&self) -> Tips {
        let seen = self.0.lock().count;
        Tips { board: Arc::clone(&self.0), seen }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

/// A subscription to the tips of a node: [`Node::tips`](crate::Node::tips).
///
/// As an iterator it blocks until the tip has moved, gives the newest tip, and ends when the last
/// handle of the node is dropped. A subscriber that is slow skips tips; it never misses the last.
/// It does not keep the node open.
#[derive(Debug)]
pub struct Tips {
    board: Arc<Board>,
    /// How many of the announcements this subscriber has seen or skipped.
    seen: u64,
}

impl Tips {
    /// The newest tip, if it has moved since the last call. Does not block.
    pub fn try_next(&mut self) -> Option<Tip> {
        let slot = self.board.lock();
        let is_new = slot.count > self.seen;
        self.seen = slot.count;
        slot.tip.filter(|_| is_new)
    }

    /// Waits at most `timeout` for the tip to move; `None` when it has not, or the node is closed.
    pub fn next_within(&mut self, timeout: Duration) -> Option<Tip> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Waits for the tip to move, up to a moment if there is one.
    fn wait_until(&mut self, end: Option<Instant>) -> Option<Tip> {
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
        slot.tip.filter(|_| is_new)
    }
}

impl Iterator for Tips {
    type Item = Tip;

    fn next(&mut self) -> Option<Tip> {
        self.wait_until(None)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use varve_types::{BlockHash, Height};

    use super::*;

    fn tip(height: u8) -> Tip {
        Tip { height: Height::new(height.into()), hash: BlockHash::from_bytes([height; 32]) }
    }

    #[test]
    fn a_subscriber_sees_what_comes_after_it_and_skips_to_the_newest() {
        let announcer = Announcer::default();
        announcer.announce(tip(1));
        let mut tips = announcer.subscribe();
        assert_eq!(tips.try_next(), None);
        announcer.announce(tip(2));
        announcer.announce(tip(3));
        assert_eq!(tips.try_next(), Some(tip(3)));
        announcer.announce(tip(3));
        assert_eq!(tips.next_within(Duration::from_millis(1)), None, "the same tip is no news");
        announcer.announce(tip(2));
        assert_eq!(tips.next(), Some(tip(2)), "a tip that comes again is");
    }

    #[test]
    fn the_last_tip_comes_before_the_end() {
        let announcer = Announcer::default();
        let mut tips = announcer.subscribe();
        let waiting = thread::spawn(move || tips.by_ref().collect::<Vec<_>>());
        announcer.announce(tip(1));
        announcer.announce(tip(2));
        drop(announcer);
        let seen = waiting.join().unwrap();
        assert_eq!(seen.last(), Some(&tip(2)), "{seen:?}");
    }
}
