//! When a record may be removed, and its removal.

use varve_types::{Height, Outpoint, Txid};

use super::spend::once;
use super::{Outcomes, Rules, Working, above};
use crate::outcome::{Effect, Pruned};
use crate::spending_data::SpendingData;

/// An output that a transaction holds: its place, its record, its slot.
type Held<W> = (Outpoint, <W as Working>::Record, <W as Working>::Slot);

impl<W: Working> Rules<'_, W> {
    /// Looks again at whether a record is to be removed, after a change at this height. One that
    /// is preserved stays as it is. A conflicting one is scheduled once. Any other is scheduled
    /// while it is all spent, in a block and on the longest chain, and the height only rises.
    pub(super) fn reschedule(&mut self, txid: Txid, record: W::Record, height: Height) {
        let head = self.work.head(record);
        let at = above(height, self.context.retention);
        if self.context.retention == 0 || head.preserve_until.is_some() {
            return;
        }
        if head.conflicting {
            if head.delete_at.is_none() {
                self.delete_at(txid, record, at);
            }
            return;
        }
        let over = head.is_all_spent() && !head.blocks.is_empty() && head.unmined_since.is_none();
        if !over {
            self.keep_on(txid, record);
        } else if head.delete_at < Some(at) {
            self.delete_at(txid, record, at);
        }
    }

    fn delete_at(&mut self, txid: Txid, record: W::Record, height: Height) {
        let head = self.work.head_mut(record);
        head.delete_at = Some(height);
        if head.external {
            self.effects.push(Effect::DeleteAt { txid, height });
        }
    }

    /// Takes a record from the schedule, if it is there.
    pub(super) fn keep_on(&mut self, txid: Txid, record: W::Record) {
        if self.work.head(record).delete_at.is_some() {
            let head = self.work.head_mut(record);
            head.delete_at = None;
            if head.external {
                self.effects.push(Effect::KeepOn { txid });
            }
        }
    }

    pub(super) fn expire_preservation(&mut self, txid: &Txid, height: Height) -> Outcomes<W, ()> {
        let Some(record) = self.work.find(txid)? else { return Ok(()) };
        if self.work.head(record).preserve_until.is_some_and(|until| until <= height) {
            self.work.head_mut(record).preserve_until = None;
            self.delete_at(*txid, record, above(height, self.context.retention));
        }
        Ok(())
    }

    pub(super) fn prune(&mut self, txid: &Txid, height: Height) -> Outcomes<W, Pruned> {
        let Some(record) = self.work.find(txid)? else { return Ok(Pruned::Missing) };
        let head = self.work.head(record);
        if head.delete_at.is_none_or(|at| at > height) {
            return Ok(Pruned::NotDue);
        }
        let loser = head.conflicting;
        // One that never was in the chain takes its spends with it. One that was keeps them, so an
        // output held by a pruned transaction was spent for good.
        let gives_back = loser && head.unmined_since.is_some();
        if !loser && !head.is_all_spent() {
            self.keep_on(*txid, record);
            return Ok(Pruned::Unspent);
        }
        if !loser && head.unmined_since.is_some() {
            return Ok(Pruned::Unmined);
        }
        if let Some(child) = self.unmined_child(record)? {
            return Ok(Pruned::NeededBy(child));
        }
        let inputs = self.work.inputs(record)?;
        let parents = self.owners(&inputs)?;
        for (outpoint, parent) in &parents {
            self.work.bring_place(*parent, outpoint.vout)?;
        }
        let held = if gives_back { self.held(*txid, &inputs)? } else { Vec::new() };
        let external = self.work.head(record).external;
        self.work.remove(record)?;
        self.give_back(held);
        for (outpoint, parent) in parents.into_iter().filter(|(_, parent)| *parent != record) {
            self.work.add_pruned_child(parent, outpoint.vout, *txid);
            if self.work.head(parent).conflicting_children.contains(txid) {
                self.work.head_mut(parent).conflicting_children.retain(|id| id != txid);
            }
        }
        if external {
            self.effects.push(Effect::Deleted { txid: *txid });
        }
        Ok(Pruned::Removed)
    }

    /// The outputs that a transaction with these inputs holds.
    fn held(&mut self, txid: Txid, inputs: &[Outpoint]) -> Outcomes<W, Vec<Held<W>>> {
        let mut held = Vec::new();
        for (vin, outpoint) in (0_u32..).zip(inputs) {
            let Some(parent) = self.work.find(&outpoint.txid)? else { continue };
            let Some(slot) = self.work.slot(parent, outpoint.vout)? else { continue };
            if self.work.get(slot).spending == Some(SpendingData::new(txid, vin)) {
                held.push((*outpoint, parent, slot));
            }
        }
        Ok(held)
    }

    /// Makes outputs unspent.
    fn give_back(&mut self, held: Vec<Held<W>>) {
        let mut parents = Vec::with_capacity(held.len());
        for (outpoint, parent, slot) in held {
            self.work.get_mut(slot).spending = None;
            self.work.head_mut(parent).counts_mut(outpoint.vout).spent -= 1;
            parents.push((outpoint.txid, parent));
        }
        for (txid, parent) in once(parents) {
            self.reschedule(txid, parent, self.context.height);
        }
    }

    /// The first unmined transaction that refers to this one: by a slot, or as a conflicting child.
    fn unmined_child(&mut self, record: W::Record) -> Outcomes<W, Option<Txid>> {
        let mut children = Vec::new();
        self.work.each_slot(record, &mut |slot| {
            // Outputs side by side often have one spender.
            let spender = slot.spender().map(|data| data.txid);
            children.extend(spender.filter(|spender| children.last() != Some(spender)));
        })?;
        children.extend_from_slice(&self.work.head(record).conflicting_children);
        for child in children {
            if self.work.is_unmined(&child)? {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }
}
