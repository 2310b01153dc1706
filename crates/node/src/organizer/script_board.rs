//! The script checks that are under way, and the threads that help with them.
//!
//! A worker of the joiner checks the scripts of its block by itself. While fewer workers do so than
//! there are processors for, helpers take chunks of the block whose turn it is: the lowest one. So
//! a block with many signatures uses all processors at the tip and in the middle of a sync alike,
//! and blocks that are checked side by side are left alone:
//!
//! ```text
//! workers that check + helpers at work  ≤  workers
//! ```
//!
//! A helper looks at this before each chunk, half a millisecond of work, and steps back when
//! another worker has come. Helpers are started once for a joiner and sleep when there is nothing
//! to do.

#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, scope};

use varve_consensus::{PreparedTx, ScriptChecks};
use varve_types::Height;

/// The board on which blocks are posted.
pub(crate) struct ScriptBoard<P> {
    /// Threads that may check scripts at the same time.
    threads: usize,
    state: Mutex<State<P>>,
    /// A block was posted, a thread has stopped, or the helpers are to end.
    changed: Condvar,
    /// Workers that check a block, and helpers at work. Changed under the lock only.
    busy: AtomicUsize,
}

struct State<P> {
    posted: Vec<Posted<P>>,
    ending: bool,
}

struct Posted<P> {
    height: Height,
    checks: Arc<ScriptChecks<P>>,
    helpers: usize,
}

impl<P: PreparedTx> ScriptBoard<P> {
    pub(crate) const fn new(threads: NonZeroUsize) -> Self {
        Self {
            threads: threads.get(),
            state: Mutex::new(State { posted: Vec::new(), ending: false }),
            changed: Condvar::new(),
            busy: AtomicUsize::new(0),
        }
    }

    /// Runs `body` beside the helpers.
    pub(crate) fn with_helpers<O>(&self, body: impl FnOnce() -> O) -> O {
        scope(|scope| {
            let _end = End(self);
            for number in 1..self.threads {
                let thread = Builder::new().name(format!("scripts-{number}"));
                // Without helpers everything is slower, and nothing is wrong.
                if thread.spawn_scoped(scope, || self.help()).is_err() {
                    break;
                }
            }
            body()
        })
    }

    /// Runs the checks of a block, on all threads that are free. All threads have left them when it
    /// returns.
    pub(crate) fn run(&self, height: Height, checks: &Arc<ScriptChecks<P>>) {
        {
            let mut state = self.lock();
            self.busy.fetch_add(1, Ordering::Relaxed);
            state.posted.push(Posted { height, checks: Arc::clone(checks), helpers: 0 });
        }
        self.changed.notify_all();
        let _posted = Withdraw { board: self, checks };
        checks.run(|| true);
    }

    /// Helps wherever it can, until the board ends.
    fn help(&self) {
        let mut state = self.lock();
        loop {
            if state.ending {
                return;
            }
            let free = self.busy.load(Ordering::Relaxed) < self.threads;
            let Some(posted) = state.lowest().filter(|_| free) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            posted.helpers += 1;
            self.busy.fetch_add(1, Ordering::Relaxed);
            let checks = Arc::clone(&posted.checks);
            drop(state);
            let left = Leave { board: self, checks: &checks };
            checks.run(|| self.busy.load(Ordering::Relaxed) <= self.threads);
            drop(left);
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: PreparedTx> State<P> {
    /// The lowest block in which something is left to check.
    fn lowest(&mut self) -> Option<&mut Posted<P>> {
        let open = self.posted.iter_mut().filter(|posted| posted.checks.has_work());
        open.min_by_key(|posted| posted.height)
    }

    fn find(&mut self, checks: &Arc<ScriptChecks<P>>) -> Option<&mut Posted<P>> {
        self.posted.iter_mut().find(|posted| Arc::ptr_eq(&posted.checks, checks))
    }
}

/// Takes a block off the board when the last helper has left it.
struct Withdraw<'a, P: PreparedTx> {
    board: &'a ScriptBoard<P>,
    checks: &'a Arc<ScriptChecks<P>>,
}

impl<P: PreparedTx> Drop for Withdraw<'_, P> {
    fn drop(&mut self) {
        let mut state = self.board.lock();
        // Others may have its place while it waits.
        self.board.busy.fetch_sub(1, Ordering::Relaxed);
        self.board.changed.notify_all();
        while state.find(self.checks).is_some_and(|posted| posted.helpers > 0) {
            state = self.board.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.posted.retain(|posted| !Arc::ptr_eq(&posted.checks, self.checks));
    }
}

/// A helper leaves a block.
struct Leave<'a, P: PreparedTx> {
    board: &'a ScriptBoard<P>,
    checks: &'a Arc<ScriptChecks<P>>,
}

impl<P: PreparedTx> Drop for Leave<'_, P> {
    fn drop(&mut self) {
        let mut state = self.board.lock();
        self.board.busy.fetch_sub(1, Ordering::Relaxed);
        if let Some(posted) = state.find(self.checks) {
            posted.helpers -= 1;
        }
        self.board.changed.notify_all();
    }
}

/// Ends the helpers when the body returns or panics.
struct End<'a, P: PreparedTx>(&'a ScriptBoard<P>);

impl<P: PreparedTx> Drop for End<'_, P> {
    fn drop(&mut self) {
        self.0.lock().ending = true;
        self.0.changed.notify_all();
    }
}
