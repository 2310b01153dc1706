//! Everything that changes records, creation apart.

use varve_types::{Height, Txid};

use super::{Item, Result, Store, StoreError};
use crate::engine::Scan;
use crate::error::RecordError;
use crate::freeze_window::FreezeWindow;
use crate::operation::{MinedBlockInfo, Operation, SlotRef, Unspend};
use crate::outcome::Reply;
use crate::record::BlockId;
use crate::utxo_hash::UtxoHash;

/// What a conflicting transaction spent, and who spends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConflictingParents {
    /// One item an input whose parent has a record and a slot.
    pub parents: Vec<Unspend>,
    /// The transactions that spend its outputs.
    pub spenders: Vec<Txid>,
}

impl Store {
    /// Takes back spends, each only from the spender that is named: all or none. Says which
    /// were there to be taken back.
    pub fn unspend(&self, spends: Vec<Unspend>, lock_parents: bool) -> Result<Vec<bool>> {
        match self.apply_one(Operation::Unspend { spends, lock_parents })? {
            Reply::Unspent(taken) => Ok(taken),
            _ => Ok(Vec::new()),
        }
    }

    /// Adds a block to transactions, or removes it. Answers with the blocks that each has then.
    pub fn set_mined_multi(
        &self,
        txids: &[Txid],
        info: &MinedBlockInfo,
    ) -> Result<Vec<Item<Vec<BlockId>>>> {
        let replies = self.each(txids, |txid| Operation::SetMined { txid, info: *info })?;
        let blocks = |reply| match reply {
            Reply::Blocks(blocks) => blocks,
            _ => Vec::new(),
        };
        Ok(replies.into_iter().map(|reply| reply.map(blocks)).collect())
    }

    /// Says whether transactions are in blocks of the longest chain. Those that have a record
    /// are marked; that some have none is an error that names up to ten of them.
    pub fn mark_on_longest_chain(&self, txids: &[Txid], on_longest_chain: bool) -> Result<()> {
        let operation = |txid| Operation::MarkOnLongestChain { txid, on_longest_chain };
        all_there(self.each(txids, operation)?)
    }

    /// Locks or unlocks transactions. Those that have a record are changed; that some have none
    /// is an error that names up to ten of them.
    pub fn set_locked(&self, txids: &[Txid], locked: bool) -> Result<()> {
        all_there(self.each(txids, |txid| Operation::SetLocked { txid, locked })?)
    }

    /// Freezes unspent outputs, each by itself.
    pub fn freeze(&self, slots: &[SlotRef]) -> Result<Vec<Item<()>>> {
        self.each_slot(slots, Operation::Freeze)
    }

    /// Ends freezes, each by itself.
    pub fn unfreeze(&self, slots: &[SlotRef]) -> Result<Vec<Item<()>>> {
        self.each_slot(slots, Operation::Unfreeze)
    }

    /// Gives unspent outputs a window in which they are frozen, each by itself.
    pub fn freeze_window(&self, slots: &[SlotRef], window: FreezeWindow) -> Result<Vec<Item<()>>> {
        self.each_slot(slots, |slot| Operation::FreezeWindow { slot, window })
    }

    /// Binds a frozen output to another script.
    pub fn reassign(&self, slot: SlotRef, to: UtxoHash) -> Result<()> {
        self.apply_one(Operation::Reassign { slot, to }).map(drop)
    }

    /// Marks transactions as losers of a double spend, or unmarks them.
    pub fn set_conflicting(
        &self,
        txids: &[Txid],
        conflicting: bool,
    ) -> Result<Vec<Item<ConflictingParents>>> {
        let replies = self.each(txids, |txid| Operation::SetConflicting { txid, conflicting })?;
        let parents = |reply| match reply {
            Reply::Conflicting { parents, spenders } => ConflictingParents { parents, spenders },
            _ => ConflictingParents::default(),
        };
        Ok(replies.into_iter().map(|reply| reply.map(parents)).collect())
    }

    /// Takes transactions from the conflicting children of others: pairs of parent and child.
    pub fn remove_conflicting_children(&self, pairs: &[(Txid, Txid)]) -> Result<()> {
        let operation = |&(txid, child)| Operation::RemoveConflictingChild { txid, child };
        let operations: Vec<Operation> = pairs.iter().map(operation).collect();
        self.apply(&operations)?.into_iter().try_for_each(|reply| Ok(reply.map(drop)?))
    }

    /// Takes blocks from transactions, as if each were unset.
    pub fn remove_block_ids(&self, txids: &[Txid], blocks: &[BlockId]) -> Result<()> {
        let blocks = blocks.to_vec();
        let operation = |txid| Operation::RemoveBlocks { txid, blocks: blocks.clone() };
        self.each(txids, operation)?.into_iter().try_for_each(|reply| Ok(reply.map(drop)?))
    }

    /// Removes records with their blobs, whatever their state.
    pub fn delete(&self, txids: &[Txid]) -> Result<()> {
        let replies = self.each(txids, |txid| Operation::Delete { txid })?;
        replies.into_iter().try_for_each(|reply| Ok(reply.map(drop)?))
    }

    /// Keeps records from being removed up to a height. Answers with those that have no record,
    /// which is no error.
    pub fn preserve_until(&self, txids: &[Txid], height: Height) -> Result<Vec<Txid>> {
        missing(self.each(txids, |txid| Operation::PreserveUntil { txid, height })?)
    }

    /// Ends the preservations that are over at a height. Answers with how many there were.
    pub fn process_expired_preservations(&self, height: Height) -> Result<u64> {
        let mut count = 0;
        self.scan(Scan::PreservedUntil(height), |txids| {
            count += txids.len() as u64;
            let operation = |txid| Operation::ExpirePreservation { txid, height };
            self.each(txids, operation).map(drop)
        })?;
        Ok(count)
    }

    /// Calls `each` with the txids that a scan finds, page by page.
    pub(crate) fn scan(
        &self,
        scan: Scan,
        mut each: impl FnMut(&[Txid]) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = None;
        loop {
            let page = self.engine.scan(scan, cursor, self.settings.prune_batch.max(1))?;
            each(&page.txids)?;
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    pub(crate) fn each(
        &self,
        txids: &[Txid],
        operation: impl Fn(Txid) -> Operation,
    ) -> Result<Vec<Item<Reply>>> {
        let operations: Vec<Operation> = txids.iter().map(|txid| operation(*txid)).collect();
        self.apply(&operations)
    }

    fn each_slot(
        &self,
        slots: &[SlotRef],
        operation: impl Fn(SlotRef) -> Operation,
    ) -> Result<Vec<Item<()>>> {
        let operations: Vec<Operation> = slots.iter().map(|slot| operation(*slot)).collect();
        let replies = self.apply(&operations)?;
        Ok(replies.into_iter().map(|reply| reply.map(drop)).collect())
    }
}

/// The records that are missing, when nothing else is wrong.
fn missing(replies: Vec<Item<Reply>>) -> Result<Vec<Txid>> {
    let mut missing = Vec::new();
    for reply in replies {
        match reply {
            Ok(_) => {}
            Err(RecordError::TxNotFound { txid }) => missing.push(txid),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(missing)
}

/// Turns answers into one: that some records are missing is an error.
fn all_there(replies: Vec<Item<Reply>>) -> Result<()> {
    let mut missing = missing(replies)?;
    if missing.is_empty() {
        return Ok(());
    }
    let count = missing.len();
    missing.truncate(StoreError::NAMED);
    Err(StoreError::Missing { count, first: missing })
}
