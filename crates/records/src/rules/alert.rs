//! What orders from outside do to single outputs.

use super::{Outcomes, Rules, Working, above, refused};
use crate::error::SlotError;
use crate::freeze_window::FreezeWindow;
use crate::operation::SlotRef;
use crate::record::Reassignment;
use crate::settings::REASSIGN_DELAY;
use crate::slot::{Slot, SlotState};
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

impl<W: Working> Rules<'_, W> {
    pub(super) fn freeze(&mut self, named: &SlotRef) -> Outcomes<W, ()> {
        let (record, slot) = self.unspent(named)?;
        self.work.get_mut(slot).spending = Some(SpendingData::FROZEN);
        self.work.head_mut(record).frozen_utxos += 1;
        Ok(())
    }

    pub(super) fn freeze_window(
        &mut self,
        named: &SlotRef,
        window: FreezeWindow,
    ) -> Outcomes<W, ()> {
        let (_, slot) = self.unspent(named)?;
        self.work.set_window(slot, Some(window));
        Ok(())
    }

    /// Takes the mark, the window, or both. One of them must be there.
    pub(super) fn unfreeze(&mut self, named: &SlotRef) -> Outcomes<W, ()> {
        let (record, slot) = self.named(named)?;
        let state = self.work.get(slot).state();
        if state != SlotState::Frozen && self.work.window(slot).is_none() {
            return Err(refused(named, not_frozen(state)));
        }
        if state == SlotState::Frozen {
            self.work.get_mut(slot).spending = None;
            self.work.head_mut(record).frozen_utxos -= 1;
        }
        if self.work.window(slot).is_some() {
            self.work.set_window(slot, None);
        }
        Ok(())
    }

    /// The output must be frozen, by the mark or by a window that is open at this height.
    pub(super) fn reassign(&mut self, named: &SlotRef, to: UtxoHash) -> Outcomes<W, ()> {
        let (record, slot) = self.named(named)?;
        let height = self.context.height;
        let state = self.work.get(slot).state();
        let open = self.work.window(slot).is_some_and(|window| window.is_active(height));
        match state {
            SlotState::Frozen => self.work.head_mut(record).frozen_utxos -= 1,
            SlotState::Unspent if open => {}
            state => return Err(refused(named, not_frozen(state))),
        }
        *self.work.get_mut(slot) = Slot::unspent(to);
        if self.work.window(slot).is_some() {
            self.work.set_window(slot, None);
        }
        let vout = named.outpoint.vout;
        let reassignment = Reassignment { vout, from: named.hash, to, height };
        self.work.reassigned(slot, reassignment, above(height, REASSIGN_DELAY));
        let head = self.work.head_mut(record);
        head.reassignments += 1;
        // One slot more than can ever be spent: the record is kept for ever.
        head.counts_mut(vout).utxos += 1;
        Ok(())
    }

    fn unspent(&mut self, named: &SlotRef) -> Outcomes<W, (W::Record, W::Slot)> {
        let (record, slot) = self.named(named)?;
        match self.work.get(slot).state() {
            SlotState::Unspent => Ok((record, slot)),
            SlotState::Frozen => Err(refused(named, SlotError::AlreadyFrozen)),
            SlotState::Spent(by) => Err(refused(named, SlotError::Spent { by })),
        }
    }
}

/// What is wrong with an output that should be frozen.
fn not_frozen(state: SlotState) -> SlotError {
    match state {
        SlotState::Unspent | SlotState::Frozen => SlotError::InvalidSize,
        SlotState::Spent(_) => SlotError::NotFrozen,
    }
}
