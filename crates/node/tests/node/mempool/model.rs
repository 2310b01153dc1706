//! The chain and the mempool as plain lists, computed from scratch at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use varve_consensus::contract::draft::{InputDraft, OutputDraft, TxDraft};
use varve_node::NodeSnapshot;
use varve_types::{BlockHash, Outpoint, ScriptHash, Txid};

use crate::miner::{Mined, SUBSIDY};
use crate::rig::Dice;

/// What a transaction pays at least.
pub(super) const FEE: u64 = 10_000;

/// A block and the transactions that it has beside its coinbase.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) mined: Mined,
    pub(super) txs: Vec<TxDraft>,
    below: usize,
}

/// Outputs that can be spent, and what they are worth.
type Coins = BTreeMap<Outpoint, u64>;

/// Every block that was made, the tip, and the transactions that wait, in the order of arrival.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) blocks: Vec<Node>,
    pub(super) tip: usize,
    pub(super) pool: Vec<TxDraft>,
    salt: u8,
}

impl Model {
    /// A chain of this many blocks.
    pub(super) fn new(count: usize) -> Self {
        let genesis = Node { mined: Mined::genesis(), txs: Vec::new(), below: 0 };
        let mut model = Self { blocks: vec![genesis], tip: 0, pool: Vec::new(), salt: 0 };
        for _ in 0..count {
            model.tip = model.add(model.tip, Vec::new());
        }
        model
    }

    pub(super) fn tip_hash(&self) -> BlockHash {
        self.blocks[self.tip].mined.hash
    }

    /// Makes a block above another.
    fn add(&mut self, below: usize, txs: Vec<TxDraft>) -> usize {
        self.salt = self.salt.wrapping_add(1);
        let mined = self.blocks[below].mined.above(self.salt, txs.clone());
        self.blocks.push(Node { mined, txs, below });
        self.blocks.len() - 1
    }

    /// The blocks from a block down to genesis, without that.
    fn branch(&self, mut at: usize) -> Vec<usize> {
        let mut branch = Vec::new();
        while at != 0 {
            branch.push(at);
            at = self.blocks[at].below;
        }
        branch
    }

    /// The coins above a block.
    pub(super) fn coins(&self, at: usize) -> Coins {
        let mut coins = Coins::new();
        for block in self.branch(at).iter().rev().map(|block| &self.blocks[*block]) {
            coins.insert(block.mined.coin(), SUBSIDY);
            block.txs.iter().for_each(|tx| apply(&mut coins, tx));
        }
        coins
    }

    /// The coins that a newcomer can spend: those of the chain and of the mempool.
    fn free(&self) -> Coins {
        let mut coins = self.coins(self.tip);
        self.pool.iter().for_each(|tx| apply(&mut coins, tx));
        coins
    }

    /// A transaction that comes in.
    pub(super) fn newcomer(&mut self, dice: &mut Dice) -> Option<TxDraft> {
        let free: Vec<(Outpoint, u64)> = self.free().into_iter().collect();
        let count = 1 + dice.below(2);
        let mut spent: BTreeMap<Outpoint, u64> = BTreeMap::new();
        for _ in 0..count {
            spent.extend(free.get(dice.below(free.len().max(1))).copied());
        }
        let tx = pay(&spent.into_iter().collect::<Vec<_>>(), 1 + dice.below(3), FEE)?;
        let lines = self.pool.iter().filter(|other| self.builds_on(&tx, other.txid())).count();
        // Far from the limits of relatives.
        (lines < 10 && self.pool.len() < 20).then(|| {
            self.pool.push(tx.clone());
            tx
        })
    }

    /// Whether a transaction builds on another of the mempool.
    fn builds_on(&self, tx: &TxDraft, on: Txid) -> bool {
        tx.inputs.iter().any(|input| {
            let parent = self.pool.iter().find(|other| other.txid() == input.outpoint.txid);
            input.outpoint.txid == on || parent.is_some_and(|parent| self.builds_on(parent, on))
        })
    }

    /// A transaction and all that builds on it.
    fn family(&self, first: Txid) -> BTreeSet<Txid> {
        let all = self.pool.iter().filter(|tx| tx.txid() == first || self.builds_on(tx, first));
        all.map(TxDraft::txid).collect()
    }

    fn remove(&mut self, family: &BTreeSet<Txid>) {
        self.pool.retain(|tx| !family.contains(&tx.txid()));
    }

    /// A transaction that spends what one in the mempool spends: it pays more, and takes its place
    /// with all that builds on it; or it pays less, and is refused.
    pub(super) fn rival(&mut self, dice: &mut Dice) -> Option<TxDraft> {
        let confirmed = self.coins(self.tip);
        let is_first =
            |tx: &&TxDraft| tx.inputs.iter().all(|input| confirmed.contains_key(&input.outpoint));
        let firsts: Vec<TxDraft> = self.pool.iter().filter(is_first).cloned().collect();
        let old = firsts.get(dice.below(firsts.len().max(1)))?;
        let spent: Vec<_> =
            old.inputs.iter().map(|input| (input.outpoint, confirmed[&input.outpoint])).collect();
        let family = self.family(old.txid());
        let wins = dice.below(3) > 0;
        let fee = if wins { FEE * 10 * (family.len() as u64 + 1) } else { FEE / 4 };
        let tx = pay(&spent, 2, fee)?;
        // Whoever pays more than all of them together wins; families pay little each.
        let all: u64 = self.fees(&family);
        if wins && fee <= all + FEE {
            return None;
        }
        if wins {
            self.remove(&family);
            self.pool.push(tx.clone());
        }
        Some(tx)
    }

    /// What transactions of the mempool pay together.
    pub(super) fn fees(&self, of: &BTreeSet<Txid>) -> u64 {
        let mut coins = self.coins(self.tip);
        let mut sum = 0;
        for tx in &self.pool {
            let inputs: u64 = tx.inputs.iter().map(|input| coins[&input.outpoint]).sum();
            let outputs: u64 = tx.outputs.iter().map(|output| output.value).sum();
            if of.contains(&tx.txid()) {
                sum += inputs - outputs;
            }
            apply(&mut coins, tx);
        }
        sum
    }

    /// Blocks above the tip, or above a block below it so that they win. Returns their bytes.
    pub(super) fn mine(&mut self, dice: &mut Dice) -> Vec<Vec<u8>> {
        let old = self.branch(self.tip);
        let depth = if dice.below(2) == 0 { 0 } else { dice.below(old.len().min(4)) };
        let fork = old.get(depth).copied().unwrap_or(0);
        let left: Vec<TxDraft> =
            old[..depth].iter().rev().flat_map(|at| self.blocks[*at].txs.clone()).collect();
        let mut at = fork;
        let mut made = Vec::new();
        for _ in 0..=depth {
            let txs = self.choose(at, &left, dice);
            at = self.add(at, txs);
            made.push(at);
        }
        self.follow(&old[..depth], &made);
        made.iter().map(|at| self.blocks[*at].mined.bytes.clone()).collect()
    }

    /// Transactions for a block above another: some of those that wait or were in blocks that
    /// leave, and some that nobody has seen and that may spend the same.
    fn choose(&self, at: usize, left: &[TxDraft], dice: &mut Dice) -> Vec<TxDraft> {
        let mut coins = self.coins(at);
        let mut chosen = Vec::new();
        let mut unseen: Vec<TxDraft> = Vec::new();
        if dice.below(2) == 0 {
            let free: Vec<(Outpoint, u64)> = coins.clone().into_iter().collect();
            let spent = free[dice.below(free.len())];
            unseen.extend(pay(&[spent], 1 + dice.below(2), FEE * 3));
        }
        for tx in unseen.iter().chain(left).chain(&self.pool) {
            let fits = tx.inputs.iter().all(|input| coins.contains_key(&input.outpoint));
            if fits && dice.below(3) > 0 {
                apply(&mut coins, tx);
                chosen.push(tx.clone());
            }
        }
        chosen
    }

    /// What a move of the tip does to those that wait.
    fn follow(&mut self, left: &[usize], joined: &[usize]) {
        let txs_of = |model: &Self, at: &[usize]| -> Vec<TxDraft> {
            at.iter().flat_map(|at| model.blocks[*at].txs.clone()).collect()
        };
        let joined_txs = txs_of(self, joined);
        let left: Vec<usize> = left.iter().rev().copied().collect();
        let mut left_txs = txs_of(self, &left);
        let coinbases: Vec<Txid> =
            left.iter().map(|at| self.blocks[*at].mined.coinbase.txid()).collect();
        let mined: BTreeSet<Txid> = joined_txs.iter().map(TxDraft::txid).collect();
        let spent: BTreeSet<Outpoint> =
            joined_txs.iter().flat_map(|tx| &tx.inputs).map(|input| input.outpoint).collect();
        let lost: Vec<Txid> = self
            .pool
            .iter()
            .filter(|tx| !mined.contains(&tx.txid()))
            .filter(|tx| tx.inputs.iter().any(|input| spent.contains(&input.outpoint)))
            .map(TxDraft::txid)
            .collect();
        let losers: BTreeSet<Txid> = lost.into_iter().flat_map(|txid| self.family(txid)).collect();
        self.pool.retain(|tx| !mined.contains(&tx.txid()) && !losers.contains(&tx.txid()));
        // What builds on a block that left waits behind what comes back.
        let from: BTreeSet<Txid> = left_txs.iter().map(TxDraft::txid).chain(coinbases).collect();
        let pulled: BTreeSet<Txid> = from
            .iter()
            .flat_map(|txid| self.family(*txid))
            .filter(|txid| !from.contains(txid))
            .collect();
        let (pulled, kept): (Vec<TxDraft>, Vec<TxDraft>) =
            self.pool.drain(..).partition(|tx| pulled.contains(&tx.txid()));
        self.pool = kept;
        self.tip = *joined.last().unwrap();
        left_txs.retain(|tx| !mined.contains(&tx.txid()));
        for tx in left_txs.into_iter().chain(pulled) {
            let free = self.free();
            if tx.inputs.iter().all(|input| free.contains_key(&input.outpoint)) {
                self.pool.push(tx);
            }
        }
    }

    /// Compares all that can be asked of a snapshot with what it should be.
    pub(super) fn check(&self, now: &Arc<NodeSnapshot>, name: &str) {
        assert_eq!(now.tip.1, self.tip_hash(), "{name}");
        let mempool = now.mempool.as_ref().unwrap();
        let found: BTreeSet<Txid> = mempool.entries().map(|entry| entry.txid()).collect();
        let expected: BTreeSet<Txid> = self.pool.iter().map(TxDraft::txid).collect();
        assert_eq!(found, expected, "{name}");
        let totals = mempool.totals().sum;
        assert_eq!(
            (totals.count, totals.fees.to_sat()),
            (expected.len() as u64, self.fees(&expected)),
            "{name}"
        );
        let confirmed = self.coins(self.tip);
        let mut deltas: BTreeMap<ScriptHash, (i64, Vec<Outpoint>)> = BTreeMap::new();
        let free = self.free();
        let mut all = confirmed;
        for tx in &self.pool {
            for (vin, input) in tx.inputs.iter().enumerate() {
                let spender = mempool.spender(&input.outpoint).unwrap();
                assert_eq!((spender.txid, spender.vin as usize), (tx.txid(), vin), "{name}");
                let script = ScriptHash::of(&self.script(&input.outpoint));
                let value = i64::try_from(all[&input.outpoint]).unwrap();
                deltas.entry(script).or_default().0 -= value;
            }
            for (vout, output) in (0..).zip(&tx.outputs) {
                let delta = deltas.entry(ScriptHash::of(&output.script)).or_default();
                delta.0 += i64::try_from(output.value).unwrap();
                let outpoint = Outpoint::new(tx.txid(), vout);
                delta.1.extend(free.contains_key(&outpoint).then_some(outpoint));
            }
            apply(&mut all, tx);
        }
        for (script, (balance, mut unspent)) in deltas {
            assert_eq!(mempool.script_delta(script).balance(), balance, "{name}");
            let mut found: Vec<Outpoint> =
                mempool.unspent(script).iter().map(|output| output.outpoint).collect();
            found.sort_unstable();
            unspent.sort_unstable();
            assert_eq!(found, unspent, "{name}");
        }
    }

    /// The script of an output, wherever it is.
    fn script(&self, outpoint: &Outpoint) -> Vec<u8> {
        let blocks = self
            .blocks
            .iter()
            .flat_map(|block| [&block.mined.coinbase].into_iter().chain(&block.txs));
        let tx = blocks.chain(&self.pool).find(|tx| tx.txid() == outpoint.txid).unwrap();
        tx.outputs[outpoint.vout as usize].script.clone()
    }
}

/// No transaction is confirmed and in the mempool; each spends what is there.
pub(super) fn check_together(now: &NodeSnapshot) {
    let Some(mempool) = &now.mempool else { return };
    assert_eq!((mempool.tip().height, mempool.tip().hash), now.tip);
    let view = now.view();
    for entry in mempool.entries() {
        let place = view.to_tx(entry.txid()).unwrap();
        assert!(place.is_none_or(|place| !place.confirmed), "{} is confirmed", entry.txid());
        let inputs = entry.transaction().outpoints();
        let coins = now.utxo.get(&inputs).unwrap();
        for (outpoint, coin) in inputs.iter().zip(coins.iter()) {
            let parent = mempool.entry(&outpoint.txid);
            assert_ne!(coin.is_some(), parent.is_some(), "{outpoint}, of one of them");
        }
    }
}

fn apply(coins: &mut Coins, tx: &TxDraft) {
    for input in &tx.inputs {
        coins.remove(&input.outpoint);
    }
    let txid = tx.txid();
    let outputs = (0..).zip(&tx.outputs);
    coins.extend(outputs.map(|(vout, output)| (Outpoint::new(txid, vout), output.value)));
}

/// A transaction that spends these outputs.
pub(super) fn pay(spent: &[(Outpoint, u64)], outputs: usize, fee: u64) -> Option<TxDraft> {
    let value: u64 = spent.iter().map(|(_, value)| value).sum();
    let share = value.checked_sub(fee)? / outputs as u64;
    if share < 20 * FEE || spent.is_empty() {
        return None;
    }
    let input = |(outpoint, _): &(Outpoint, u64)| InputDraft {
        outpoint: *outpoint,
        script: Vec::new(),
        sequence: u32::MAX,
        witness: Vec::new(),
    };
    let rest = value - fee - share * outputs as u64;
    let output = |vout: usize| OutputDraft {
        value: share + if vout == 0 { rest } else { 0 },
        ..OutputDraft::nth(vout)
    };
    let inputs = spent.iter().map(input).collect();
    let outputs = (0..outputs).map(output).collect();
    Some(TxDraft { version: 2, inputs, outputs, lock_time: 0 })
}
