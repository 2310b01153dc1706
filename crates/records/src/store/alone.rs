//! Work that one thread of one process does at a time.
//!
//! Threads of this process are kept apart by a lock, processes by a lease of the engine. The order
//! is lock, then lease, so a process asks for a lease once, however many of its threads wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Result, Store};
use crate::engine::{EngineError, Task};

/// How long a resolution waits for that of another process, and how often it asks.
const WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// One lock a task.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    resolve: Mutex<()>,
    prune: Mutex<()>,
    clean_blobs: Mutex<()>,
}

impl Tasks {
    const fn lock(&self, task: Task) -> &Mutex<()> {
        match task {
            Task::Resolve => &self.resolve,
            Task::Prune => &self.prune,
            Task::CleanBlobs => &self.clean_blobs,
        }
    }
}

/// The right to do a task, given back when it is dropped.
pub(crate) struct Alone<'a> {
    store: &'a Store,
    task: Task,
    _here: MutexGuard<'a, ()>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // One that cannot be given back runs out by itself.
        drop(self.store.engine.end_lease(self.task));
    }
}

impl Store {
    /// Serializes conflict resolutions: what one saw when it looked must hold until it has written.
    pub(crate) fn resolve_alone(&self) -> Result<Alone<'_>> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(alone) = self.alone(Task::Resolve)? {
                return Ok(alone);
            }
            if waited >= WAIT {
                let by = Arc::from("another process has been resolving conflicts for a minute");
                return Err(EngineError::Busy { by }.into());
            }
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// Waits until no other thread does the task; `None` when another process does it.
    pub(crate) fn alone(&self, task: Task) -> Result<Option<Alone<'_>>> {
        let here = self.tasks.lock(task).lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.engine.take_lease(task)?;
        Ok(taken.then_some(Alone { store: self, task, _here: here }))
    }
}
