//! What workers share: the state under one lock, the database under another.
//!
//! The state's lock is held for a decision; the database's while a step is made or rewound in
//! memory, by the one worker that the state has chosen for it, so that no worker waits for another.
//! No thread waits for the disk while it holds the database, so the caller does not wait long for
//! it either.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use varve_consensus::BlockAt;
use varve_types::Network;

use super::room::Room;
use super::state::{Job, State};
use super::worker::Worker;
use super::{AsBlock, JoinerOptions, Retired, SubmitError};
use crate::database::Database;
use crate::error::Error;
use crate::prepare::Repeats;
use crate::view::DatabaseView;

/// The caller's check.
pub(super) type Check<'d, R, E> =
    &'d (dyn Fn(&BlockAt<'_>, &DatabaseView) -> Result<R, E> + Sync + 'd);

/// What the workers share.
pub(super) struct Pool<'d, T, R, E> {
    state: Mutex<State<T, R, E>>,
    /// Signalled when there may be work, or a block has retired.
    changed: Condvar,
    database: Mutex<&'d mut Database>,
    pub(super) network: Network,
    pub(super) check: Check<'d, R, E>,
}

/// What a worker does next.
pub(super) enum Next<T> {
    Work(Job<T>),
    /// Nothing to do but wait for reads.
    Read,
    End,
}

impl<'d, T: AsBlock + Send + Sync, R: Send, E: Send> Pool<'d, T, R, E> {
    pub(super) fn new(
        database: &'d mut Database,
        options: &JoinerOptions,
        check: Check<'d, R, E>,
    ) -> Self {
        let newest = database.latest().clone();
        let (limit, used) = database.begin_joining();
        let room = Room::new(limit, used, options.check);
        let state = State::new(newest, database.publisher(), options.depth.get(), room);
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            network: database.network(),
            database: Mutex::new(database),
            check,
        }
    }

    /// Runs `body` beside the workers: as many as the system has threads for, up to `workers`. An
    /// error when it has none, and `body` was not run.
    pub(super) fn run<O>(
        &self,
        workers: NonZeroUsize,
        body: impl FnOnce() -> O,
    ) -> Result<O, Error> {
        std::thread::scope(|scope| {
            let _ends = End(self);
            for number in 0..workers.get() {
                let thread = Builder::new().name(format!("utxo-joiner-{number}"));
                let spawned = thread.spawn_scoped(scope, || {
                    let _ends = EndOnPanic(self);
                    Worker::new(self).run();
                });
                match spawned {
                    Ok(_) => {}
                    Err(error) if number == 0 => return Err(Error::Thread(error)),
                    // Fewer workers are slower, but correct.
                    Err(_) => break,
                }
            }
            Ok(body())
        })
    }

    /// Changes the state and wakes waiting threads.
    pub(super) fn update<O>(&self, change: impl FnOnce(&mut State<T, R, E>) -> O) -> O {
        let output = change(&mut lock(&self.state));
        self.changed.notify_all();
        output
    }

    /// Records the progress of a block, without waking anyone.
    pub(super) fn note(&self, change: impl FnOnce(&mut State<T, R, E>)) {
        change(&mut lock(&self.state));
    }

    /// Uses the database exclusively.
    pub(super) fn with_database<O>(&self, write: impl FnOnce(&mut Database) -> O) -> O {
        write(&mut lock(&self.database))
    }

    /// What a worker is to do next; it waits for something when it has no reads under way.
    pub(super) fn next(&self, reads: bool) -> Next<T> {
        let mut state = lock(&self.state);
        loop {
            if state.ending {
                return Next::End;
            }
            if let Some(job) = state.pick() {
                return Next::Work(job);
            }
            if reads {
                return Next::Read;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn submit(&self, block: T, repeats: Repeats) -> Result<(), SubmitError<T>> {
        self.update(|state| state.submit(block, repeats))
    }

    pub(super) fn is_full(&self) -> bool {
        lock(&self.state).is_full()
    }

    #[cfg(feature = "test-suite")]
    pub(super) fn states(&self) -> Vec<(varve_types::Height, super::JoinState)> {
        lock(&self.state).states()
    }

    pub(super) fn try_retire(&self) -> Option<Retired<T, R, E>> {
        lock(&self.state).take_retired()
    }

    pub(super) fn retire(&self) -> Option<Retired<T, R, E>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(retired) = state.take_retired() {
                return Some(retired);
            }
            if !state.will_retire() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A panic in a worker or in the caller ends the joiner and is propagated.
fn lock<S: ?Sized>(mutex: &Mutex<S>) -> MutexGuard<'_, S> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the workers when the caller's closure returns or panics.
struct End<'p, 'd, T, R, E>(&'p Pool<'d, T, R, E>);

impl<T, R, E> Drop for End<'_, '_, T, R, E> {
    fn drop(&mut self) {
        lock(&self.0.state).ending = true;
        self.0.changed.notify_all();
    }
}

/// Stops all workers when one panics.
struct EndOnPanic<'p, 'd, T, R, E>(&'p Pool<'d, T, R, E>);

impl<T, R, E> Drop for EndOnPanic<'_, '_, T, R, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(End(self.0));
        }
    }
}
