//! A disk that does not answer: calls that block until a test releases them.
//!
//! [`FaultyStorage::hold`](super::FaultyStorage::hold) closes a gate for one kind of operation on
//! some files. Callers block, holding no lock of the storage, until the [`Gate`] is dropped. So a
//! test can see which threads proceed while a disk is slow, and which wait for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::plan::Operation;

/// The gates of a storage.
#[derive(Debug, Default)]
pub(super) struct Gates {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closed: Vec<Closed>,
    next: u64,
}

#[derive(Debug)]
struct Closed {
    id: u64,
    operation: Operation,
    path_contains: String,
    /// Calls that wait at this gate now.
    waiting: usize,
}

impl Gates {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(self: &Arc<Self>, operation: Operation, path_contains: &str) -> Gate {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        let path_contains = path_contains.to_owned();
        state.closed.push(Closed { id, operation, path_contains, waiting: 0 });
        Gate { gates: Arc::clone(self), id }
    }

    /// Waits while a gate is closed for this call.
    pub(super) fn pass(&self, operation: Operation, path: &str) {
        let mut state = self.state();
        loop {
            let gate = state
                .closed
                .iter_mut()
                .find(|gate| gate.operation == operation && path.contains(&gate.path_contains));
            let Some(gate) = gate else { return };
            gate.waiting += 1;
            let id = gate.id;
            self.changed.notify_all();
            while state.closed.iter().any(|gate| gate.id == id) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// A closed gate; dropping it opens it.
#[derive(Debug)]
pub struct Gate {
    gates: Arc<Gates>,
    id: u64,
}

impl Gate {
    /// Waits until a call is held up at this gate. False when none comes within `most`.
    #[must_use]
    pub fn wait_for_caller(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        let mut state = self.gates.state();
        loop {
            let is_here = |gate: &&Closed| gate.id == self.id && gate.waiting > 0;
            if state.closed.iter().any(|gate| is_here(&gate)) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.gates.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.gates.state().closed.retain(|gate| gate.id != self.id);
        self.gates.changed.notify_all();
    }
}
