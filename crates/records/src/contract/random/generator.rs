//! Operations at random, the frequent and the rare ones.

use std::collections::BTreeSet;

use varve_types::{BlockHash, Height, Outpoint, Txid};

use super::universe::{Rng, Universe};
use crate::contract::block;
use crate::contract::draft::Coin;
use crate::engine::Context;
use crate::freeze_window::{FreezeWindow, Tier};
use crate::intent::{Intent, IntentKind};
use crate::operation::{MinedBlockInfo, Operation, SlotRef, SpendRules, Unit, Unspend};
use crate::prepare::CreateOptions;
use crate::record::BlockId;
use crate::spending_data::{PLACEHOLDER, SpendingData};
use crate::utxo_hash::UtxoHash;

/// Makes the batches of a walk.
#[derive(Clone, Debug)]
pub struct Generator {
    rng: Rng,
    universe: Universe,
    height: u32,
    /// Outputs that may have been reassigned.
    reassigned: BTreeSet<Outpoint>,
}

impl Generator {
    /// The walk of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let (rng, universe) = (Rng::new(seed), Universe::new(seed));
        Self { rng, universe, height: 100, reassigned: BTreeSet::new() }
    }

    /// The transactions of the walk.
    #[must_use]
    pub const fn universe(&self) -> &Universe {
        &self.universe
    }

    /// The numbers of the walk.
    pub const fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// The next batch, and the world at that moment.
    pub fn next_batch(&mut self) -> (Context, Vec<Operation>) {
        self.height += self.rng.small(3);
        if self.rng.chance(2) {
            self.height += 600;
        }
        let retention = if self.rng.chance(5) { 0 } else { 10 };
        let context = Context { height: Height::new(self.height), retention };
        let count = 1 + self.rng.small(8);
        (context, (0..count).map(|_| self.operation()).collect())
    }

    fn operation(&mut self) -> Operation {
        match self.rng.below(100) {
            0..30 => self.unit().into(),
            30..35 => self.unspend(),
            35..47 => self.set_mined(),
            47..54 => {
                let on_longest_chain = self.rng.chance(40);
                Operation::MarkOnLongestChain { txid: self.txid(), on_longest_chain }
            }
            54..59 => {
                let locked = self.rng.chance(30);
                Operation::SetLocked { txid: self.txid(), locked }
            }
            59..73 => self.order(),
            73..78 => {
                let conflicting = self.rng.chance(50);
                Operation::SetConflicting { txid: self.txid(), conflicting }
            }
            78..90 => self.removal(),
            90..93 => {
                let (txid, child) = (self.txid(), self.txid());
                Operation::RemoveConflictingChild { txid, child }
            }
            93..96 => {
                let blocks = vec![BlockId(self.rng.small(4)), BlockId(self.rng.small(4))];
                Operation::RemoveBlocks { txid: self.txid(), blocks }
            }
            _ => self.intent(),
        }
    }

    /// Spends, creates, or both.
    fn unit(&mut self) -> Unit {
        let index = self.index();
        let txid = if self.rng.chance(1) { PLACEHOLDER } else { self.universe.txs()[index].txid() };
        let (spends, creates) = match self.rng.below(4) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        let mut unit = Unit { txid, spend: None, create: None };
        if spends {
            let rules = self.rules();
            let mut part = self.universe.spends(index, rules);
            for spend in &mut part.spends {
                spend.hash = self.hash(spend.outpoint, spend.hash);
            }
            unit.spend = Some(part);
        }
        if creates {
            let options = self.options();
            let mut record = self.universe.record(index, &options);
            record.creating = self.rng.chance(10);
            unit.create = Some(record);
        }
        unit
    }

    fn rules(&mut self) -> SpendRules {
        let height = match self.rng.below(20) {
            0 => 0,
            1 => self.rng.small(3_000),
            _ => self.height + 1,
        };
        SpendRules {
            height: Height::new(height),
            ignore_conflicting: self.rng.chance(20),
            ignore_locked: self.rng.chance(20),
            tier: if self.rng.chance(50) { Tier::Consensus } else { Tier::Policy },
        }
    }

    fn options(&mut self) -> CreateOptions {
        let mut blocks = Vec::new();
        if self.rng.chance(40) {
            blocks.push(block(self.rng.small(4), self.height));
        }
        CreateOptions {
            height: Height::new(if self.rng.chance(3) { 0 } else { self.height }),
            created_at: self.rng.next(),
            blocks,
            is_coinbase: None,
            frozen: self.rng.chance(4),
            conflicting: self.rng.chance(8),
            locked: self.rng.chance(8),
        }
    }

    fn unspend(&mut self) -> Operation {
        let index = self.index();
        let part = self.universe.spends(index, SpendRules::at(Height::new(1)));
        let owner = self.universe.txs()[index].txid();
        let mut spends = Vec::new();
        for spend in part.spends {
            let txid = if self.rng.chance(10) { self.txid() } else { owner };
            let hash = self.hash(spend.outpoint, spend.hash);
            let slot = SlotRef { outpoint: spend.outpoint, hash };
            spends.push(Unspend { slot, by: SpendingData::new(txid, spend.vin) });
        }
        Operation::Unspend { spends, lock_parents: self.rng.chance(20) }
    }

    fn set_mined(&mut self) -> Operation {
        let info = MinedBlockInfo {
            block: block(self.rng.small(4), self.height),
            on_longest_chain: self.rng.chance(75),
            unset: self.rng.chance(30),
        };
        Operation::SetMined { txid: self.txid(), info }
    }

    /// An order about one output.
    fn order(&mut self) -> Operation {
        let coin = self.rng.pick(self.universe.coins()).clone();
        let slot = SlotRef { outpoint: coin.outpoint, hash: self.hash(coin.outpoint, coin.hash()) };
        match self.rng.below(7) {
            0 | 1 => Operation::Freeze(slot),
            2 => {
                let start = u64::from(self.height + self.rng.small(40)).saturating_sub(20);
                let stop = self.rng.chance(70).then(|| start + self.rng.below(40));
                let window = FreezeWindow::from_interval(start, stop, self.rng.chance(50));
                Operation::FreezeWindow { slot, window }
            }
            3 | 4 => Operation::Unfreeze(slot),
            _ => {
                self.reassigned.insert(coin.outpoint);
                Operation::Reassign { slot, to: other_hash(coin.outpoint) }
            }
        }
    }

    /// What leads to the end of a record.
    fn removal(&mut self) -> Operation {
        let txid = self.txid();
        let height = Height::new(self.height + self.rng.small(30));
        match self.rng.below(12) {
            0 => Operation::Delete { txid },
            1 if self.rng.chance(10) => Operation::PreserveUntil { txid, height: Height::GENESIS },
            1 | 2 => Operation::PreserveUntil { txid, height },
            3 | 4 => Operation::ExpirePreservation { txid, height },
            _ => Operation::Prune { txid, height },
        }
    }

    fn intent(&mut self) -> Operation {
        let intent = Intent {
            kind: IntentKind::ResolveConflicts,
            height: Height::new(self.rng.small(3)),
            block: BlockHash::from_bytes([7; 32]),
            txids: vec![self.universe.txs()[self.rng.small(3) as usize].txid()],
            created_at: self.rng.next(),
        };
        match self.rng.chance(50) {
            true => Operation::BeginIntent(intent),
            false => Operation::CompleteIntent(intent.id()),
        }
    }

    /// The right hash, that after a reassignment, or a wrong one.
    fn hash(&mut self, outpoint: Outpoint, right: UtxoHash) -> UtxoHash {
        match self.rng.below(20) {
            0 => UtxoHash::from_bytes([3; 32]),
            1..8 if self.reassigned.contains(&outpoint) => other_hash(outpoint),
            _ => right,
        }
    }

    fn index(&mut self) -> usize {
        self.rng.small(u32::try_from(self.universe.txs().len()).expect("a few")) as usize
    }

    /// A transaction of the universe, and rarely one that is not.
    fn txid(&mut self) -> Txid {
        let index = self.index();
        match self.rng.below(60) {
            0 => Txid::from_bytes([0xdd; 32]),
            1 => PLACEHOLDER,
            _ => self.universe.txs()[index].txid(),
        }
    }
}

/// What an output is bound to by a reassignment.
fn other_hash(outpoint: Outpoint) -> UtxoHash {
    Coin { outpoint, value: 5, script: vec![0x52] }.hash()
}
