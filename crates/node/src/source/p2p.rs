//! Blocks from other nodes, over Bitcoin's own protocol.
//!
//! ```text
//!             ┌─ connection: thread that reads, checks, answers pings ─┐
//! addresses ──┼─ connection ───────────────────────────────────────────┼─► inbox ─► next_event
//!             └─ connection ───────────────────────────────────────────┘
//!                     ▲ getheaders, getdata                   │
//!                     └───────────── decided here ◄───────────┘
//! ```
//!
//! * **Headers.** One peer at a time is asked for what is above the locator. When it has no more,
//!   the next one is asked, so that the best chain of all is known; peers that are still being
//!   called for the first time are waited for. New blocks are announced by headers, or by hashes,
//!   on which the peer is asked.
//! * **Blocks.** See `download`: a window over all peers, lowest first, and a slow peer loses its
//!   work to the others.
//! * **Bad peers.** An [`Offence`] ends the connection and bans the address for the life of the
//!   source. A connection that is lost or silent is made again, after 1, 2, 4, … 60 seconds.
//!
//! All decisions are made on the thread of the receiver. Time is its clock, and only the time that
//! it waits here counts against a peer, so a receiver that is busy blames nobody.

mod connection;
mod download;
mod slot;
pub mod wire;

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use varve_types::{BlockHash, Header, Network};

use self::connection::{Closed, Incoming};
use self::download::{Download, Receipt};
use self::slot::{Slot, State};
use self::wire::{Inventory, Message};
use super::{Clock, Event, Giver, HeaderBytes, Source, SourceError, Warning};

pub use connection::Offence;

/// Messages that wait for the receiver, of all peers together.
const INBOX: usize = 4;
/// How often peers are looked at while nothing comes.
const TICK: Duration = Duration::from_millis(100);

/// What a [`P2p`] source is made with.
#[derive(Clone)]
pub struct Settings {
    /// The chain.
    pub network: Network,
    /// The nodes: `host:port`, or `host` with the port of the network.
    pub peers: Vec<String>,
    /// The caller's clock.
    pub clock: Clock,
    /// The seconds since 1970 when that clock stood at zero.
    pub epoch: u64,
    /// A number that no other node draws.
    pub nonce: u64,
}

/// A source over other nodes.
pub struct P2p {
    settings: Settings,
    slots: Vec<Slot>,
    /// The slot of each giver, by its number.
    givers: Vec<usize>,
    inbox: Receiver<(Giver, Incoming)>,
    sender: SyncSender<(Giver, Incoming)>,
    download: Download,
    locator: Vec<BlockHash>,
    /// Who gave headers last.
    last_giver: Option<Giver>,
    events: VecDeque<Event>,
    /// Whether [`Event::HeadersDone`] has been given since the last news.
    done: bool,
}

impl P2p {
    /// Begins to connect to all peers.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let (sender, inbox) = sync_channel(INBOX);
        let slot = |peer: &String| Slot::new(with_port(peer, settings.network));
        let mut source = Self {
            slots: settings.peers.iter().map(slot).collect(),
            settings,
            givers: Vec::new(),
            inbox,
            sender,
            download: Download::default(),
            locator: Vec::new(),
            last_giver: None,
            events: VecDeque::new(),
            done: false,
        };
        source.connect();
        source
    }

    /// The address of a giver.
    #[must_use]
    pub fn address(&self, giver: Giver) -> Option<&str> {
        self.slot_of(giver).and_then(|at| self.slots.get(at)).map(|slot| &*slot.address)
    }

    fn slot_of(&self, giver: Giver) -> Option<usize> {
        self.givers.get(giver.0 as usize).copied()
    }

    fn slot_mut(&mut self, giver: Giver) -> Option<&mut Slot> {
        let at = self.slot_of(giver)?;
        self.slots.get_mut(at).filter(|slot| slot.giver() == Some(giver))
    }

    /// Starts the connections that are due.
    fn connect(&mut self) {
        let now = (self.settings.clock)();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.is_due(now) {
                let number = u32::try_from(self.givers.len()).expect("fewer connections");
                self.givers.push(at);
                slot.call(Giver(number), &self.settings, self.sender.clone());
            }
        }
    }

    /// Asks the next peer for headers, if nobody is being asked.
    fn chase(&mut self) {
        if self.locator.is_empty()
            || self.slots.iter().any(|slot| slot.ready().is_some_and(|peer| peer.asked.is_some()))
        {
            return;
        }
        let expected = self.slots.iter().any(Slot::is_expected);
        let mut ready = self.slots.iter_mut().filter_map(Slot::ready_mut).peekable();
        if ready.peek().is_none() {
            return;
        }
        match ready.find(|peer| !peer.exhausted) {
            Some(peer) => {
                peer.asked = Some(Duration::ZERO);
                // An error shows on the reading side, which ends the connection.
                let _ = peer.link.send(&Message::GetHeaders(self.locator.clone()));
            }
            None if !self.done && !expected => {
                self.done = true;
                self.events.push_back(Event::HeadersDone);
            }
            None => {}
        }
    }

    /// Asks peers for blocks.
    fn fetch(&mut self) {
        let network = self.settings.network;
        for (giver, hashes) in self.download.assign() {
            let list = hashes.iter().map(|hash| Inventory::block(*hash, network)).collect();
            if let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) {
                // An error shows on the reading side, which ends the connection.
                let _ = peer.link.send(&Message::GetData(list));
            }
        }
    }

    fn take(&mut self, giver: Giver, incoming: Incoming) {
        // What a connection sends after it was closed here does not count.
        if self.slot_mut(giver).is_none() {
            if let Incoming::Ready(link) = incoming {
                link.close();
            }
            return;
        }
        match incoming {
            Incoming::Ready(link) => {
                if let Some(slot) = self.slot_mut(giver) {
                    slot.connected(giver, link);
                }
                self.download.add_peer(giver);
                self.done = false;
            }
            Incoming::Headers(headers) => self.headers(giver, headers),
            Incoming::Announced => {
                self.done = false;
                if let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) {
                    peer.exhausted = false;
                }
            }
            Incoming::Block { hash, bytes } => match self.download.received(giver, &hash) {
                Receipt::Wanted => self.events.push_back(Event::Block { hash, bytes, giver }),
                Receipt::Late => {}
                Receipt::Unasked => self.ban(giver, &Offence::Unasked { hash }),
            },
            Incoming::NotFound(hashes) => {
                for hash in hashes {
                    if self.download.not_found(giver, &hash) {
                        self.events.push_back(Event::Missing { hash });
                    }
                }
            }
            Incoming::Closed(Closed::Offence(offence)) => self.ban(giver, &offence),
            Incoming::Closed(closed) => self.lose(giver, &closed.to_string()),
        }
    }

    fn headers(&mut self, giver: Giver, headers: Vec<HeaderBytes>) {
        let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) else { return };
        peer.asked = None;
        // Until the receiver seeks again, which it does when these are new to it.
        peer.exhausted = true;
        if !headers.is_empty() {
            if headers.len() < wire::MAX_HEADERS {
                let hash = |header: &HeaderBytes| Header::new(header).hash();
                self.download.told(giver, &headers.iter().map(hash).collect::<Vec<_>>());
            }
            self.last_giver = Some(giver);
            self.done = false;
            self.events.push_back(Event::Headers { headers, giver });
        }
    }

    /// The connection is gone. It will be made again.
    fn lose(&mut self, giver: Giver, reason: &str) {
        let now = (self.settings.clock)();
        self.download.remove_peer(giver);
        let Some(slot) = self.slot_mut(giver) else { return };
        slot.lost(now);
        let (peer, reason) = (slot.address.clone(), reason.to_owned());
        self.events.push_back(Event::Warning(Warning::Lost { peer, reason }));
    }

    /// The address is not connected to again.
    fn ban(&mut self, giver: Giver, offence: &Offence) {
        self.download.remove_peer(giver);
        let Some(slot) = self.slot_of(giver).and_then(|at| self.slots.get_mut(at)) else { return };
        if let Some(other) = slot.giver() {
            self.download.remove_peer(other);
        }
        let reason = offence.to_string();
        if slot.ban(&reason) {
            let peer = slot.address.clone();
            self.events.push_back(Event::Warning(Warning::Banned { peer, reason }));
        }
    }

    /// Looks at the peers after some time of waiting.
    fn look(&mut self, waited: Duration) {
        let mut heard = BTreeSet::new();
        let mut silent = Vec::new();
        for slot in &mut self.slots {
            let Some(giver) = slot.giver() else { continue };
            if slot.is_stuck(waited) {
                silent.push(giver);
            }
            let Some(peer) = slot.ready_mut() else { continue };
            match peer.listen(waited) {
                slot::Sign::Heard => drop(heard.insert(giver)),
                slot::Sign::Quiet => {}
                slot::Sign::Dead => silent.push(giver),
            }
        }
        silent.extend(self.download.waited(waited, &heard));
        for giver in silent {
            self.lose(giver, "does not answer; the connection is given up");
        }
        let missing = self.download.unanswered().into_iter();
        self.events.extend(missing.map(|hash| Event::Missing { hash }));
    }

    /// The error when nobody is left to ask.
    fn check_peers(&self) -> Result<(), SourceError> {
        let reason = |slot: &Slot| match &slot.state {
            State::Banned { reason } => Some((slot.address.clone(), reason.clone())),
            _ => None,
        };
        let banned: Option<Vec<_>> = self.slots.iter().map(reason).collect();
        match banned.and_then(|mut banned| banned.pop()) {
            Some((peer, reason)) => Err(SourceError::NoPeers { peer, reason }),
            None => Ok(()),
        }
    }
}

impl Source for P2p {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        self.locator = locator.to_vec();
        self.done = false;
        if let Some(giver) = self.last_giver.take()
            && let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut)
        {
            peer.exhausted = false;
        }
        Ok(())
    }

    fn want(&mut self, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.download.want(hashes);
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        let mut left = timeout;
        loop {
            self.connect();
            self.chase();
            self.fetch();
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            self.check_peers()?;
            let begin = (self.settings.clock)();
            let received = self.inbox.recv_timeout(left.min(TICK));
            let waited = (self.settings.clock)().saturating_sub(begin);
            self.look(waited);
            match received {
                Ok((giver, incoming)) => self.take(giver, incoming),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    left = left.saturating_sub(TICK);
                    if left.is_zero() && self.events.is_empty() {
                        return Ok(Event::Idle);
                    }
                }
            }
        }
    }

    fn blame(&mut self, giver: Giver, reason: &str) {
        self.ban(giver, &Offence::Invalid(format!("gave what is invalid: {reason}")));
    }
}

/// The address with the port that the network's nodes listen on, unless it has one.
fn with_port(peer: &str, network: Network) -> String {
    let has_port = peer.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    let port = match network {
        Network::Mainnet | Network::Bsv => 8333,
        Network::Testnet3 => 18333,
        Network::Testnet4 => 48333,
        Network::Signet => 38333,
        Network::Regtest | Network::BsvRegtest => 18444,
    };
    if has_port { peer.to_owned() } else { format!("{peer}:{port}") }
}
