//! The connections of an engine: a bounded number, made when they are needed.
//!
//! Who finds all of them in use waits, so the number of connections bounds what the server is asked
//! at once. A connection that broke is dropped, and the next caller makes another.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::address::Address;
use super::link::{Bare, Link};
use super::trouble::Trouble;

/// How long a caller waits for a connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connections.
#[derive(Debug)]
pub(super) struct Pool {
    address: Address,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Link>,
    /// Connections that exist, in use or not.
    count: usize,
}

impl Pool {
    pub(super) fn new(address: Address, first: Link) -> Self {
        let state = Mutex::new(State { idle: vec![first], count: 1 });
        Self { address, state, freed: Condvar::new() }
    }

    /// Lets `act` use a connection. It says whether the connection can be used again.
    pub(super) fn with<T>(
        &self,
        act: impl FnOnce(&mut Link) -> (Result<T, Trouble>, bool),
    ) -> Result<T, Trouble> {
        let mut taken = Taken { pool: self, link: Some(self.take()?), sound: false };
        let link = taken.link.as_mut().expect("it was taken just now");
        let (result, sound) = act(link);
        taken.sound = sound && !link.client.is_closed();
        result
    }

    /// Lets `act` use a connection for what leaves no transaction open.
    pub(super) fn read<T>(
        &self,
        act: impl FnOnce(&mut Link) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.with(|link| {
            let result = act(link);
            let sound = match &result {
                Ok(_) => true,
                Err(Trouble::Lost { .. }) => false,
                Err(_) => link.roll_back(),
            };
            (result, sound)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Link, Trouble> {
        let wait = |state: &mut State| state.idle.is_empty() && self.is_full(state);
        let waited = self.freed.wait_timeout_while(self.state(), PATIENCE, wait);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = state.idle.pop() {
            return Ok(link);
        }
        if self.is_full(&state) {
            let count = state.count;
            return Err(Trouble::lost(format!("all {count} connections are in use")));
        }
        state.count += 1;
        drop(state);
        let made = Bare::connect(&self.address).map_err(Trouble::from);
        let made = made.and_then(|bare| Ok(bare.into_link(&self.address.schema)?));
        if made.is_err() {
            self.release(None);
        }
        made
    }

    const fn is_full(&self, state: &State) -> bool {
        state.count >= self.address.connections
    }

    /// Takes a connection back, or the news that it is gone.
    fn release(&self, link: Option<Link>) {
        let mut state = self.state();
        match link {
            Some(link) => state.idle.push(link),
            None => state.count -= 1,
        }
        drop(state);
        self.freed.notify_one();
    }
}

/// A connection in use, given back also when its user panics.
struct Taken<'a> {
    pool: &'a Pool,
    link: Option<Link>,
    sound: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let link = self.link.take().filter(|_| self.sound);
        self.pool.release(link);
    }
}
