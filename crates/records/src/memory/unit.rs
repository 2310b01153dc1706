//! Spending and creating, and taking spends back.

use std::collections::{BTreeMap, BTreeSet};

use varve_types::{Height, Outpoint, Txid};

use super::{Result, Work, above, written};
use crate::engine::Limits;
use crate::error::{RecordError, SlotError, SpendItem};
use crate::fields::Fields;
use crate::operation::{NewRecord, Spend, SpendPart, SpendRules, Unit, Unspend};
use crate::outcome::{Effect, Reply, Spent, SpentHow};
use crate::record::{Alerts, Body, Children, PartCounts, Record};
use crate::slot::{Slot, SlotState};
use crate::spending_data::{PLACEHOLDER, SpendingData};

impl Work<'_> {
    pub(super) fn unit(&mut self, unit: &Unit, limits: Limits) -> Result<Reply> {
        let txid = unit.txid;
        check_request(unit, limits)?;
        let mut spent = Vec::new();
        if let Some(part) = &unit.spend {
            spent = self.judge_all(txid, part)?;
            self.write_spends(txid, part, &spent);
        }
        let Some(new) = &unit.create else { return Ok(Reply::Unit(spent)) };
        if let Some(record) = self.state.records.get_mut(&txid) {
            record.creating = false;
            return Err(RecordError::TxExists { txid });
        }
        self.create(txid, new);
        Ok(Reply::Unit(spent))
    }

    /// How each spend would succeed, or every spend with what is wrong with it.
    fn judge_all(&self, txid: Txid, part: &SpendPart) -> Result<Vec<Spent>> {
        let mut written = BTreeMap::new();
        let mut spent = Vec::new();
        let mut items = Vec::new();
        for spend in &part.spends {
            let by = SpendingData::new(txid, spend.vin);
            let judged = self.judge(spend, by, part.rules, &written);
            items.push(SpendItem {
                outpoint: spend.outpoint,
                error: judged.as_ref().err().copied(),
            });
            if let Ok(judged) = judged {
                if judged.how == SpentHow::Written {
                    written.insert(spend.outpoint, by);
                }
                spent.push(judged);
            }
        }
        if items.iter().any(|item| item.error.is_some()) {
            return Err(RecordError::Spend(items));
        }
        Ok(spent)
    }

    /// One spend, in the order of the contract. `written` are the spends of this unit so far.
    fn judge(
        &self,
        spend: &Spend,
        by: SpendingData,
        rules: SpendRules,
        written: &BTreeMap<Outpoint, SpendingData>,
    ) -> Result<Spent, SlotError> {
        let vout = spend.outpoint.vout;
        let Some(record) = self.state.records.get(&spend.outpoint.txid) else {
            if self.state.records.contains_key(&by.txid) {
                return Ok(Spent { how: SpentHow::ParentGone, parent_blocks: Vec::new() });
            }
            return Err(SlotError::TxNotFound);
        };
        if record.creating {
            return Err(SlotError::Creating);
        }
        if record.conflicting && !rules.ignore_conflicting {
            return Err(SlotError::Conflicting);
        }
        if record.locked && !rules.ignore_locked {
            return Err(SlotError::Locked);
        }
        if let Some(spendable) = record.spending_height.filter(|height| *height > rules.height) {
            return Err(SlotError::CoinbaseImmature { spendable });
        }
        if record.utxos.is_empty() {
            return Err(SlotError::UtxosNotFound);
        }
        let place = record.utxos.get(vout as usize);
        let slot = place.and_then(Option::as_ref).ok_or(SlotError::UtxoNotFound)?;
        if slot.hash != spend.hash {
            return Err(SlotError::HashMismatch);
        }
        let rests = record.alerts.spendable_in.get(&vout);
        if let Some(spendable) = rests.copied().filter(|height| *height > rules.height) {
            return Err(SlotError::FrozenUntil { spendable });
        }
        let parent_blocks = record.block_ids();
        if let Some(data) = slot.spending.or(written.get(&spend.outpoint).copied()) {
            if data == by {
                let gone = !self.state.records.contains_key(&by.txid);
                if gone && record.children.deleted.contains(&by.txid) {
                    return Err(SlotError::InvalidSpend);
                }
                return Ok(Spent { how: SpentHow::Again, parent_blocks });
            }
            if data.is_frozen() {
                return Err(SlotError::Frozen);
            }
            return Err(SlotError::Spent { by: data });
        }
        let window = record.alerts.windows.get(&vout);
        if window.is_some_and(|window| window.forbids(rules.tier, rules.height)) {
            return Err(SlotError::Frozen);
        }
        Ok(Spent { how: SpentHow::Written, parent_blocks })
    }

    fn write_spends(&mut self, txid: Txid, part: &SpendPart, spent: &[Spent]) {
        for (spend, spent) in part.spends.iter().zip(spent) {
            if spent.how == SpentHow::Written {
                let by = SpendingData::new(txid, spend.vin);
                self.set_spending(&spend.outpoint, Some(by));
            }
        }
        for parent in distinct(part.spends.iter().map(|spend| spend.outpoint.txid)) {
            self.reschedule(parent, part.rules.height);
        }
    }

    fn create(&mut self, txid: Txid, new: &NewRecord) {
        if new.conflicting {
            self.list_conflicting(txid, &new.inputs);
        }
        let mut record = new_record(txid, new);
        if new.conflicting && self.context.retention > 0 {
            let height = above(new.height, self.context.retention);
            record.delete_at = Some(height);
            if record.external {
                self.effects.push(Effect::DeleteAt { txid, height });
            }
        }
        self.state.records.insert(txid, record);
    }

    pub(super) fn unspend(&mut self, spends: &[Unspend], lock_parents: bool) -> Result<Reply> {
        for spend in spends {
            let outpoint = spend.slot.outpoint;
            let slot = self.state.slot(&spend.slot);
            let frozen =
                |slot: &Slot| if slot.is_frozen() { Err(SlotError::Frozen) } else { Ok(()) };
            slot.and_then(frozen).map_err(|error| RecordError::Slot { outpoint, error })?;
        }
        let mut taken_back = Vec::new();
        for spend in spends {
            let slot = self.state.slot(&spend.slot).expect("looked at above");
            let owned = slot.state() == SlotState::Spent(spend.by);
            if owned {
                self.set_spending(&spend.slot.outpoint, None);
            }
            taken_back.push(owned);
        }
        for parent in distinct(spends.iter().map(|spend| spend.slot.outpoint.txid)) {
            if lock_parents {
                self.lock(parent);
            } else {
                self.reschedule(parent, self.context.height);
            }
        }
        Ok(Reply::Unspent(taken_back))
    }

    /// Writes or clears who spent an output, and counts.
    pub(super) fn set_spending(&mut self, outpoint: &Outpoint, spending: Option<SpendingData>) {
        let record = self.state.records.get_mut(&outpoint.txid).expect("it was looked at");
        let slot = record.utxos.get_mut(outpoint.vout as usize).and_then(Option::as_mut);
        slot.expect("it was looked at").spending = spending;
        let part = record.batch.place(outpoint.vout).part as usize;
        let counts = record.parts.get_mut(part).expect("every slot has its part");
        match spending {
            Some(_) => counts.spent += 1,
            None => counts.spent -= 1,
        }
    }
}

/// What can be refused without looking at any record.
fn check_request(unit: &Unit, limits: Limits) -> Result<()> {
    let txid = unit.txid;
    if txid == PLACEHOLDER {
        return Err(RecordError::Processing { txid, reason: "the placeholder is no transaction" });
    }
    if unit.spend.as_ref().is_some_and(|part| part.rules.height == Height::GENESIS) {
        return Err(RecordError::Processing { txid, reason: "the height must be above 0" });
    }
    let body = unit.create.as_ref().and_then(NewRecord::body_bytes);
    let size = body.map_or(0, |bytes| bytes.len() as u64);
    if size > limits.body {
        return Err(RecordError::TooBig { txid, size, limit: limits.body });
    }
    Ok(())
}

fn new_record(txid: Txid, new: &NewRecord) -> Record {
    let spending = new.frozen.then_some(SpendingData::FROZEN);
    let slot = |hash| Slot { hash, spending };
    let utxos: Vec<Option<Slot>> = new.utxos.iter().map(|hash| hash.map(slot)).collect();
    let count = |slots: &[Option<Slot>]| {
        let utxos = slots.iter().flatten().count();
        PartCounts { utxos: u32::try_from(utxos).expect("at most a batch"), spent: 0 }
    };
    let mut parts: Vec<PartCounts> = utxos.chunks(new.batch.get() as usize).map(count).collect();
    if parts.is_empty() {
        parts.push(PartCounts::default());
    }
    let slots = parts.iter().map(|part| part.utxos).sum();
    Record {
        txid,
        version: new.version,
        lock_time: new.lock_time,
        fee: new.fee,
        size: new.size,
        extended_size: new.extended_size,
        is_coinbase: new.is_coinbase,
        spending_height: new.spending_height,
        created_at: new.created_at,
        external: new.body == Body::External,
        locked: new.locked,
        conflicting: new.conflicting,
        creating: new.creating,
        unmined_since: new.blocks.is_empty().then_some(written(new.height)),
        preserve_until: None,
        delete_at: None,
        blocks: new.blocks.clone(),
        total_utxos: u32::try_from(utxos.len()).expect("fewer than 2^32 outputs"),
        frozen_utxos: if new.frozen { slots } else { 0 },
        batch: new.batch,
        parts,
        fields: Fields::ALL,
        body: Some(new.body.clone()),
        inputs: new.inputs.clone(),
        utxos,
        alerts: Alerts::default(),
        children: Children::default(),
    }
}

/// Each txid once, in the order of first appearance.
pub(super) fn distinct(txids: impl Iterator<Item = Txid>) -> Vec<Txid> {
    let mut seen = BTreeSet::new();
    txids.filter(|txid| seen.insert(*txid)).collect()
}
