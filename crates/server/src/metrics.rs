//! Metrics in the text format of Prometheus: what was counted here, and what the node says when it
//! is asked.
//!
//! Counters are atomics; the table of methods is locked for reading to find one, and for writing
//! the first time that one is seen. Methods are names from the code, never from a client, so the
//! table is bounded.

mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub(crate) use text::render;

/// The protocols that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Electrum, over TCP, TLS or WebSocket.
    Electrum,
    /// REST, the explorer and their streams.
    Http,
}

impl Protocol {
    const ALL: [Self; 2] = [Self::Electrum, Self::Http];

    const fn name(self) -> &'static str {
        match self {
            Self::Electrum => "electrum",
            Self::Http => "http",
        }
    }
}

/// The upper ends of the buckets of a request's time, in microseconds.
const BUCKETS: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    5_000_000, 30_000_000,
];

/// What the requests of one method took.
#[derive(Debug, Default)]
struct Latency {
    /// Requests within each bucket, and above the last.
    counts: [AtomicU64; BUCKETS.len() + 1],
    microseconds: AtomicU64,
}

impl Latency {
    fn add(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.partition_point(|end| *end < took);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.microseconds.fetch_add(took, Ordering::Relaxed);
    }
}

/// Connections of a protocol.
#[derive(Debug, Default)]
struct Connections {
    open: AtomicI64,
    accepted: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
}

type Methods = RwLock<BTreeMap<Box<str>, Arc<Latency>>>;

/// What the servers count.
#[derive(Default)]
pub struct Metrics {
    requests: [Methods; Protocol::ALL.len()],
    connections: [Connections; Protocol::ALL.len()],
}

impl Metrics {
    /// Counts a request that was answered, whatever the answer. A method is one of those that the
    /// protocol has, a route and not a path: the table of methods must not grow with what clients
    /// send.
    pub fn request(&self, protocol: Protocol, method: &str, took: Duration) {
        let methods = self.methods(protocol);
        let known = {
            let methods = methods.read().unwrap_or_else(PoisonError::into_inner);
            methods.get(method).map(Arc::clone)
        };
        let latency = known.unwrap_or_else(|| {
            let mut methods = methods.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(methods.entry(method.into()).or_default())
        });
        latency.add(took);
    }

    const fn methods(&self, protocol: Protocol) -> &Methods {
        let [electrum, http] = &self.requests;
        match protocol {
            Protocol::Electrum => electrum,
            Protocol::Http => http,
        }
    }

    const fn connections(&self, protocol: Protocol) -> &Connections {
        let [electrum, http] = &self.connections;
        match protocol {
            Protocol::Electrum => electrum,
            Protocol::Http => http,
        }
    }

    /// Counts a connection until the guard is dropped.
    #[must_use]
    pub fn connected(self: &Arc<Self>, protocol: Protocol) -> Connected {
        let connections = self.connections(protocol);
        connections.open.fetch_add(1, Ordering::Relaxed);
        connections.accepted.fetch_add(1, Ordering::Relaxed);
        Connected { metrics: Arc::clone(self), protocol }
    }

    /// Counts a connection that was turned away because there were too many.
    pub fn refused(&self, protocol: Protocol) {
        self.connections(protocol).refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a client that was disconnected because it did not read, or was too slow.
    pub fn dropped(&self, protocol: Protocol) {
        self.connections(protocol).dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub struct Connected {
    metrics: Arc<Metrics>,
    protocol: Protocol,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.metrics.connections(self.protocol).open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_in_the_first_bucket_that_holds_it() {
        let latency = Latency::default();
        for took in [0, 100, 101, 30_000_000, 30_000_001] {
            latency.add(Duration::from_micros(took));
        }
        let counts = latency.counts.map(AtomicU64::into_inner);
        assert_eq!(counts.first(), Some(&2));
        assert_eq!(counts.get(1), Some(&1));
        assert_eq!(counts.get(BUCKETS.len() - 1..), Some(&[1, 1][..]));
    }

    #[test]
    fn connections_count_until_their_guards_go() {
        let metrics = Arc::new(Metrics::default());
        let guards = [(); 3].map(|()| metrics.connected(Protocol::Http));
        let open = || metrics.connections(Protocol::Http).open.load(Ordering::Relaxed);
        assert_eq!(open(), 3);
        drop(guards);
        assert_eq!(open(), 0);
    }
}
