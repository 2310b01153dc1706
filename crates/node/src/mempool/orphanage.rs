//! Transactions whose parents are not known yet.
//!
//! They wait in memory, within a number and a sum of bytes, and are tried again when a parent
//! arrives or is confirmed. The oldest goes first when there is no room, and all go after a time.
//! Nothing of them is durable.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use varve_records::Transaction;
use varve_types::Txid;

use super::policy::{Judge, Policy};

/// Waiting transactions.
#[derive(Debug, Default)]
pub(super) struct Orphanage {
    orphans: HashMap<Txid, Orphan>,
    /// The order of arrival.
    arrivals: BTreeMap<u64, Txid>,
    /// A parent, and the orphans that spend its outputs.
    waiting: HashMap<Txid, BTreeSet<Txid>>,
    bytes: usize,
    next: u64,
}

#[derive(Debug)]
struct Orphan {
    tx: Transaction,
    judge: Judge,
    arrival: u64,
    time: u64,
}

impl Orphanage {
    pub(super) fn len(&self) -> usize {
        self.orphans.len()
    }

    pub(super) fn contains(&self, txid: &Txid) -> bool {
        self.orphans.contains_key(txid)
    }

    /// Keeps a transaction. What does not fit within the limits goes, the oldest first.
    pub(super) fn insert(&mut self, tx: Transaction, judge: Judge, now: u64, policy: &Policy) {
        let txid = tx.txid();
        if self.contains(&txid) || tx.bytes().len() > policy.max_orphan_bytes {
            return;
        }
        for outpoint in tx.outpoints() {
            self.waiting.entry(outpoint.txid).or_default().insert(txid);
        }
        self.bytes += tx.bytes().len();
        let arrival = self.next;
        self.next += 1;
        self.arrivals.insert(arrival, txid);
        self.orphans.insert(txid, Orphan { tx, judge, arrival, time: now });
        while self.len() > policy.max_orphans || self.bytes > policy.max_orphan_bytes {
            let Some((_, oldest)) = self.arrivals.first_key_value() else { break };
            self.remove(&oldest.clone());
        }
    }

    /// Takes a transaction out.
    pub(super) fn remove(&mut self, txid: &Txid) -> Option<(Transaction, Judge)> {
        let Orphan { tx, judge, arrival, .. } = self.orphans.remove(txid)?;
        self.arrivals.remove(&arrival);
        self.bytes -= tx.bytes().len();
        for outpoint in tx.outpoints() {
            if let Some(waiting) = self.waiting.get_mut(&outpoint.txid) {
                waiting.remove(txid);
                if waiting.is_empty() {
                    self.waiting.remove(&outpoint.txid);
                }
            }
        }
        Some((tx, judge))
    }

    /// Those that wait for a transaction.
    pub(super) fn children(&self, parent: &Txid) -> Vec<&Transaction> {
        let waiting = self.waiting.get(parent).into_iter().flatten();
        waiting.filter_map(|txid| self.orphans.get(txid)).map(|orphan| &orphan.tx).collect()
    }

    /// Takes out those that wait for a transaction.
    pub(super) fn take_children(&mut self, parent: &Txid) -> Vec<(Transaction, Judge)> {
        let waiting: Vec<Txid> = self.waiting.get(parent).into_iter().flatten().copied().collect();
        waiting.iter().filter_map(|txid| self.remove(txid)).collect()
    }

    /// Drops those that came before this time.
    pub(super) fn expire(&mut self, before: u64) {
        let old = self.orphans.iter().filter(|(_, orphan)| orphan.time < before);
        let old: Vec<Txid> = old.map(|(txid, _)| *txid).collect();
        old.iter().for_each(|txid| drop(self.remove(txid)));
    }
}
