//! The plainest engine: maps under one lock. The judge of all others.
//!
//! It is written to be read beside the contract, not to be fast. Each operation has a function
//! that first looks at everything and refuses, and then writes. Nothing of it is shared with other
//! engines, so a mistake here and a mistake there do not agree by accident.
//!
//! | file | operations |
//! |---|---|
//! | `unit` | spend, create, both; unspend |
//! | `alert` | freeze, freeze window, unfreeze, reassign |
//! | `life` | mined, longest chain, locked, conflicting, preserve, delete |
//! | `expiry` | when a record is scheduled for removal, and pruning |

mod alert;
mod expiry;
mod life;
mod unit;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use varve_types::{Height, Outpoint, Txid};

use crate::engine::{
    Context, Cursor, Engine, EngineError, EngineStatus, Limits, Scan, ScanPage, SlotView,
};
use crate::error::{RecordError, SlotError};
use crate::fields::Fields;
use crate::intent::{Intent, IntentId};
use crate::operation::{Operation, SlotRef};
use crate::outcome::{Effect, Failure, Outcome, Reply};
use crate::record::Record;
use crate::slot::Slot;

/// What stays when the engine is dropped, as a disk would keep it.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<State>>);

/// Records in maps.
#[derive(Debug)]
pub struct MemoryEngine {
    disk: MemoryDisk,
    limits: Limits,
}

/// Everything there is.
#[derive(Clone, Debug, Default)]
struct State {
    records: BTreeMap<Txid, Record>,
    intents: BTreeMap<IntentId, Intent>,
}

type Result<T, E = RecordError> = std::result::Result<T, E>;

#[cfg(any(test, feature = "test-suite"))]
impl MemoryDisk {
    /// An independent copy.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Self(Arc::new(Mutex::new(state.clone())))
    }
}

impl MemoryEngine {
    /// Opens what is on this disk.
    #[must_use]
    pub const fn open(disk: MemoryDisk) -> Self {
        Self { disk, limits: Limits::NONE }
    }

    /// Opens the disk with smaller limits.
    #[cfg(any(test, feature = "test-suite"))]
    #[must_use]
    pub const fn with_limits(disk: MemoryDisk, limits: Limits) -> Self {
        Self { disk, limits }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.disk.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for MemoryEngine {
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError> {
        let mut state = self.state();
        let mut run = |operation| {
            let mut work = Work { state: &mut state, context, effects: Vec::new() };
            let result = work.run(operation, self.limits).map_err(Failure::Refused);
            Outcome { result, effects: work.effects }
        };
        Ok(operations.iter().map(&mut run).collect())
    }

    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError> {
        let state = self.state();
        let read = |txid| state.records.get(txid).map(|record: &Record| record.select(fields));
        Ok(txids.iter().map(read).collect())
    }

    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError> {
        let state = self.state();
        Ok(outpoints.iter().map(|outpoint| state.slot_view(outpoint)).collect())
    }

    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        let state = self.state();
        let start = match after {
            None => Bound::Unbounded,
            Some(cursor) => Bound::Excluded(cursor.place()?.1),
        };
        let found = state.records.range((start, Bound::Unbounded));
        let mut found = found.filter(|(_, record)| matches(record, scan)).map(|(txid, _)| *txid);
        let txids: Vec<Txid> = found.by_ref().take(limit).collect();
        let more = found.next().is_some();
        // One order for all scans: no height is needed to find the place again.
        let next = txids.last().filter(|_| more).map(|txid| Cursor::behind(0, txid));
        Ok(ScanPage { txids, next })
    }

    fn intents(&self, after: Option<IntentId>, limit: usize) -> Result<Vec<Intent>, EngineError> {
        let state = self.state();
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = state.intents.range((start, Bound::Unbounded));
        Ok(found.take(limit).map(|(_, intent)| intent.clone()).collect())
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        let state = self.state();
        let (records, intents) = (state.records.len() as u64, state.intents.len() as u64);
        Ok(EngineStatus { keys: records + intents, intents, ..EngineStatus::default() })
    }
}

fn matches(record: &Record, scan: Scan) -> bool {
    let reached = |field: Option<Height>, height| field.is_some_and(|field| field <= height);
    match scan {
        Scan::All => true,
        Scan::Unmined => record.unmined_since.is_some(),
        Scan::UnminedSince(height) => reached(record.unmined_since, height),
        Scan::DueAt(height) => reached(record.delete_at, height),
        Scan::PreservedUntil(height) => reached(record.preserve_until, height),
        Scan::Conflicting => record.conflicting,
    }
}

impl State {
    /// The slot, after looking at all that lies before it: the record, its list, the place, the
    /// hash.
    fn slot(&self, slot: &SlotRef) -> Result<&Slot, SlotError> {
        let record = self.records.get(&slot.outpoint.txid).ok_or(SlotError::TxNotFound)?;
        if record.utxos.is_empty() {
            return Err(SlotError::UtxosNotFound);
        }
        let place = record.utxos.get(slot.outpoint.vout as usize);
        let found = place.and_then(Option::as_ref).ok_or(SlotError::UtxoNotFound)?;
        if found.hash != slot.hash {
            return Err(SlotError::HashMismatch);
        }
        Ok(found)
    }

    fn slot_view(&self, outpoint: &Outpoint) -> Option<SlotView> {
        let record = self.records.get(&outpoint.txid)?;
        Some(SlotView {
            slot: record.utxos.get(outpoint.vout as usize).copied().flatten(),
            spendable_in: record.alerts.spendable_in.get(&outpoint.vout).copied(),
            window: record.alerts.windows.get(&outpoint.vout).copied(),
            spending_height: record.spending_height,
            lock_time: record.lock_time,
            conflicting: record.conflicting,
            locked: record.locked,
            creating: record.creating,
            blocks: record.blocks.clone(),
        })
    }
}

/// One operation at work.
struct Work<'a> {
    state: &'a mut State,
    context: &'a Context,
    effects: Vec<Effect>,
}

impl Work<'_> {
    fn run(&mut self, operation: &Operation, limits: Limits) -> Result<Reply> {
        match operation {
            Operation::Unit(unit) => self.unit(unit, limits),
            Operation::Unspend { spends, lock_parents } => self.unspend(spends, *lock_parents),
            Operation::SetMined { txid, info } => self.set_mined(*txid, info),
            Operation::MarkOnLongestChain { txid, on_longest_chain } => {
                self.mark_on_longest_chain(*txid, *on_longest_chain)
            }
            Operation::SetLocked { txid, locked } => self.set_locked(*txid, *locked),
            Operation::Freeze(slot) => self.freeze(slot),
            Operation::FreezeWindow { slot, window } => self.freeze_window(slot, *window),
            Operation::Unfreeze(slot) => self.unfreeze(slot),
            Operation::Reassign { slot, to } => self.reassign(slot, *to),
            Operation::SetConflicting { txid, conflicting } => {
                self.set_conflicting(*txid, *conflicting)
            }
            Operation::RemoveConflictingChild { txid, child } => {
                Ok(self.remove_conflicting_child(*txid, *child))
            }
            Operation::RemoveBlocks { txid, blocks } => Ok(self.remove_blocks(*txid, blocks)),
            Operation::Delete { txid } => Ok(self.delete(*txid)),
            Operation::PreserveUntil { txid, height } => self.preserve_until(*txid, *height),
            Operation::ExpirePreservation { txid, height } => {
                Ok(self.expire_preservation(*txid, *height))
            }
            Operation::Prune { txid, height } => Ok(Reply::Pruned(self.prune(*txid, *height))),
            Operation::Restore(record) => self.restore(record, limits),
            Operation::BeginIntent(intent) => {
                self.state.intents.entry(intent.id()).or_insert_with(|| intent.clone());
                Ok(Reply::Done)
            }
            Operation::CompleteIntent(id) => {
                self.state.intents.remove(id);
                Ok(Reply::Done)
            }
        }
    }

    fn record(&mut self, txid: Txid) -> Result<&mut Record> {
        self.state.records.get_mut(&txid).ok_or(RecordError::TxNotFound { txid })
    }

    /// Changes a record, if there is one.
    fn change(&mut self, txid: Txid, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.state.records.get_mut(&txid) {
            change(record);
        }
    }
}

/// `height + count`, at most the largest height.
fn above(height: Height, count: u32) -> Height {
    Height::new(height.to_u32().saturating_add(count))
}

/// A height to be written into a record: not 0, which stands for "not set".
fn written(height: Height) -> Height {
    height.max(Height::new(1))
}
