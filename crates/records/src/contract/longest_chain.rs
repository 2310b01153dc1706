//! Which chain is the longest, and what that means for transactions in blocks.

use varve_types::Height;

use super::Disk;
use super::node::{Block, Node, START, sorted};
use crate::operation::MinedBlockInfo;
use crate::record::BlockId;

/// The transactions of a branch that is left wait for a block again, until it is the longest.
pub fn a_branch_is_left_and_taken_again<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let tx = node.take(&[(&fund, 0)], 1);
    let here = Block::new(2, 101, &[&tx]);
    let there = [Block::new(3, 101, &[]), Block::new(4, 102, &[]).on(&[3])];
    node.connect(&here).expect("no conflict");
    assert_eq!(node.reset_assembly(&[1, 2]), []);
    node.disconnect(&here);
    there.iter().for_each(|block| drop(node.connect(block).expect("no conflict")));
    let record = node.record(&tx);
    assert_eq!(record.unmined_since, Some(Height::new(START)));
    assert_eq!(record.block_ids(), [BlockId(2)], "the block is still known");
    assert_eq!(node.reset_assembly(&[1, 3, 4]), [tx.txid()]);
    there.iter().rev().for_each(|block| node.disconnect(block));
    node.connect(&here).expect("no conflict");
    assert_eq!(node.record(&tx).unmined_since, None);
    assert_eq!(node.reset_assembly(&[1, 2]), []);
    node.end(disk);
}

/// A block that turns out to be invalid is taken from its transactions, and the next one has them.
pub fn an_invalid_block_is_taken_away<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let tx = node.take(&[(&fund, 0)], 1);
    let above = node.take(&[(&tx, 0), (&tx, 1)], 1);
    let invalid = Block::new(2, 101, &[&tx, &above]);
    node.connect(&invalid).expect("no conflict");
    assert!(node.record(&tx).delete_at.is_some(), "all spent and mined");
    node.disconnect(&invalid);
    let unset = MinedBlockInfo { unset: true, ..invalid.info(true) };
    let answers = node.store.set_mined_multi(&invalid.txids(), &unset).expect("the storage works");
    assert!(answers.into_iter().all(|blocks| blocks == Ok(Vec::new())));
    let record = node.record(&tx);
    assert_eq!(record.unmined_since, Some(Height::new(START + 1)));
    assert_eq!(record.delete_at, None, "it may be needed again");
    assert_eq!(node.reset_assembly(&[1]), sorted(&[&tx, &above]));
    node.connect(&Block::new(3, 101, &[&tx, &above])).expect("no conflict");
    assert_eq!(node.record(&above).block_ids(), [BlockId(3)]);
    assert_eq!(node.reset_assembly(&[1, 3]), []);
    node.end(disk);
}

/// An old transaction that another branch has too stays mined, whichever branch is the longest.
pub fn an_old_transaction_is_in_two_branches<D: Disk<Engine: 'static>>(disk: &D) {
    let node = Node::new(disk);
    let fund = node.fund(1, 1);
    let tx = node.take(&[(&fund, 0)], 1);
    let (here, there) = (Block::new(2, 101, &[&tx]), Block::new(3, 101, &[&tx]));
    node.connect(&here).expect("no conflict");
    node.see(&there);
    let record = node.record(&tx);
    assert_eq!(record.block_ids(), [BlockId(2), BlockId(3)]);
    assert_eq!(record.unmined_since, None, "a block of another branch takes nothing away");
    node.disconnect(&here);
    node.connect(&there).expect("no conflict");
    assert_eq!(node.record(&tx).unmined_since, None);
    let unset = MinedBlockInfo { unset: true, ..here.info(false) };
    node.store.set_mined_multi(&here.txids(), &unset).expect("the storage works");
    let record = node.record(&tx);
    assert_eq!((record.block_ids(), record.unmined_since), (vec![BlockId(3)], None));
    node.end(disk);
}
