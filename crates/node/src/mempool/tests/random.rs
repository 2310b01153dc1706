//! Random lives against the model: arrivals, replacements, orphans, packages, blocks,
//! reorganisations, restarts and evictions, every answer compared after every step.

use std::collections::BTreeSet;
use std::sync::Arc;

use varve_consensus::contract::draft::TxDraft;
use varve_records::Fields;
use varve_records::engine::Scan;
use varve_types::pushdata::PushdataRule;
use varve_types::{Outpoint, Txid};

use super::model::{Model, Rules};
use super::world::{World, spend};
use crate::mempool::{Event, Judge, Policy, Removal, Version};

/// SplitMix64.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }

    fn byte(&mut self, limit: usize) -> u8 {
        u8::try_from(self.below(limit)).unwrap()
    }
}

struct Life {
    world: World,
    model: Model,
    dice: Dice,
    /// Whether the model predicts verdicts; with little memory it follows the events instead.
    predicts: bool,
    /// Parents that are kept back, so that their children come first.
    late: Vec<TxDraft>,
    held: Vec<(Arc<Version>, Vec<Txid>)>,
    /// What has happened, by name.
    seen: BTreeSet<&'static str>,
}

impl Life {
    fn new(seed: u64, policy: Policy, predicts: bool) -> Self {
        let world = World::new(12, policy);
        let (late, held) = (Vec::new(), Vec::new());
        let (model, seen) = (Model::default(), BTreeSet::new());
        Self { world, model, dice: Dice(seed), predicts, late, held, seen }
    }

    /// Outputs that exist: confirmed, unconfirmed, spent by others or not, and some kept back.
    fn outputs(&self) -> Vec<(Outpoint, u64)> {
        let set =
            self.world.chain.set.iter().map(|(outpoint, coin)| (*outpoint, coin.value.to_sat()));
        let mut all: Vec<(Outpoint, u64)> = set.collect();
        for tx in self.model.txs.iter().chain(&self.late) {
            let outputs = (0..).zip(&tx.outputs);
            all.extend(outputs.map(|(vout, out)| (Outpoint::new(tx.txid(), vout), out.value)));
        }
        all.retain(|(_, value)| *value > 200_000);
        all
    }

    fn draw(&mut self) -> TxDraft {
        let outputs = self.outputs();
        let mut inputs = BTreeSet::new();
        for _ in 0..=self.dice.below(2) {
            // The young ones are at the end: chains, replacements and orphans are frequent.
            let young = outputs.len().min(8);
            let pick = match self.dice.below(2) {
                0 => self.dice.below(outputs.len()),
                _ => outputs.len() - 1 - self.dice.below(young),
            };
            inputs.insert(outputs[pick]);
        }
        let value = inputs.iter().map(|(_, value)| value).sum();
        let inputs: Vec<Outpoint> = inputs.iter().map(|(outpoint, _)| *outpoint).collect();
        let scripts: Vec<u8> = (0..=self.dice.below(3)).map(|_| self.dice.byte(8)).collect();
        let fee = [0, 50, 500, 2_000, 9_000][self.dice.below(5)] + self.dice.below(300) as u64;
        let mut tx = spend(&inputs, value, &scripts, fee);
        if self.dice.below(3) == 0 {
            tx.inputs.iter_mut().for_each(|input| input.sequence = 0xffff_fffe);
        }
        if self.dice.below(6) == 0 {
            tx.lock_time = self.world.chain.height().to_u32() - 1 + self.dice.byte(3) as u32;
        }
        tx
    }

    fn step(&mut self) {
        self.world.now += 1;
        match self.dice.below(20) {
            0..=7 => {
                let tx = self.draw();
                self.arrive(&tx, Judge::Ours);
            }
            8 => {
                let tx = self.draw();
                self.arrive(&tx, Judge::Node);
            }
            9 | 10 => self.package(),
            11 => {
                let tx = self.draw();
                self.late.push(tx);
            }
            12 => {
                if let Some(tx) = self.late.pop() {
                    self.arrive(&tx, Judge::Ours);
                }
            }
            13..=16 => self.blocks(0, 1),
            17 | 18 => {
                let depth = 1 + self.dice.below(3);
                let height = self.dice.below(2);
                self.blocks(depth, depth + height);
            }
            _ => {
                let reloaded = self.world.restart();
                assert_eq!(reloaded.dropped, []);
                self.model.orphans.clear();
            }
        }
        self.model.check(&self.world.chain, self.world.version());
    }

    fn arrive(&mut self, tx: &TxDraft, judge: Judge) {
        self.world.watch.events.clear();
        let verdict = self.world.accept_many(&[tx], judge).pop().unwrap();
        self.note();
        if self.predicts {
            let rules = if judge == Judge::Ours { Rules::Ours } else { Rules::Node };
            let expected = self.model.arrive(&self.world.chain, tx, &self.world.policy, rules);
            assert_eq!(verdict.is_ok(), expected, "{verdict:?}");
        } else {
            self.follow_events(std::slice::from_ref(tx));
        }
    }

    /// A parent that may pay nothing, and a child that may pay for both.
    fn package(&mut self) {
        self.world.watch.events.clear();
        let parent = self.draw();
        let fee = [20, 300, 5_000][self.dice.below(3)];
        let kid = super::world::child(&parent, 0, &[self.dice.byte(8)], fee);
        let verdicts = self.world.package(&[&parent, &kid]);
        self.note();
        let txs = [parent, kid];
        if self.predicts {
            let taken = self.model.package(&self.world.chain, &txs, &self.world.policy);
            assert_eq!(verdicts[1].is_ok(), taken, "{verdicts:?}");
            self.seen.extend(taken.then_some("package"));
        } else {
            self.follow_events(&txs);
        }
    }

    fn note(&mut self) {
        let name = |event: &Event| match event {
            Event::Accepted { .. } => "accepted",
            Event::DoubleSpend { .. } => "double spend",
            Event::Removed { reason, .. } => match reason {
                Removal::Mined { .. } => "mined",
                Removal::Replaced { .. } => "replaced",
                Removal::Conflict { .. } => "conflict",
                Removal::Evicted => "evicted",
                Removal::Invalidated => "invalidated",
                Removal::Expired | Removal::Dropped => "other",
            },
        };
        self.seen.extend(self.world.watch.events.iter().map(name));
        if self.world.watch.events.len() > 2 {
            self.seen.insert("many at once");
        }
    }

    /// Applies what the events say; queries are compared as ever.
    fn follow_events(&mut self, new: &[TxDraft]) {
        for event in self.world.watch.events.clone() {
            match event {
                Event::Removed { txid, .. } => self.model.remove(&BTreeSet::from([txid])),
                Event::Accepted { txid } => {
                    let waiting = self.model.orphans.values().map(|(tx, _)| tx);
                    let known = new.iter().chain(waiting);
                    let tx = known.into_iter().find(|tx| tx.txid() == txid).unwrap().clone();
                    self.model.orphans.remove(&txid);
                    self.model.txs.push(tx);
                }
                Event::DoubleSpend { .. } => {}
            }
        }
        for tx in new.iter().filter(|tx| self.world.pool.is_orphan(&tx.txid())) {
            self.model.orphans.insert(tx.txid(), (tx.clone(), Rules::Ours));
        }
        self.model.orphans.retain(|txid, _| self.world.pool.is_orphan(txid));
        assert!(self.world.version().totals().memory <= self.world.policy.memory);
    }

    /// Replaces `depth` blocks by `count` others, of what is known and what is not.
    fn blocks(&mut self, depth: usize, count: usize) {
        self.world.watch.events.clear();
        let mut left = Vec::new();
        for _ in 0..depth {
            left.push(self.world.chain.disconnect());
        }
        let mut returned: Vec<TxDraft> = Vec::new();
        for (_, draft) in left.iter().rev() {
            returned.extend(draft.txs[1..].iter().cloned());
        }
        let mut joined = Vec::new();
        for _ in 0..count {
            let txs = self.mined(&returned);
            let draft = self.world.chain.connect(txs);
            joined.push((self.world.chain.height(), draft));
        }
        self.world.follow(&left, &joined).unwrap();
        self.note();
        if self.predicts {
            let joined = joined.iter().flat_map(|(_, draft)| draft.txs.clone()).collect();
            self.model.follow(&self.world.chain, joined, returned, &self.world.policy);
        } else {
            self.follow_events(&returned);
        }
    }

    /// Transactions for a block on the tip: some that returned, some that wait, some new ones.
    fn mined(&mut self, returned: &[TxDraft]) -> Vec<TxDraft> {
        let mut wanted: Vec<TxDraft> = returned.to_vec();
        wanted.extend(self.model.txs.iter().cloned());
        wanted.extend((0..3).map(|_| self.draw()));
        let mut set = self.world.chain.set.clone();
        let mut chosen: Vec<TxDraft> = Vec::new();
        for tx in wanted {
            let next = self.world.chain.height().to_u32() + 1;
            let coin = |outpoint: &Outpoint| {
                let coin = set.get(outpoint)?;
                let young = coin.coinbase && next - coin.height.to_u32() < super::world::MATURITY;
                (!young).then_some(coin.value.to_sat())
            };
            let inputs: Option<u64> = tx.inputs.iter().map(|input| coin(&input.outpoint)).sum();
            let outputs: u64 = tx.outputs.iter().map(|output| output.value).sum();
            let valid = inputs.is_some_and(|inputs| inputs >= outputs) && tx.lock_time < next;
            if valid && self.dice.below(3) != 0 {
                let mut block = varve_consensus::contract::draft::BlockDraft::new(vec![]);
                block.txs = vec![TxDraft::coinbase(varve_types::Height::new(next), 0), tx.clone()];
                let bytes = block.bytes();
                let network = varve_types::Network::Regtest;
                let block = varve_types::Block::parse(&bytes, network.format()).unwrap();
                let height = varve_types::Height::new(next);
                set.connect(&varve_consensus::BlockAt::new(height, &block)).unwrap();
                chosen.push(tx);
            }
        }
        chosen
    }

    /// The records say what the mempool says.
    fn check_records(&self) {
        let engine = self.world.pool.ledger.store.engine();
        let version = self.world.version();
        for tx in &self.model.txs {
            let record = &engine.read(&[tx.txid()], Fields::ALL).unwrap()[0];
            let record = record.as_ref().expect("everything here has a record");
            assert!(record.unmined_since.is_some() && !record.locked && !record.conflicting);
            let inputs: Vec<Outpoint> = tx.inputs.iter().map(|input| input.outpoint).collect();
            for (slot, vin) in engine.slots(&inputs).unwrap().into_iter().zip(0..) {
                let slot = slot.expect("parents have records").slot.expect("and slots");
                let by = slot.spender().expect("which are spent");
                assert_eq!((by.txid, by.vin), (tx.txid(), vin));
            }
        }
        let unmined = engine.scan(Scan::Unmined, None, usize::MAX).unwrap().txids;
        for record in engine.read(&unmined, Fields::HEAD).unwrap().into_iter().flatten() {
            assert_eq!(version.contains(&record.txid), !record.conflicting, "{}", record.txid);
        }
    }

    fn run(&mut self, steps: usize) {
        for step in 0..steps {
            self.step();
            if step % 10 == 0 {
                self.check_records();
                let version = Arc::clone(self.world.pool.version());
                let txids = version.txids(None, usize::MAX);
                self.held.push((version, txids));
            }
        }
        // Readers of old versions still see their moment.
        for (version, txids) in &self.held {
            assert_eq!(version.txids(None, usize::MAX), *txids);
            assert_eq!(version.entries().count(), txids.len());
        }
    }
}

fn lives() -> u64 {
    std::env::var("VARVE_LIVES").ok().and_then(|lives| lives.parse().ok()).unwrap_or(24)
}

fn policy() -> Policy {
    Policy { push_rule: Some(PushdataRule::Conduit), max_relatives: 6, ..Policy::default() }
}

#[test]
fn lives_agree_with_the_model() {
    let mut seen = BTreeSet::new();
    for seed in 0..lives() {
        println!("seed {seed}");
        let full_rbf = seed % 2 == 0;
        let policy = Policy { full_rbf, max_replaced: 4, ..policy() };
        let mut life = Life::new(seed, policy, true);
        life.run(120);
        seen.extend(life.seen);
    }
    let all = "accepted conflict double spend invalidated many at once mined package replaced";
    assert_eq!(seen.into_iter().collect::<Vec<_>>().join(" "), all);
}

#[test]
fn lives_in_little_memory_agree_with_the_model() {
    let mut evicted = 0;
    for seed in 1_000..1_000 + lives() {
        println!("seed {seed}");
        let mut life = Life::new(seed, Policy { memory: 5_500, ..policy() }, false);
        life.run(120);
        evicted += usize::from(life.seen.contains("evicted"));
    }
    assert!(evicted > 8, "{evicted} lives saw an eviction");
}

#[test]
fn a_batch_is_the_same_as_its_transactions_one_by_one() {
    for seed in 0..10 {
        let mut life = Life::new(seed, policy(), true);
        let mut other = World::new(12, policy());
        let mut batch = Vec::new();
        for _ in 0..40 {
            let tx = life.draw();
            life.arrive(&tx, Judge::Ours);
            batch.push(tx);
        }
        other.accept_many(&batch.iter().collect::<Vec<_>>(), Judge::Ours);
        let txids = |world: &World| world.version().txids(None, usize::MAX);
        assert_eq!(txids(&other), txids(&life.world));
        life.world = other;
        life.model.check(&life.world.chain, life.world.version());
        life.check_records();
    }
}
