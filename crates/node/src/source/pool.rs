//! Threads that fetch blocks ahead of the receiver.
//!
//! ```text
//! want ─► queue of hashes ─► worker ─┐
//!                        └─► worker ─┴─► channel of a few blocks ─► next_event
//! ```
//!
//! A worker takes the next job and puts its block into the channel, or waits while that is full. So
//! memory is the blocks in the channel and one for each worker, whatever is wanted. Dropping the
//! pool ends the threads after the block that each is at.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::SourceError;

/// Blocks that wait in the channel.
const AHEAD: usize = 8;

/// What a worker does with a job. `Ok(None)`: there is no such block.
pub(super) type Fetch<J> = Box<dyn FnMut(&J) -> Result<Option<Vec<u8>>, SourceError> + Send>;

/// A job that was done.
pub(super) struct Done<J> {
    pub(super) job: J,
    pub(super) result: Result<Option<Vec<u8>>, SourceError>,
}

/// The threads, their jobs and their results.
pub(super) struct Pool<J> {
    queue: Arc<Queue<J>>,
    results: Option<Receiver<Done<J>>>,
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
    /// Starts a thread for each fetcher.
    pub(super) fn new(fetchers: impl IntoIterator<Item = Fetch<J>>) -> Self {
        let jobs = Mutex::new(Jobs { waiting: VecDeque::new(), closed: false });
        let queue = Arc::new(Queue { jobs, changed: Condvar::new() });
        let (sender, results) = sync_channel(AHEAD);
        let worker = |fetch| {
            let (queue, sender) = (queue.clone(), sender.clone());
            thread::spawn(move || work(&queue, fetch, &sender))
        };
        let workers = fetchers.into_iter().map(worker).collect();
        Self { queue, results: Some(results), workers }
    }

    /// Adds jobs behind those that wait.
    pub(super) fn push(&self, jobs: impl IntoIterator<Item = J>) {
        self.queue.lock().waiting.extend(jobs);
        self.queue.changed.notify_all();
    }

    /// The next result, if it comes in time.
    ///
    /// # Panics
    ///
    /// When a worker has: its job would be waited for in vain.
    pub(super) fn next(&self, timeout: Duration) -> Option<Done<J>> {
        let next = self.results.as_ref()?.recv_timeout(timeout).ok();
        let died = next.is_none() && self.workers.iter().any(thread::JoinHandle::is_finished);
        assert!(!died, "a thread that fetches blocks has panicked");
        next
    }
}

impl<J> Queue<J> {
    /// No job is half done under the lock, so a panic elsewhere leaves it in order.
    fn lock(&self) -> std::sync::MutexGuard<'_, Jobs<J>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn work<J>(queue: &Queue<J>, mut fetch: Fetch<J>, results: &SyncSender<Done<J>>) {
    loop {
        let mut jobs = queue.lock();
        let job = loop {
            if jobs.closed {
                return;
            }
            match jobs.waiting.pop_front() {
                Some(job) => break job,
                None => jobs = queue.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(jobs);
        let result = fetch(&job);
        if results.send(Done { job, result }).is_err() {
            return;
        }
    }
}

impl<J> Drop for Pool<J> {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
        // A worker that waits for room in the channel sees that nobody listens.
        self.results = None;
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so already.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn workers_stay_a_bounded_number_ahead_and_end() {
        let fetched = Arc::new(AtomicUsize::new(0));
        let fetcher = |fetched: Arc<AtomicUsize>| -> Fetch<u8> {
            Box::new(move |job| {
                fetched.fetch_add(1, Ordering::Relaxed);
                Ok((*job % 2 == 0).then(|| vec![*job]))
            })
        };
        let pool = Pool::new([fetcher(fetched.clone()), fetcher(fetched.clone())]);
        pool.push(0..100);
        thread::sleep(Duration::from_millis(50));
        assert!(fetched.load(Ordering::Relaxed) <= AHEAD + 2);
        let mut jobs = Vec::new();
        for _ in 0..50 {
            let done = pool.next(Duration::from_secs(10)).unwrap();
            assert_eq!(done.result.unwrap().is_some(), done.job % 2 == 0);
            jobs.push(done.job);
        }
        jobs.sort_unstable();
        assert!(jobs.is_sorted_by(|a, b| a < b), "each once");
        assert!(jobs.iter().all(|job| *job < 50 + 12), "in their order, but for the threads");
        drop(pool);
        assert!(fetched.load(Ordering::Relaxed) < 70);
    }

    #[test]
    #[should_panic(expected = "a thread that fetches blocks has panicked")]
    fn a_worker_that_panics_is_not_waited_for() {
        let fetch = || -> Fetch<u8> { Box::new(|job| panic!("job {job}")) };
        let pool = Pool::new([fetch(), fetch()]);
        pool.push([1]);
        while pool.next(Duration::from_millis(10)).is_none() {}
    }
}
