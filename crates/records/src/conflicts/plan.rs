//! Carrying out an intent: steps 2 to 5, each of which can be repeated.
//!
//! The list of an intent is the winners, the placeholder (which is no transaction), the losers.
//! Losers that turn up late are written down before they are touched: a new intent with the longer
//! list takes the place of the old one.

use std::collections::{BTreeSet, HashSet};

use varve_types::{Outpoint, Txid};

use super::claim::Claim;
use super::closure::read;
use super::{ConflictError, Result};
use crate::error::RecordError;
use crate::fields::Fields;
use crate::intent::Intent;
use crate::operation::{Operation, SlotRef, Unspend};
use crate::slot::Slot;
use crate::spending_data::{PLACEHOLDER, SpendingData};
use crate::store::{Store, StoreError};

/// An intent that is written down, being carried out.
#[derive(Debug)]
pub(super) struct Plan {
    intent: Intent,
}

/// What marking found.
#[derive(Default)]
struct Marked {
    /// What losers may have spent.
    spends: Vec<Unspend>,
    /// Losers that have no record.
    absent: HashSet<Txid>,
    /// Losers that sold an output to one without a record.
    sold: Vec<Txid>,
}

impl Plan {
    /// The plan of an intent that is written down.
    pub(super) const fn of(intent: Intent) -> Self {
        Self { intent }
    }

    /// Writes an intent down, in place of the one before.
    pub(super) fn begin(store: &Store, intent: Intent, before: Option<Self>) -> Result<Self> {
        let id = intent.id();
        store.apply_one(Operation::BeginIntent(intent.clone()))?;
        if let Some(before) = before.map(|plan| plan.intent.id()).filter(|before| *before != id) {
            store.apply_one(Operation::CompleteIntent(before))?;
        }
        Ok(Self { intent })
    }

    pub(super) fn winners(&self) -> &[Txid] {
        self.intent.winners()
    }

    pub(super) fn losers(&self) -> &[Txid] {
        self.intent.losers()
    }

    pub(super) fn into_losers(self) -> Vec<Txid> {
        self.losers().to_vec()
    }

    pub(super) const fn intent(&self) -> &Intent {
        &self.intent
    }

    pub(super) fn into_intent(self) -> Intent {
        self.intent
    }

    /// Steps 2 to 5.
    pub(super) fn carry_out(&mut self, store: &Store) -> Result<()> {
        let claims = Claim::read(store, self.winners(), self.intent.height);
        let claims = claims.map_err(|error| self.stuck(error))?;
        let marked = self.mark(store)?;
        let owners = self.free(store, &marked, &claims)?;
        spend(store, claims)?;
        tolerate_missing(store.set_conflicting(self.winners(), false)?)?;
        self.end(store, &owners)
    }

    /// Leaves records as they are, but for the locks and the schedule that steps 2 and 3 changed.
    pub(super) fn abandon(&self, store: &Store) -> Result<()> {
        let owners = self.owners(store)?;
        self.end(store, &owners)
    }

    /// The owners of all outputs that step 3 may have freed, and so locked.
    pub(super) fn owners(&self, store: &Store) -> Result<Vec<Txid>> {
        let records = read(store, self.losers(), Fields::INPOINTS)?;
        let inputs = records.iter().flat_map(|record| &record.inputs);
        let mut owners: BTreeSet<Txid> = inputs.map(|input| input.txid).collect();
        if records.len() < self.losers().len() {
            let present: HashSet<Txid> = records.iter().map(|record| record.txid).collect();
            owners.extend(self.owners_without_record(store, &present)?);
        }
        Ok(owners.into_iter().collect())
    }

    /// The same for losers without a record. What they held is unknown once it is free, so
    /// these are all from whom they can have held something: losers, and owners of claimed outputs
    /// that are free, or held by a winner or by one without a record.
    fn owners_without_record(
        &self,
        store: &Store,
        present: &HashSet<Txid>,
    ) -> Result<BTreeSet<Txid>> {
        let winners = read(store, self.winners(), Fields::INPOINTS)?;
        let claimed: Vec<Outpoint> = winners.into_iter().flat_map(|record| record.inputs).collect();
        let possible: HashSet<&Txid> =
            self.intent.txids.iter().filter(|txid| !present.contains(txid)).collect();
        let freed = |slot: &Slot| slot.spender().is_none_or(|by| possible.contains(&by.txid));
        let mut owners: BTreeSet<Txid> = present.iter().copied().collect();
        for (outpoint, slot) in claimed.iter().zip(slots(store, &claimed)?) {
            if slot.is_some_and(|slot| freed(&slot)) {
                owners.insert(outpoint.txid);
            }
        }
        Ok(owners)
    }

    /// Step 2. What spent a loser since the look is a loser as well. When no loser is left to mark,
    /// none can be spent any more.
    fn mark(&mut self, store: &Store) -> Result<Marked> {
        let mut marked = Marked::default();
        let mut known: HashSet<Txid> = self.losers().iter().copied().collect();
        let mut done = 0;
        while done < self.losers().len() {
            let losers = self.losers().get(done..).unwrap_or_default();
            let answers = store.set_conflicting(losers, true)?;
            let mut late = Vec::new();
            let mut sold = Vec::new();
            for (txid, answer) in losers.iter().zip(answers) {
                match answer {
                    Err(RecordError::TxNotFound { .. }) => drop(marked.absent.insert(*txid)),
                    Err(error) => return Err(StoreError::from(error).into()),
                    Ok(found) => {
                        marked.spends.extend(found.parents);
                        late.extend(found.spenders.iter().filter(|txid| known.insert(**txid)));
                        sold.extend((!found.spenders.is_empty()).then_some(*txid));
                    }
                }
            }
            marked.sold.extend(sold);
            done += losers.len();
            if !late.is_empty() {
                self.add_losers(store, &late)?;
            }
        }
        Ok(marked)
    }

    /// Writes late losers down.
    fn add_losers(&mut self, store: &Store, late: &[Txid]) -> Result<()> {
        if let Some(txid) = late.iter().find(|txid| self.winners().contains(txid)) {
            let reason = "it builds on a transaction that it makes lose";
            let error = RecordError::Processing { txid: *txid, reason };
            return Err(ConflictError::Stuck { txid: *txid, error });
        }
        let mut intent = self.intent.clone();
        intent.txids.extend_from_slice(late);
        let before = Self::of(std::mem::replace(&mut self.intent, intent.clone()));
        *self = Self::begin(store, intent, Some(before))?;
        Ok(())
    }

    /// Step 3. Takes back what losers spent. Returns the owners of what they may have spent.
    fn free(&self, store: &Store, marked: &Marked, claims: &[Claim]) -> Result<Vec<Txid>> {
        let outpoints: Vec<Outpoint> =
            marked.spends.iter().map(|spend| spend.slot.outpoint).collect();
        let slots = slots(store, &outpoints)?;
        let owned = marked.spends.iter().zip(&slots).filter(|(spend, slot)| {
            slot.is_some_and(|slot: Slot| slot.spender() == Some(spend.by))
        });
        let mut owned: Vec<Unspend> = owned.map(|(spend, _)| *spend).collect();
        if !marked.absent.is_empty() {
            owned.extend(marked.held_without_record(store, claims)?);
        }
        let mut owners: BTreeSet<Txid> = outpoints.iter().map(|outpoint| outpoint.txid).collect();
        owners.extend(owned.iter().map(|spend| spend.slot.outpoint.txid));
        if !owned.is_empty() {
            store.unspend(owned, true)?;
        }
        Ok(owners.into_iter().collect())
    }

    /// The end of step 5: unlocks owners, puts losers back on the schedule, which a lock took them
    /// from, and crosses the intent out.
    fn end(&self, store: &Store, owners: &[Txid]) -> Result<()> {
        match store.set_locked(owners, false) {
            Ok(()) | Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let losers = read(store, self.losers(), Fields::HEAD)?;
        let losers = losers.iter().filter(|record| record.conflicting);
        let losers: Vec<Txid> = losers.map(|record| record.txid).collect();
        tolerate_missing(store.set_conflicting(&losers, true)?)?;
        store.apply_one(Operation::CompleteIntent(self.intent.id()))?;
        Ok(())
    }

    /// What a winner that cannot be read means for the intent.
    fn stuck(&self, error: ConflictError) -> ConflictError {
        match error {
            ConflictError::Store(StoreError::Record(error)) => {
                let first = self.winners().first().copied().unwrap_or(PLACEHOLDER);
                let txid = match &error {
                    RecordError::TxNotFound { txid } => *txid,
                    _ => first,
                };
                ConflictError::Stuck { txid, error }
            }
            error => error,
        }
    }
}

impl Marked {
    /// What losers without a record hold of the winners' claims and of other losers.
    fn held_without_record(&self, store: &Store, claims: &[Claim]) -> Result<Vec<Unspend>> {
        let spends = claims.iter().flat_map(Claim::spends);
        let claimed: Vec<Outpoint> = spends.map(|spend| spend.outpoint).collect();
        let mut found: Vec<(Outpoint, Option<Slot>)> =
            claimed.iter().copied().zip(slots(store, &claimed)?).collect();
        for txid in &self.sold {
            for record in read(store, &[*txid], Fields::UTXOS)? {
                let outpoint = |vout| Outpoint::new(record.txid, vout);
                let slots = (0_u32..).zip(record.utxos);
                found.extend(slots.map(|(vout, slot)| (outpoint(vout), slot)));
            }
            found.retain(|(_, slot)| self.holder(slot.as_ref()).is_some());
        }
        let unspend = |(outpoint, slot): (Outpoint, Option<Slot>)| {
            let by = self.holder(slot.as_ref())?;
            Some(Unspend { slot: SlotRef { outpoint, hash: slot?.hash }, by })
        };
        Ok(found.into_iter().filter_map(unspend).collect())
    }

    /// The loser without a record that holds this slot.
    fn holder(&self, slot: Option<&Slot>) -> Option<SpendingData> {
        slot.and_then(Slot::spender).filter(|by| self.absent.contains(&by.txid))
    }
}

/// Step 4. Winners spend what they claim.
fn spend(store: &Store, claims: Vec<Claim>) -> Result<()> {
    let winners: Vec<Txid> = claims.iter().map(|claim| claim.txid).collect();
    let operations: Vec<Operation> = claims.into_iter().map(Claim::into_operation).collect();
    for (txid, answer) in winners.into_iter().zip(store.apply(&operations)?) {
        answer.map_err(|error| ConflictError::Stuck { txid, error })?;
    }
    Ok(())
}

fn slots(store: &Store, outpoints: &[Outpoint]) -> Result<Vec<Option<Slot>>> {
    let views = store.engine().slots(outpoints).map_err(StoreError::from)?;
    Ok(views.into_iter().map(|view| view.and_then(|view| view.slot)).collect())
}

/// The answers of those that are there: a record may have been removed since the intent.
fn tolerate_missing<T>(answers: Vec<Result<T, RecordError>>) -> Result<Vec<T>> {
    let present = |answer| match answer {
        Err(RecordError::TxNotFound { .. }) => None,
        answer => Some(answer),
    };
    let answers: Result<Vec<T>, RecordError> = answers.into_iter().filter_map(present).collect();
    Ok(answers.map_err(StoreError::from)?)
}
