//! One address: whether it is connected, when it will be tried again, or why never.
//!
//! ```text
//! waiting ─► calling ─► ready ─┐
//!    ▲          │              ├─► banned
//!    └──────────┴── lost ◄─────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use super::Settings;
use super::connection::{Call, Incoming, Line, Link};
use super::wire::Message;
use crate::source::Giver;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that is quiet for so long is asked for a sign of life.
const PING: Duration = Duration::from_secs(60);
/// And given up after this.
const DEAD: Duration = Duration::from_secs(120);
/// How long it may take to connect and shake hands.
const CALL: Duration = Duration::from_secs(30);
/// How long an answer to `getheaders` may take.
const HEADERS: Duration = Duration::from_secs(30);

/// An address.
pub(super) struct Slot {
    pub(super) address: String,
    pub(super) state: State,
    /// Tries since the last that got through.
    failures: u32,
}

/// How it stands with an address.
pub(super) enum State {
    Waiting { until: Duration },
    Calling { giver: Giver, line: Line, waited: Duration },
    Ready(Peer),
    Banned { reason: String },
}

/// A peer that can be asked.
pub(super) struct Peer {
    giver: Giver,
    pub(super) link: Arc<Link>,
    /// How long it has been waited for headers that it was asked for.
    pub(super) asked: Option<Duration>,
    /// It has no headers above the locator, as far as is known.
    pub(super) exhausted: bool,
    /// How many bytes had come when it was last looked at, and for how long no more have.
    received: u64,
    quiet: Duration,
    pinged: bool,
}

/// What is to be heard of a peer.
pub(super) enum Sign {
    Heard,
    Quiet,
    Dead,
}

impl Slot {
    /// An address to be tried at once.
    pub(super) const fn new(address: String) -> Self {
        Self { address, state: State::Waiting { until: Duration::ZERO }, failures: 0 }
    }

    /// Whether it is time to connect.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        matches!(self.state, State::Waiting { until } if until <= now)
    }

    /// Whether it is being called for the first time, so that nobody knows what it has.
    pub(super) const fn is_expected(&self) -> bool {
        matches!(self.state, State::Calling { .. }) && self.failures == 0
    }

    /// The giver that this address is at the moment.
    pub(super) const fn giver(&self) -> Option<Giver> {
        match &self.state {
            State::Calling { giver, .. } => Some(*giver),
            State::Ready(peer) => Some(peer.giver),
            State::Waiting { .. } | State::Banned { .. } => None,
        }
    }

    /// The peer, when it is connected.
    pub(super) const fn ready(&self) -> Option<&Peer> {
        match &self.state {
            State::Ready(peer) => Some(peer),
            _ => None,
        }
    }

    /// The peer, when it is connected.
    pub(super) const fn ready_mut(&mut self) -> Option<&mut Peer> {
        match &mut self.state {
            State::Ready(peer) => Some(peer),
            _ => None,
        }
    }

    /// Starts the thread of a connection.
    pub(super) fn call(
        &mut self,
        giver: Giver,
        settings: &Settings,
        inbox: SyncSender<(Giver, Incoming)>,
    ) {
        let time = settings.epoch.saturating_add((settings.clock)().as_secs());
        let line = Line::default();
        let call = Call {
            peer: giver,
            line: line.clone(),
            address: self.address.clone(),
            network: settings.network,
            nonce: settings.nonce.wrapping_add(u64::from(giver.0)),
            time: i64::try_from(time).unwrap_or(0),
            inbox,
        };
        self.state = State::Calling { giver, line, waited: Duration::ZERO };
        thread::spawn(move || call.run());
    }

    /// Counts the time of a call. `true`: it takes too long.
    pub(super) fn is_stuck(&mut self, time: Duration) -> bool {
        let State::Calling { waited, .. } = &mut self.state else { return false };
        *waited += time;
        *waited >= CALL
    }

    /// The handshake is through.
    pub(super) fn connected(&mut self, giver: Giver, link: Arc<Link>) {
        self.failures = 0;
        self.state = State::Ready(Peer {
            giver,
            link,
            asked: None,
            exhausted: false,
            received: 0,
            quiet: Duration::ZERO,
            pinged: false,
        });
    }

    /// The connection is gone; the pause before the next try doubles with every failure.
    pub(super) fn lost(&mut self, now: Duration) {
        self.close();
        let pause = Duration::from_secs(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        self.failures += 1;
        self.state = State::Waiting { until: now + pause };
    }

    /// The address is not tried again. `false`: it was banned before.
    pub(super) fn ban(&mut self, reason: &str) -> bool {
        self.close();
        let new = !matches!(self.state, State::Banned { .. });
        if new {
            self.state = State::Banned { reason: reason.to_owned() };
        }
        new
    }

    fn close(&self) {
        match &self.state {
            State::Ready(peer) => peer.link.close(),
            State::Calling { line, .. } => line.get().into_iter().for_each(|link| link.close()),
            State::Waiting { .. } | State::Banned { .. } => {}
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.close();
    }
}

impl Peer {
    /// Looks for signs of life after some time of waiting.
    pub(super) fn listen(&mut self, waited: Duration) -> Sign {
        // Other messages do not excuse headers that do not come.
        self.asked = self.asked.map(|asked| asked + waited);
        if self.asked.is_some_and(|asked| asked >= HEADERS) {
            return Sign::Dead;
        }
        let received = self.link.received.load(Ordering::Relaxed);
        if received != self.received {
            self.received = received;
            self.quiet = Duration::ZERO;
            self.pinged = false;
            return Sign::Heard;
        }
        self.quiet += waited;
        if self.quiet >= DEAD {
            return Sign::Dead;
        }
        if self.quiet >= PING && !self.pinged {
            self.pinged = true;
            // An error shows on the reading side, which ends the connection.
            let _ = self.link.send(&Message::Ping(received));
        }
        Sign::Quiet
    }
}
