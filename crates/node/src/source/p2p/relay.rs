//! Which transactions each peer offers, which it was asked for, and which of ours it may have.
//!
//! ```text
//! inv ─► receiver: is it new? ─► queue of the peer ─► asked ─► tx
//!                                      ▲                │ notfound, 20 s, or the peer is gone
//!                                      └── another peer that offered it
//! ```
//!
//! 1. A transaction is asked of one peer at a time. Others that offer it meanwhile are remembered,
//!    and asked when the first does not send it.
//! 2. A peer has a queue of [`QUEUE`] and is asked for [`IN_FLIGHT`] at once; what is beyond is
//!    forgotten. So a flood of announcements costs a bounded amount, whatever it announces.
//! 3. Transactions of our own are kept, the last [`OWN`] within [`OWN_BYTES`], until they are
//!    withdrawn: peers that connect later are told of them too.
//!
//! Nothing here knows a socket or a clock: the caller says how much time has passed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use varve_types::{Txid, Wtxid};

use crate::source::Giver;
use crate::source::transactions::{OwnTx, TxName};

/// Transactions that a peer offers and was not asked for yet.
const QUEUE: usize = 5_000;
/// Transactions that a peer is asked for at once.
pub(super) const IN_FLIGHT: usize = 100;
/// How long a peer may take to send one.
const PATIENCE: Duration = Duration::from_secs(20);
/// Peers that are remembered as offering the same transaction.
const OTHERS: usize = 8;
/// Transactions of our own, and their bytes.
const OWN: usize = 1_000;
const OWN_BYTES: usize = 16 << 20;
/// Transactions that came lately, by both their names.
const ARRIVED: usize = 20_000;

/// What is known of transactions and peers.
#[derive(Default)]
pub(super) struct Relay {
    peers: BTreeMap<Giver, Load>,
    asked: HashMap<TxName, Asked>,
    own: VecDeque<OwnTx>,
    own_bytes: usize,
    arrived: HashSet<TxName>,
    arrived_before: HashSet<TxName>,
}

/// What one peer offers.
#[derive(Default)]
struct Load {
    /// Whether it calls transactions by their hashes with witnesses.
    by_wtxid: bool,
    queue: VecDeque<TxName>,
    queued: HashSet<TxName>,
    in_flight: usize,
}

struct Asked {
    giver: Giver,
    waited: Duration,
    others: Vec<Giver>,
}

impl Relay {
    pub(super) fn add_peer(&mut self, giver: Giver, by_wtxid: bool) {
        self.peers.insert(giver, Load { by_wtxid, ..Load::default() });
    }

    /// A peer is gone. Others are asked for what it owes.
    pub(super) fn remove_peer(&mut self, giver: Giver) {
        self.peers.remove(&giver);
        let owed = self.asked.iter().filter(|(_, asked)| asked.giver == giver);
        let owed: Vec<TxName> = owed.map(|(name, _)| *name).collect();
        owed.iter().for_each(|name| self.give_up(name));
    }

    /// A peer offers transactions that the receiver wants.
    pub(super) fn offer(&mut self, giver: Giver, names: &[TxName]) {
        let Some(load) = self.peers.get_mut(&giver) else { return };
        for name in names {
            let is_known = self.arrived.contains(name) || self.arrived_before.contains(name);
            if !is_known && load.queue.len() < QUEUE && load.queued.insert(*name) {
                load.queue.push_back(*name);
            }
        }
    }

    /// What a peer is to be asked for now.
    pub(super) fn next(&mut self, giver: Giver) -> Vec<TxName> {
        let mut wanted = Vec::new();
        let Some(load) = self.peers.get_mut(&giver) else { return wanted };
        while load.in_flight < IN_FLIGHT
            && let Some(name) = load.queue.pop_front()
        {
            load.queued.remove(&name);
            if self.arrived.contains(&name) || self.arrived_before.contains(&name) {
                continue;
            }
            match self.asked.get_mut(&name) {
                Some(asked) => {
                    if asked.giver != giver && asked.others.len() < OTHERS {
                        asked.others.push(giver);
                    }
                }
                None => {
                    let (waited, others) = (Duration::ZERO, Vec::new());
                    self.asked.insert(name, Asked { giver, waited, others });
                    load.in_flight += 1;
                    wanted.push(name);
                }
            }
        }
        wanted
    }

    /// A transaction came. Whether its peer was asked for it.
    pub(super) fn arrived(&mut self, giver: Giver, txid: Txid, wtxid: Wtxid) -> bool {
        let names = [TxName::Txid(txid), TxName::Wtxid(wtxid)];
        let was_asked =
            names.iter().any(|name| self.asked.get(name).is_some_and(|asked| asked.giver == giver));
        if !was_asked {
            return false;
        }
        for name in names {
            if let Some(asked) = self.asked.remove(&name) {
                self.settle(asked.giver);
            }
        }
        if self.arrived.len() >= ARRIVED / 2 {
            self.arrived_before = std::mem::take(&mut self.arrived);
        }
        // Who sends another witness with the same txid does not keep the right one away.
        self.arrived.insert(TxName::Wtxid(wtxid));
        true
    }

    /// A peer does not have these.
    pub(super) fn not_found(&mut self, giver: Giver, names: &[TxName]) {
        for name in names {
            if self.asked.get(name).is_some_and(|asked| asked.giver == giver) {
                self.give_up(name);
            }
        }
    }

    /// Counts time. What takes too long is asked of others.
    pub(super) fn waited(&mut self, time: Duration) {
        let mut late = Vec::new();
        for (name, asked) in &mut self.asked {
            asked.waited += time;
            if asked.waited >= PATIENCE {
                late.push(*name);
            }
        }
        late.iter().for_each(|name| self.give_up(name));
    }

    /// The peer that was asked does not send it: it goes to the front of the queue of the next.
    fn give_up(&mut self, name: &TxName) {
        let Some(Asked { giver, others, .. }) = self.asked.remove(name) else { return };
        self.settle(giver);
        for other in others {
            if let Some(load) = self.peers.get_mut(&other)
                && load.queued.insert(*name)
            {
                load.queue.push_front(*name);
            }
        }
    }

    fn settle(&mut self, giver: Giver) {
        if let Some(load) = self.peers.get_mut(&giver) {
            load.in_flight = load.in_flight.saturating_sub(1);
        }
    }

    /// Forgets what peers offer: nobody wants it any more.
    pub(super) fn clear(&mut self) {
        self.asked.clear();
        for load in self.peers.values_mut() {
            *load = Load { by_wtxid: load.by_wtxid, ..Load::default() };
        }
    }

    /// Keeps a transaction of our own.
    pub(super) fn keep(&mut self, tx: OwnTx) {
        self.withdraw(&[tx.txid]);
        self.own_bytes += tx.bytes.len();
        self.own.push_back(tx);
        while self.own.len() > OWN || self.own_bytes > OWN_BYTES {
            let Some(oldest) = self.own.pop_front() else { break };
            self.own_bytes -= oldest.bytes.len();
        }
    }

    /// Forgets transactions of our own.
    pub(super) fn withdraw(&mut self, txids: &[Txid]) {
        if self.own.is_empty() {
            return;
        }
        let txids: HashSet<&Txid> = txids.iter().collect();
        self.own.retain(|tx| !txids.contains(&tx.txid));
        self.own_bytes = self.own.iter().map(|tx| tx.bytes.len()).sum();
    }

    /// What a peer calls the transactions of our own.
    pub(super) fn own_names(&self, giver: Giver) -> Vec<TxName> {
        let Some(load) = self.peers.get(&giver) else { return Vec::new() };
        let name = |tx: &OwnTx| match load.by_wtxid {
            true => TxName::Wtxid(tx.wtxid),
            false => TxName::Txid(tx.txid),
        };
        self.own.iter().map(name).collect()
    }

    /// The bytes of a transaction of our own.
    pub(super) fn own(&self, name: &TxName) -> Option<Bytes> {
        let is_it = |tx: &&OwnTx| match name {
            TxName::Txid(txid) => tx.txid == *txid,
            TxName::Wtxid(wtxid) => tx.wtxid == *wtxid,
        };
        self.own.iter().find(is_it).map(|tx| tx.bytes.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Giver = Giver(1);
    const B: Giver = Giver(2);

    fn name(number: u32) -> TxName {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        TxName::Wtxid(Wtxid::from_bytes(bytes))
    }

    fn two() -> Relay {
        let mut relay = Relay::default();
        relay.add_peer(A, true);
        relay.add_peer(B, true);
        relay
    }

    #[test]
    fn a_transaction_is_asked_of_one_peer_and_then_of_the_next() {
        for how in 0..3 {
            let mut relay = two();
            relay.offer(A, &[name(1)]);
            relay.offer(B, &[name(1)]);
            assert_eq!((relay.next(A), relay.next(B)), (vec![name(1)], Vec::new()));
            match how {
                0 => relay.not_found(A, &[name(1)]),
                1 => relay.waited(PATIENCE),
                _ => relay.remove_peer(A),
            }
            assert_eq!((relay.next(A), relay.next(B)), (Vec::new(), vec![name(1)]));
            relay.not_found(A, &[name(1)]);
            assert!(!relay.arrived(A, Txid::ZERO, wtxid(1)), "it was asked of the other");
            assert!(relay.arrived(B, Txid::ZERO, wtxid(1)));
            relay.offer(A, &[name(1)]);
            assert_eq!(relay.next(A), Vec::new(), "it is here");
        }
    }

    fn wtxid(number: u32) -> Wtxid {
        let TxName::Wtxid(wtxid) = name(number) else { unreachable!() };
        wtxid
    }

    /// Announcements without end: the queue, and what is asked, stay bounded.
    #[test]
    fn a_flood_of_announcements_is_bounded() {
        let mut relay = two();
        for first in 0..50 {
            let names: Vec<TxName> = (0..1000).map(|number| name(first * 1000 + number)).collect();
            relay.offer(A, &names);
        }
        assert_eq!(relay.peers[&A].queue.len(), QUEUE);
        assert_eq!(relay.next(A).len(), IN_FLIGHT);
        assert_eq!(relay.next(A), Vec::new());
        assert!(relay.arrived(A, Txid::ZERO, wtxid(5)));
        assert_eq!(relay.next(A).len(), 1, "one came, so one more is asked for");
        relay.waited(PATIENCE);
        assert_eq!((relay.asked.len(), relay.next(A).len()), (0, IN_FLIGHT));
    }

    #[test]
    fn what_was_not_asked_for_is_not_taken() {
        let mut relay = two();
        assert!(!relay.arrived(A, Txid::ZERO, wtxid(1)));
        relay.offer(A, &[name(1)]);
        assert!(!relay.arrived(A, Txid::ZERO, wtxid(1)), "it was offered alone");
    }

    #[test]
    fn own_transactions_are_kept_until_they_are_withdrawn_or_too_many() {
        let mut relay = Relay::default();
        relay.add_peer(A, true);
        relay.add_peer(B, false);
        let own = |number: u32| {
            let TxName::Wtxid(wtxid) = name(number) else { unreachable!() };
            let txid = Txid::from_bytes(name_bytes(number + 1_000_000));
            OwnTx { txid, wtxid, bytes: Bytes::from(vec![7; 10]) }
        };
        (0..2).for_each(|number| relay.keep(own(number)));
        assert_eq!(relay.own_names(A), [name(0), name(1)]);
        assert_eq!(relay.own_names(B)[0], TxName::Txid(own(0).txid));
        assert!(relay.own(&TxName::Txid(own(1).txid)).is_some() && relay.own(&name(1)).is_some());
        relay.keep(own(0));
        assert_eq!(relay.own_names(A), [name(1), name(0)], "once");
        relay.withdraw(&[own(1).txid]);
        assert_eq!(relay.own_names(A), [name(0)]);
        (0..2 * 1_000).for_each(|number| relay.keep(own(number)));
        assert_eq!((relay.own.len(), relay.own_bytes), (OWN, OWN * 10));
    }

    fn name_bytes(number: u32) -> [u8; 32] {
        wtxid(number).to_bytes()
    }
}
