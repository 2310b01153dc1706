//! The plainest mempool: a list of transactions, everything else recomputed from it each time.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use varve_consensus::contract::draft::TxDraft;
use varve_types::ScriptHash;
use varve_types::pushdata::{PushdataFlags, PushdataRule};
use varve_types::{Outpoint, Txid};

use super::world::{MATURITY, TestChain, script};
use crate::mempool::{FeeRate, Policy, PushRow, Side, SpentBy, Sum, Version};
use varve_types::Amount;

#[derive(Default)]
pub(super) struct Model {
    /// Parents before children.
    pub(super) txs: Vec<TxDraft>,
    pub(super) orphans: BTreeMap<Txid, (TxDraft, Rules)>,
}

/// By whose rules a transaction comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    Ours,
    /// Ours, but its package pays.
    Package,
    Node,
}

fn size(tx: &TxDraft) -> u64 {
    tx.bytes().len() as u64
}

impl Model {
    fn find(&self, txid: &Txid) -> Option<&TxDraft> {
        self.txs.iter().find(|tx| tx.txid() == *txid)
    }

    fn value(&self, chain: &TestChain, outpoint: &Outpoint) -> Option<u64> {
        if let Some(parent) = self.find(&outpoint.txid) {
            return parent.outputs.get(outpoint.vout as usize).map(|output| output.value);
        }
        chain.set.get(outpoint).map(|coin| coin.value.to_sat())
    }

    fn script_of(&self, chain: &TestChain, outpoint: &Outpoint) -> Vec<u8> {
        match self.find(&outpoint.txid) {
            Some(parent) => parent.outputs[outpoint.vout as usize].script.clone(),
            None => chain.set.get(outpoint).unwrap().script.to_vec(),
        }
    }

    pub(super) fn fee(&self, chain: &TestChain, tx: &TxDraft) -> Option<u64> {
        let mut inputs = 0;
        for input in &tx.inputs {
            inputs += self.value(chain, &input.outpoint)?;
        }
        inputs.checked_sub(tx.outputs.iter().map(|output| output.value).sum())
    }

    fn parents<'a>(&'a self, tx: &'a TxDraft) -> impl Iterator<Item = &'a TxDraft> {
        tx.inputs.iter().filter_map(|input| self.find(&input.outpoint.txid))
    }

    fn is_child(parent: &TxDraft, tx: &TxDraft) -> bool {
        tx.inputs.iter().any(|input| input.outpoint.txid == parent.txid())
    }

    pub(super) fn ancestors(&self, tx: &TxDraft) -> BTreeSet<Txid> {
        let mut all = BTreeSet::new();
        for parent in self.parents(tx) {
            all.insert(parent.txid());
            all.extend(self.ancestors(parent));
        }
        all
    }

    pub(super) fn descendants(&self, tx: &TxDraft) -> BTreeSet<Txid> {
        let mut all = BTreeSet::new();
        for child in self.txs.iter().filter(|child| Self::is_child(tx, child)) {
            all.insert(child.txid());
            all.extend(self.descendants(child));
        }
        all
    }

    pub(super) fn remove(&mut self, txids: &BTreeSet<Txid>) {
        self.txs.retain(|tx| !txids.contains(&tx.txid()));
    }

    fn sum(&self, chain: &TestChain, txids: &BTreeSet<Txid>) -> Sum {
        let mut sum = Sum::default();
        for txid in txids {
            let tx = self.find(txid).unwrap();
            sum.count += 1;
            sum.vsize += size(tx);
            let fees = sum.fees.to_sat() + self.fee(chain, tx).unwrap();
            sum.fees = Amount::from_sat(fees);
        }
        sum
    }

    /// Whether consensus lets it into the next block; `None` when an input is not known.
    fn is_valid(&self, chain: &TestChain, tx: &TxDraft) -> Option<bool> {
        let next = chain.height().to_u32() + 1;
        if tx.lock_time >= next && tx.inputs.iter().any(|input| input.sequence != u32::MAX) {
            return Some(false);
        }
        for input in &tx.inputs {
            self.value(chain, &input.outpoint)?;
        }
        let mature = tx.inputs.iter().all(|input| match chain.set.get(&input.outpoint) {
            Some(coin) => !coin.coinbase || next - coin.height.to_u32() >= MATURITY,
            None => true,
        });
        Some(mature && self.fee(chain, tx).is_some())
    }

    /// An arrival, without regard to memory.
    pub(super) fn arrive(
        &mut self,
        chain: &TestChain,
        tx: &TxDraft,
        policy: &Policy,
        rules: Rules,
    ) -> bool {
        let taken = self.try_one(chain, tx, policy, rules);
        if taken {
            self.orphans.remove(&tx.txid());
            self.adopt(chain, vec![tx.clone()], policy);
        }
        taken
    }

    fn adopt(&mut self, chain: &TestChain, arrived: Vec<TxDraft>, policy: &Policy) {
        let mut arrived = VecDeque::from(arrived);
        while let Some(parent) = arrived.pop_front() {
            for (orphan, rules) in self.take_children(&parent) {
                if self.try_one(chain, &orphan, policy, rules) {
                    arrived.push_back(orphan);
                }
            }
        }
    }

    fn take_children(&mut self, parent: &TxDraft) -> Vec<(TxDraft, Rules)> {
        let waiting = self.orphans.values().filter(|(orphan, _)| Self::is_child(parent, orphan));
        let waiting: Vec<(TxDraft, Rules)> = waiting.cloned().collect();
        waiting.iter().for_each(|(orphan, _)| drop(self.orphans.remove(&orphan.txid())));
        waiting
    }

    /// A child with its parents: all or none.
    pub(super) fn package(&mut self, chain: &TestChain, txs: &[TxDraft], policy: &Policy) -> bool {
        let mut new = Self { txs: self.txs.clone(), orphans: BTreeMap::new() };
        let mut taken = Vec::new();
        for tx in txs.iter().filter(|tx| self.find(&tx.txid()).is_none()) {
            if !new.try_one(chain, tx, policy, Rules::Package) {
                return false;
            }
            taken.push(tx.clone());
        }
        let all = taken.iter().map(TxDraft::txid).collect();
        let child = BTreeSet::from([txs.last().unwrap().txid()]);
        let short = |txids| {
            let sum = new.sum(chain, txids);
            sum.fees < policy.min_relay.fee(sum.vsize)
        };
        if txs.iter().any(|tx| new.find(&tx.txid()).is_none()) || short(&all) || short(&child) {
            return false;
        }
        self.txs = new.txs;
        taken.iter().for_each(|tx| drop(self.orphans.remove(&tx.txid())));
        self.adopt(chain, taken, policy);
        true
    }

    fn try_one(&mut self, chain: &TestChain, tx: &TxDraft, policy: &Policy, rules: Rules) -> bool {
        if self.find(&tx.txid()).is_some() {
            return false;
        }
        let final_ = tx.lock_time <= chain.height().to_u32();
        match self.is_valid(chain, tx) {
            Some(true) => {}
            Some(false) => return false,
            None => {
                let own =
                    (0..9).any(|vout| chain.set.get(&Outpoint::new(tx.txid(), vout)).is_some());
                // A known parent without such an output is no reason to wait.
                let first =
                    tx.inputs.iter().find(|input| self.value(chain, &input.outpoint).is_none());
                let waits = first.is_some_and(|input| self.find(&input.outpoint.txid).is_none());
                if !own && waits && final_ {
                    self.orphans.insert(tx.txid(), (tx.clone(), rules));
                }
                return false;
            }
        }
        let Some(replaced) = self.may_replace(chain, tx, policy, rules) else { return false };
        self.remove(&replaced);
        self.txs.push(tx.clone());
        true
    }

    /// What a transaction replaces, if policy lets it in.
    fn may_replace(
        &self,
        chain: &TestChain,
        tx: &TxDraft,
        policy: &Policy,
        rules: Rules,
    ) -> Option<BTreeSet<Txid>> {
        let fee = self.fee(chain, tx)?;
        let spends: BTreeSet<Outpoint> = tx.inputs.iter().map(|input| input.outpoint).collect();
        let originals: Vec<&TxDraft> = self
            .txs
            .iter()
            .filter(|other| other.inputs.iter().any(|input| spends.contains(&input.outpoint)))
            .collect();
        let mut replaced: BTreeSet<Txid> = originals.iter().map(|tx| tx.txid()).collect();
        originals.iter().for_each(|tx| replaced.extend(self.descendants(tx)));
        let line = self.ancestors(tx);
        if !line.is_disjoint(&replaced) {
            return None;
        }
        if rules == Rules::Node {
            return Some(replaced);
        }
        if rules == Rules::Ours && fee < policy.min_relay.fee(size(tx)).to_sat() {
            return None;
        }
        let signals = |tx: &TxDraft| tx.inputs.iter().any(|input| input.sequence < 0xffff_fffe);
        let mut parents = BTreeSet::new();
        for original in &originals {
            let family = self.ancestors(original);
            let said = signals(original) || family.iter().any(|id| signals(self.find(id).unwrap()));
            let own = self.fee(chain, original)?;
            let lower = FeeRate::of(Amount::from_sat(fee), size(tx))
                > FeeRate::of(Amount::from_sat(own), size(original));
            if (!policy.full_rbf && !said) || !lower {
                return None;
            }
            parents.extend(self.parents(original).map(TxDraft::txid));
        }
        if !originals.is_empty() {
            let new = self.parents(tx).any(|parent| !parents.contains(&parent.txid()));
            let paid = self.sum(chain, &replaced).fees.to_sat();
            let needed = paid + policy.incremental.fee(size(tx)).to_sat();
            if new || replaced.len() > policy.max_replaced || fee < needed {
                return None;
            }
        }
        let limit = usize::try_from(policy.max_relatives).unwrap();
        let too_long = line.iter().any(|id| {
            let mut below = self.descendants(self.find(id).unwrap());
            below.retain(|id| !replaced.contains(id));
            below.len() + 2 > limit
        });
        (line.len() < limit && !too_long).then_some(replaced)
    }

    /// A move of the tip: what came back, then what was here, each if it is still valid.
    pub(super) fn follow(
        &mut self,
        chain: &TestChain,
        joined: Vec<TxDraft>,
        returned: Vec<TxDraft>,
        policy: &Policy,
    ) {
        let mut arrived = joined.clone();
        arrived.extend(returned.iter().filter(|tx| !joined.contains(tx)).cloned());
        let mut confirmed: Vec<TxDraft> = Vec::new();
        for link in &chain.links {
            confirmed.extend(link.draft.txs.iter().cloned());
        }
        let known: BTreeSet<Txid> = confirmed.iter().map(TxDraft::txid).collect();
        let mut left: Vec<TxDraft> = returned;
        left.append(&mut self.txs);
        left.retain(|tx| !known.contains(&tx.txid()));
        for tx in left {
            let spends = |other: &TxDraft| {
                other
                    .inputs
                    .iter()
                    .any(|one| tx.inputs.iter().any(|two| one.outpoint == two.outpoint))
            };
            let taken = self.txs.iter().any(spends);
            if !taken && self.is_valid(chain, &tx) == Some(true) {
                self.txs.push(tx);
            }
        }
        self.orphans.retain(|txid, _| !known.contains(txid));
        self.adopt(chain, arrived, policy);
    }

    /// Compares every answer of a version with a recomputed one.
    pub(super) fn check(&self, chain: &TestChain, version: &Version) {
        let txids: BTreeSet<Txid> = self.txs.iter().map(TxDraft::txid).collect();
        let found: BTreeSet<Txid> = version.txids(None, usize::MAX).into_iter().collect();
        assert_eq!(found, txids, "the same transactions");
        let totals = version.totals();
        assert_eq!(totals.sum, self.sum(chain, &txids));
        self.check_entries(chain, version);
        self.check_spends(version);
        (0..10).for_each(|number| self.check_script(chain, version, number));
        self.check_orders(chain, version);
    }

    fn check_entries(&self, chain: &TestChain, version: &Version) {
        for tx in &self.txs {
            let entry = version.entry(&tx.txid()).unwrap();
            let fee = self.fee(chain, tx).unwrap();
            assert_eq!((entry.bytes(), entry.fee().to_sat()), (tx.bytes(), fee));
            let mut ancestors = self.ancestors(tx);
            let height = if ancestors.is_empty() { 0 } else { -1 };
            assert_eq!(entry.electrum_height(), height);
            ancestors.insert(tx.txid());
            assert_eq!(*entry.ancestors(), self.sum(chain, &ancestors));
            let mut descendants = self.descendants(tx);
            descendants.insert(tx.txid());
            assert_eq!(*entry.descendants(), self.sum(chain, &descendants));
        }
    }

    fn check_spends(&self, version: &Version) {
        let mut spends = HashMap::new();
        for tx in &self.txs {
            for (vin, input) in (0..).zip(&tx.inputs) {
                spends.insert(input.outpoint, SpentBy { txid: tx.txid(), vin });
            }
        }
        for tx in &self.txs {
            let children: BTreeSet<Txid> = version.spenders_of(tx.txid()).into_iter().collect();
            let direct = self.txs.iter().filter(|child| Self::is_child(tx, child));
            assert_eq!(children, direct.map(TxDraft::txid).collect());
            for vout in 0..4 {
                let outpoint = Outpoint::new(tx.txid(), vout);
                assert_eq!(version.spender(&outpoint), spends.get(&outpoint).copied());
            }
        }
        for (outpoint, by) in &spends {
            assert_eq!(version.spender(outpoint), Some(*by));
        }
        assert_eq!(version.spends.len(), spends.len());
    }

    fn check_script(&self, chain: &TestChain, version: &Version, number: u8) {
        let wanted = script(number);
        let hash = ScriptHash::of(&wanted);
        let (mut funded, mut spent, mut counts) = (0, 0, (0, 0));
        let (mut history, mut unspent, mut confirmed) =
            (Vec::new(), BTreeMap::new(), BTreeSet::new());
        for tx in &self.txs {
            let mut touched = false;
            for (vout, output) in (0..).zip(&tx.outputs).filter(|(_, out)| out.script == wanted) {
                let outpoint = Outpoint::new(tx.txid(), vout);
                funded += output.value;
                counts.0 += 1;
                touched = true;
                let free = !self
                    .txs
                    .iter()
                    .any(|other| other.inputs.iter().any(|input| input.outpoint == outpoint));
                if free {
                    unspent.insert(outpoint, output.value);
                }
            }
            for input in &tx.inputs {
                if self.script_of(chain, &input.outpoint) == wanted {
                    spent += self.value(chain, &input.outpoint).unwrap();
                    counts.1 += 1;
                    touched = true;
                    if self.find(&input.outpoint.txid).is_none() {
                        confirmed.insert(input.outpoint);
                    }
                }
            }
            if touched {
                let unconfirmed = !self.ancestors(tx).is_empty();
                history.push((i32::from(unconfirmed), tx.txid().to_string()));
            }
        }
        history.sort();
        let found: Vec<_> = version
            .history(hash)
            .into_iter()
            .map(|item| (-item.height, item.txid.to_string()))
            .collect();
        assert_eq!(found, history, "script {number}");
        let delta = version.script_delta(hash);
        assert_eq!((delta.funded.to_sat(), delta.spent.to_sat()), (funded, spent));
        assert_eq!((delta.funded_count, delta.spent_count), counts);
        assert_eq!(delta.txs, history.len() as u64);
        let found: BTreeMap<Outpoint, u64> =
            version.unspent(hash).iter().map(|out| (out.outpoint, out.value.to_sat())).collect();
        assert_eq!(found, unspent);
        let found: BTreeSet<Outpoint> = version.spent_confirmed(hash).into_iter().collect();
        assert_eq!(found, confirmed);
        self.check_pushes(version, &wanted);
    }

    fn check_pushes(&self, version: &Version, wanted: &[u8]) {
        let item = PushdataRule::Conduit.of_output(wanted).next().unwrap().hash();
        let mut rows: Vec<(Txid, u32)> = Vec::new();
        for tx in &self.txs {
            let paying = (0..).zip(&tx.outputs).filter(|(_, output)| output.script == wanted);
            rows.extend(paying.map(|(vout, _)| (tx.txid(), vout)));
        }
        rows.sort_unstable();
        let row = |row: &PushRow| {
            assert_eq!(row.flags, PushdataFlags::OUTPUT);
            let Side::Output(vout) = row.side else { panic!("inputs push nothing here") };
            (row.txid, vout)
        };
        let mut found: Vec<(Txid, u32)> = version.pushes(item).iter().map(row).collect();
        found.sort_unstable();
        assert_eq!(found, rows);
    }

    fn check_orders(&self, chain: &TestChain, version: &Version) {
        let rate =
            |tx: &TxDraft| FeeRate::of(Amount::from_sat(self.fee(chain, tx).unwrap()), size(tx));
        let mut rates: Vec<(FeeRate, u64)> =
            self.txs.iter().map(|tx| (rate(tx), size(tx))).collect();
        rates.sort_unstable();
        let found: Vec<FeeRate> = version.by_rate.iter().map(|((rate, _), _)| *rate).collect();
        assert_eq!(found, rates.iter().map(|(rate, _)| *rate).collect::<Vec<_>>());
        for histogram in [version.electrum_histogram(), version.esplora_histogram()] {
            let total: u64 = histogram.iter().map(|bin| bin.vsize).sum();
            assert_eq!(total, rates.iter().map(|(_, vsize)| vsize).sum::<u64>());
            assert!(histogram.is_sorted_by(|one, next| one.rate >= next.rate));
        }
        assert_eq!(version.by_worth.len(), self.txs.len());
        for (&(worth, id), ()) in version.by_worth.iter() {
            assert_eq!(worth, version.at(id).eviction_rate());
        }
        let order: Vec<Txid> = version.entries().map(|entry| entry.txid()).collect();
        for tx in &self.txs {
            let place = |txid: &Txid| order.iter().position(|other| other == txid).unwrap();
            for parent in self.parents(tx) {
                assert!(place(&parent.txid()) < place(&tx.txid()), "parents come first");
            }
        }
        let recent: Vec<Txid> = version.recent(10).map(|entry| entry.txid()).collect();
        assert!(recent.iter().eq(order.iter().rev().take(10)));
    }
}
