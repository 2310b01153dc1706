//! The life of a record: mined, on the longest chain, locked, conflicting, preserved, deleted.

use std::collections::BTreeSet;

use varve_types::{Height, Txid};

use super::{Failure, Outcomes, Rules, Working, above, not_zero};
use crate::error::RecordError;
use crate::operation::{MinedBlockInfo, SlotRef, Unspend};
use crate::outcome::{Effect, Reply};
use crate::record::BlockId;
use crate::spending_data::{PLACEHOLDER, SpendingData};

impl<W: Working> Rules<'_, W> {
    pub(super) fn set_mined(&mut self, txid: &Txid, info: &MinedBlockInfo) -> Outcomes<W, Reply> {
        let height = above(self.context.height, 1);
        let Some(record) = self.work.find(txid)? else {
            if info.unset {
                return Ok(Reply::Blocks(Vec::new()));
            }
            return Err(Failure::Refused(RecordError::TxNotFound { txid: *txid }));
        };
        let head = self.work.head_mut(record);
        let place = head.blocks.iter().position(|block| block.id == info.block.id);
        match place {
            Some(place) if info.unset => drop(head.blocks.remove(place)),
            None if !info.unset => head.blocks.push(info.block),
            _ => {}
        }
        if head.blocks.is_empty() {
            head.unmined_since = Some(height);
        } else if info.on_longest_chain {
            head.unmined_since = None;
        }
        head.locked = false;
        head.creating = false;
        let blocks = head.block_ids();
        self.reschedule(*txid, record, height);
        Ok(Reply::Blocks(blocks))
    }

    pub(super) fn remove_blocks(&mut self, txid: &Txid, blocks: &[BlockId]) -> Outcomes<W, ()> {
        let height = above(self.context.height, 1);
        let Some(record) = self.work.find(txid)? else { return Ok(()) };
        let named = |id: &BlockId| blocks.contains(id);
        if !self.work.head(record).blocks.iter().any(|block| named(&block.id)) {
            return Ok(());
        }
        let head = self.work.head_mut(record);
        head.blocks.retain(|block| !named(&block.id));
        if head.blocks.is_empty() {
            head.unmined_since = Some(height);
        }
        self.reschedule(*txid, record, height);
        Ok(())
    }

    pub(super) fn mark_on_longest_chain(&mut self, txid: &Txid, is: bool) -> Outcomes<W, ()> {
        let record = self.record(txid)?;
        let since = (!is).then_some(not_zero(self.context.height));
        self.work.head_mut(record).unmined_since = since;
        Ok(())
    }

    pub(super) fn set_locked(&mut self, txid: &Txid, locked: bool) -> Outcomes<W, ()> {
        let record = self.record(txid)?;
        if locked {
            self.lock(*txid, record);
        } else {
            self.work.head_mut(record).locked = false;
        }
        Ok(())
    }

    /// Locks a record and takes it from the schedule.
    pub(super) fn lock(&mut self, txid: Txid, record: W::Record) {
        self.work.head_mut(record).locked = true;
        self.keep_on(txid, record);
    }

    pub(super) fn set_conflicting(&mut self, txid: &Txid, is: bool) -> Outcomes<W, Reply> {
        if *txid == PLACEHOLDER {
            return Ok(Reply::Conflicting { parents: Vec::new(), spenders: Vec::new() });
        }
        let record = self.record(txid)?;
        let inputs = self.work.inputs(record)?;
        let mut spenders = Vec::new();
        let mut seen = BTreeSet::new();
        self.work.each_slot(record, &mut |slot| {
            let spender = slot.spender().map(|data| data.txid);
            spenders.extend(spender.filter(|spender| seen.insert(*spender)));
        })?;
        let mut owners = Vec::new();
        let mut parents = Vec::new();
        for (vin, outpoint) in (0_u32..).zip(inputs) {
            let Some(parent) = self.work.find(&outpoint.txid)? else { continue };
            owners.push(parent);
            if let Some(slot) = self.work.slot(parent, outpoint.vout)? {
                let slot = SlotRef { outpoint, hash: self.work.get(slot).hash };
                parents.push(Unspend { slot, by: SpendingData::new(*txid, vin) });
            }
        }
        self.work.head_mut(record).conflicting = is;
        self.reschedule(*txid, record, self.context.height);
        self.list_conflicting(*txid, owners.into_iter());
        Ok(Reply::Conflicting { parents, spenders })
    }

    /// Lists the transaction as a conflicting child of these records.
    pub(super) fn list_conflicting(
        &mut self,
        txid: Txid,
        parents: impl Iterator<Item = W::Record>,
    ) {
        for parent in parents {
            if !self.work.head(parent).conflicting_children.contains(&txid) {
                self.work.head_mut(parent).conflicting_children.push(txid);
            }
        }
    }

    pub(super) fn remove_conflicting_child(
        &mut self,
        txid: &Txid,
        child: &Txid,
    ) -> Outcomes<W, ()> {
        if let Some(record) = self.work.find(txid)?
            && self.work.head(record).conflicting_children.contains(child)
        {
            self.work.head_mut(record).conflicting_children.retain(|id| id != child);
        }
        Ok(())
    }

    pub(super) fn preserve_until(&mut self, txid: &Txid, height: Height) -> Outcomes<W, ()> {
        if height == Height::GENESIS {
            let reason = "the height must be above 0";
            return Err(Failure::Refused(RecordError::Processing { txid: *txid, reason }));
        }
        let record = self.record(txid)?;
        let head = self.work.head_mut(record);
        head.delete_at = None;
        head.preserve_until = Some(height);
        if head.external {
            self.effects.push(Effect::PreserveUntil { txid: *txid, height });
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, txid: &Txid) -> Outcomes<W, ()> {
        let Some(record) = self.work.find(txid)? else { return Ok(()) };
        let external = self.work.head(record).external;
        self.work.remove(record)?;
        if external {
            self.effects.push(Effect::Deleted { txid: *txid });
        }
        Ok(())
    }
}
