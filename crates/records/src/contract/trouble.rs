//! What is known to have gone wrong elsewhere, and must not go wrong here.
//!
//! The third trouble, the walk over all descendants of a conflict, belongs to the process that
//! walks. Here it has a part only: an operation touches one record and the lists of its parents.

use varve_types::{BlockHash, Height, Outpoint, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, World, mined_in};
use crate::engine::Engine;
use crate::error::{ErrorCode, SlotError};
use crate::fields::Fields;
use crate::freeze_window::{FreezeWindow, Tier};
use crate::intent::{Intent, IntentKind};
use crate::operation::{Operation, SpendRules, Unit, Unspend};
use crate::outcome::{Pruned, Reply};
use crate::spending_data::SpendingData;

/// Spends without the record of their spender: they stopped nodes for good.
pub fn trouble_01_no_spend_without_its_spender<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parents = [1, 2].map(|tag| world.root(tag, 1));
    let coins = parents.each_ref().map(|parent| Coin::of(parent, 0));
    world.ok(Operation::Freeze(coins[1].slot()));
    let tx = TxDraft::spending(&coins, 1).build();
    world.refusal(world.spend_and_create(&tx));
    assert_eq!(world.slot(coins[0].outpoint).spending, None);
    world.child(&coins[..1], 1);
    world.refusal(world.spend_and_create(&tx));
    let data = world.slot(coins[0].outpoint).spending.expect("another holds it");
    assert!(world.find(data.txid).is_some(), "and that one has a record");
}

/// A pruned parent that an unmined transaction needed: nodes could not catch up.
pub fn trouble_02_no_parent_of_an_unmined_record_is_pruned<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let child = world.child(&[Coin::of(&parent, 0)], 1);
    let needed = Pruned::NeededBy(child.txid());
    assert_eq!(world.prune(parent.txid(), 1_000), needed);
    assert!(world.find(parent.txid()).is_some());
    world.set_mined(child.txid(), 2, 101);
    assert_eq!(world.prune(parent.txid(), 1_000), Pruned::Removed);
}

/// Marking a conflict walked over all descendants at once: here it touches one record.
pub fn trouble_03_marking_a_conflict_touches_one_record<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let root = world.root(1, 1);
    let mut chain = vec![world.child(&[Coin::of(&root, 0)], 1)];
    for _ in 0..50 {
        let last = chain.last().expect("it has a first");
        chain.push(world.child(&[Coin::of(last, 0)], 1));
    }
    let txid = chain[0].txid();
    let reply = world.ok(Operation::SetConflicting { txid, conflicting: true });
    let Reply::Conflicting { spenders, .. } = reply else { panic!("it answers otherwise") };
    assert_eq!(spenders, [chain[1].txid()], "the next step is the caller's");
    assert!(!world.record(chain[1].txid()).conflicting);
}

/// Taking back without asking who had spent wiped rightful spends.
pub fn trouble_04_only_the_owner_takes_back<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let owner = world.child(std::slice::from_ref(&coin), 1);
    for by in [SpendingData::new(Txid::ZERO, 0), SpendingData::new(owner.txid(), 1)] {
        let spends = vec![Unspend { slot: coin.slot(), by }];
        world.ok(Operation::Unspend { spends, lock_parents: false });
        assert!(world.slot(coin.outpoint).spending.is_some());
    }
}

/// One block more or less at the end of a freeze: nodes disagreed.
pub fn trouble_05_a_freeze_ends_at_its_height<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let [old, windowed] = [0, 1].map(|vout| Coin::of(&parent, vout));
    let new = Coin { script: vec![0x52], ..old.clone() };
    world.ok(Operation::Freeze(old.slot()));
    world.ok(Operation::Reassign { slot: old.slot(), to: new.hash() });
    let window = FreezeWindow::from_interval(1, Some(1_100), false);
    world.ok(Operation::FreezeWindow { slot: windowed.slot(), window });
    for coin in [new, windowed] {
        let tx = TxDraft::spending(&[coin], 1).build();
        let spend = |height| {
            let rules = SpendRules { tier: Tier::Consensus, ..SpendRules::at(Height::new(height)) };
            world.attempt(Unit::spend(&tx, rules).expect("it is extended"))
        };
        assert!(spend(1_099).is_err(), "the last frozen height");
        assert!(spend(1_100).is_ok(), "the first free one");
    }
}

/// A second way to spend let a second spender write over the first.
pub fn trouble_06_no_flag_writes_over_a_spend<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let first = world.child(std::slice::from_ref(&coin), 1);
    let by = SpendingData::new(first.txid(), 0);
    let second = TxDraft::spending(std::slice::from_ref(&coin), 2).build();
    for flags in 0..8 {
        let rules = SpendRules {
            ignore_conflicting: flags & 1 > 0,
            ignore_locked: flags & 2 > 0,
            tier: if flags & 4 > 0 { Tier::Consensus } else { Tier::Policy },
            ..world.rules()
        };
        let unit = Unit::spend(&second, rules).expect("it is extended");
        assert_eq!(super::errors(&world.refusal(unit)), [Some(SlotError::Spent { by })]);
        assert_eq!(world.slot(coin.outpoint).spending, Some(by));
    }
}

/// A block of millions never got through: here a batch is one call, and its part may come again.
pub fn trouble_07_a_large_block_can_be_repeated<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let txs: Vec<_> = (0..2_000).map(|tag| TxDraft::root(tag, 1).build()).collect();
    let creates: Vec<Operation> =
        txs.iter().map(|tx| world.create(tx, &world.options()).into()).collect();
    let info = mined_in(5, 101);
    let mined: Vec<Operation> =
        txs.iter().map(|tx| Operation::SetMined { txid: tx.txid(), info }).collect();
    world.engine.apply(&world.context, &creates).expect("the storage works");
    world.engine.apply(&world.context, &mined[..500]).expect("the storage works");
    let outcomes = world.engine.apply(&world.context, &mined).expect("the storage works");
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "the whole block again");
    let txids: Vec<_> = txs.iter().map(super::Transaction::txid).collect();
    let records = world.engine.read(&txids, Fields::HEAD).expect("the storage works");
    assert!(records.iter().flatten().all(|record| record.blocks.len() == 1));
}

/// Refusals counted as failures of the storage, and everything stopped.
pub fn trouble_08_refusals_are_not_failures<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let missing = TxDraft::spending(&[Coin::of(&TxDraft::root(2, 1).build(), 0)], 1).build();
    for _ in 0..100 {
        let refusal = world.refusal(world.spend(&missing));
        assert_eq!(refusal.cause(), ErrorCode::TxNotFound);
    }
    world.child(&[Coin::of(&parent, 0)], 1);
}

/// Parts of a record were fetched one by one: here a record is one read.
pub fn trouble_09_a_record_of_many_parts_is_one_read<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 4_000);
    let coins: Vec<_> = (0..4_000).step_by(7).map(|vout| Coin::of(&parent, vout)).collect();
    let tx = world.child(&coins, 1);
    let records = world.engine.read(&[parent.txid()], Fields::UTXOS).expect("the storage works");
    let record = records[0].as_ref().expect("it is there");
    assert_eq!(record.parts.len(), 1_000);
    let spent = record.spending_datas();
    let expected = (0..4_000_u32)
        .map(|vout| (vout % 7 == 0).then_some(SpendingData::new(tx.txid(), vout / 7)));
    assert!(spent.into_iter().eq(expected));
    let outpoints: Vec<_> = (0..4_000).map(|vout| Outpoint::new(parent.txid(), vout)).collect();
    let slots = world.engine.slots(&outpoints).expect("the storage works");
    assert_eq!(slots.iter().flatten().filter(|view| view.slot.is_some()).count(), 4_000);
}

/// No test compared the stores, and their errors went apart.
pub fn trouble_10_engines_agree_with_the_oracle<D: Disk>(disk: &D) {
    super::random::walk(disk, &super::random::Walk { seed: 10, steps: 300, reopen: 0 });
}

/// A crash within the resolution of a conflict left half of it done: the note is still there.
pub fn trouble_10_a_cut_off_resolution_is_remembered<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let loser = world.root(1, 1);
    let intent = Intent {
        kind: IntentKind::ResolveConflicts,
        height: Height::new(100),
        block: BlockHash::from_bytes([7; 32]),
        txids: vec![loser.txid()],
        created_at: 1,
    };
    world.ok(Operation::BeginIntent(intent.clone()));
    world.ok(Operation::SetConflicting { txid: loser.txid(), conflicting: true });
    drop(world);
    disk.crash();
    let world = World::new(disk.open());
    assert_eq!(world.intents(), [intent]);
    assert!(world.record(loser.txid()).conflicting);
}

/// Being mined unlocked the first part of a record alone.
pub fn trouble_10_being_mined_unlocks_every_part<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = TxDraft::root(1, 10).build();
    let mut unit = world.create(&parent, &world.options());
    unit.create.as_mut().expect("it creates").locked = true;
    world.ok(unit);
    world.set_mined(parent.txid(), 1, 101);
    let coins: Vec<_> = (0..10).map(|vout| Coin::of(&parent, vout)).collect();
    world.child(&coins, 1);
}
