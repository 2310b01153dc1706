//! What orders from outside do to single outputs.

use varve_types::Outpoint;

use super::{Result, Work, above};
use crate::error::{RecordError, SlotError};
use crate::freeze_window::FreezeWindow;
use crate::operation::SlotRef;
use crate::outcome::Reply;
use crate::record::{Reassignment, Record};
use crate::settings::REASSIGN_DELAY;
use crate::slot::{Slot, SlotState};
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

impl Work<'_> {
    pub(super) fn freeze(&mut self, slot: &SlotRef) -> Result<Reply> {
        self.check_unspent(slot)?;
        let (record, found) = self.found(slot);
        found.spending = Some(SpendingData::FROZEN);
        *record += 1;
        Ok(Reply::Done)
    }

    pub(super) fn freeze_window(&mut self, slot: &SlotRef, window: FreezeWindow) -> Result<Reply> {
        self.check_unspent(slot)?;
        self.owner(slot).alerts.windows.insert(slot.outpoint.vout, window);
        Ok(Reply::Done)
    }

    pub(super) fn unfreeze(&mut self, slot: &SlotRef) -> Result<Reply> {
        let state = self.looked_up(slot)?;
        let vout = slot.outpoint.vout;
        let window = self.owner(slot).alerts.windows.contains_key(&vout);
        match state {
            SlotState::Frozen => self.take_mark(slot),
            _ if window => {}
            SlotState::Unspent => return Err(refused(slot, SlotError::InvalidSize)),
            SlotState::Spent(_) => return Err(refused(slot, SlotError::NotFrozen)),
        }
        self.owner(slot).alerts.windows.remove(&vout);
        Ok(Reply::Done)
    }

    pub(super) fn reassign(&mut self, slot: &SlotRef, to: UtxoHash) -> Result<Reply> {
        let state = self.looked_up(slot)?;
        let (vout, height) = (slot.outpoint.vout, self.context.height);
        let window = self.owner(slot).alerts.windows.get(&vout).copied();
        match state {
            SlotState::Frozen => self.take_mark(slot),
            SlotState::Unspent if window.is_some_and(|window| window.is_active(height)) => {}
            SlotState::Unspent => return Err(refused(slot, SlotError::InvalidSize)),
            SlotState::Spent(_) => return Err(refused(slot, SlotError::NotFrozen)),
        }
        let (_, found) = self.found(slot);
        *found = Slot::unspent(to);
        let record = self.owner(slot);
        record.alerts.windows.remove(&vout);
        record.alerts.spendable_in.insert(vout, above(height, REASSIGN_DELAY));
        let reassignment = Reassignment { vout, from: slot.hash, to, height };
        record.alerts.reassignments.push(reassignment);
        let part = record.batch.place(vout).part as usize;
        record.parts.get_mut(part).expect("every slot has its part").utxos += 1;
        Ok(Reply::Done)
    }

    fn looked_up(&self, slot: &SlotRef) -> Result<SlotState> {
        self.state.slot(slot).map(Slot::state).map_err(|error| refused(slot, error))
    }

    fn check_unspent(&self, slot: &SlotRef) -> Result<()> {
        match self.looked_up(slot)? {
            SlotState::Unspent => Ok(()),
            SlotState::Frozen => Err(refused(slot, SlotError::AlreadyFrozen)),
            SlotState::Spent(by) => Err(refused(slot, SlotError::Spent { by })),
        }
    }

    fn take_mark(&mut self, slot: &SlotRef) {
        let (frozen, found) = self.found(slot);
        found.spending = None;
        *frozen -= 1;
    }

    fn owner(&mut self, slot: &SlotRef) -> &mut Record {
        self.state.records.get_mut(&slot.outpoint.txid).expect("it was looked at")
    }

    /// The count of frozen slots of the record, and the slot.
    fn found(&mut self, slot: &SlotRef) -> (&mut u32, &mut Slot) {
        let Outpoint { vout, .. } = slot.outpoint;
        let record = self.owner(slot);
        let place = record.utxos.get_mut(vout as usize).and_then(Option::as_mut);
        (&mut record.frozen_utxos, place.expect("it was looked at"))
    }
}

fn refused(slot: &SlotRef, error: SlotError) -> RecordError {
    RecordError::Slot { outpoint: slot.outpoint, error }
}
