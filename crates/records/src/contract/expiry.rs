//! The schedule of removal, preservation and pruning.

use varve_types::{Height, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, RETENTION, World, mined_in};
use crate::engine::{Context, Engine, Scan};
use crate::error::{ErrorCode, SlotError};
use crate::extended::Transaction;
use crate::operation::{MinedBlockInfo, Operation, SpendRules, Unit};
use crate::outcome::{Effect, Pruned, Reply, SpentHow};
use crate::prepare::CreateOptions;
use crate::record::Body;

fn delete_at<E: Engine>(world: &World<E>, txid: Txid) -> Option<u32> {
    world.record(txid).delete_at.map(Height::to_u32)
}

/// All spent and mined: scheduled at the height of the spend.
pub fn what_is_all_spent_and_mined_is_scheduled<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    world.child(&[Coin::of(&parent, 0)], 1);
    assert_eq!(delete_at(&world, parent.txid()), None, "one output is left");
    world.child(&[Coin::of(&parent, 1)], 1);
    assert_eq!(delete_at(&world, parent.txid()), Some(101 + RETENTION));
    assert!(world.scan(Scan::DueAt(Height::new(110))).is_empty());
    assert_eq!(world.scan(Scan::DueAt(Height::new(111))), [parent.txid()]);
}

/// Spent, but in no block: not scheduled until it is mined.
pub fn what_is_in_no_block_is_not_scheduled<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = TxDraft::root(1, 1).build();
    world.ok(world.create(&parent, &world.options()));
    world.child(&[Coin::of(&parent, 0)], 1);
    assert_eq!(delete_at(&world, parent.txid()), None);
    world.set_mined(parent.txid(), 2, 101);
    assert_eq!(delete_at(&world, parent.txid()), Some(101 + RETENTION));
}

/// Spent, but only on a fork: not scheduled.
pub fn what_is_on_a_fork_is_not_scheduled<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = TxDraft::root(1, 1).build();
    world.ok(world.create(&parent, &world.options()));
    let info = MinedBlockInfo { on_longest_chain: false, ..mined_in(5, 101) };
    world.ok(Operation::SetMined { txid: parent.txid(), info });
    world.child(&[Coin::of(&parent, 0)], 1);
    assert_eq!(delete_at(&world, parent.txid()), None);
}

/// Leaving the longest chain by its last block ends the schedule.
pub fn a_reorganisation_ends_the_schedule<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    world.child(&[Coin::of(&parent, 0)], 1);
    assert!(delete_at(&world, parent.txid()).is_some());
    let info = MinedBlockInfo { unset: true, ..mined_in(1, 90) };
    world.ok(Operation::SetMined { txid: parent.txid(), info });
    assert_eq!(delete_at(&world, parent.txid()), None);
}

/// The height only ever rises.
pub fn the_height_of_removal_only_rises<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    let parent = world.root(1, 1);
    let tx = world.child(&[Coin::of(&parent, 0)], 1);
    world.context.height = Height::new(120);
    world.set_mined(parent.txid(), 2, 120);
    assert_eq!(delete_at(&world, parent.txid()), Some(121 + RETENTION));
    let rules = SpendRules::at(Height::new(50));
    world.ok(Unit::spend(&tx, rules).expect("it is extended"));
    assert_eq!(delete_at(&world, parent.txid()), Some(121 + RETENTION));
}

/// A record without any slot is all spent from birth, and scheduled when it is mined.
pub fn data_alone_is_scheduled_when_mined<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = TxDraft::root(1, 0).with_data().build();
    world.ok(world.create(&tx, &world.options()));
    assert_eq!(delete_at(&world, tx.txid()), None);
    world.set_mined(tx.txid(), 2, 101);
    assert_eq!(delete_at(&world, tx.txid()), Some(101 + RETENTION));
}

/// Without retention nothing is ever scheduled.
pub fn without_retention_nothing_is_scheduled<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    world.context = Context { retention: 0, ..world.context };
    let parent = world.root(1, 1);
    let child = world.child(&[Coin::of(&parent, 0)], 1);
    world.ok(Operation::SetConflicting { txid: child.txid(), conflicting: true });
    let tx = TxDraft::root(2, 1).build();
    world.ok(world.create(&tx, &CreateOptions { conflicting: true, ..world.options() }));
    for txid in [parent.txid(), child.txid(), tx.txid()] {
        assert_eq!(delete_at(&world, txid), None);
    }
}

/// What is preserved is not scheduled, whatever happens to it.
pub fn preservation_goes_before_the_schedule<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let txid = parent.txid();
    let height = Height::new(500);
    let tx = world.child(&[Coin::of(&parent, 0)], 1);
    world.ok(Operation::PreserveUntil { txid, height });
    let record = world.record(txid);
    assert_eq!((record.delete_at, record.preserve_until), (None, Some(height)));
    world.ok(world.spend(&tx));
    world.set_mined(txid, 2, 101);
    assert_eq!(delete_at(&world, txid), None);
    assert_eq!(world.scan(Scan::PreservedUntil(height)), [txid]);
    assert!(world.scan(Scan::PreservedUntil(Height::new(499))).is_empty());
    let missing = Operation::PreserveUntil { txid: Txid::ZERO, height };
    assert_eq!(world.refusal(missing).code(), ErrorCode::TxNotFound);
    let never = Operation::PreserveUntil { txid, height: Height::GENESIS };
    assert_eq!(world.refusal(never).code(), ErrorCode::Processing);
}

/// A preservation that is over gives way to the schedule.
pub fn a_preservation_ends<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let txid = world.root(1, 1).txid();
    world.ok(Operation::PreserveUntil { txid, height: Height::new(500) });
    let expire = |height| Operation::ExpirePreservation { txid, height: Height::new(height) };
    world.ok(expire(499));
    assert_eq!(world.record(txid).preserve_until, Some(Height::new(500)));
    world.ok(expire(505));
    let record = world.record(txid);
    assert_eq!((record.preserve_until, delete_at(&world, txid)), (None, Some(505 + RETENTION)));
    world.ok(expire(600));
    assert_eq!(delete_at(&world, txid), Some(505 + RETENTION), "it was not preserved any more");
    world.ok(Operation::ExpirePreservation { txid: Txid::ZERO, height: Height::new(1) });
}

/// The blob of an external record hears of every change.
pub fn the_blob_of_a_record_hears_of_it<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = TxDraft::root(1, 1).build();
    let txid = parent.txid();
    let mut unit = world.create(&parent, &world.mined());
    unit.create.as_mut().expect("it creates").body = Body::External;
    assert_eq!(world.outcome(unit).effects, []);
    let tx = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let spend = world.outcome(world.spend(&tx));
    let height = Height::new(101 + RETENTION);
    assert_eq!(spend.effects, [Effect::DeleteAt { txid, height }]);
    let again = world.outcome(world.spend(&tx));
    assert_eq!(again.effects, [], "nothing changed");
    let lock = world.outcome(Operation::SetLocked { txid, locked: true });
    assert_eq!(lock.effects, [Effect::KeepOn { txid }]);
    let height = Height::new(500);
    let preserve = world.outcome(Operation::PreserveUntil { txid, height });
    assert_eq!(preserve.effects, [Effect::PreserveUntil { txid, height }]);
    let expire = world.outcome(Operation::ExpirePreservation { txid, height });
    let height = Height::new(500 + RETENTION);
    assert_eq!(expire.effects, [Effect::DeleteAt { txid, height }]);
    let delete = world.outcome(Operation::Delete { txid });
    assert_eq!(delete.effects, [Effect::Deleted { txid }]);
}

/// A record with its body has no blob that could hear of anything.
pub fn without_a_blob_nothing_is_told<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let (txid, height) = (parent.txid(), Height::new(500));
    let tx = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let loser = TxDraft::spending(&[Coin::of(&parent, 0)], 2).build();
    let conflicting = CreateOptions { conflicting: true, ..world.options() };
    let operations: [Operation; 7] = [
        world.spend(&tx).into(),
        world.create(&loser, &conflicting).into(),
        Operation::SetLocked { txid, locked: true },
        Operation::PreserveUntil { txid, height },
        Operation::ExpirePreservation { txid, height },
        Operation::Delete { txid: loser.txid() },
        Operation::Delete { txid },
    ];
    for operation in operations {
        let outcome = world.outcome(operation.clone());
        assert!(outcome.result.is_ok());
        assert_eq!(outcome.effects, [], "{operation:?}");
    }
}

/// A record of data alone that spends this coin: pruned as soon as it is due.
fn prunable<E: Engine>(world: &World<E>, coin: Coin) -> Transaction {
    let tx = TxDraft::spending(&[coin], 0).with_data().build();
    world.ok(world.spend_and_create(&tx));
    world.set_mined(tx.txid(), 3, 101);
    tx
}

/// A due record goes, and its parents know that it was there.
pub fn a_due_record_is_pruned<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let child = prunable(&world, Coin::of(&parent, 0));
    assert_eq!(world.prune(child.txid(), 110), Pruned::NotDue);
    assert_eq!(world.prune(child.txid(), 111), Pruned::Removed);
    assert_eq!(world.prune(child.txid(), 111), Pruned::Missing);
    assert_eq!(world.find(child.txid()), None);
    let deleted: Vec<_> = world.record(parent.txid()).children.deleted.into_iter().collect();
    assert_eq!(deleted, [child.txid()]);
}

/// The spend of a pruned child stands, and cannot be replayed.
pub fn a_pruned_child_cannot_come_again<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let child = prunable(&world, Coin::of(&parent, 0));
    world.prune(child.txid(), 111);
    let refusal = world.refusal(world.spend_and_create(&child));
    assert_eq!(super::errors(&refusal), [Some(SlotError::InvalidSpend)]);
    assert_eq!(refusal.cause(), ErrorCode::UtxoError);
    let rival = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    assert_eq!(world.refusal(world.spend(&rival)).cause(), ErrorCode::UtxoSpent);
}

/// A loser that was pruned and comes back with a record of its own spends like any other.
pub fn a_pruned_loser_that_comes_back_is_no_replay<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let loser = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let conflicting = CreateOptions { conflicting: true, ..world.options() };
    world.ok(world.create(&loser, &conflicting));
    assert_eq!(world.prune(loser.txid(), 110), Pruned::Removed);
    world.ok(world.create(&loser, &conflicting));
    for how in [SpentHow::Written, SpentHow::Again] {
        let Reply::Unit(spent) = world.ok(world.spend(&loser)) else {
            panic!("a unit answers otherwise");
        };
        assert_eq!(spent[0].how, how, "it has a record, so it is not the replay of one without");
    }
}

/// A record with an output that can be spent is not pruned, though its preservation is over.
pub fn unspent_outputs_are_never_pruned<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let txid = world.root(1, 2).txid();
    world.ok(Operation::PreserveUntil { txid, height: Height::new(100) });
    world.ok(Operation::ExpirePreservation { txid, height: Height::new(100) });
    assert_eq!(world.prune(txid, 110), Pruned::Unspent);
    assert_eq!(delete_at(&world, txid), None, "it is no longer scheduled");
}

/// A record that left the longest chain is not pruned, though its schedule stands.
pub fn unmined_records_are_never_pruned<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    world.child(&[Coin::of(&parent, 0)], 1);
    let txid = parent.txid();
    world.ok(Operation::MarkOnLongestChain { txid, on_longest_chain: false });
    assert_eq!(delete_at(&world, txid), Some(111));
    assert_eq!(world.prune(txid, 111), Pruned::Unmined);
}

/// Losers go when they are due, leaf first, and the list of their parent forgets them.
pub fn losers_are_pruned_leaf_first<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 2);
    let loser = world.child(&[Coin::of(&parent, 0)], 1);
    let leaf = world.child(&[Coin::of(&loser, 0)], 1);
    for txid in [loser.txid(), leaf.txid()] {
        world.ok(Operation::SetConflicting { txid, conflicting: true });
    }
    assert_eq!(world.prune(loser.txid(), 110), Pruned::NeededBy(leaf.txid()));
    assert_eq!(world.prune(leaf.txid(), 110), Pruned::Removed);
    assert_eq!(world.prune(loser.txid(), 110), Pruned::Removed);
    assert!(world.record(parent.txid()).children.conflicting.is_empty());
}

/// A parent whose conflicting child is unmined stays, though the child holds no slot of it.
pub fn a_conflicting_child_keeps_its_parent<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let winner = prunable(&world, Coin::of(&parent, 0));
    let loser = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    world.ok(world.create(&loser, &CreateOptions { conflicting: true, ..world.options() }));
    assert_eq!(world.prune(winner.txid(), 111), Pruned::Removed);
    assert_eq!(world.prune(parent.txid(), 111), Pruned::NeededBy(loser.txid()));
    assert_eq!(world.prune(loser.txid(), 111), Pruned::Removed);
    assert_eq!(world.prune(parent.txid(), 111), Pruned::Removed);
}

/// Old unmined records are found by the height since which they wait.
pub fn old_unmined_records_are_found<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    let mut txids = Vec::new();
    for (tag, height) in [(1, 50), (2, 60), (3, 70)] {
        world.context.height = Height::new(height);
        let tx = TxDraft::root(tag, 1).build();
        world.ok(world.create(&tx, &world.options()));
        txids.push(tx.txid());
    }
    world.set_mined(txids[0], 1, 71);
    let mut expected = vec![txids[1]];
    assert_eq!(world.scan(Scan::UnminedSince(Height::new(60))), expected);
    expected.push(txids[2]);
    expected.sort();
    assert_eq!(world.scan(Scan::Unmined), expected);
    assert!(world.scan(Scan::UnminedSince(Height::new(59))).is_empty());
    assert_eq!(world.ok(Operation::Delete { txid: txids[1] }), Reply::Done);
    assert_eq!(world.scan(Scan::Unmined), [txids[2]]);
}
