//! The life of a record: blocks, locks, conflicts, preservation, deletion.

use varve_types::{Height, Outpoint, Txid};

use super::unit::distinct;
use super::{Result, Work, above, written};
use crate::engine::Limits;
use crate::error::RecordError;
use crate::fields::Fields;
use crate::operation::{MinedBlockInfo, SlotRef, Unspend};
use crate::outcome::{Effect, Reply};
use crate::record::{BlockId, Record};
use crate::slot::Slot;
use crate::spending_data::{PLACEHOLDER, SpendingData};

impl Work<'_> {
    pub(super) fn set_mined(&mut self, txid: Txid, info: &MinedBlockInfo) -> Result<Reply> {
        let height = above(self.context.height, 1);
        if info.unset && !self.state.records.contains_key(&txid) {
            return Ok(Reply::Blocks(Vec::new()));
        }
        let record = self.record(txid)?;
        let place = record.blocks.iter().position(|block| block.id == info.block.id);
        match (place, info.unset) {
            (Some(place), true) => drop(record.blocks.remove(place)),
            (None, false) => record.blocks.push(info.block),
            (Some(_), false) | (None, true) => {}
        }
        if record.blocks.is_empty() {
            record.unmined_since = Some(height);
        } else if info.on_longest_chain {
            record.unmined_since = None;
        }
        record.locked = false;
        record.creating = false;
        let blocks = record.block_ids();
        self.reschedule(txid, height);
        Ok(Reply::Blocks(blocks))
    }

    pub(super) fn remove_blocks(&mut self, txid: Txid, blocks: &[BlockId]) -> Reply {
        let height = above(self.context.height, 1);
        let Some(record) = self.state.records.get_mut(&txid) else { return Reply::Done };
        let before = record.blocks.len();
        record.blocks.retain(|block| !blocks.contains(&block.id));
        if record.blocks.len() == before {
            return Reply::Done;
        }
        if record.blocks.is_empty() {
            record.unmined_since = Some(height);
        }
        self.reschedule(txid, height);
        Reply::Done
    }

    pub(super) fn mark_on_longest_chain(&mut self, txid: Txid, is: bool) -> Result<Reply> {
        let height = written(self.context.height);
        self.record(txid)?.unmined_since = if is { None } else { Some(height) };
        Ok(Reply::Done)
    }

    pub(super) fn set_locked(&mut self, txid: Txid, locked: bool) -> Result<Reply> {
        self.record(txid)?.locked = locked;
        if locked {
            self.lock(txid);
        }
        Ok(Reply::Done)
    }

    /// Locks a record and takes it from the schedule.
    pub(super) fn lock(&mut self, txid: Txid) {
        self.change(txid, |record| record.locked = true);
        self.keep_on(txid);
    }

    pub(super) fn set_conflicting(&mut self, txid: Txid, conflicting: bool) -> Result<Reply> {
        if txid == PLACEHOLDER {
            return Ok(Reply::Conflicting { parents: Vec::new(), spenders: Vec::new() });
        }
        let record = self.record(txid)?;
        record.conflicting = conflicting;
        let inputs = record.inputs.clone();
        let spenders = record.utxos.iter().flatten().filter_map(Slot::spender);
        let spenders = distinct(spenders.map(|data| data.txid));
        self.reschedule(txid, self.context.height);
        self.list_conflicting(txid, &inputs);
        let inputs = (0_u32..).zip(&inputs);
        let parents = inputs.filter_map(|(vin, outpoint)| {
            let parent = self.state.records.get(&outpoint.txid)?;
            let slot = parent.utxos.get(outpoint.vout as usize)?.as_ref()?;
            let slot = SlotRef { outpoint: *outpoint, hash: slot.hash };
            Some(Unspend { slot, by: SpendingData::new(txid, vin) })
        });
        Ok(Reply::Conflicting { parents: parents.collect(), spenders })
    }

    /// Each parent that has a record lists this transaction as a conflicting child.
    pub(super) fn list_conflicting(&mut self, txid: Txid, inputs: &[Outpoint]) {
        for input in inputs {
            self.change(input.txid, |parent| {
                if !parent.children.conflicting.contains(&txid) {
                    parent.children.conflicting.push(txid);
                }
            });
        }
    }

    pub(super) fn remove_conflicting_child(&mut self, txid: Txid, child: Txid) -> Reply {
        let remove = |record: &mut Record| record.children.conflicting.retain(|id| *id != child);
        self.change(txid, remove);
        Reply::Done
    }

    pub(super) fn preserve_until(&mut self, txid: Txid, height: Height) -> Result<Reply> {
        if height == Height::GENESIS {
            return Err(RecordError::Processing { txid, reason: "the height must be above 0" });
        }
        let record = self.record(txid)?;
        record.delete_at = None;
        record.preserve_until = Some(height);
        if record.external {
            self.effects.push(Effect::PreserveUntil { txid, height });
        }
        Ok(Reply::Done)
    }

    pub(super) fn restore(&mut self, record: &Record, limits: Limits) -> Result<Reply> {
        let txid = record.txid;
        let refused = |reason| Err(RecordError::Processing { txid, reason });
        if txid == PLACEHOLDER {
            return refused("the placeholder is no transaction");
        }
        let body = match &record.body {
            Some(body) if record.fields == Fields::ALL => body,
            _ => return refused("a record is restored with all its fields"),
        };
        let size = body.bytes().map_or(0, |bytes| bytes.len() as u64);
        if size > limits.body {
            return Err(RecordError::TooBig { txid, size, limit: limits.body });
        }
        self.state.records.insert(txid, record.clone());
        Ok(Reply::Done)
    }

    pub(super) fn delete(&mut self, txid: Txid) -> Reply {
        if self.state.records.remove(&txid).is_some_and(|record| record.external) {
            self.effects.push(Effect::Deleted { txid });
        }
        Reply::Done
    }
}
