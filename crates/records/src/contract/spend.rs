//! Spending outputs.

use varve_types::{Height, Outpoint, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, World, errors};
use crate::engine::Engine;
use crate::error::{ErrorCode, SlotError};
use crate::freeze_window::Tier;
use crate::operation::{Operation, SpendRules, Unit};
use crate::outcome::{Outcome, Reply, Spent, SpentHow};
use crate::record::BlockId;
use crate::spending_data::SpendingData;

/// The reply says how, and which blocks have the parent.
pub fn a_spend_is_written<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let tx = TxDraft::spending(&[Coin::of(&parent, 1)], 1).build();
    let spent = Spent { how: SpentHow::Written, parent_blocks: vec![BlockId(1)] };
    assert_eq!(world.ok(world.spend(&tx)), Reply::Unit(vec![spent]));
    let record = world.record(parent.txid());
    let by = SpendingData::new(tx.txid(), 0);
    assert_eq!(record.spending_datas(), [None, Some(by)]);
    assert_eq!((record.parts[0].utxos, record.parts[0].spent), (2, 1));
    assert_eq!(world.find(tx.txid()), None, "a spend creates no record");
}

/// The refusal names the spender that holds the output.
pub fn a_second_spender_is_refused<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let first = world.child(&[Coin::of(&parent, 0)], 1);
    let second = TxDraft::spending(&[Coin::of(&parent, 0)], 2).build();
    let error = world.refusal(world.spend_and_create(&second));
    assert_eq!((error.code(), error.cause()), (ErrorCode::UtxoError, ErrorCode::UtxoSpent));
    assert_eq!(error.items()[0].conflicting_txid(), Some(first.txid()));
    assert_eq!(error.items()[0].outpoint, Outpoint::new(parent.txid(), 0));
    assert_eq!(world.find(second.txid()), None);
}

/// The same input may come again; another input of the same transaction may not.
pub fn the_same_spend_again_is_accepted<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let tx = world.child(&[Coin::of(&parent, 0)], 1);
    let reply = world.ok(world.spend(&tx));
    let again = Spent { how: SpentHow::Again, parent_blocks: vec![BlockId(1)] };
    assert_eq!(reply, Reply::Unit(vec![again]));
    assert_eq!(world.record(parent.txid()).parts[0].spent, 1, "counted once");
    let mut other = world.spend(&tx);
    other.spend.as_mut().expect("it spends").spends[0].vin = 1;
    let by = SpendingData::new(tx.txid(), 0);
    assert_eq!(errors(&world.refusal(other)), [Some(SlotError::Spent { by })]);
}

/// Even the same spend does not pass a lock: the lock is looked at first.
pub fn the_same_spend_again_meets_the_lock_first<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let tx = world.child(&[Coin::of(&parent, 0)], 1);
    world.ok(Operation::SetLocked { txid: parent.txid(), locked: true });
    assert_eq!(errors(&world.refusal(world.spend(&tx))), [Some(SlotError::Locked)]);
}

/// One input that fails keeps all others from being spent.
pub fn a_partial_failure_changes_nothing<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parents = [1, 2, 3].map(|tag| world.root(tag, 1));
    let coins = parents.each_ref().map(|parent| Coin::of(parent, 0));
    let first = world.child(&coins[1..2], 1);
    let before = parents.each_ref().map(|parent| world.record(parent.txid()));
    let tx = TxDraft::spending(&coins, 1).build();
    let error = world.refusal(world.spend_and_create(&tx));
    let by = SpendingData::new(first.txid(), 0);
    assert_eq!(errors(&error), [None, Some(SlotError::Spent { by }), None]);
    assert_eq!(parents.each_ref().map(|parent| world.record(parent.txid())), before);
    assert_eq!(world.find(tx.txid()), None);
}

/// Every item of a failure has its own reason.
pub fn each_failure_has_its_own_reason<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let [locked, conflicting, frozen] = [1, 2, 3].map(|tag| world.root(tag, 1));
    world.ok(Operation::SetLocked { txid: locked.txid(), locked: true });
    world.ok(Operation::SetConflicting { txid: conflicting.txid(), conflicting: true });
    world.ok(Operation::Freeze(Coin::of(&frozen, 0).slot()));
    let missing = TxDraft::root(9, 1).build();
    let coins = [&locked, &conflicting, &frozen, &missing].map(|tx| Coin::of(tx, 0));
    let tx = TxDraft::spending(&coins, 1).build();
    let error = world.refusal(world.spend(&tx));
    let expected =
        [SlotError::Locked, SlotError::Conflicting, SlotError::Frozen, SlotError::TxNotFound];
    assert_eq!(errors(&error), expected.map(Some));
    assert_eq!(error.items()[3].code(), Some(ErrorCode::TxNotFound));
}

/// Locks and conflicts can be ignored, each by itself.
pub fn locks_and_conflicts_can_be_ignored<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let txid = parent.txid();
    world.ok(Operation::SetConflicting { txid, conflicting: true });
    world.ok(Operation::SetLocked { txid, locked: true });
    let tx = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let with = |ignore_conflicting, ignore_locked| {
        let rules = SpendRules { ignore_conflicting, ignore_locked, ..world.rules() };
        Unit::spend(&tx, rules).expect("it is extended")
    };
    assert_eq!(errors(&world.refusal(with(false, true))), [Some(SlotError::Conflicting)]);
    assert_eq!(errors(&world.refusal(with(true, false))), [Some(SlotError::Locked)]);
    world.ok(with(true, true));
}

/// An output that does not exist, or has no slot, is reported as a transaction not found.
pub fn an_output_without_a_slot_is_not_found<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = TxDraft::root(1, 1).with_data().build();
    world.ok(world.create(&parent, &world.mined()));
    let data = Coin::of(&parent, 1);
    let beyond = Coin { outpoint: Outpoint::new(parent.txid(), 7), ..data.clone() };
    for coin in [data, beyond] {
        let tx = TxDraft::spending(&[coin], 1).build();
        let error = world.refusal(world.spend(&tx));
        assert_eq!(errors(&error), [Some(SlotError::UtxoNotFound)]);
        assert_eq!(error.items()[0].code(), Some(ErrorCode::TxNotFound));
    }
}

/// A spender that believes the output to be another is refused.
pub fn another_hash_is_refused<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let wrong = Coin { value: 1_000_001, ..Coin::of(&parent, 0) };
    let tx = TxDraft::spending(&[wrong], 1).build();
    assert_eq!(world.refusal(world.spend(&tx)).cause(), ErrorCode::UtxoMismatch);
}

/// Outputs of no value that are no data can be spent.
pub fn outputs_of_no_value_can_be_spent<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let mut draft = TxDraft::root(1, 1);
    draft.outputs.push((0, vec![0x51]));
    draft.outputs.push((0, Vec::new()));
    let parent = draft.build();
    world.ok(world.create(&parent, &world.mined()));
    world.child(&[1, 2].map(|vout| Coin::of(&parent, vout)), 1);
    assert_eq!(world.record(parent.txid()).parts[0].spent, 2);
}

/// The parent was pruned after the spender had been recorded: the spender may come again.
pub fn a_pruned_parent_is_no_fault_of_a_known_spender<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let tx = world.child(&[Coin::of(&parent, 0)], 1);
    world.ok(Operation::Delete { txid: parent.txid() });
    let gone = Spent { how: SpentHow::ParentGone, parent_blocks: Vec::new() };
    assert_eq!(world.ok(world.spend(&tx)), Reply::Unit(vec![gone]));
    let other = TxDraft::spending(&[Coin::of(&parent, 0)], 3).build();
    assert_eq!(errors(&world.refusal(world.spend(&other))), [Some(SlotError::TxNotFound)]);
}

/// Two inputs of one transaction cannot share an output: the second meets the first.
pub fn one_output_is_not_spent_twice_within_a_unit<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let tx = TxDraft::spending(&[coin.clone(), coin.clone()], 1).build();
    let by = SpendingData::new(tx.txid(), 0);
    let error = world.refusal(world.spend_and_create(&tx));
    assert_eq!(errors(&error), [None, Some(SlotError::Spent { by })]);
    assert_eq!(world.slot(coin.outpoint).spending, None);
}

/// When the spender has a record, its spends stand though it cannot be created again.
pub fn spends_of_an_existing_spender_stand<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let tx = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    world.ok(world.create(&tx, &world.options()));
    let error = world.refusal(world.spend_and_create(&tx));
    assert_eq!(error.code(), ErrorCode::TxExists);
    let by = SpendingData::new(tx.txid(), 0);
    assert_eq!(world.slot(Outpoint::new(parent.txid(), 0)).spending, Some(by));
}

/// The operations of a batch see those before them, and a refused one disturbs nobody.
pub fn a_batch_is_done_in_order<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = TxDraft::root(1, 1).build();
    let child = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let rival = TxDraft::spending(&[Coin::of(&parent, 0)], 2).build();
    let grandchild = TxDraft::spending(&[Coin::of(&child, 0)], 1).build();
    let batch: Vec<Operation> = vec![
        world.spend_and_create(&child).into(),
        world.create(&parent, &world.mined()).into(),
        world.spend_and_create(&child).into(),
        world.spend_and_create(&rival).into(),
        world.spend_and_create(&grandchild).into(),
    ];
    let outcomes = world.engine.apply(&world.context, &batch).expect("the storage works");
    let code = |outcome: &Outcome| Some(outcome.result.as_ref().err()?.refusal()?.cause());
    let codes: Vec<_> = outcomes.iter().map(code).collect();
    let (missing, spent) = (Some(ErrorCode::TxNotFound), Some(ErrorCode::UtxoSpent));
    assert_eq!(codes, [missing, None, None, spent, None]);
    assert_eq!(world.engine.apply(&world.context, &[]).expect("nothing to do"), []);
}

/// A thousand transactions, each with its spender.
pub fn a_thousand_spenders_are_remembered<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parents: Vec<_> = (0..1_000).map(|tag| TxDraft::root(tag, 1).build()).collect();
    let spenders: Vec<_> =
        parents.iter().map(|tx| TxDraft::spending(&[Coin::of(tx, 0)], 1).build()).collect();
    let creates = parents.iter().map(|tx| world.create(tx, &world.mined()).into());
    let spends = spenders.iter().map(|tx| world.spend(tx).into());
    let batch: Vec<Operation> = creates.chain(spends).collect();
    let outcomes = world.engine.apply(&world.context, &batch).expect("the storage works");
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    let outpoints: Vec<_> = parents.iter().map(|tx| Outpoint::new(tx.txid(), 0)).collect();
    let slots = world.engine.slots(&outpoints).expect("the storage works");
    let found: Vec<Option<Txid>> =
        slots.iter().map(|view| Some(view.as_ref()?.slot?.spender()?.txid)).collect();
    let expected: Vec<_> = spenders.iter().map(|tx| Some(tx.txid())).collect();
    assert_eq!(found, expected);
}

/// A window is judged for blocks by its heights, and more strictly for what is in no block.
pub fn a_window_counts_by_tier<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let slot = Coin::of(&parent, 0).slot();
    let window = crate::freeze_window::FreezeWindow::from_interval(200, Some(300), true);
    world.ok(Operation::FreezeWindow { slot, window });
    let tx = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let spend = |height, tier| {
        let rules = SpendRules { tier, ..SpendRules::at(Height::new(height)) };
        world.attempt(Unit::spend(&tx, rules).expect("it is extended"))
    };
    let frozen = |height, tier| spend(height, tier).is_err();
    assert!(frozen(150, Tier::Policy), "before the window");
    assert!(frozen(200, Tier::Consensus) && frozen(299, Tier::Consensus));
    assert!(frozen(299, Tier::Policy));
    assert!(!frozen(300, Tier::Policy), "the end is free, and the policy ends with it");
    assert!(!frozen(250, Tier::Consensus), "the same spend again is older than the window");
}
