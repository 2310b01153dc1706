//! What a source over peers does with transactions, on the thread of the receiver.
//!
//! A peer is told by `feefilter` what to announce: nothing at all while the receiver takes no
//! transactions, as nodes do that are catching up (BIP133).

use varve_types::Txid;

use super::P2p;
use super::connection::TxMessage;
use super::slot::{Peer, Slot};
use super::wire::{Inventory, Message};
use crate::mempool::FeeRate;
use crate::source::transactions::{OwnTx, TxName, TxNews};
use crate::source::{Event, Giver};

/// More than any transaction can pay: announce nothing.
const NOTHING: u64 = 21_000_000 * 100_000_000;
/// Transactions of our own that are sent to a peer at once.
const AT_ONCE: usize = 32;

impl P2p {
    /// A peer is ready.
    pub(super) fn greet_relay(&mut self, giver: Giver, by_wtxid: bool) {
        self.relay.add_peer(giver, by_wtxid);
        if self.settings.relay {
            self.send_filter(giver);
            let names = self.relay.own_names(giver);
            self.send_own(giver, &names);
        }
    }

    /// Takes a message of a peer about transactions.
    pub(super) fn take_tx_message(&mut self, giver: Giver, message: TxMessage) {
        match message {
            TxMessage::Offered(names) if self.rate.is_some() => {
                self.events.push_back(Event::Transactions(TxNews::Offered { names, giver }));
            }
            TxMessage::Offered(_) => {}
            TxMessage::Tx { txid, wtxid, bytes } => {
                if self.relay.arrived(giver, txid, wtxid) && self.rate.is_some() {
                    let tx = bytes.into();
                    let news = TxNews::Given { tx, wtxid, giver };
                    self.events.push_back(Event::Transactions(news));
                }
                self.ask_for_txs(giver);
            }
            TxMessage::NotFound(names) => {
                self.relay.not_found(giver, &names);
                self.ask_all_for_txs();
            }
            TxMessage::Wanted(names) => self.send_wanted(giver, &names),
        }
    }

    pub(super) fn set_rate(&mut self, rate: Option<FeeRate>) {
        self.rate = rate;
        if rate.is_none() {
            self.relay.clear();
        }
        let givers: Vec<Giver> =
            self.slots.iter().filter_map(Slot::ready).map(Peer::giver).collect();
        for giver in givers {
            self.send_filter(giver);
        }
    }

    pub(super) fn offer_txs(&mut self, giver: Giver, names: &[TxName]) {
        self.relay.offer(giver, names);
        self.ask_for_txs(giver);
    }

    /// Asks every peer for what was taken back from another.
    pub(super) fn ask_all_for_txs(&mut self) {
        let givers: Vec<Giver> =
            self.slots.iter().filter_map(Slot::ready).map(Peer::giver).collect();
        givers.into_iter().for_each(|giver| self.ask_for_txs(giver));
    }

    fn ask_for_txs(&mut self, giver: Giver) {
        let names = self.relay.next(giver);
        if names.is_empty() {
            return;
        }
        let network = self.settings.network;
        let list = names.iter().map(|name| Inventory::tx(*name, network)).collect();
        if let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) {
            peer.link.expect_txs(names.len());
            if !peer.link.send(&Message::GetData(list)) {
                self.lose(giver, super::DEAF);
            }
        }
    }

    /// Keeps a transaction of our own and tells everybody of it.
    pub(super) fn announce_own(&mut self, tx: OwnTx) {
        let (txid, wtxid) = (tx.txid, tx.wtxid);
        self.relay.keep(tx);
        let givers: Vec<Giver> =
            self.slots.iter().filter_map(Slot::ready).map(Peer::giver).collect();
        for giver in givers {
            let is_it = |name: &TxName| match name {
                TxName::Txid(other) => *other == txid,
                TxName::Wtxid(other) => *other == wtxid,
            };
            let names = self.relay.own_names(giver);
            let names: Vec<TxName> = names.into_iter().filter(is_it).collect();
            self.send_own(giver, &names);
        }
    }

    pub(super) fn withdraw_own(&mut self, txids: &[Txid]) {
        self.relay.withdraw(txids);
    }

    fn send_own(&mut self, giver: Giver, names: &[TxName]) {
        if names.is_empty() {
            return;
        }
        let list = names.iter().map(|name| Inventory::announced(*name)).collect();
        self.send_or_lose(giver, &Message::Inv(list));
    }

    /// Sends what a peer asks for, as far as it is ours. What does not fit into its outbox it has
    /// to ask for again.
    fn send_wanted(&mut self, giver: Giver, names: &[TxName]) {
        let found = names.iter().take(AT_ONCE).filter_map(|name| self.relay.own(name));
        let found: Vec<_> = found.collect();
        let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut) else { return };
        for bytes in found {
            if !peer.link.send(&Message::Tx(bytes.to_vec())) {
                return;
            }
        }
    }

    fn send_filter(&mut self, giver: Giver) {
        let rate = self.rate.map_or(NOTHING, FeeRate::sat_per_kvb);
        self.send_or_lose(giver, &Message::FeeFilter(rate));
        // Those that serve filters also announce what they have, if they are asked.
        let asks = self.rate.is_some();
        if let Some(peer) = self.slot_mut(giver).and_then(Slot::ready_mut)
            && asks
            && peer.link.announces_all()
            && !peer.link.send(&Message::Mempool)
        {
            self.lose(giver, super::DEAF);
        }
    }

    fn send_or_lose(&mut self, giver: Giver, message: &Message) {
        let peer = self.slot_mut(giver).and_then(Slot::ready_mut);
        if peer.is_some_and(|peer| !peer.link.send(message)) {
            self.lose(giver, super::DEAF);
        }
    }
}
