//! Freezing, windows and reassignment.

use varve_types::{Height, Outpoint, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, World, errors};
use crate::engine::Engine;
use crate::error::{ErrorCode, RecordError, SlotError};
use crate::freeze_window::FreezeWindow;
use crate::operation::{Operation, SlotRef, SpendRules, Unit};
use crate::record::Reassignment;
use crate::spend_response::{SpendResponse, SpendStatus};
use crate::spending_data::{PLACEHOLDER, SpendingData};
use crate::utxo_hash::UtxoHash;

fn status<E: Engine>(world: &World<E>, outpoint: Outpoint) -> SpendResponse {
    let views = world.engine.slots(&[outpoint]).expect("the storage works");
    SpendResponse::of(views[0].as_ref(), outpoint.vout, world.context.height)
}

fn refused(slot: SlotRef, error: SlotError) -> RecordError {
    RecordError::Slot { outpoint: slot.outpoint, error }
}

/// From unspent to frozen and back, and then spent.
pub fn a_frozen_output_waits_for_unfreezing<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    world.ok(Operation::Freeze(coin.slot()));
    let answer = status(&world, coin.outpoint);
    let spending = Some(SpendingData::new(PLACEHOLDER, 0));
    assert_eq!((answer.status, answer.spending), (SpendStatus::Frozen, spending));
    let record = world.record(parent.txid());
    assert!(record.is_frozen() && record.parts[0].spent == 0, "frozen is not spent");
    let tx = TxDraft::spending(std::slice::from_ref(&coin), 1).build();
    assert_eq!(errors(&world.refusal(world.spend(&tx))), [Some(SlotError::Frozen)]);
    world.ok(Operation::Unfreeze(coin.slot()));
    assert_eq!(status(&world, coin.outpoint).status, SpendStatus::Ok);
    assert!(!world.record(parent.txid()).is_frozen());
    world.ok(world.spend(&tx));
    assert_eq!(status(&world, coin.outpoint).status, SpendStatus::Spent);
}

/// What is spent or frozen cannot be frozen.
pub fn only_unspent_outputs_are_frozen<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let [spent, frozen] = [0, 1].map(|vout| Coin::of(&parent, vout));
    let tx = world.child(std::slice::from_ref(&spent), 1);
    let by = SpendingData::new(tx.txid(), 0);
    let error = world.refusal(Operation::Freeze(spent.slot()));
    assert_eq!(error, refused(spent.slot(), SlotError::Spent { by }));
    world.ok(Operation::Freeze(frozen.slot()));
    let error = world.refusal(Operation::Freeze(frozen.slot()));
    assert_eq!(error, refused(frozen.slot(), SlotError::AlreadyFrozen));
    let window = FreezeWindow::ALWAYS;
    let error = world.refusal(Operation::FreezeWindow { slot: frozen.slot(), window });
    assert_eq!(error.code(), ErrorCode::UtxoFrozen);
}

/// What is not frozen cannot be unfrozen or reassigned.
pub fn only_frozen_outputs_are_unfrozen<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let [spent, unspent] = [0, 1].map(|vout| Coin::of(&parent, vout));
    world.child(std::slice::from_ref(&spent), 1);
    let to = UtxoHash::from_bytes([9; 32]);
    for (coin, error) in [(spent, SlotError::NotFrozen), (unspent, SlotError::InvalidSize)] {
        let slot = coin.slot();
        assert_eq!(world.refusal(Operation::Unfreeze(slot)), refused(slot, error));
        assert_eq!(world.refusal(Operation::Reassign { slot, to }), refused(slot, error));
    }
}

/// Every order looks at the record, the place and the hash first.
pub fn orders_look_before_they_act<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let hash = Coin::of(&parent, 0).hash();
    let other = UtxoHash::from_bytes([9; 32]);
    let cases = [
        (Outpoint::new(Txid::ZERO, 0), hash, SlotError::TxNotFound),
        (Outpoint::new(parent.txid(), 4), hash, SlotError::UtxoNotFound),
        (Outpoint::new(parent.txid(), 0), other, SlotError::HashMismatch),
    ];
    for (outpoint, hash, error) in cases {
        let slot = SlotRef { outpoint, hash };
        let window = FreezeWindow::ALWAYS;
        let orders = [
            Operation::Freeze(slot),
            Operation::FreezeWindow { slot, window },
            Operation::Unfreeze(slot),
            Operation::Reassign { slot, to: other },
        ];
        for order in orders {
            assert_eq!(world.refusal(order), refused(slot, error));
        }
    }
}

/// The output is bound to another script and rests for a thousand blocks.
pub fn a_reassigned_output_rests<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    world.context.height = Height::new(101);
    let parent = world.root(1, 2);
    let old = Coin::of(&parent, 1);
    let new = Coin { script: vec![0x52], ..old.clone() };
    let reassign = Operation::Reassign { slot: old.slot(), to: new.hash() };
    assert_eq!(world.refusal(reassign.clone()), refused(old.slot(), SlotError::InvalidSize));
    world.ok(Operation::Freeze(old.slot()));
    world.ok(reassign);
    assert_eq!(status(&world, new.outpoint).status, SpendStatus::Immature);
    let spend = |coin: &Coin, height| {
        let tx = TxDraft::spending(std::slice::from_ref(coin), 1).build();
        Unit::spend(&tx, SpendRules::at(Height::new(height))).expect("it is extended")
    };
    let refusal = world.refusal(spend(&old, 1_102));
    assert_eq!(errors(&refusal), [Some(SlotError::HashMismatch)], "the old script is gone");
    let spendable = Height::new(1_101);
    let rests = [Some(SlotError::FrozenUntil { spendable })];
    assert_eq!(errors(&world.refusal(spend(&new, 102))), rests);
    assert_eq!(errors(&world.refusal(spend(&new, 1_100))), rests);
    let record = world.record(parent.txid());
    let height = Height::new(101);
    let history = Reassignment { vout: 1, from: old.hash(), to: new.hash(), height };
    assert_eq!(record.alerts.reassignments, [history]);
    assert_eq!(record.alerts.spendable_in.get(&1), Some(&spendable));
    world.ok(spend(&new, 1_101));
}

/// A record with a reassigned output is never all spent: its history is kept for ever.
pub fn a_reassignment_is_kept_for_ever<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    let parent = world.root(1, 1);
    let old = Coin::of(&parent, 0);
    let new = Coin { script: vec![0x52], ..old.clone() };
    world.ok(Operation::Freeze(old.slot()));
    world.ok(Operation::Reassign { slot: old.slot(), to: new.hash() });
    assert_eq!(world.record(parent.txid()).parts[0].utxos, 2);
    world.context.height = Height::new(2_000);
    world.child(&[new], 1);
    let record = world.record(parent.txid());
    assert_eq!((record.parts[0].spent, record.delete_at), (1, None));
}

/// Reassignment beyond the first part of a record concerns that output and no other.
pub fn orders_reach_every_part<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 10);
    let [old, other] = [9, 1].map(|vout| Coin::of(&parent, vout));
    let new = Coin { script: vec![0x52], ..old.clone() };
    world.ok(Operation::Freeze(old.slot()));
    world.ok(Operation::Reassign { slot: old.slot(), to: new.hash() });
    assert_eq!(status(&world, new.outpoint).status, SpendStatus::Immature);
    assert_eq!(status(&world, other.outpoint).status, SpendStatus::Ok);
    let utxos: Vec<_> = world.record(parent.txid()).parts.iter().map(|part| part.utxos).collect();
    assert_eq!(utxos, [4, 4, 3]);
    world.child(&[other], 1);
}

/// Unfreezing takes the window too; an active window allows reassignment.
pub fn a_window_is_a_freeze<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 3);
    let coins = [0, 1, 2].map(|vout| Coin::of(&parent, vout));
    let window = FreezeWindow::from_interval(50, Some(200), false);
    let later = FreezeWindow::from_interval(150, Some(200), false);
    world.ok(Operation::FreezeWindow { slot: coins[0].slot(), window });
    world.ok(Operation::FreezeWindow { slot: coins[1].slot(), window });
    world.ok(Operation::FreezeWindow { slot: coins[2].slot(), window });
    world.ok(Operation::FreezeWindow { slot: coins[2].slot(), window: later });
    assert_eq!(status(&world, coins[0].outpoint).status, SpendStatus::Frozen);
    world.ok(Operation::Unfreeze(coins[0].slot()));
    assert_eq!(status(&world, coins[0].outpoint).status, SpendStatus::Ok);
    let to = UtxoHash::from_bytes([9; 32]);
    world.ok(Operation::Reassign { slot: coins[1].slot(), to });
    let early = Operation::Reassign { slot: coins[2].slot(), to };
    assert_eq!(world.refusal(early), refused(coins[2].slot(), SlotError::InvalidSize));
    let windows: Vec<_> = world.record(parent.txid()).alerts.windows.into_iter().collect();
    assert_eq!(windows, [(2, later)], "one window an output, the last one");
}
