//! What operations do, for engines that keep records in parts.
//!
//! The rules know a record as a small [`Head`] and as slots that are asked for one by one, so an
//! engine never has to bring a whole record. They work on a [`Working`] set: the engine's copy of
//! what the operations touch. Nothing here is shared with `memory`, which is the oracle.
//!
//! Every rule has the same order: look up everything first, because the storage may fail; then
//! judge; only then write. So an operation that is refused, or that meets a broken disk, has
//! changed nothing.
//!
//! | file | operations |
//! |---|---|
//! | `spend` | the spends of a unit, in the order of the contract; taking spends back |
//! | `create` | the record of a unit |
//! | `alert` | freeze, freeze window, unfreeze, reassign |
//! | `life` | mined, longest chain, locked, conflicting, preserve, delete |
//! | `expiry` | when a record is scheduled for removal, and pruning |
//! | `restore` | a record that another engine had |

mod alert;
mod create;
mod expiry;
mod head;
mod life;
mod restore;
mod spend;

use varve_types::{Height, Outpoint, Txid};

use crate::engine::{Context, Limits};
use crate::error::{RecordError, SlotError};
use crate::freeze_window::FreezeWindow;
use crate::intent::{Intent, IntentId};
use crate::operation::{NewRecord, Operation, SlotRef};
use crate::outcome::{Effect, Outcome, Reply};
use crate::record::Reassignment;
use crate::slot::Slot;
pub(crate) use head::{Head, Parts};

/// The working set of a batch. What was found stays in it until the end of the batch, so handles
/// are valid that long.
pub(crate) trait Working {
    /// Why a lookup failed.
    type Error;
    /// A handle of a record.
    type Record: Copy + Ord;
    /// A handle of a slot.
    type Slot: Copy + Ord;

    /// Brings a record; `None` when there is none.
    fn find(&mut self, txid: &Txid) -> Result<Option<Self::Record>, Self::Error>;
    /// Whether a transaction has a record that is unmined. Nothing is brought: there may be as many
    /// to ask about as a record has outputs.
    fn is_unmined(&mut self, txid: &Txid) -> Result<bool, Self::Error>;
    /// Brings a slot; `None` when the record has no such output, or one that can never be spent.
    fn slot(&mut self, at: Self::Record, vout: u32) -> Result<Option<Self::Slot>, Self::Error>;
    /// Brings the place where spenders of an output are remembered that were pruned.
    fn bring_place(&mut self, at: Self::Record, vout: u32) -> Result<(), Self::Error>;
    /// What a record spends, in the order of its inputs.
    fn inputs(&mut self, at: Self::Record) -> Result<Vec<Outpoint>, Self::Error>;
    /// Shows all slots of a record, in the order of the outputs.
    fn each_slot(
        &mut self,
        at: Self::Record,
        show: &mut dyn FnMut(&Slot),
    ) -> Result<(), Self::Error>;
    /// Removes a record. When it fails nothing is removed.
    fn remove(&mut self, at: Self::Record) -> Result<(), Self::Error>;
    /// Adds a record, for whose txid nothing was found.
    fn create(&mut self, txid: &Txid, new: &NewRecord, head: Head) -> Result<(), Self::Error>;
    /// Adds an intent, unless it is there.
    fn begin_intent(&mut self, intent: &Intent) -> Result<(), Self::Error>;
    /// Removes an intent, if it is there.
    fn complete_intent(&mut self, id: &IntentId) -> Result<(), Self::Error>;

    /// The head of a record.
    fn head(&self, at: Self::Record) -> &Head;
    /// The head of a record, to be changed.
    fn head_mut(&mut self, at: Self::Record) -> &mut Head;
    /// What a slot holds.
    fn get(&self, at: Self::Slot) -> &Slot;
    /// What a slot holds, to be changed.
    fn get_mut(&mut self, at: Self::Slot) -> &mut Slot;
    /// The first height at which a reassigned output can be spent.
    fn spendable_in(&self, at: Self::Slot) -> Option<Height>;
    /// When an output is frozen.
    fn window(&self, at: Self::Slot) -> Option<FreezeWindow>;
    /// Freezes an output for a time, or no more.
    fn set_window(&mut self, at: Self::Slot, window: Option<FreezeWindow>);
    /// Remembers that an output was reassigned and from when on it can be spent.
    fn reassigned(&mut self, at: Self::Slot, reassignment: Reassignment, spendable: Height);
    /// Whether the record of this spender of the output was pruned.
    fn is_pruned_child(&self, at: Self::Slot, child: &Txid) -> bool;
    /// Remembers at a place that was brought that the record of this spender was pruned.
    fn add_pruned_child(&mut self, at: Self::Record, vout: u32, child: Txid);
}

/// Does one operation.
pub(crate) fn apply<W: Working>(
    work: &mut W,
    context: &Context,
    limits: Limits,
    operation: &Operation,
) -> Result<Outcome, W::Error> {
    let mut rules = Rules { work, context, limits, effects: Vec::new() };
    let result = match rules.run(operation) {
        Ok(reply) => Ok(reply),
        Err(Failure::Refused(error)) => Err(error.into()),
        Err(Failure::Storage(error)) => return Err(error),
    };
    Ok(Outcome { result, effects: rules.effects })
}

/// Why an operation did not succeed.
enum Failure<E> {
    Refused(RecordError),
    Storage(E),
}

impl<E> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::Storage(error)
    }
}

type Outcomes<W, T> = Result<T, Failure<<W as Working>::Error>>;

/// One operation at work.
struct Rules<'a, W: Working> {
    work: &'a mut W,
    context: &'a Context,
    limits: Limits,
    effects: Vec<Effect>,
}

impl<W: Working> Rules<'_, W> {
    fn run(&mut self, operation: &Operation) -> Outcomes<W, Reply> {
        match operation {
            Operation::Unit(unit) => return self.unit(unit),
            Operation::Unspend { spends, lock_parents } => {
                return self.unspend(spends, *lock_parents);
            }
            Operation::SetMined { txid, info } => return self.set_mined(txid, info),
            Operation::MarkOnLongestChain { txid, on_longest_chain } => {
                self.mark_on_longest_chain(txid, *on_longest_chain)?;
            }
            Operation::SetLocked { txid, locked } => self.set_locked(txid, *locked)?,
            Operation::Freeze(slot) => self.freeze(slot)?,
            Operation::FreezeWindow { slot, window } => self.freeze_window(slot, *window)?,
            Operation::Unfreeze(slot) => self.unfreeze(slot)?,
            Operation::Reassign { slot, to } => self.reassign(slot, *to)?,
            Operation::SetConflicting { txid, conflicting } => {
                return self.set_conflicting(txid, *conflicting);
            }
            Operation::RemoveConflictingChild { txid, child } => {
                self.remove_conflicting_child(txid, child)?;
            }
            Operation::RemoveBlocks { txid, blocks } => self.remove_blocks(txid, blocks)?,
            Operation::Delete { txid } => self.delete(txid)?,
            Operation::PreserveUntil { txid, height } => self.preserve_until(txid, *height)?,
            Operation::ExpirePreservation { txid, height } => {
                self.expire_preservation(txid, *height)?;
            }
            Operation::Prune { txid, height } => {
                return self.prune(txid, *height).map(Reply::Pruned);
            }
            Operation::Restore(record) => self.restore(record)?,
            Operation::BeginIntent(intent) => self.work.begin_intent(intent)?,
            Operation::CompleteIntent(id) => self.work.complete_intent(id)?,
        }
        Ok(Reply::Done)
    }

    /// The record of a transaction that must have one.
    fn record(&mut self, txid: &Txid) -> Outcomes<W, W::Record> {
        let found = self.work.find(txid)?;
        found.ok_or(Failure::Refused(RecordError::TxNotFound { txid: *txid }))
    }

    /// The slot that is named, after looking at the record, its list, the place and the hash.
    fn named(&mut self, slot: &SlotRef) -> Outcomes<W, (W::Record, W::Slot)> {
        let Some(record) = self.work.find(&slot.outpoint.txid)? else {
            return Err(refused(slot, SlotError::TxNotFound));
        };
        if self.work.head(record).total_utxos == 0 {
            return Err(refused(slot, SlotError::UtxosNotFound));
        }
        let Some(found) = self.work.slot(record, slot.outpoint.vout)? else {
            return Err(refused(slot, SlotError::UtxoNotFound));
        };
        if self.work.get(found).hash != slot.hash {
            return Err(refused(slot, SlotError::HashMismatch));
        }
        Ok((record, found))
    }

    /// The records of the transactions that outpoints are of, as far as they have one.
    fn owners(&mut self, outpoints: &[Outpoint]) -> Outcomes<W, Vec<(Outpoint, W::Record)>> {
        let mut found = Vec::new();
        for outpoint in outpoints {
            found.extend(self.work.find(&outpoint.txid)?.map(|record| (*outpoint, record)));
        }
        Ok(found)
    }
}

fn refused<E>(slot: &SlotRef, error: SlotError) -> Failure<E> {
    Failure::Refused(RecordError::Slot { outpoint: slot.outpoint, error })
}

/// `height + count`, at most the largest height.
const fn above(height: Height, count: u32) -> Height {
    Height::new(height.to_u32().saturating_add(count))
}

/// A height that is put into a record: 0 there stands for none.
fn not_zero(height: Height) -> Height {
    height.max(Height::new(1))
}
