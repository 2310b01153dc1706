//! Spending, in the order of the contract, and taking spends back.

use std::collections::{BTreeMap, BTreeSet};

use varve_types::{Height, Txid};

use super::{Failure, Outcomes, Rules, Working, refused};
use crate::error::{RecordError, SlotError, SpendItem};
use crate::operation::{Spend, SpendPart, SpendRules, Unit, Unspend};
use crate::outcome::{Reply, Spent, SpentHow};
use crate::slot::SlotState;
use crate::spending_data::{PLACEHOLDER, SpendingData};

/// What a spend found before it is judged.
type Found<W> = Option<(<W as Working>::Record, Option<<W as Working>::Slot>)>;

impl<W: Working> Rules<'_, W> {
    pub(super) fn unit(&mut self, unit: &Unit) -> Outcomes<W, Reply> {
        self.check_request(unit)?;
        let own = self.work.find(&unit.txid)?;
        let mut spent = Vec::new();
        let mut parents = Vec::new();
        if let Some(part) = &unit.spend {
            let found = self.look_up(part)?;
            spent =
                self.judge_all(Spender { txid: unit.txid, known: own.is_some() }, part, &found)?;
            parents = found;
        }
        let losing_to = match (&unit.create, own) {
            (Some(new), None) if new.conflicting => self.owners(&new.inputs)?,
            _ => Vec::new(),
        };
        if let Some(new) = unit.create.as_ref().filter(|_| own.is_none()) {
            let head = self.new_head(&unit.txid, new);
            self.work.create(&unit.txid, new, head)?;
        }
        // Nothing can fail from here on.
        if let Some(part) = &unit.spend {
            self.write_spends(unit.txid, part, &spent, &parents);
        }
        let Some(new) = &unit.create else { return Ok(Reply::Unit(spent)) };
        if let Some(own) = own {
            if self.work.head(own).creating {
                self.work.head_mut(own).creating = false;
            }
            return Err(Failure::Refused(RecordError::TxExists { txid: unit.txid }));
        }
        self.list_conflicting(unit.txid, losing_to.into_iter().map(|(_, parent)| parent));
        self.schedule_new(unit.txid, new);
        Ok(Reply::Unit(spent))
    }

    /// What can be refused without looking at any record.
    fn check_request(&self, unit: &Unit) -> Outcomes<W, ()> {
        let txid = unit.txid;
        let processing = |reason| Err(Failure::Refused(RecordError::Processing { txid, reason }));
        if txid == PLACEHOLDER {
            return processing("the placeholder is no transaction");
        }
        if unit.spend.as_ref().is_some_and(|part| part.rules.height == Height::GENESIS) {
            return processing("the height must be above 0");
        }
        let body = unit.create.as_ref().and_then(|new| new.body_bytes());
        let (size, limit) = (body.map_or(0, |body| body.len() as u64), self.limits.body);
        if size > limit {
            return Err(Failure::Refused(RecordError::TooBig { txid, size, limit }));
        }
        Ok(())
    }

    /// Brings the record and the slot of each spend.
    fn look_up(&mut self, part: &SpendPart) -> Outcomes<W, Vec<Found<W>>> {
        let mut all = Vec::with_capacity(part.spends.len());
        for spend in &part.spends {
            let Some(record) = self.work.find(&spend.outpoint.txid)? else {
                all.push(None);
                continue;
            };
            let slot = self.work.slot(record, spend.outpoint.vout)?;
            all.push(Some((record, slot)));
        }
        Ok(all)
    }

    /// How each spend succeeds, or all of them with what is wrong with each.
    fn judge_all(
        &self,
        spender: Spender,
        part: &SpendPart,
        found: &[Found<W>],
    ) -> Outcomes<W, Vec<Spent>> {
        let mut spent = Vec::with_capacity(part.spends.len());
        let mut errors = Vec::new();
        // The slots that this unit has taken so far, when it could meet one again.
        let mut taken: BTreeMap<W::Slot, SpendingData> = BTreeMap::new();
        for (index, (spend, found)) in part.spends.iter().zip(found).enumerate() {
            let slot = found.and_then(|(_, slot)| slot);
            let taken_by = slot.and_then(|slot| taken.get(&slot).copied());
            let target = Target { found: *found, taken_by };
            match self.judge(spend, spender, part.rules, target) {
                Err(error) => errors.push((index, error)),
                Ok(one) => {
                    if one.how == SpentHow::Written && part.spends.len() > 1 {
                        taken.extend(slot.map(|slot| (slot, spender.by(spend))));
                    }
                    spent.push(one);
                }
            }
        }
        if errors.is_empty() {
            return Ok(spent);
        }
        let item = |spend: &Spend| SpendItem { outpoint: spend.outpoint, error: None };
        let mut items: Vec<SpendItem> = part.spends.iter().map(item).collect();
        for (index, error) in errors {
            items.get_mut(index).expect("an item a spend").error = Some(error);
        }
        Err(Failure::Refused(RecordError::Spend(items)))
    }

    fn judge(
        &self,
        spend: &Spend,
        spender: Spender,
        rules: SpendRules,
        target: Target<W>,
    ) -> Result<Spent, SlotError> {
        let Some((record, slot)) = target.found else {
            // Spent once, and pruned since: the spender's record is the proof.
            let gone = Spent { how: SpentHow::ParentGone, parent_blocks: Vec::new() };
            return if spender.known { Ok(gone) } else { Err(SlotError::TxNotFound) };
        };
        let head = self.work.head(record);
        if head.creating {
            return Err(SlotError::Creating);
        }
        if head.conflicting && !rules.ignore_conflicting {
            return Err(SlotError::Conflicting);
        }
        if head.locked && !rules.ignore_locked {
            return Err(SlotError::Locked);
        }
        match head.spending_height {
            Some(spendable) if spendable > rules.height => {
                return Err(SlotError::CoinbaseImmature { spendable });
            }
            _ => {}
        }
        if head.total_utxos == 0 {
            return Err(SlotError::UtxosNotFound);
        }
        let at = slot.ok_or(SlotError::UtxoNotFound)?;
        let slot = self.work.get(at);
        if slot.hash != spend.hash {
            return Err(SlotError::HashMismatch);
        }
        match self.work.spendable_in(at) {
            Some(spendable) if spendable > rules.height => {
                return Err(SlotError::FrozenUntil { spendable });
            }
            _ => {}
        }
        let how = match slot.spending.or(target.taken_by) {
            Some(data) if data == spender.by(spend) => {
                // One that has a record again is no replay of what was pruned.
                if !spender.known && self.work.is_pruned_child(at, &spender.txid) {
                    return Err(SlotError::InvalidSpend);
                }
                SpentHow::Again
            }
            Some(data) if data.is_frozen() => return Err(SlotError::Frozen),
            Some(data) => return Err(SlotError::Spent { by: data }),
            None => {
                let window = self.work.window(at);
                if window.is_some_and(|window| window.forbids(rules.tier, rules.height)) {
                    return Err(SlotError::Frozen);
                }
                SpentHow::Written
            }
        };
        Ok(Spent { how, parent_blocks: head.block_ids() })
    }

    fn write_spends(&mut self, txid: Txid, part: &SpendPart, spent: &[Spent], found: &[Found<W>]) {
        for ((spend, spent), found) in part.spends.iter().zip(spent).zip(found) {
            if spent.how == SpentHow::Written
                && let Some((record, Some(slot))) = *found
            {
                self.work.get_mut(slot).spending = Some(SpendingData::new(txid, spend.vin));
                let counts = self.work.head_mut(record).counts_mut(spend.outpoint.vout);
                counts.spent += 1;
                debug_assert!(counts.spent <= counts.utxos, "a slot is spent once");
            }
        }
        if let ([spend], [Some((record, _))]) = (part.spends.as_slice(), found) {
            return self.reschedule(spend.outpoint.txid, *record, part.rules.height);
        }
        let parents = part.spends.iter().zip(found);
        let parents = parents.filter_map(|(spend, found)| Some((spend.outpoint.txid, (*found)?.0)));
        for (parent, record) in once(parents.collect()) {
            self.reschedule(parent, record, part.rules.height);
        }
    }

    pub(super) fn unspend(&mut self, spends: &[Unspend], lock: bool) -> Outcomes<W, Reply> {
        let mut found = Vec::with_capacity(spends.len());
        for spend in spends {
            let (record, slot) = self.named(&spend.slot)?;
            if self.work.get(slot).is_frozen() {
                return Err(refused(&spend.slot, SlotError::Frozen));
            }
            found.push((record, slot));
        }
        let mut taken_back = Vec::with_capacity(spends.len());
        for (spend, (record, slot)) in spends.iter().zip(&found) {
            let owned = self.work.get(*slot).state() == SlotState::Spent(spend.by);
            if owned {
                self.work.get_mut(*slot).spending = None;
                self.work.head_mut(*record).counts_mut(spend.slot.outpoint.vout).spent -= 1;
            }
            taken_back.push(owned);
        }
        let parents = spends.iter().zip(found);
        let parents = parents.map(|(spend, (record, _))| (spend.slot.outpoint.txid, record));
        for (parent, record) in once(parents.collect()) {
            if lock {
                self.lock(parent, record);
            } else {
                self.reschedule(parent, record, self.context.height);
            }
        }
        Ok(Reply::Unspent(taken_back))
    }
}

/// The transaction whose spends are judged.
#[derive(Clone, Copy)]
struct Spender {
    txid: Txid,
    /// It has a record.
    known: bool,
}

impl Spender {
    const fn by(self, spend: &Spend) -> SpendingData {
        SpendingData::new(self.txid, spend.vin)
    }
}

/// The output that a spend names.
struct Target<W: Working> {
    found: Found<W>,
    /// The input of the same unit that has taken it.
    taken_by: Option<SpendingData>,
}

/// Each once, in the order of first appearance.
pub(super) fn once<R: Copy + Ord>(mut records: Vec<(Txid, R)>) -> Vec<(Txid, R)> {
    if records.len() > 1 {
        let mut seen = BTreeSet::new();
        records.retain(|(_, record)| seen.insert(*record));
    }
    records
}
