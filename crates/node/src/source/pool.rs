//! Threads that fetch blocks ahead of the receiver.
//!
//! ```text
//! want ─► queue of jobs ─► worker ─┐
//!                      └─► worker ─┴─► channel of a few blocks ─► next_event
//! ```
//!
//! A worker takes the next jobs, as many as its fetcher has room for but no more than its share of
//! those that wait, and puts the results into the channel (`queue`), or waits while that is full.
//! So memory is the blocks in the channel and those that each worker is at, whatever is wanted.
//! Dropping the pool ends the threads after the jobs that each is at.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use super::queue::{Outbox, Weigh};

/// Results that wait in the channel.
pub(super) const AHEAD: usize = 8;

/// What a worker does with jobs.
pub(super) trait Fetcher<J, R>: Send + 'static {
    /// How many jobs it takes at once.
    fn room(&self) -> usize;

    /// Does jobs. `None` ends the worker.
    fn fetch(&mut self, jobs: Vec<J>) -> Option<Vec<R>>;
}

/// The threads and their jobs.
pub(super) struct Pool<J> {
    queue: Arc<Queue<J>>,
    workers: Vec<thread::JoinHandle<()>>,
}

struct Queue<J> {
    jobs: Mutex<Jobs<J>>,
    changed: Condvar,
}

struct Jobs<J> {
    waiting: VecDeque<J>,
    closed: bool,
}

impl<J: Send + 'static> Pool<J> {
    /// Starts a thread for each fetcher. Results go to the channel.
    pub(super) fn new<R: Weigh + Send + 'static>(
        fetchers: impl ExactSizeIterator<Item = impl Fetcher<J, R>>,
        results: &Outbox<R>,
    ) -> Self {
        let jobs = Mutex::new(Jobs { waiting: VecDeque::new(), closed: false });
        let queue = Arc::new(Queue { jobs, changed: Condvar::new() });
        let share = fetchers.len();
        let worker = |fetcher| {
            let (queue, results) = (queue.clone(), results.clone());
            thread::spawn(move || work(&queue, share, fetcher, &results))
        };
        let workers = fetchers.map(worker).collect();
        Self { queue, workers }
    }

    /// Adds jobs behind those that wait.
    pub(super) fn push(&self, jobs: impl IntoIterator<Item = J>) {
        self.queue.lock().waiting.extend(jobs);
        self.queue.changed.notify_all();
    }

    /// Whether a worker has ended: its jobs would be waited for in vain.
    pub(super) fn has_ended(&self) -> bool {
        self.workers.iter().any(thread::JoinHandle::is_finished)
    }
}

impl<J> Queue<J> {
    /// No job is half done under the lock, so a panic elsewhere leaves it in order.
    fn lock(&self) -> std::sync::MutexGuard<'_, Jobs<J>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next jobs, at most `room` and at most a part of those that wait; `None` at the end.
    fn take(&self, room: usize, share: usize) -> Option<Vec<J>> {
        let mut jobs = self.lock();
        loop {
            if jobs.closed {
                return None;
            }
            let waiting = jobs.waiting.len();
            if waiting > 0 {
                let count = room.min(waiting.div_ceil(share.max(1))).max(1);
                return Some(jobs.waiting.drain(..count).collect());
            }
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn work<J, R: Weigh>(
    queue: &Queue<J>,
    share: usize,
    mut fetcher: impl Fetcher<J, R>,
    results: &Outbox<R>,
) {
    while let Some(jobs) = queue.take(fetcher.room(), share) {
        let Some(done) = fetcher.fetch(jobs) else { return };
        for result in done {
            if results.send(result).is_err() {
                return;
            }
        }
    }
}

impl<J> Drop for Pool<J> {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::source::queue::queue;

    impl Weigh for (u8, usize) {
        fn weight(&self) -> u64 {
            1
        }
    }

    /// Counts what it has fetched, and how many jobs it got at once.
    struct Counter {
        room: usize,
        fetched: Arc<AtomicUsize>,
    }

    impl Fetcher<u8, (u8, usize)> for Counter {
        fn room(&self) -> usize {
            self.room
        }

        fn fetch(&mut self, jobs: Vec<u8>) -> Option<Vec<(u8, usize)>> {
            self.fetched.fetch_add(jobs.len(), Ordering::Relaxed);
            let together = jobs.len();
            (!jobs.contains(&200)).then(|| jobs.into_iter().map(|job| (job, together)).collect())
        }
    }

    #[test]
    fn workers_stay_a_bounded_number_ahead_and_end() {
        for room in [1, 5] {
            let fetched = Arc::new(AtomicUsize::new(0));
            let (sender, results) = queue(AHEAD);
            let fetcher = |_| Counter { room, fetched: Arc::clone(&fetched) };
            let pool = Pool::new((0..2).map(fetcher), &sender);
            pool.push(0..100);
            thread::sleep(Duration::from_millis(50));
            assert!(fetched.load(Ordering::Relaxed) <= AHEAD + 2 * room);
            let mut jobs = Vec::new();
            for _ in 0..50 {
                let (job, together) = results.recv_timeout(Duration::from_secs(10)).unwrap();
                assert!(together <= room);
                jobs.push(job);
            }
            jobs.sort_unstable();
            assert!(jobs.is_sorted_by(|a, b| a < b), "each once");
            assert!(jobs.iter().all(|job| *job < 50 + 32), "in their order, but for the threads");
            drop((pool, results));
            assert!(fetched.load(Ordering::Relaxed) < 80);
        }
    }

    #[test]
    fn few_jobs_are_shared_and_a_worker_that_ends_is_seen() {
        let (sender, results) = queue(AHEAD);
        let fetched = Arc::new(AtomicUsize::new(0));
        let fetcher = |_| Counter { room: 32, fetched: Arc::clone(&fetched) };
        let pool = Pool::new((0..4).map(fetcher), &sender);
        pool.push(0..6);
        for _ in 0..6 {
            let (_, together) = results.recv_timeout(Duration::from_secs(10)).unwrap();
            assert!(together <= 2);
        }
        assert!(!pool.has_ended());
        pool.push([200]);
        while !pool.has_ended() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
