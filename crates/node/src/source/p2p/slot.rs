//! One address: whether it is connected, when it will be tried again, or why never.
//!
//! ```text
//! waiting ─► calling ─► ready ─┐
//!    ▲          │              ├─► banned
//!    └──────────┴── lost ◄─────┘
//! ```
//!
//! The pause before the next try is 1, 2, 4, … 60 seconds. An address that could not be reached
//! [`TRIES`] times, or was lost as often without a block between, is no longer *expected*: a sync
//! that does not follow ends without it. One that owed an answer each time is left alone for
//! [`BARREN_PAUSE`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::Settings;
use super::connection::{Call, Incoming, Line};
use super::link::Link;
use super::talk::{Fault, Talk};
use super::wire::Message;
use crate::source::Giver;
use crate::source::queue::Outbox;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The pause after connections that came to nothing.
const BARREN_PAUSE: Duration = Duration::from_secs(600);
/// Tries in vain after which nobody waits for an address.
const TRIES: u32 = 3;
/// A connection that is quiet for this long is asked for a sign of life.
const PING: Duration = Duration::from_secs(60);
/// And given up after this.
const DEAD: Duration = Duration::from_secs(120);
/// How long it may take to connect and shake hands.
const CALL: Duration = Duration::from_secs(30);

/// An address.
pub(super) struct Slot {
    pub(super) address: String,
    pub(super) state: State,
    /// Tries since the last that got through.
    failures: u32,
    /// Connections in a row that ended without a block, and those of them that owed an answer.
    losses: u32,
    barren: u32,
    /// Why it was lost last.
    pub(super) reason: String,
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
    pub(super) giver: Giver,
    pub(super) link: Arc<Link>,
    pub(super) talk: Talk,
    /// How many bytes had come when it was last looked at, and for how long no more have.
    received: u64,
    quiet: Duration,
    pinged: bool,
    /// The same of blocks alone.
    block_bytes: u64,
}

/// What a look at a peer finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Quiet,
    /// Part of a block came.
    Delivering,
    /// It does not answer, or not even sends a sign of life.
    Silent,
    /// It does not read what it is sent.
    Deaf,
    /// It sends headers too slowly.
    Slow,
}

impl Slot {
    /// An address to be tried at once.
    pub(super) const fn new(address: String) -> Self {
        let state = State::Waiting { until: Duration::ZERO };
        Self { address, state, failures: 0, losses: 0, barren: 0, reason: String::new() }
    }

    /// Whether it is time to connect.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        matches!(self.state, State::Waiting { until } if until <= now)
    }

    /// Whether it is being tried and may have something that nobody knows of.
    pub(super) fn is_expected(&self) -> bool {
        let tried = matches!(self.state, State::Calling { .. } | State::Waiting { .. });
        tried && self.failures.max(self.losses) < TRIES
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
        inbox: Outbox<(Giver, Incoming)>,
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
            relay: settings.relay,
            clock: settings.clock.clone(),
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
            talk: Talk::new(),
            received: 0,
            quiet: Duration::ZERO,
            pinged: false,
            block_bytes: 0,
        });
    }

    /// It has sent a block that was wanted.
    pub(super) fn delivered(&mut self) {
        (self.losses, self.barren) = (0, 0);
        self.reason.clear();
    }

    /// The connection is gone; `owing` when it still had blocks to send. Whether that is worth a
    /// sentence: what goes wrong the same way at every try is reported once.
    pub(super) fn lost(&mut self, now: Duration, owing: bool, reason: &str) -> bool {
        self.close();
        let mut is_news = self.reason != reason;
        match &self.state {
            State::Ready(peer) => {
                let barren = owing || peer.talk.is_unfinished();
                is_news |= !barren;
                self.losses += 1;
                self.barren += u32::from(barren);
            }
            _ => self.failures += 1,
        }
        let tries = self.failures.saturating_sub(1).min(6);
        let pause = Duration::from_secs(1 << tries).min(LONGEST_PAUSE);
        let until = now + if self.barren < TRIES { pause } else { BARREN_PAUSE };
        (self.state, self.reason) = (State::Waiting { until }, reason.to_owned());
        is_news
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
    pub(super) const fn giver(&self) -> Giver {
        self.giver
    }

    /// Looks for signs of life after some time of waiting.
    pub(super) fn listen(&mut self, waited: Duration) -> Sign {
        // Other messages do not excuse headers that do not come.
        match self.talk.waited(waited) {
            Some(Fault::Silent) => return Sign::Silent,
            Some(Fault::Slow) => return Sign::Slow,
            None => {}
        }
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (received, block_bytes) = (count(&self.link.received), count(&self.link.block_bytes));
        if received != self.received {
            self.received = received;
            self.quiet = Duration::ZERO;
            self.pinged = false;
            let delivering = std::mem::replace(&mut self.block_bytes, block_bytes) != block_bytes;
            return if delivering { Sign::Delivering } else { Sign::Quiet };
        }
        self.quiet += waited;
        if self.quiet >= DEAD {
            return Sign::Silent;
        }
        if self.quiet >= PING && !self.pinged {
            self.pinged = true;
            if !self.link.send(&Message::Ping(received)) {
                return Sign::Deaf;
            }
        }
        Sign::Quiet
    }
}
