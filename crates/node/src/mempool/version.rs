//! One moment of the mempool: what readers hold and the writer copies.
//!
//! ```text
//! ids        txid ─► entry id                    entries    entry id ─► entry (order of arrival)
//! spends     outpoint ─► entry id, input         scripts    script row ─► satoshi
//! by_rate    own rate, id ─► vsize               pushes     push row ─► flags
//! by_worth   eviction rate, id                   totals     counts, sizes, fees, memory
//! ```
//!
//! The graph is not stored: the parents of a transaction are the entries of the txids that it
//! spends, its children are found among `spends` by the outpoints of its txid, which are neighbours
//! there. Every map is a [`CowMap`], so a clone of all costs seven reference counts.
//!
//! Changes keep these invariants, which `assert_consistent` of the tests recomputes:
//! parents have lower ids than children; the sums of every entry are those of its relatives; every
//! row belongs to an entry.

use std::collections::BTreeSet;
use std::sync::Arc;

use varve_types::pushdata::{PushdataFlags, PushdataRule};
use varve_types::{Outpoint, Txid};
use varve_types::{PushdataHash, ScriptHash};

use super::chain::Tip;
use super::cow_map::CowMap;
use super::entry::{Body, Entry, EntryId};
use super::estimate::RecentBlocks;
use super::fee_rate::{FeeRate, Sum};
use super::rows::{self, RowKey};

/// The mempool at one moment.
#[derive(Clone, Debug)]
pub struct Version {
    pub(super) tip: Tip,
    pub(super) ids: CowMap<Txid, EntryId>,
    pub(super) entries: CowMap<EntryId, Entry>,
    pub(super) spends: CowMap<Outpoint, Spender>,
    pub(super) scripts: CowMap<RowKey<ScriptHash>, u64>,
    pub(super) pushes: CowMap<RowKey<PushdataHash>, PushdataFlags>,
    pub(super) by_rate: CowMap<(FeeRate, EntryId), u64>,
    pub(super) by_worth: CowMap<(FeeRate, EntryId), ()>,
    pub(super) recent: RecentBlocks,
    pub(super) sum: Sum,
    pub(super) memory: u64,
    pub(super) min_rate: FeeRate,
    push_rule: Option<PushdataRule>,
    next_id: u64,
}

/// The input that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spender {
    pub(super) id: EntryId,
    pub(super) vin: u32,
}

/// A set of entries; in order, so parents come first.
pub(super) type Ids = BTreeSet<EntryId>;

impl Version {
    pub(super) fn new(tip: Tip, push_rule: Option<PushdataRule>) -> Self {
        Self {
            tip,
            ids: CowMap::default(),
            entries: CowMap::default(),
            spends: CowMap::default(),
            scripts: CowMap::default(),
            pushes: CowMap::default(),
            by_rate: CowMap::default(),
            by_worth: CowMap::default(),
            recent: RecentBlocks::default(),
            sum: Sum::default(),
            memory: 0,
            min_rate: FeeRate::ZERO,
            push_rule,
            next_id: 0,
        }
    }

    pub(super) fn id(&self, txid: &Txid) -> Option<EntryId> {
        self.ids.get(txid).copied()
    }

    /// The entry of an id that was found in a map of this version.
    pub(super) fn at(&self, id: EntryId) -> &Entry {
        self.entries.get(&id).expect("every id in a map has an entry")
    }

    /// The unconfirmed transactions whose outputs this transaction spends.
    pub(super) fn parents(&self, body: &Body) -> Ids {
        body.tx.view().inputs().filter_map(|input| self.id(&input.outpoint.txid)).collect()
    }

    /// The unconfirmed transactions that spend its outputs.
    pub(super) fn children(&self, txid: Txid) -> Ids {
        let spends = self.spends.from(&Outpoint::new(txid, 0));
        let own = spends.take_while(|(outpoint, _)| outpoint.txid == txid);
        own.map(|(_, spender)| spender.id).collect()
    }

    /// All that these build on, without themselves unless one builds on another.
    pub(super) fn ancestors(&self, of: &Ids) -> Ids {
        self.closure(of, |entry| self.parents(&entry.body))
    }

    /// All that builds on these, themselves included.
    pub(super) fn with_descendants(&self, of: &Ids) -> Ids {
        let mut all = self.closure(of, |entry| self.children(entry.txid()));
        all.extend(of);
        all
    }

    fn closure(&self, of: &Ids, next: impl Fn(&Entry) -> Ids) -> Ids {
        let mut found = Ids::new();
        let mut open: Vec<EntryId> = of.iter().copied().collect();
        while let Some(id) = open.pop() {
            let new = next(self.at(id)).into_iter().filter(|id| found.insert(*id));
            open.extend(new.collect::<Vec<_>>());
        }
        found
    }

    /// Adds a transaction whose parents are here or confirmed, whose inputs nobody spends, and on
    /// which nothing builds yet.
    pub(super) fn insert(&mut self, body: Arc<Body>) -> EntryId {
        let id = EntryId(self.next_id);
        self.next_id += 1;
        let txid = body.txid();
        debug_assert!(self.children(txid).is_empty(), "children come after their parents");
        let parents = self.parents(&body);
        let mut ancestors = self.ancestors(&parents);
        ancestors.extend(parents);
        let own = body.sum();
        let mut over_ancestors = own;
        for ancestor in &ancestors {
            over_ancestors.add(&self.at(*ancestor).body.sum());
            self.change(*ancestor, |entry| entry.descendants.add(&own));
        }
        for (vin, input) in (0_u32..).zip(body.tx.view().inputs()) {
            let before = self.spends.insert(input.outpoint, Spender { id, vin });
            assert!(before.is_none(), "{} was spent before {txid} came", input.outpoint);
        }
        let rows = self.insert_rows(&body, id);
        self.memory += body.memory(rows);
        self.sum.add(&own);
        let entry = Entry { body, ancestors: over_ancestors, descendants: own };
        self.by_rate.insert((entry.rate(), id), own.vsize);
        self.by_worth.insert((entry.eviction_rate(), id), ());
        self.entries.insert(id, entry);
        assert!(self.ids.insert(txid, id).is_none(), "{txid} came twice");
        id
    }

    /// Removes entries. What builds on them may stay: it is of a block, or it follows.
    pub(super) fn remove(&mut self, ids: &Ids) -> Vec<Arc<Body>> {
        // The sums first: they need the graph as it was. Whole families have nobody outside.
        let above = !self.ancestors(ids).is_subset(ids);
        let below = !self.with_descendants(ids).is_subset(ids);
        for id in ids.iter().filter(|_| above || below) {
            let own = self.at(*id).body.sum();
            let one = Ids::from([*id]);
            let ancestors = if above { self.ancestors(&one) } else { Ids::new() };
            for ancestor in ancestors.difference(ids) {
                self.change(*ancestor, |entry| entry.descendants.subtract(&own));
            }
            let descendants = if below { self.with_descendants(&one) } else { Ids::new() };
            for descendant in descendants.difference(ids) {
                self.change(*descendant, |entry| entry.ancestors.subtract(&own));
            }
        }
        ids.iter().map(|id| self.take(*id)).collect()
    }

    /// Takes an entry and its rows out of all maps.
    fn take(&mut self, id: EntryId) -> Arc<Body> {
        let entry = self.entries.remove(&id).expect("removed once");
        self.by_rate.remove(&(entry.rate(), id));
        self.by_worth.remove(&(entry.eviction_rate(), id));
        let body = entry.body;
        for input in body.tx.view().inputs() {
            self.spends.remove(&input.outpoint);
        }
        let rows = self.remove_rows(&body, id);
        self.memory -= body.memory(rows);
        self.sum.subtract(&body.sum());
        self.ids.remove(&body.txid());
        body
    }

    /// Changes the sums of an entry, and its place in the order of eviction with them.
    fn change(&mut self, id: EntryId, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.at(id).clone();
        self.by_worth.remove(&(entry.eviction_rate(), id));
        change(&mut entry);
        self.by_worth.insert((entry.eviction_rate(), id), ());
        self.entries.insert(id, entry);
    }

    fn insert_rows(&mut self, body: &Body, id: EntryId) -> u64 {
        let mut count = 0;
        rows::scripts(&body.tx, id, |(key, value)| {
            self.scripts.insert(key, value);
            count += 1;
        });
        rows::pushes(&body.tx, id, self.push_rule, |key, flags| {
            self.pushes.insert(key, flags);
            count += 1;
        });
        count
    }

    fn remove_rows(&mut self, body: &Body, id: EntryId) -> u64 {
        let mut count = 0;
        rows::scripts(&body.tx, id, |(key, _)| {
            self.scripts.remove(&key);
            count += 1;
        });
        rows::pushes(&body.tx, id, self.push_rule, |key, _| {
            self.pushes.remove(&key);
            count += 1;
        });
        count
    }
}
