//! What a client may take: connections, requests, bytes and time.
//!
//! Addresses are counted singly, those of IPv6 by their /64. A client on the same machine is not
//! counted by the minute: its load is the operator's own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bounds on what clients may take of a server.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Connections at the same time.
    pub connections: usize,
    /// Connections of one address at the same time.
    pub connections_per_address: usize,
    /// Requests of one address in a minute, and at once after a pause. Clients on the same machine
    /// are not counted.
    pub requests_per_minute: u32,
    /// Bytes of a request's line and headers, of which there may be 100.
    pub header_bytes: usize,
    /// How long a request's headers may take to come, and a connection may be idle.
    pub header_time: Duration,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Bytes of a body that holds transactions to broadcast.
    pub tx_bytes: usize,
    /// How long a request may take, from its headers to the first byte of its answer.
    pub request_time: Duration,
    /// How long an answer may wait for a client that does not read.
    pub stall_time: Duration,
    /// Things that one request may ask for.
    pub batch: usize,
    /// Unspent outputs that are listed for a script; more are refused.
    pub unspent: u64,
    /// How long connections may finish after the server was asked to stop.
    pub grace_time: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 2_048,
            connections_per_address: 512,
            requests_per_minute: 6_000,
            header_bytes: 16 << 10,
            header_time: Duration::from_secs(30),
            body_bytes: 1 << 20,
            tx_bytes: 8 << 20,
            request_time: Duration::from_secs(60),
            stall_time: Duration::from_secs(20),
            batch: 300,
            unspent: 10_000,
            grace_time: Duration::from_secs(5),
        }
    }
}

/// Addresses that are remembered before idle ones are forgotten.
const REMEMBERED: usize = 4_096;

/// Who is connected, and how much each has asked for.
#[derive(Debug)]
pub(crate) struct Gate {
    connections: usize,
    connections_per_address: usize,
    requests_per_minute: f64,
    visitors: Mutex<Visitors>,
}

#[derive(Debug, Default)]
struct Visitors {
    connections: usize,
    by_address: HashMap<IpAddr, Visitor>,
}

#[derive(Debug)]
struct Visitor {
    connections: usize,
    /// Requests that it may still send, which grow with time.
    tokens: f64,
    counted: Instant,
}

/// A connection that counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    gate: Arc<Gate>,
    address: IpAddr,
}

impl Gate {
    pub(crate) fn new(limits: &HttpLimits) -> Arc<Self> {
        Arc::new(Self {
            connections: limits.connections,
            connections_per_address: limits.connections_per_address,
            requests_per_minute: f64::from(limits.requests_per_minute),
            visitors: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Visitors> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a connection in, unless there are too many.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admission> {
        let address = counted(address);
        let mut visitors = self.lock();
        if visitors.connections >= self.connections {
            return None;
        }
        let visitor = self.visitor(&mut visitors, address, Instant::now());
        if visitor.connections >= self.connections_per_address {
            return None;
        }
        visitor.connections += 1;
        visitors.connections += 1;
        Some(Admission { gate: Arc::clone(self), address })
    }

    /// Whether one more request of this address is within its share.
    pub(crate) fn allows(&self, address: IpAddr, now: Instant) -> bool {
        if address.to_canonical().is_loopback() {
            return true;
        }
        let mut visitors = self.lock();
        let visitor = self.visitor(&mut visitors, counted(address), now);
        visitor.refill(self.requests_per_minute, now);
        let allowed = visitor.tokens >= 1.0;
        if allowed {
            visitor.tokens -= 1.0;
        }
        allowed
    }

    fn visitor<'a>(
        &self,
        visitors: &'a mut Visitors,
        address: IpAddr,
        now: Instant,
    ) -> &'a mut Visitor {
        let rate = self.requests_per_minute;
        if visitors.by_address.len() >= REMEMBERED && !visitors.by_address.contains_key(&address) {
            visitors.by_address.retain(|_, visitor| {
                visitor.refill(rate, now);
                visitor.connections > 0 || visitor.tokens < rate
            });
        }
        let new = || Visitor { connections: 0, tokens: rate, counted: now };
        visitors.by_address.entry(address).or_insert_with(new)
    }
}

impl Visitor {
    fn refill(&mut self, per_minute: f64, now: Instant) {
        let minutes = now.saturating_duration_since(self.counted).as_secs_f64() / 60.0;
        self.tokens = minutes.mul_add(per_minute, self.tokens).min(per_minute);
        self.counted = now;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut visitors = self.gate.lock();
        visitors.connections = visitors.connections.saturating_sub(1);
        if let Some(visitor) = visitors.by_address.get_mut(&self.address) {
            visitor.connections = visitor.connections.saturating_sub(1);
        }
    }
}

/// What an address is counted as: itself, or the /64 that it is in.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(connections: usize, per_address: usize, per_minute: u32) -> Arc<Gate> {
        Gate::new(&HttpLimits {
            connections,
            connections_per_address: per_address,
            requests_per_minute: per_minute,
            ..HttpLimits::default()
        })
    }

    #[test]
    fn connections_are_counted_in_all_and_by_address() {
        let gate = gate(3, 2, 1);
        let [one, two]: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let held = [gate.admit(one).unwrap(), gate.admit(one).unwrap()];
        assert!(gate.admit(one).is_none(), "a third of one address");
        let third = gate.admit(two).unwrap();
        assert!(gate.admit(two).is_none(), "a fourth in all");
        drop(held);
        drop(third);
        assert!(gate.admit(one).is_some());
    }

    #[test]
    fn requests_come_back_with_time() {
        let gate = gate(9, 9, 60);
        let address: IpAddr = "2001:db8::1".parse().unwrap();
        let neighbour: IpAddr = "2001:db8::2".parse().unwrap();
        let start = Instant::now();
        assert!((0..60).all(|_| gate.allows(address, start)));
        assert!(!gate.allows(neighbour, start), "the same /64");
        assert!(gate.allows(address, start + Duration::from_millis(1_001)));
        assert!(!gate.allows(address, start + Duration::from_millis(1_002)));
    }

    #[test]
    fn clients_on_this_machine_are_not_counted() {
        let gate = gate(9, 9, 1);
        let now = Instant::now();
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!((0..50_000).all(|_| gate.allows(address.parse().unwrap(), now)), "{address}");
        }
    }

    #[test]
    fn idle_addresses_are_forgotten() {
        let gate = gate(9, 9, 60);
        let start = Instant::now();
        for number in 0..REMEMBERED {
            let [.., b, c] = u32::try_from(number).unwrap().to_be_bytes();
            gate.allows(IpAddr::from([10, 0, b, c]), start);
        }
        assert_eq!(gate.lock().by_address.len(), REMEMBERED);
        gate.allows(IpAddr::from([11, 0, 0, 0]), start + Duration::from_secs(60));
        assert_eq!(gate.lock().by_address.len(), 1);
    }
}
