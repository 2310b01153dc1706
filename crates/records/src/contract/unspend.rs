//! Taking spends back.

use varve_types::{Height, Outpoint, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, World};
use crate::error::{ErrorCode, RecordError, SlotError};
use crate::extended::Transaction;
use crate::operation::{Operation, SlotRef, Unspend};
use crate::outcome::Reply;
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

/// Takes back input `vin` of `tx`.
fn unspend(coin: &Coin, tx: &Transaction, vin: u32) -> Unspend {
    Unspend { slot: coin.slot(), by: SpendingData::new(tx.txid(), vin) }
}

fn operation(spends: &[Unspend]) -> Operation {
    Operation::Unspend { spends: spends.to_vec(), lock_parents: false }
}

/// The output is as before, and can be spent by another.
pub fn a_spend_is_taken_back<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let coins = [0, 1].map(|vout| Coin::of(&parent, vout));
    let before = world.record(parent.txid());
    let tx = world.child(&coins, 1);
    let spends = [unspend(&coins[0], &tx, 0), unspend(&coins[1], &tx, 1)];
    assert_eq!(world.ok(operation(&spends)), Reply::Unspent(vec![true, true]));
    assert_eq!(world.record(parent.txid()), before);
    world.ok(world.spend(&TxDraft::spending(&coins, 2).build()));
}

/// Nobody takes back what another spent. It is no error: there is nothing to take back.
pub fn only_the_owner_takes_back<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let owner = world.child(std::slice::from_ref(&coin), 1);
    let stranger = TxDraft::spending(std::slice::from_ref(&coin), 2).build();
    let spends = [unspend(&coin, &stranger, 0), unspend(&coin, &owner, 1)];
    assert_eq!(world.ok(operation(&spends)), Reply::Unspent(vec![false, false]));
    let by = Some(SpendingData::new(owner.txid(), 0));
    assert_eq!(world.slot(coin.outpoint).spending, by);
}

/// Asked twice, it is done once.
pub fn taking_back_again_does_nothing<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let tx = world.child(std::slice::from_ref(&coin), 1);
    let spend = unspend(&coin, &tx, 0);
    assert_eq!(world.ok(operation(&[spend, spend])), Reply::Unspent(vec![true, false]));
    assert_eq!(world.ok(operation(&[spend])), Reply::Unspent(vec![false]));
    assert_eq!(world.record(parent.txid()).parts[0].spent, 0);
}

/// One output that cannot be looked at keeps all others as they are.
pub fn a_failure_takes_back_nothing<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 3);
    let coins = [0, 1].map(|vout| Coin::of(&parent, vout));
    let tx = world.child(&coins[..1], 1);
    world.ok(Operation::Freeze(coins[1].slot()));
    let good = unspend(&coins[0], &tx, 0);
    let at = |txid, vout, hash| Unspend {
        slot: SlotRef { outpoint: Outpoint::new(txid, vout), hash },
        ..good
    };
    let hash = coins[0].hash();
    let cases = [
        (at(Txid::ZERO, 0, hash), SlotError::TxNotFound),
        (at(parent.txid(), 9, hash), SlotError::UtxoNotFound),
        (at(parent.txid(), 0, UtxoHash::from_bytes([0; 32])), SlotError::HashMismatch),
        (unspend(&coins[1], &tx, 0), SlotError::Frozen),
    ];
    for (bad, error) in cases {
        let outpoint = bad.slot.outpoint;
        let refusal = world.refusal(operation(&[good, bad]));
        assert_eq!(refusal, RecordError::Slot { outpoint, error });
    }
    assert!(world.slot(coins[0].outpoint).spending.is_some());
}

/// Parents are locked in the same step, those too from which nothing was taken back; and a locked
/// record is not scheduled.
pub fn parents_are_locked_in_the_same_step<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parents = [1, 2].map(|tag| world.root(tag, 1));
    let coins = parents.each_ref().map(|parent| Coin::of(parent, 0));
    let tx = world.child(&coins[..1], 1);
    world.child(&coins[1..], 1);
    assert!(parents.iter().all(|parent| world.record(parent.txid()).delete_at.is_some()));
    let spends = coins.iter().map(|coin| unspend(coin, &tx, 0)).collect();
    let reply = world.ok(Operation::Unspend { spends, lock_parents: true });
    assert_eq!(reply, Reply::Unspent(vec![true, false]));
    for parent in &parents {
        let record = world.record(parent.txid());
        assert!(record.locked && record.delete_at.is_none());
    }
    let refusal = world.refusal(world.spend(&tx));
    assert_eq!(refusal.cause(), ErrorCode::TxLocked);
}

/// A plain taking back leaves locks alone.
pub fn taking_back_does_not_unlock<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let tx = world.child(std::slice::from_ref(&coin), 1);
    world.ok(Operation::SetLocked { txid: parent.txid(), locked: true });
    world.ok(operation(&[unspend(&coin, &tx, 0)]));
    assert!(world.record(parent.txid()).locked);
}

/// What was all spent and is no longer is taken from the schedule.
pub fn taking_back_ends_the_schedule<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let coin = Coin::of(&parent, 0);
    let tx = world.child(std::slice::from_ref(&coin), 1);
    assert_eq!(world.record(parent.txid()).delete_at, Some(Height::new(111)));
    world.ok(operation(&[unspend(&coin, &tx, 0)]));
    assert_eq!(world.record(parent.txid()).delete_at, None);
}
