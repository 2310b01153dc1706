//! A record that another engine had, as it was.

use std::convert::Infallible;
use std::sync::Arc;

use varve_types::Txid;

use super::{Failure, Head, Outcomes, Parts, Rules, Working};
use crate::error::RecordError;
use crate::fields::Fields;
use crate::operation::NewRecord;
use crate::record::{Body, Record};
use crate::slot::Slot;
use crate::spending_data::PLACEHOLDER;

impl<W: Working> Rules<'_, W> {
    pub(super) fn restore(&mut self, record: &Record) -> Outcomes<W, ()> {
        let body = self.check_restored(record)?;
        let txid = record.txid;
        if let Some(old) = self.work.find(&txid)? {
            self.work.remove(old)?;
        }
        self.work.create(&txid, &as_new(record, body), head(record))?;
        // What was created just now is at hand, so nothing is looked up from here on.
        let at = self.record(&txid)?;
        for (vout, slot) in (0_u32..).zip(&record.utxos) {
            let spending = slot.as_ref().and_then(|slot| slot.spending);
            if let (Some(by), Some(slot)) = (spending, self.work.slot(at, vout)?) {
                self.work.get_mut(slot).spending = Some(by);
            }
        }
        self.restore_alerts(at, record)?;
        for child in &record.children.deleted {
            for vout in noted_at(record, child) {
                self.work.bring_place(at, vout)?;
                self.work.add_pruned_child(at, vout, *child);
            }
        }
        Ok(())
    }

    /// The transaction of a record that can be restored.
    fn check_restored<'a>(&self, record: &'a Record) -> Outcomes<W, &'a Body> {
        let txid = record.txid;
        let refused = |reason| Failure::Refused(RecordError::Processing { txid, reason });
        if txid == PLACEHOLDER {
            return Err(refused("the placeholder is no transaction"));
        }
        let body = record.body.as_ref().filter(|_| record.fields == Fields::ALL);
        let body = body.ok_or_else(|| refused("a record is restored with all its fields"))?;
        let (size, limit) = (body.bytes().map_or(0, |b| b.len() as u64), self.limits.body);
        if size > limit {
            return Err(Failure::Refused(RecordError::TooBig { txid, size, limit }));
        }
        Ok(body)
    }

    fn restore_alerts(&mut self, at: W::Record, record: &Record) -> Outcomes<W, ()> {
        for (vout, window) in &record.alerts.windows {
            if let Some(slot) = self.work.slot(at, *vout)? {
                self.work.set_window(slot, Some(*window));
            }
        }
        for reassignment in &record.alerts.reassignments {
            let spendable = record.alerts.spendable_in.get(&reassignment.vout);
            let slot = self.work.slot(at, reassignment.vout)?;
            if let (Some(slot), Some(spendable)) = (slot, spendable) {
                self.work.reassigned(slot, *reassignment, *spendable);
            }
            self.work.head_mut(at).reassignments += 1;
        }
        Ok(())
    }
}

/// The outputs at which a pruned spender is noted. A reader does not see which those were: where it
/// is the spender, and for one that gave everything back, any.
fn noted_at(record: &Record, child: &Txid) -> Vec<u32> {
    let held = (0_u32..).zip(&record.utxos).filter(|(_, slot)| {
        slot.as_ref().and_then(Slot::spender).is_some_and(|by| by.txid == *child)
    });
    let held: Vec<u32> = held.map(|(vout, _)| vout).collect();
    if held.is_empty() {
        return (0..record.total_utxos.max(1)).collect();
    }
    held
}

/// The record as if it were created: what never changes.
fn as_new(record: &Record, body: &Body) -> NewRecord {
    let hash = |slot: &Option<Slot>| slot.as_ref().map(|slot| slot.hash);
    NewRecord {
        version: record.version,
        lock_time: record.lock_time,
        fee: record.fee,
        size: record.size,
        extended_size: record.extended_size,
        is_coinbase: record.is_coinbase,
        spending_height: record.spending_height,
        body: body.clone(),
        inputs: record.inputs.clone(),
        utxos: Arc::new(record.utxos.iter().map(hash).collect()),
        batch: record.batch,
        height: record.unmined_since.unwrap_or_default(),
        created_at: record.created_at,
        blocks: record.blocks.clone(),
        frozen: false,
        conflicting: record.conflicting,
        locked: record.locked,
        creating: record.creating,
    }
}

/// The head, without the number of reassignments, which come one by one.
fn head(record: &Record) -> Head {
    let parts = record.parts.iter().copied().map(Ok::<_, Infallible>);
    Head {
        version: record.version,
        lock_time: record.lock_time,
        fee: record.fee,
        size: record.size,
        extended_size: record.extended_size,
        is_coinbase: record.is_coinbase,
        spending_height: record.spending_height,
        created_at: record.created_at,
        external: record.external,
        locked: record.locked,
        conflicting: record.conflicting,
        creating: record.creating,
        unmined_since: record.unmined_since,
        preserve_until: record.preserve_until,
        delete_at: record.delete_at,
        blocks: record.blocks.clone(),
        total_utxos: record.total_utxos,
        frozen_utxos: record.frozen_utxos,
        batch: record.batch,
        parts: Parts::collect(parts).unwrap_or_else(|never| match never {}),
        reassignments: 0,
        conflicting_children: record.children.conflicting.clone(),
    }
}
