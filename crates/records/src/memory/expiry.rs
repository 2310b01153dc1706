//! When a record may be removed, and its removal.

use varve_types::{Height, Outpoint, Txid};

use super::unit::distinct;
use super::{Work, above};
use crate::outcome::{Effect, Pruned, Reply};
use crate::record::Record;
use crate::slot::Slot;
use crate::spending_data::SpendingData;

impl Work<'_> {
    /// Looks again at whether a record is to be removed, after a change at this height.
    ///
    /// 1. Without retention, and while it is preserved, nothing changes.
    /// 2. A conflicting record is scheduled once, and the height does not move.
    /// 3. A record that is all spent, in a block, and on the longest chain is scheduled; the
    ///    height only ever rises.
    /// 4. Any other record is taken from the schedule.
    pub(super) fn reschedule(&mut self, txid: Txid, height: Height) {
        let Some(record) = self.state.records.get(&txid) else { return };
        if self.context.retention == 0 || record.preserve_until.is_some() {
            return;
        }
        let at = above(height, self.context.retention);
        if record.conflicting {
            if record.delete_at.is_none() {
                self.delete_at(txid, at);
            }
            return;
        }
        let mined = !record.blocks.is_empty() && record.unmined_since.is_none();
        if !(record.is_all_spent() && mined) {
            self.keep_on(txid);
        } else if record.delete_at.is_none_or(|old| old < at) {
            self.delete_at(txid, at);
        }
    }

    fn delete_at(&mut self, txid: Txid, height: Height) {
        let Some(record) = self.state.records.get_mut(&txid) else { return };
        record.delete_at = Some(height);
        if record.external {
            self.effects.push(Effect::DeleteAt { txid, height });
        }
    }

    /// Takes a record from the schedule, if it is there.
    pub(super) fn keep_on(&mut self, txid: Txid) {
        let Some(record) = self.state.records.get_mut(&txid) else { return };
        if record.delete_at.take().is_some() && record.external {
            self.effects.push(Effect::KeepOn { txid });
        }
    }

    pub(super) fn expire_preservation(&mut self, txid: Txid, height: Height) -> Reply {
        let Some(record) = self.state.records.get_mut(&txid) else { return Reply::Done };
        if record.preserve_until.is_some_and(|until| until <= height) {
            record.preserve_until = None;
            self.delete_at(txid, above(height, self.context.retention));
        }
        Reply::Done
    }

    pub(super) fn prune(&mut self, txid: Txid, height: Height) -> Pruned {
        let Some(record) = self.state.records.get(&txid) else { return Pruned::Missing };
        if record.delete_at.is_none_or(|at| at > height) {
            return Pruned::NotDue;
        }
        if !record.conflicting && !record.is_all_spent() {
            self.keep_on(txid);
            return Pruned::Unspent;
        }
        if !record.conflicting && record.unmined_since.is_some() {
            return Pruned::Unmined;
        }
        if let Some(child) = self.unmined_child(record) {
            return Pruned::NeededBy(child);
        }
        let gives_back = record.conflicting && record.unmined_since.is_some();
        let inputs = record.inputs.clone();
        if gives_back {
            self.give_back(txid, &inputs);
        }
        for input in inputs {
            self.change(input.txid, |parent| {
                parent.children.deleted.insert(txid);
                parent.children.conflicting.retain(|id| *id != txid);
            });
        }
        self.delete(txid);
        Pruned::Removed
    }

    /// A loser that was never in the chain takes its spends with it.
    fn give_back(&mut self, txid: Txid, inputs: &[Outpoint]) {
        let mut parents = Vec::new();
        for (vin, outpoint) in (0_u32..).zip(inputs) {
            let parent = self.state.records.get(&outpoint.txid);
            let slot = parent.and_then(|parent| parent.utxos.get(outpoint.vout as usize));
            let spending = slot.and_then(Option::as_ref).and_then(|slot| slot.spending);
            if spending == Some(SpendingData::new(txid, vin)) {
                self.set_spending(outpoint, None);
                parents.push(outpoint.txid);
            }
        }
        for parent in distinct(parents.into_iter()) {
            self.reschedule(parent, self.context.height);
        }
    }

    /// The first unmined transaction that refers to this one: by a slot, or as its conflicting
    /// child.
    fn unmined_child(&self, record: &Record) -> Option<Txid> {
        let spenders = record.utxos.iter().flatten().filter_map(Slot::spender);
        let spenders = spenders.map(|data| data.txid);
        let mut children = spenders.chain(record.children.conflicting.iter().copied());
        children.find(|txid| {
            let child = self.state.records.get(txid);
            child.is_some_and(|child| child.unmined_since.is_some())
        })
    }
}
