//! The embedded engine and the memory engine, living the same life.
//!
//! The world is small, so that everything happens to everything: a dozen transactions, each with
//! fixed inputs and up to twenty outputs, most of them spending each other's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use varve_io::faulty::FaultyStorage;
use varve_io::{GlobalOffset, StoreId};
use varve_runs::Source as _;
use varve_testdata::Random;
use varve_types::{Amount, BlockHash, Height, Outpoint, Txid};

use crate::embedded::index::{Shard, Slot, Totals};
use crate::embedded::{EmbeddedEngine, EmbeddedOptions, StoreKey};
use crate::engine::{Context, Engine, EngineError, Scan};
use crate::fields::Fields;
use crate::freeze_window::{FreezeWindow, Tier};
use crate::intent::{Intent, IntentKind};
use crate::key::BatchSize;
use crate::memory::{MemoryDisk, MemoryEngine};
use crate::operation::{
    MinedBlockInfo, NewRecord, Operation, SlotRef, Spend, SpendPart, SpendRules, Unit, Unspend,
};
use crate::record::{BlockId, BlockRef, Body, Record};
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;
use varve_runs::Compaction;

pub(super) const TXS: u32 = 12;
pub(super) const KEY: StoreKey = StoreKey { id: StoreId([3; 16]), secret: [4; 16] };

/// Small files and frequent checkpoints, so that a short life sees everything.
pub(super) fn small() -> EmbeddedOptions {
    EmbeddedOptions {
        segment_size: 50_000,
        cache: 60_000,
        checkpoint_every: 70_000,
        body_limit: 200,
        upkeep: Compaction::Inline,
        ..EmbeddedOptions::new(KEY)
    }
}

pub(super) fn txid(number: u32) -> Txid {
    let mut bytes = [0x11; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

pub(super) fn outputs(number: u32) -> u32 {
    [2, 1, 20, 8, 9, 0, 3, 17, 2, 5, 1, 12][number as usize % 12]
}

pub(super) fn hash(outpoint: &Outpoint) -> UtxoHash {
    let mut bytes = outpoint.txid.to_bytes();
    bytes[28..].copy_from_slice(&outpoint.vout.to_le_bytes());
    UtxoHash::from_bytes(bytes)
}

/// What a transaction spends: always the same, as its txid says.
pub(super) fn inputs(number: u32) -> Vec<Outpoint> {
    let mut chance = Random::new(u64::from(number) * 77 + 5);
    let input = |chance: &mut Random| {
        let parent = chance.small(TXS);
        Outpoint::new(txid(parent), chance.small(outputs(parent) + 1))
    };
    (0..number % 4).map(|_| input(&mut chance)).collect()
}

fn block(chance: &mut Random) -> BlockRef {
    let id = chance.small(4);
    BlockRef { id: BlockId(id), height: Height::new(90 + id), subtree: id * 3 }
}

fn new_record(number: u32, chance: &mut Random) -> NewRecord {
    let places = 0..outputs(number);
    let slot = |vout| (vout % 5 != 3).then(|| hash(&Outpoint::new(txid(number), vout)));
    let length = if chance.one_in(30) { 300 } else { chance.small(200) as usize };
    let external = chance.one_in(3);
    let body = Body::Outputs(Bytes::from(vec![7; length]));
    NewRecord {
        version: number,
        lock_time: chance.small(3),
        fee: Amount::from_sat(u64::from(chance.small(1000))),
        size: 100,
        extended_size: 130,
        is_coinbase: number == 3,
        spending_height: (number == 3).then_some(Height::new(106)),
        body: if external { Body::External } else { body },
        inputs: inputs(number),
        utxos: Arc::new(places.map(slot).collect()),
        batch: BatchSize::new(7).unwrap(),
        height: Height::new(100 + chance.small(10)),
        created_at: u64::from(chance.small(1 << 20)),
        blocks: (0..chance.small(2)).map(|_| block(chance)).collect(),
        frozen: chance.one_in(12),
        conflicting: chance.one_in(8),
        locked: chance.one_in(8),
        creating: chance.one_in(15),
    }
}

fn unit(chance: &mut Random) -> Operation {
    let number = chance.small(TXS);
    let rules = SpendRules {
        height: Height::new(100 + chance.small(12)),
        ignore_conflicting: chance.one_in(2),
        ignore_locked: chance.one_in(2),
        tier: if chance.one_in(2) { Tier::Consensus } else { Tier::Policy },
    };
    let spend = |(vin, outpoint): (u32, &Outpoint)| {
        let hash = if vin == 9 { UtxoHash::from_bytes([9; 32]) } else { hash(outpoint) };
        Spend { outpoint: *outpoint, hash, vin }
    };
    let spends = (0..).zip(&inputs(number)).map(spend).collect();
    let part = SpendPart { spends, rules };
    let create = new_record(number, chance);
    let (spend, create) = match chance.small(4) {
        0 => (Some(part), None),
        1 => (None, Some(create)),
        _ => (Some(part), Some(create)),
    };
    Operation::Unit(Box::new(Unit { txid: txid(number), spend, create }))
}

/// Anything at all, the likely things more often.
pub(super) fn operation(chance: &mut Random) -> Operation {
    let number = chance.small(TXS);
    let id = txid(number);
    let height = Height::new(100 + chance.small(25));
    let outpoint = Outpoint::new(id, chance.small(outputs(number) + 1));
    let slot = SlotRef { outpoint, hash: hash(&outpoint) };
    let spender = chance.small(TXS);
    let intent = Intent {
        kind: IntentKind::ResolveConflicts,
        height,
        block: BlockHash::from_bytes([1; 32]),
        txids: vec![id],
        created_at: 5,
    };
    match chance.small(30) {
        0..=9 => unit(chance),
        10 | 11 => {
            let by = |(vin, outpoint): (u32, &Outpoint)| Unspend {
                slot: SlotRef { outpoint: *outpoint, hash: hash(outpoint) },
                by: SpendingData::new(txid(spender), vin),
            };
            let spends = (0..).zip(&inputs(spender)).map(by).collect();
            Operation::Unspend { spends, lock_parents: chance.one_in(4) }
        }
        12..=14 => {
            let (on_longest_chain, unset) = (!chance.one_in(4), chance.one_in(3));
            let info = MinedBlockInfo { block: block(chance), on_longest_chain, unset };
            Operation::SetMined { txid: id, info }
        }
        15 => Operation::MarkOnLongestChain { txid: id, on_longest_chain: chance.one_in(2) },
        16 => Operation::SetLocked { txid: id, locked: chance.one_in(2) },
        17 => Operation::Freeze(slot),
        18 => Operation::Unfreeze(slot),
        19 => {
            let until = Some(u64::from(100 + chance.small(20)));
            let window = FreezeWindow::from_interval(105, until, chance.one_in(2));
            Operation::FreezeWindow { slot, window }
        }
        20 => Operation::Reassign { slot, to: UtxoHash::from_bytes([8; 32]) },
        21 => Operation::SetConflicting { txid: id, conflicting: chance.one_in(2) },
        22 => Operation::RemoveConflictingChild { txid: id, child: txid(spender) },
        23 => Operation::RemoveBlocks { txid: id, blocks: vec![BlockId(chance.small(4))] },
        24 => Operation::Delete { txid: id },
        25 => Operation::PreserveUntil { txid: id, height },
        26 => Operation::ExpirePreservation { txid: id, height },
        27 | 28 => Operation::Prune { txid: id, height },
        _ if chance.one_in(2) => Operation::BeginIntent(intent),
        _ => Operation::CompleteIntent(intent.id()),
    }
}

/// All that can be seen of an engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    records: Vec<Option<Record>>,
    intents: Vec<Intent>,
}

pub(super) fn see(engine: &impl Engine) -> Result<Seen, EngineError> {
    let txids: Vec<Txid> = (0..TXS).map(txid).collect();
    let records = engine.read(&txids, Fields::ALL)?;
    Ok(Seen { records, intents: engine.intents(None, usize::MAX)? })
}

fn scan_all(engine: &impl Engine, scan: Scan, limit: usize) -> Vec<Txid> {
    let (mut txids, mut after) = (Vec::new(), None);
    loop {
        let page = engine.scan(scan, after, limit).unwrap();
        assert!(page.txids.len() <= limit);
        txids.extend(page.txids);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    txids.sort_unstable();
    txids
}

/// Both engines.
pub(super) struct Twin {
    pub(super) storage: Arc<FaultyStorage>,
    pub(super) options: EmbeddedOptions,
    pub(super) engine: Option<EmbeddedEngine>,
    pub(super) oracle: MemoryEngine,
    pub(super) context: Context,
}

impl Twin {
    pub(super) fn new(options: EmbeddedOptions) -> Self {
        let storage = Arc::new(FaultyStorage::new(1));
        let engine = Some(EmbeddedEngine::open(storage.clone(), options).unwrap());
        let limits =
            crate::engine::Limits { body: options.body_limit, ..crate::engine::Limits::NONE };
        let oracle = MemoryEngine::with_limits(MemoryDisk::default(), limits);
        let context = Context { height: Height::new(100), retention: 5 };
        Self { storage, options, engine, oracle, context }
    }

    pub(super) fn engine(&self) -> &EmbeddedEngine {
        self.engine.as_ref().unwrap()
    }

    /// Both do the same and say the same.
    pub(super) fn apply(&self, operations: &[Operation]) {
        let found = self.engine().apply(&self.context, operations).unwrap();
        let expected = self.oracle.apply(&self.context, operations).unwrap();
        for (operation, (found, expected)) in operations.iter().zip(found.iter().zip(&expected)) {
            assert_eq!(found, expected, "{operation:?}");
        }
    }

    pub(super) fn batch(chance: &mut Random) -> Vec<Operation> {
        (0..1 + chance.small(6)).map(|_| operation(chance)).collect()
    }

    /// The sums of the index are those of its slots and rows, none of which is there twice.
    fn check_totals(&self) {
        let index = self.engine().commit.index().unwrap();
        let slots = || index.shards().iter().flat_map(Shard::slots);
        let live = slots().filter(|slot| !slot.is_dead());
        let mut weights: HashMap<GlobalOffset, u32> =
            live.map(|slot| (slot.at(), slot.weight)).collect();
        let dead: HashSet<_> = slots().filter(|slot| slot.is_dead()).map(Slot::at).collect();
        let mut rows = index.cold().runs().rows().unwrap();
        while let Some(row) = rows.head() {
            if !dead.contains(&row.at()) {
                assert_eq!(weights.insert(row.at(), row.weight()), None, "it is in memory as well");
            }
            rows.advance().unwrap();
        }
        let live = weights.values().map(|weight| u64::from(*weight)).sum();
        assert_eq!(index.totals(), Totals { keys: weights.len() as u64, live });
    }

    pub(super) fn check(&self) {
        self.check_totals();
        assert_eq!(see(self.engine()).unwrap(), see(&self.oracle).unwrap());
        for number in 0..TXS {
            let vouts = 0..outputs(number) + 2;
            let outpoints: Vec<_> = vouts.map(|vout| Outpoint::new(txid(number), vout)).collect();
            let found = self.engine().slots(&outpoints).unwrap();
            assert_eq!(found, self.oracle.slots(&outpoints).unwrap());
        }
        let height = Height::new(108);
        for scan in [
            Scan::All,
            Scan::Unmined,
            Scan::UnminedSince(height),
            Scan::DueAt(height),
            Scan::PreservedUntil(height),
            Scan::Conflicting,
        ] {
            for limit in [1, 3, 100] {
                let found = scan_all(self.engine(), scan, limit);
                assert_eq!(found, scan_all(&self.oracle, scan, limit), "{scan:?}");
            }
        }
    }

    pub(super) fn reopen(&mut self) {
        self.engine = None;
        self.storage = Arc::new(self.storage.reopen());
        let engine = EmbeddedEngine::open(self.storage.clone(), self.options).unwrap();
        self.engine = Some(engine);
    }
}
