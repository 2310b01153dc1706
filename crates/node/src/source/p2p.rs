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
//! * **Headers.** Each peer has a `talk`. One is asked for what is above the locator, and the next
//!   as soon as that one has no more, or does not keep up; so the best chain of all is known, and a
//!   slow peer holds nobody up. Turns go to the peer that was asked longest ago. The receiver
//!   decides which branches are heard to their end. A peer that announces hashes, or headers that
//!   link to nothing, is asked in its next turn.
//! * **Blocks.** The receiver says which blocks a peer is asked for. `download` keeps what is owed,
//!   and gives up a peer that does not deliver.
//! * **Transactions.** Peers are told by `feefilter` when to announce them. `relay` keeps what is
//!   owed and bounds it; what a connection reads beyond that it drops itself.
//! * **Bad peers.** An [`Offence`] ends the connection and bans the address for the life of the
//!   source. A lost or silent connection is retried (`slot`).
//!
//! All decisions are made on the thread of the receiver, which never waits for a socket. Time is
//! its clock, and only the time that it spends here counts against a peer, so a receiver that is
//! busy blames nobody.

mod connection;
mod download;
mod link;
mod relay;
mod slot;
mod talk;
mod transactions;
#[cfg_attr(not(feature = "test-suite"), expect(unreachable_pub, reason = "public for tests"))]
pub(crate) mod wire;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use varve_types::{BlockHash, Network, Txid};

use self::connection::{Closed, Incoming};
use self::download::Download;
use self::relay::Relay;
use self::slot::{Sign, Slot, State};
use self::wire::{Inventory, Message};
use super::queue::{Inbox, Outbox, queue};
use super::transactions::{OwnTx, TxName};
use super::{Clock, Event, Giver, HeaderBytes, Outlook, Source, SourceError, Warning};

pub use connection::Offence;

use crate::mempool::FeeRate;

/// Messages that wait for the receiver, of all peers together.
const INBOX: usize = 4;
/// How often peers are looked at while nothing comes.
const TICK: Duration = Duration::from_millis(100);

/// Why a connection is given up.
const SILENT: &str = "does not answer; the connection is given up";
const SLOW: &str = "sends headers too slowly; the connection is given up";
const WITHHOLDING: &str = "does not send the blocks of its headers; the connection is given up";
const DEAF: &str = "does not read what it is sent; the connection is given up";

/// How a [`P2p`] source connects.
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
    /// Whether transactions may be wanted later. A node that is told otherwise when it is greeted
    /// never announces any.
    pub relay: bool,
}

/// A source over other nodes.
pub struct P2p {
    settings: Settings,
    slots: Vec<Slot>,
    /// The slot of each giver, by its number.
    givers: Vec<usize>,
    inbox: Inbox<(Giver, Incoming)>,
    sender: Outbox<(Giver, Incoming)>,
    download: Download,
    relay: Relay,
    /// The rate from which on transactions are taken; `None` when none are.
    rate: Option<FeeRate>,
    /// Where peers begin that have not been asked yet, or that announce something.
    locator: Vec<BlockHash>,
    events: VecDeque<Event>,
    /// Turns that peers were given.
    turns: u64,
    /// Whose headers the receiver got last.
    heard: Option<Giver>,
    /// Whether [`Event::HeadersDone`] has been given since the last news.
    done: bool,
}

impl P2p {
    /// Begins to connect to all peers.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let (sender, inbox) = queue(INBOX);
        let slot = |peer: &String| Slot::new(with_port(peer, settings.network));
        let mut source = Self {
            slots: settings.peers.iter().map(slot).collect(),
            settings,
            givers: Vec::new(),
            inbox,
            sender,
            download: Download::default(),
            relay: Relay::default(),
            rate: None,
            locator: Vec::new(),
            events: VecDeque::new(),
            turns: 0,
            heard: None,
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

    /// Sends the questions for headers that are due. The next peer is asked when nobody else
    /// answers briskly.
    fn chase(&mut self) {
        if self.locator.is_empty() {
            return;
        }
        let mut talks: Vec<_> = self.slots.iter_mut().filter_map(Slot::ready_mut).collect();
        if !talks.iter().any(|peer| peer.talk.is_brisk()) {
            let due = talks.iter_mut().filter(|peer| peer.talk.is_due());
            if let Some(peer) = due.min_by_key(|peer| peer.talk.turn()) {
                self.turns += 1;
                peer.talk.begin(self.turns, self.locator.clone());
            }
        }
        let mut deaf = Vec::new();
        for peer in &mut talks {
            let question = peer.talk.take_question();
            if question.is_some_and(|locator| !peer.link.send(&Message::GetHeaders(locator))) {
                deaf.push(peer.giver);
            }
        }
        let over = !talks.is_empty() && !talks.iter().any(|peer| peer.talk.is_unfinished());
        deaf.into_iter().for_each(|giver| self.lose(giver, DEAF));
        if over && !self.done && !self.slots.iter().any(Slot::is_expected) {
            self.done = true;
            self.events.push_back(Event::HeadersDone);
        }
    }

    fn take(&mut self, giver: Giver, incoming: Incoming) {
        // What a connection sends after it was closed here does not count.
        if self.slot_mut(giver).is_none() {
            if let Incoming::Ready { link, .. } = incoming {
                link.close();
            }
            return;
        }
        match incoming {
            Incoming::Ready { link, by_wtxid } => {
                if let Some(slot) = self.slot_mut(giver) {
                    slot.connected(giver, link);
                }
                self.download.add_peer(giver);
                self.done = false;
                self.greet_relay(giver, by_wtxid);
            }
            Incoming::Tx(message) => self.take_tx_message(giver, message),
            Incoming::Headers(headers) => self.headers(giver, headers),
            Incoming::Announced => self.announced(giver),
            Incoming::Block { hash, bytes } => self.block(giver, hash, bytes),
            Incoming::NotFound(mut hashes) => {
                hashes.retain(|hash| self.download.not_found(giver, hash));
                self.missing(giver, hashes);
            }
            Incoming::Closed(Closed::Offence(offence)) => self.ban(giver, &offence),
            Incoming::Closed(closed) => self.lose(giver, &closed.to_string()),
        }
    }

    fn headers(&mut self, giver: Giver, headers: Vec<HeaderBytes>) {
        let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) else { return };
        // An answer without headers says that there are no more.
        if peer.talk.heard(&headers) || !headers.is_empty() {
            self.done = false;
            self.events.push_back(Event::Headers { headers, giver });
        }
    }

    /// A peer has something that is not known here, and is asked in its turn.
    fn announced(&mut self, giver: Giver) {
        let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) else { return };
        self.done &= !peer.talk.announced();
    }

    fn block(&mut self, giver: Giver, hash: BlockHash, bytes: Vec<u8>) {
        let Some(passed_over) = self.download.received(giver, &hash) else {
            return self.ban(giver, &Offence::Unasked { hash });
        };
        self.slot_mut(giver).into_iter().for_each(Slot::delivered);
        self.missing(giver, passed_over);
        self.events.push_back(Event::Block { hash, bytes, giver });
    }

    fn missing(&mut self, giver: Giver, hashes: Vec<BlockHash>) {
        self.events.extend(hashes.into_iter().map(|hash| Event::Missing { hash, giver }));
    }

    /// The connection is gone. It will be retried.
    fn lose(&mut self, giver: Giver, reason: &str) {
        let now = (self.settings.clock)();
        let owed = self.download.remove_peer(giver);
        self.relay.remove_peer(giver);
        let Some(slot) = self.slot_mut(giver) else { return };
        if slot.lost(now, !owed.is_empty(), reason) {
            let (peer, reason) = (slot.address.clone(), reason.to_owned());
            self.events.push_back(Event::Warning(Warning::Lost { peer, reason }));
        }
        self.missing(giver, owed);
    }

    /// The address is not connected to again.
    fn ban(&mut self, giver: Giver, offence: &Offence) {
        let Some(slot) = self.slot_of(giver).and_then(|at| self.slots.get_mut(at)) else { return };
        let current = slot.giver();
        let reason = offence.to_string();
        if slot.ban(&reason) {
            let peer = slot.address.clone();
            self.events.push_back(Event::Warning(Warning::Banned { peer, reason }));
        }
        for giver in [Some(giver), current].into_iter().flatten() {
            let owed = self.download.remove_peer(giver);
            self.relay.remove_peer(giver);
            self.missing(giver, owed);
        }
    }

    /// Looks at the peers after some time.
    fn look(&mut self, waited: Duration) {
        let (mut delivering, mut lost) = (BTreeSet::new(), Vec::new());
        for slot in &mut self.slots {
            let Some(giver) = slot.giver() else { continue };
            if slot.is_stuck(waited) {
                lost.push((giver, SILENT));
            }
            let Some(peer) = slot.ready_mut() else { continue };
            match peer.listen(waited) {
                Sign::Delivering => drop(delivering.insert(giver)),
                Sign::Quiet => {}
                Sign::Silent => lost.push((giver, SILENT)),
                Sign::Deaf => lost.push((giver, DEAF)),
                Sign::Slow => lost.push((giver, SLOW)),
            }
        }
        let withholding = self.download.waited(waited, &delivering);
        lost.extend(withholding.into_iter().map(|giver| (giver, WITHHOLDING)));
        lost.into_iter().for_each(|(giver, reason)| self.lose(giver, reason));
        self.relay.waited(waited);
        self.ask_all_for_txs();
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
    /// Peers that have answered are not asked again: the receiver continues with each by `more`. It
    /// seeks when headers were new, so those that it got last were.
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        let heard = self.heard.take().and_then(|giver| self.slot_mut(giver)?.ready_mut());
        heard.into_iter().for_each(|peer| peer.talk.brought_news());
        self.locator = locator.to_vec();
        self.done = false;
        Ok(())
    }

    fn more(&mut self, giver: Giver, locator: &[BlockHash]) -> Result<(), SourceError> {
        if let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) {
            peer.talk.ask(locator.to_vec());
        }
        self.done = false;
        Ok(())
    }

    fn stray(&mut self, giver: Giver) {
        self.announced(giver);
    }

    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        let network = self.settings.network;
        let new = self.download.ask(giver, hashes);
        let list: Vec<_> = new.iter().map(|hash| Inventory::block(*hash, network)).collect();
        match self.slot_mut(giver).and_then(Slot::ready_mut) {
            Some(peer) if list.is_empty() || peer.link.send(&Message::GetData(list)) => {}
            Some(_) => self.lose(giver, DEAF),
            None => self.missing(giver, hashes.to_vec()),
        }
        Ok(())
    }

    fn room(&self, giver: Giver) -> Option<usize> {
        self.download.room(giver)
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        let begin = (self.settings.clock)();
        let mut looked = begin;
        loop {
            self.connect();
            // What the receiver makes of an event decides who is asked next.
            if self.events.is_empty() {
                self.chase();
            }
            if let Some(event) = self.events.pop_front() {
                if let Event::Headers { giver, .. } = &event {
                    self.heard = Some(*giver);
                }
                return Ok(event);
            }
            self.check_peers()?;
            let left = timeout.saturating_sub(looked.saturating_sub(begin));
            let received = self.inbox.recv_timeout(left.min(TICK));
            // Messages that make no event count against the timeout too.
            let now = (self.settings.clock)();
            self.look(now.saturating_sub(looked));
            looked = now;
            if let Ok((giver, incoming)) = received {
                self.take(giver, incoming);
            }
            if now.saturating_sub(begin) >= timeout && self.events.is_empty() {
                return Ok(Event::Idle);
            }
        }
    }

    fn blame(&mut self, giver: Giver, reason: &str) {
        self.ban(giver, &Offence::Invalid(format!("gave what is invalid: {reason}")));
    }

    fn bound(&mut self, queued: u64, _: u64) {
        self.inbox.bound(queued);
    }

    fn relay(&mut self, rate: Option<FeeRate>) {
        self.set_rate(rate);
    }

    fn want_txs(&mut self, giver: Giver, names: &[TxName]) {
        self.offer_txs(giver, names);
    }

    fn announce(&mut self, tx: OwnTx) {
        self.announce_own(tx);
    }

    fn withdraw(&mut self, txids: &[Txid]) {
        self.withdraw_own(txids);
    }

    fn is_trusted(&self) -> bool {
        false
    }

    fn outlook(&self) -> Outlook {
        if self.slots.iter().any(Slot::is_expected) {
            return Outlook::Expecting;
        }
        let last = self.slots.last().filter(|_| !self.slots.iter().any(|s| s.ready().is_some()));
        last.map_or(Outlook::Settled, |slot| Outlook::Unreachable {
            peer: slot.address.clone(),
            reason: slot.reason.clone(),
        })
    }

    fn name(&self, giver: Giver) -> String {
        self.address(giver).unwrap_or("a peer").to_owned()
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
