//! The system's clocks, randomness and processors.
//!
//! The crates below take all of these as arguments, so that a whole run is repeatable by seed. This
//! is the place where a program that embeds Varve gets them without asking.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use varve_node::source::Clock;

use crate::error::Error;

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Error::Randomness),
    }
}

/// The threads that this process may run at once.
pub(crate) fn threads() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The time since this call, which never goes back.
pub(crate) fn stopwatch() -> Clock {
    let start = Instant::now();
    Arc::new(move || start.elapsed())
}

/// The time of day, in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The time of day, in milliseconds since 1970.
pub(crate) fn unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
