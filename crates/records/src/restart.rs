//! Recovery after a restart: which transactions wait for a block, and in which order.
//!
//! Block assembly forgets; records do not. At start:
//!
//! 1. Conflict resolutions that were cut off are resumed. One that is stuck is reported and stays,
//!    and so do the locks it took; recovery continues.
//! 2. All unmined transactions are read, conflicting ones left out. One that is in a block of the
//!    best chain is marked as mined: the mark was lost, not the block. Coinbases cannot be in
//!    another block and are passed over.
//! 3. The others are sorted by the time of their creation, so that parents come before children;
//!    of those that were created at the same time, too.
//! 4. In batches, the parents of each are looked up. A parent must be in a block of the best chain,
//!    or come earlier in the list. One that comes before its parent is left out. One whose parent
//!    is neither, or has no record, is left out only when the settings say so.
//! 5. What remains goes to block assembly, and what was found locked is unlocked. A slice of the
//!    blobs is cleaned: a crash may have left some that no record needs.

use std::collections::{HashMap, HashSet};

use varve_types::Txid;

use crate::conflicts::{self, ConflictError};
use crate::fields::Fields;
use crate::intent::IntentId;
use crate::record::{BlockId, Record};
use crate::store::{Store, StoreError, UnminedTx};
use crate::two_phase::AssemblyError;

/// What recovery found and did.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Conflict resolutions that were resumed and finished.
    pub replayed: usize,
    /// Conflict resolutions that cannot be finished now, and why. They can be retried or abandoned.
    pub stuck: Vec<(IntentId, ConflictError)>,
    /// Transactions that went to block assembly, in this order.
    pub added: Vec<Txid>,
    /// Transactions that turned out to be in a block of the best chain.
    pub mined: Vec<Txid>,
    /// Transactions that were left out, and why.
    pub left_out: Vec<(Txid, LeftOut)>,
    /// Transactions that were locked and are no longer.
    pub unlocked: Vec<Txid>,
}

/// Why a transaction did not go to block assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// It is a coinbase.
    Coinbase,
    /// It comes before a parent.
    BeforeParent(Txid),
    /// A parent is neither in a block of the best chain nor does it wait for one.
    InvalidParent(Txid),
}

/// Why recovery stopped. It can be called again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The storage failed while conflict resolutions were resumed.
    #[error(transparent)]
    Conflict(#[from] ConflictError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Block assembly did not take a transaction.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
}

/// Gives unmined transactions back to block assembly. `on_best_chain` says of a block whether it
/// is on the best chain; `assembly` takes the transactions in order.
pub fn recover(
    store: &Store,
    on_best_chain: &dyn Fn(BlockId) -> bool,
    assembly: &mut dyn FnMut(&UnminedTx) -> Result<(), AssemblyError>,
) -> Result<Recovery, RecoveryError> {
    let conflicts::Replayed { done, stuck } = conflicts::replay(store)?;
    let mut recovery = Recovery { replayed: done, stuck, ..Recovery::default() };
    let held: HashSet<Txid> = conflicts::owners(store, &store.intents()?)?.into_iter().collect();
    let mut waiting = Vec::new();
    let mut locked = Vec::new();
    for tx in store.unmined() {
        let tx = tx?;
        if tx.locked && !held.contains(&tx.txid) {
            locked.push(tx.txid);
        }
        if tx.blocks.iter().any(|block| on_best_chain(block.id)) {
            recovery.mined.push(tx.txid);
        } else if tx.is_coinbase {
            recovery.left_out.push((tx.txid, LeftOut::Coinbase));
        } else {
            waiting.push(tx);
        }
    }
    store.mark_on_longest_chain(&recovery.mined, true)?;
    let waiting = UnminedTx::by_creation(waiting);
    let parents = Parents { store, on_best_chain, places: places(&waiting) };
    let mut accepted = HashSet::new();
    for batch in waiting.chunks(store.settings().parent_validation_batch.max(1)) {
        let found = parents.read(batch)?;
        for tx in batch {
            match parents.judge(tx, &found, &accepted) {
                Some(why) => recovery.left_out.push((tx.txid, why)),
                None => {
                    assembly(tx)?;
                    accepted.insert(tx.txid);
                    recovery.added.push(tx.txid);
                }
            }
        }
    }
    store.set_locked(&locked, false)?;
    recovery.unlocked = locked;
    store.clean_some_blobs(store.block_state().height)?;
    Ok(recovery)
}

/// Where each transaction is in the list.
fn places(waiting: &[UnminedTx]) -> HashMap<Txid, usize> {
    waiting.iter().enumerate().map(|(place, tx)| (tx.txid, place)).collect()
}

/// The parents of waiting transactions.
struct Parents<'a> {
    store: &'a Store,
    on_best_chain: &'a dyn Fn(BlockId) -> bool,
    places: HashMap<Txid, usize>,
}

impl Parents<'_> {
    /// The parents of a batch that do not wait themselves.
    fn read(&self, batch: &[UnminedTx]) -> Result<HashMap<Txid, Record>, StoreError> {
        let inputs = batch.iter().flat_map(|tx| &tx.inputs).map(|input| input.txid);
        let txids: HashSet<Txid> = inputs.filter(|txid| !self.places.contains_key(txid)).collect();
        let txids: Vec<Txid> = txids.into_iter().collect();
        let records = self.store.engine().read(&txids, Fields::HEAD)?;
        Ok(records.into_iter().flatten().map(|record| (record.txid, record)).collect())
    }

    fn judge(
        &self,
        tx: &UnminedTx,
        found: &HashMap<Txid, Record>,
        accepted: &HashSet<Txid>,
    ) -> Option<LeftOut> {
        let place = self.places.get(&tx.txid).copied();
        for input in &tx.inputs {
            let parent = input.txid;
            if accepted.contains(&parent) {
                continue;
            }
            if let Some(other) = self.places.get(&parent) {
                if Some(*other) > place {
                    return Some(LeftOut::BeforeParent(parent));
                }
                return Some(LeftOut::InvalidParent(parent));
            }
            let is_mined = |record: &Record| {
                let on_chain = record.blocks.iter().any(|block| (self.on_best_chain)(block.id));
                !record.conflicting && on_chain
            };
            let invalid = found.get(&parent).is_none_or(|record| !is_mined(record));
            if invalid && self.store.settings().remove_invalid_parents {
                return Some(LeftOut::InvalidParent(parent));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
