//! Blocks, the longest chain, locks.

use varve_types::{Height, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, World, block, mined_in};
use crate::engine::{Engine, Scan};
use crate::error::{ErrorCode, RecordError};
use crate::operation::{MinedBlockInfo, Operation};
use crate::outcome::Reply;
use crate::prepare::CreateOptions;
use crate::record::BlockId;

const MISSING: Txid = Txid::from_bytes([0xdd; 32]);

fn unset<E: Engine>(world: &World<E>, txid: Txid, id: u32) -> Reply {
    let info = MinedBlockInfo { unset: true, ..mined_in(id, 0) };
    world.ok(Operation::SetMined { txid, info })
}

/// Blocks are added once each, and removed with their height and subtree.
pub fn blocks_come_and_go<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = TxDraft::root(1, 1).build();
    world.ok(world.create(&tx, &world.options()));
    let txid = tx.txid();
    assert_eq!(world.set_mined(txid, 123, 101), Reply::Blocks(vec![BlockId(123)]));
    assert_eq!(world.set_mined(txid, 123, 101), Reply::Blocks(vec![BlockId(123)]));
    assert_eq!(world.set_mined(txid, 124, 102), Reply::Blocks(vec![BlockId(123), BlockId(124)]));
    assert_eq!(unset(&world, txid, 123), Reply::Blocks(vec![BlockId(124)]));
    let record = world.record(txid);
    assert_eq!((record.blocks, record.unmined_since), (vec![block(124, 102)], None));
    world.set_mined(txid, 125, 103);
    world.set_mined(txid, 126, 104);
    unset(&world, txid, 124);
    let left = [block(125, 103), block(126, 104)];
    assert_eq!(world.record(txid).blocks, left, "in the order in which they came");
}

/// Without its last block a transaction is unmined again.
pub fn the_last_block_gone_makes_it_unmined<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = world.root(1, 1);
    world.set_mined(tx.txid(), 2, 91);
    unset(&world, tx.txid(), 1);
    assert_eq!(world.record(tx.txid()).unmined_since, None, "another block remains");
    assert_eq!(unset(&world, tx.txid(), 2), Reply::Blocks(Vec::new()));
    assert_eq!(world.record(tx.txid()).unmined_since, Some(Height::new(101)));
}

/// A block of a fork does not make a transaction mined.
pub fn a_fork_block_leaves_it_unmined<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = TxDraft::root(1, 1).build();
    world.ok(world.create(&tx, &world.options()));
    let info = MinedBlockInfo { on_longest_chain: false, ..mined_in(5, 101) };
    world.ok(Operation::SetMined { txid: tx.txid(), info });
    let record = world.record(tx.txid());
    assert_eq!((record.blocks.len(), record.unmined_since), (1, Some(Height::new(100))));
}

/// Setting what has no record is refused; unsetting it is done.
pub fn a_missing_record_cannot_be_mined<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let error = world.refusal(Operation::SetMined { txid: MISSING, info: mined_in(1, 1) });
    assert_eq!(error, RecordError::TxNotFound { txid: MISSING });
    assert_eq!(unset(&world, MISSING, 1), Reply::Blocks(Vec::new()));
}

/// Being mined unlocks: the fallback of the second phase.
pub fn being_mined_unlocks<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = TxDraft::root(1, 1).build();
    world.ok(world.create(&tx, &CreateOptions { locked: true, ..world.options() }));
    let spender = TxDraft::spending(&[Coin::of(&tx, 0)], 1).build();
    assert_eq!(world.refusal(world.spend(&spender)).cause(), ErrorCode::TxLocked);
    world.set_mined(tx.txid(), 1, 101);
    assert!(!world.record(tx.txid()).locked);
    world.ok(world.spend(&spender));
}

/// Many in one batch: each gets its own answer.
pub fn one_missing_record_does_not_stop_a_block<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let [a, b] = [1, 2].map(|tag| world.root(tag, 1).txid());
    let info = mined_in(7, 101);
    let batch = [a, MISSING, b].map(|txid| Operation::SetMined { txid, info });
    let outcomes = world.engine.apply(&world.context, &batch).expect("the storage works");
    let worked: Vec<_> = outcomes.iter().map(|outcome| outcome.result.is_ok()).collect();
    assert_eq!(worked, [true, false, true]);
    assert_eq!(world.record(b).block_ids(), [BlockId(1), BlockId(7)]);
}

/// Created locked, unlocked, spent: the two phases.
pub fn two_phases_of_a_commit<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let tx = TxDraft::spending(&[Coin::of(&parent, 0)], 1).build();
    let mut unit = world.spend_and_create(&tx);
    unit.create.as_mut().expect("it creates").locked = true;
    world.ok(unit);
    let next = TxDraft::spending(&[Coin::of(&tx, 0)], 1).build();
    assert_eq!(world.refusal(world.spend(&next)).cause(), ErrorCode::TxLocked);
    world.ok(Operation::SetLocked { txid: tx.txid(), locked: false });
    world.ok(world.spend(&next));
    let error = world.refusal(Operation::SetLocked { txid: MISSING, locked: false });
    assert_eq!(error.code(), ErrorCode::TxNotFound);
}

/// A locked record is taken from the schedule.
pub fn locking_ends_the_schedule<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    world.child(&[Coin::of(&parent, 0)], 1);
    assert!(world.record(parent.txid()).delete_at.is_some());
    world.ok(Operation::SetLocked { txid: parent.txid(), locked: true });
    assert_eq!(world.record(parent.txid()).delete_at, None);
}

/// A reorganisation moves transactions off the longest chain and onto it.
pub fn the_longest_chain_changes<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let txid = world.root(1, 1).txid();
    let mark = |on_longest_chain| Operation::MarkOnLongestChain { txid, on_longest_chain };
    world.ok(mark(false));
    assert_eq!(world.record(txid).unmined_since, Some(Height::new(100)));
    assert_eq!(world.scan(Scan::Unmined), [txid]);
    world.ok(mark(true));
    assert_eq!(world.record(txid).unmined_since, None);
    assert!(world.scan(Scan::Unmined).is_empty());
    let missing = Operation::MarkOnLongestChain { txid: MISSING, on_longest_chain: true };
    assert_eq!(world.refusal(missing).code(), ErrorCode::TxNotFound);
}

/// Height 0 stands for "not set" elsewhere, so 1 is written in its place.
pub fn height_zero_is_written_as_one<D: Disk>(disk: &D) {
    let mut world = World::new(disk.open());
    world.context.height = Height::GENESIS;
    let [created, marked] = [1, 2].map(|tag| TxDraft::root(tag, 1).build());
    world.ok(world.create(&created, &world.options()));
    world.ok(world.create(&marked, &world.mined()));
    let txid = marked.txid();
    world.ok(Operation::MarkOnLongestChain { txid, on_longest_chain: false });
    let mut expected = [created.txid(), txid];
    expected.sort();
    assert_eq!(world.scan(Scan::UnminedSince(Height::new(1))), expected);
    for txid in expected {
        assert_eq!(world.record(txid).unmined_since, Some(Height::new(1)));
    }
}

/// Blocks are taken away in bulk, as if each were unset.
pub fn blocks_are_removed_in_bulk<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 1);
    let txid = parent.txid();
    world.set_mined(txid, 2, 91);
    world.child(&[Coin::of(&parent, 0)], 1);
    let remove = |ids: &[u32]| Operation::RemoveBlocks {
        txid,
        blocks: ids.iter().map(|id| BlockId(*id)).collect(),
    };
    world.ok(remove(&[7, 8]));
    world.ok(remove(&[1]));
    let record = world.record(txid);
    assert_eq!(record.blocks, [block(2, 91)]);
    assert!(record.delete_at.is_some());
    world.ok(remove(&[1, 2]));
    let record = world.record(txid);
    assert_eq!((record.blocks.len(), record.unmined_since), (0, Some(Height::new(101))));
    assert_eq!(record.delete_at, None, "and it is no longer scheduled");
    world.ok(Operation::RemoveBlocks { txid: MISSING, blocks: vec![BlockId(1)] });
}

/// Deleting is done once and may be asked for twice.
pub fn a_record_is_deleted<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let tx = world.root(1, 10);
    for _ in 0..2 {
        assert_eq!(world.ok(Operation::Delete { txid: tx.txid() }), Reply::Done);
        assert_eq!(world.find(tx.txid()), None);
    }
    assert!(world.scan(Scan::All).is_empty());
    world.ok(world.create(&tx, &world.options()));
    assert_eq!(world.record(tx.txid()).blocks, [], "nothing of the old record is left");
}

/// What was acknowledged is there after opening again, and after a crash.
pub fn everything_survives_opening_again<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let parent = world.root(1, 10);
    let tx = world.child(&[Coin::of(&parent, 9), Coin::of(&parent, 0)], 2);
    world.ok(Operation::Freeze(Coin::of(&parent, 3).slot()));
    world.set_mined(tx.txid(), 2, 101);
    let before = [parent.txid(), tx.txid()].map(|txid| world.record(txid));
    drop(world);
    for _ in 0..2 {
        let world = World::new(disk.open());
        assert_eq!([parent.txid(), tx.txid()].map(|txid| world.record(txid)), before);
        drop(world);
        disk.crash();
    }
}
