//! Background work: flushes, merges and checkpoints in threads beside a store's writer.
//!
//! ```text
//!  writer    ─ step ─ step ─ decide ─ step ─ step ─ … ─ step ─ take in ─ step ─
//!                              │ start                            ▲ the result
//!  lane                        └──────── writes files ────────────┘
//! ```
//!
//! The writer decides what to do at fixed points between steps, by pure functions of what it knows.
//! A [`Lane`], one thread that runs one [`Job`] after another, does it. The writer takes the result
//! in at a later fixed point; nothing of it is visible earlier. Until then a lane touches only
//! files that nothing else refers to, so the store passes through the same states whatever the
//! threads do, only at other steps.
//!
//! Each kind of work has its lane, so that a short flush does not wait for a long merge, and at
//! most one job at a time ([`Slot`]).
//!
//! **Inline.** Without threads a job runs where it is started. Then the order of all file
//! operations is fixed, and a test can cut the power at each of them.
//!
//! **Stopping.** When the store is closed, a [`Stop`] ends its jobs between two rows of a run;
//! unfinished files are removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Where flushes, merges and checkpoints run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compaction {
    /// In the writer's thread, when they are due. The order of file operations is always the
    /// same.
    Inline,
    /// In background threads, beside the writer.
    #[default]
    Threads,
}

/// A flag that ends jobs early.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is never set.
    #[must_use]
    pub fn never() -> Self {
        Self::default()
    }

    /// Whether jobs should stop.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks all jobs that hold this flag to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Task = Box<dyn FnOnce() + Send>;

/// Runs one job after another, in a thread or at once.
#[derive(Debug)]
pub struct Lane(Option<(Sender<Task>, JoinHandle<()>)>);

impl Lane {
    /// A lane; `name` is that of its thread, if it has one.
    pub fn new(compaction: Compaction, name: &str) -> std::io::Result<Self> {
        if compaction == Compaction::Inline {
            return Ok(Self(None));
        }
        let (tasks, queue) = mpsc::channel::<Task>();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || queue.into_iter().for_each(|task| task()))?;
        Ok(Self(Some((tasks, thread))))
    }

    /// Starts a job; inline, runs it.
    pub fn start<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Job<T> {
        let (sender, result) = mpsc::sync_channel(1);
        let end = JobEnd::default();
        let ends = Ends(end.clone());
        let task = move || {
            let _ends = ends;
            // Without a receiver the result is no longer wanted.
            drop(sender.send(work()));
        };
        match &self.0 {
            None => task(),
            Some((tasks, _)) => {
                tasks.send(Box::new(task)).expect("the thread takes tasks until the lane is gone");
            }
        }
        Job { result, end }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some((tasks, thread)) = self.0.take() {
            drop(tasks);
            // A panic there was reported to the thread that waited for the job.
            let _ = thread.join();
        }
    }
}

/// A job that was started.
#[derive(Debug)]
pub struct Job<T> {
    result: Receiver<T>,
    end: JobEnd,
}

impl<T> Job<T> {
    /// A handle that waits for the end of the job without owning it.
    #[must_use]
    pub fn end(&self) -> JobEnd {
        self.end.clone()
    }

    /// Waits for the result.
    #[must_use]
    pub fn wait(self) -> T {
        self.take(true).expect("waiting ends with the result")
    }

    /// The result, if the job is done or `wait` says to wait for it.
    #[must_use]
    pub fn take(&self, wait: bool) -> Option<T> {
        const PANICKED: &str = "the thread of a job panicked, as its message says";
        if wait {
            return Some(self.result.recv().expect(PANICKED));
        }
        match self.result.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => panic!("{PANICKED}"),
        }
    }
}

/// Waits for the end of a job in any thread. The result stays with the [`Job`].
#[derive(Clone, Debug, Default)]
pub struct JobEnd(Arc<(Mutex<bool>, Condvar)>);

impl JobEnd {
    /// Waits until the result can be taken.
    pub fn wait(&self) {
        let (ended, changed) = &*self.0;
        let mut is_ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_ended {
            is_ended = changed.wait(is_ended).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Reports the end of a job when it is dropped, also by a panic or with a task that never ran.
struct Ends(JobEnd);

impl Drop for Ends {
    fn drop(&mut self) {
        let (ended, changed) = &*self.0.0;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }
}

/// Room for one job, with a description of it.
#[derive(Debug)]
pub struct Slot<A, T>(Option<(A, Job<T>)>);

impl<A, T> Default for Slot<A, T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<A, T> Slot<A, T> {
    /// Whether no job is under way.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.0.is_none()
    }

    /// The description of the job under way.
    #[must_use]
    pub fn about(&self) -> Option<&A> {
        self.0.as_ref().map(|(about, _)| about)
    }

    /// A handle to wait for the job under way.
    #[must_use]
    pub fn end(&self) -> Option<JobEnd> {
        self.0.as_ref().map(|(_, job)| job.end())
    }

    /// Puts a job in. The slot must be free.
    pub fn fill(&mut self, about: A, job: Job<T>) {
        assert!(self.is_free(), "one job at a time");
        self.0 = Some((about, job));
    }

    /// The description and result of the job, if it is done or `wait` says to wait for it.
    pub fn take(&mut self, wait: bool) -> Option<(A, T)> {
        let result = self.0.as_ref()?.1.take(wait)?;
        let (about, _) = self.0.take()?;
        Some((about, result))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_done_at_once_or_later() {
        for compaction in [Compaction::Inline, Compaction::Threads] {
            let (go, wait) = mpsc::channel::<()>();
            let lane = Lane::new(compaction, "test").unwrap();
            let mut slot = Slot::default();
            if compaction == Compaction::Inline {
                go.send(()).unwrap();
            }
            slot.fill("a", lane.start(move || wait.recv().is_ok()));
            if compaction == Compaction::Threads {
                assert!(slot.take(false).is_none(), "it is still waiting");
                assert_eq!(slot.about(), Some(&"a"));
                go.send(()).unwrap();
            }
            assert_eq!(slot.take(compaction == Compaction::Threads), Some(("a", true)));
            assert!(slot.is_free());
        }
    }

    #[test]
    fn the_end_of_a_job_is_waited_for_without_it_even_after_a_panic() {
        let lane = Lane::new(Compaction::Threads, "test").unwrap();
        let (job, panics) = (lane.start(|| 7), lane.start(|| panic!("as the test wants")));
        let behind = lane.start(|| ());
        job.end().wait();
        assert_eq!(job.take(false), Some(7), "the result is there when the end is reported");
        let ends: [JobEnd; 2] = [panics.end(), behind.end()];
        ends.iter().for_each(JobEnd::wait);
    }

    #[test]
    fn a_lane_ends_when_its_jobs_have_stopped() {
        let (stop, lane) = (Stop::default(), Lane::new(Compaction::Threads, "test").unwrap());
        let seen = stop.clone();
        let job = lane.start(move || {
            while !seen.is_set() {
                std::thread::yield_now();
            }
        });
        stop.set();
        drop(lane);
        assert_eq!(job.take(false), Some(()), "the thread is gone, the job was finished");
    }
}
