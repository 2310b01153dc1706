//! Random lives of a node with a mempool.

use std::collections::BTreeSet;
use std::sync::Arc;

use varve_consensus::contract::draft::TxDraft;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_node::{NodeSnapshot, Options};
use varve_types::{BlockHash, Txid};

use super::model::{Model, check_together};
use super::stage::{Act, Director, run};
use crate::crash::eager_options;
use crate::miner::bytes_of;
use crate::rig::{Dice, is_long, lives};

/// What was so at some moment.
struct Moment {
    /// Operations of the disk until then.
    operations: usize,
    tip: BlockHash,
    pool: BTreeSet<Txid>,
}

/// Plays a number of steps by dice.
struct Life<'a> {
    storage: &'a FaultyStorage,
    model: &'a mut Model,
    dice: &'a mut Dice,
    steps: usize,
    has_chain: bool,
    seed: u64,
    moments: Vec<Moment>,
}

impl Director for Life<'_> {
    fn next(&mut self, now: &Arc<NodeSnapshot>) -> Act {
        if !self.has_chain {
            self.has_chain = true;
            let blocks = self.model.blocks[1..].iter().map(|node| &node.mined);
            return Act::Blocks(bytes_of(blocks), self.model.tip_hash());
        }
        let name = format!("life {} with {} steps left", self.seed, self.steps);
        self.model.check(now, &name);
        let pool = self.model.pool.iter().map(TxDraft::txid).collect();
        let operations = self.storage.operations();
        self.moments.push(Moment { operations, tip: now.tip.1, pool });
        if self.steps == 0 {
            return Act::End;
        }
        self.steps -= 1;
        match self.dice.below(10) {
            0..=5 => {
                let count = 1 + self.dice.below(4);
                let txs = (0..count).filter_map(|_| self.model.newcomer(self.dice));
                Act::Txs(txs.map(|tx| tx.bytes()).collect())
            }
            6 => Act::Txs(self.model.rival(self.dice).iter().map(TxDraft::bytes).collect()),
            _ => {
                let blocks = self.model.mine(self.dice);
                Act::Blocks(blocks, self.model.tip_hash())
            }
        }
    }

    fn look(&mut self, now: &Arc<NodeSnapshot>) {
        check_together(now);
    }
}

fn options() -> Options {
    eager_options()
}

/// A node that lives through blocks, branches, arrivals and restarts.
#[test]
fn lives_of_a_node_with_a_mempool_agree_with_the_model() {
    for seed in 0..lives().unwrap_or(4) as u64 {
        let storage = Arc::new(FaultyStorage::new(seed));
        let mut dice = Dice(seed * 77 + 5);
        let mut model = Model::new(6);
        let mut has_chain = false;
        for _ in 0..4 {
            let (storage_now, steps) = (storage.clone(), 12);
            let mut life = Life {
                storage: &storage,
                model: &mut model,
                dice: &mut dice,
                steps,
                has_chain,
                seed,
                moments: Vec::new(),
            };
            run(storage_now, options(), &mut life);
            has_chain = true;
        }
    }
}

/// Looks at a node after a crash, and ends it.
struct Survivor<'a> {
    before: &'a Moment,
    after: &'a Moment,
    name: String,
    seen: bool,
}

impl Director for Survivor<'_> {
    fn next(&mut self, now: &Arc<NodeSnapshot>) -> Act {
        let mempool = now.mempool.as_ref().unwrap();
        let view = now.view();
        let known = [self.before.tip, self.after.tip];
        // A branch may have been committed on its way.
        let is_between = !known.contains(&now.tip.1);
        for txid in self.before.pool.intersection(&self.after.pool) {
            let place = view.to_tx(*txid).unwrap();
            let is_confirmed = place.is_some_and(|place| place.confirmed);
            assert!(
                mempool.contains(txid) || is_confirmed || is_between,
                "{}: {txid} is lost",
                self.name
            );
        }
        if now.tip.1 == self.before.tip && self.before.tip != self.after.tip {
            let lost: Vec<_> =
                self.before.pool.iter().filter(|txid| !mempool.contains(txid)).collect();
            assert!(lost.is_empty(), "{}: {lost:?}", self.name);
        }
        for entry in mempool.entries() {
            let txid = entry.txid();
            let is_known = self.before.pool.contains(&txid) || self.after.pool.contains(&txid);
            assert!(is_known || is_between, "{}: {txid} comes from nowhere", self.name);
        }
        self.seen = true;
        Act::End
    }

    fn look(&mut self, now: &Arc<NodeSnapshot>) {
        check_together(now);
    }
}

/// The power goes at any write of such a life: what was acknowledged is there, at the tip that is
/// there, and nothing is in a block and in the mempool.
#[test]
fn power_cuts_lose_no_transaction_that_was_seen() {
    let storage = Arc::new(FaultyStorage::new(9));
    let (mut dice, mut model) = (Dice(3), Model::new(6));
    let mut life = Life {
        storage: &storage,
        model: &mut model,
        dice: &mut dice,
        steps: 25,
        has_chain: false,
        seed: 9,
        moments: Vec::new(),
    };
    run(storage.clone(), options(), &mut life);
    let moments = life.moments;
    let (first, last) = (moments[0].operations, storage.operations());
    let step = if is_long() { 1 } else { (last - first) / 60 };
    for n in (first..last).step_by(step.max(1)) {
        let at = moments.iter().rposition(|moment| moment.operations <= n).unwrap();
        let (before, after) = (&moments[at], moments.get(at + 1).unwrap_or(&moments[at]));
        for crash in [Crash::LoseAll, Crash::KeepAll, Crash::Seed(n as u64)] {
            let name = format!("after {n} of {last} operations, {crash:?}");
            let mut survivor = Survivor { before, after, name, seen: false };
            run(Arc::new(storage.crash(n, crash)), options(), &mut survivor);
            assert!(survivor.seen);
        }
    }
}
