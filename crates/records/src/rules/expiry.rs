//! When a record may be removed, and its removal.

use varve_types::{Height, Txid};

use super::{Outcomes, Rules, Working, above};
use crate::outcome::{Effect, Pruned};

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
        let external = self.work.head(record).external;
        self.work.remove(record)?;
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
