//! What operations will look at.

use varve_types::{Outpoint, Txid};

use super::set::Set;
use crate::embedded::chunk::{CHUNK, chunks};
use crate::operation::{Operation, Unit};
use crate::slot::Slot;

impl Set {
    /// Notes as wanted what an operation needs and what is not there, as far as it follows from
    /// what is.
    pub(crate) fn plan(&mut self, operation: &Operation) {
        match operation {
            Operation::Unit(unit) => self.plan_unit(unit),
            Operation::Unspend { spends, .. } => {
                spends.iter().for_each(|spend| self.want_slot(&spend.slot.outpoint));
            }
            Operation::SetMined { txid, .. }
            | Operation::MarkOnLongestChain { txid, .. }
            | Operation::SetLocked { txid, .. }
            | Operation::RemoveConflictingChild { txid, .. }
            | Operation::RemoveBlocks { txid, .. }
            | Operation::Delete { txid }
            | Operation::PreserveUntil { txid, .. }
            | Operation::ExpirePreservation { txid, .. } => self.want_record(*txid),
            Operation::Freeze(slot) | Operation::Unfreeze(slot) => self.want_slot(&slot.outpoint),
            Operation::FreezeWindow { slot, .. } | Operation::Reassign { slot, .. } => {
                self.want_slot(&slot.outpoint);
            }
            Operation::Restore(record) => self.want_record(record.txid),
            Operation::SetConflicting { txid, .. } => self.plan_whole(*txid),
            Operation::Prune { txid, height } => {
                let at = self.held.get(txid).and_then(|held| held.state.as_ref()?.head.delete_at);
                if !self.held.contains_key(txid) {
                    self.want_record(*txid);
                } else if at.is_some_and(|at| at <= *height) {
                    self.plan_whole(*txid);
                    self.plan_children(*txid);
                }
            }
            Operation::BeginIntent(_) | Operation::CompleteIntent(_) => {}
        }
    }

    fn plan_unit(&mut self, unit: &Unit) {
        self.want_record(unit.txid);
        let spends = unit.spend.iter().flat_map(|part| &part.spends);
        spends.for_each(|spend| self.want_slot(&spend.outpoint));
        if let Some(new) = unit.create.as_ref().filter(|new| new.conflicting) {
            new.inputs.iter().for_each(|input| self.want_record(input.txid));
        }
    }

    /// A record with all its slots, and the slots that it spends.
    fn plan_whole(&mut self, txid: Txid) {
        let Some(held) = self.held.get(&txid) else {
            self.want_record(txid);
            self.wanted.inputs.insert(txid);
            return;
        };
        if held.state.is_none() {
            return;
        }
        if held.fresh.is_none() && !held.whole && chunks(held.outputs()) > 1 {
            self.wanted.whole.insert(txid);
        }
        match held.inputs.clone() {
            None => drop(self.wanted.inputs.insert(txid)),
            Some(inputs) => inputs.iter().for_each(|input| self.want_slot(input)),
        }
    }

    /// Whether those that spend a record are unmined, and those that would have liked to.
    fn plan_children(&mut self, txid: Txid) {
        let Some(held) = self.held.get(&txid) else { return };
        let Some(state) = &held.state else { return };
        let further = held.chunks.values().map(|held| &held.chunk);
        let slots = std::iter::once(&state.first).chain(further).flat_map(|chunk| &chunk.slots);
        let spenders = slots.flatten().filter_map(Slot::spender).map(|data| data.txid);
        let children = spenders.chain(state.head.conflicting_children.iter().copied());
        let unknown =
            |child: &Txid| !self.held.contains_key(child) && !self.unmined.contains_key(child);
        let children: Vec<Txid> = children.filter(unknown).collect();
        self.wanted.unmined.extend(children);
    }

    fn want_record(&mut self, txid: Txid) {
        if !self.held.contains_key(&txid) {
            self.wanted.records.insert(txid);
        }
    }

    fn want_slot(&mut self, outpoint: &Outpoint) {
        let Outpoint { txid, vout } = *outpoint;
        self.want_record(txid);
        let number = vout / CHUNK;
        let held = self.held.get(&txid);
        if number > 0 && held.is_none_or(|held| vout < held.outputs() && !held.has_chunk(number)) {
            self.wanted.chunks.insert((txid, number));
        }
    }
}
