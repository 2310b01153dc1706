//! From chunks to what readers ask for.

use super::chunk::{CHUNK, Chunk};
use super::state::State;
use crate::engine::SlotView;
use crate::fields::Fields;
use crate::record::{Reassignment, Record};

/// Whether any of these fields is kept with the slots.
pub(crate) fn are_needed(fields: Fields) -> bool {
    [Fields::UTXOS, Fields::ALERTS, Fields::CHILDREN].iter().any(|field| fields.contains(*field))
}

/// The fields that are kept with the slots, on their way into a record.
pub(crate) struct Slots<'a> {
    record: &'a mut Record,
    reassignments: Vec<(u32, Reassignment)>,
}

impl<'a> Slots<'a> {
    /// For a record whose `fields` say what is wanted.
    pub(crate) const fn of(record: &'a mut Record) -> Self {
        Self { record, reassignments: Vec::new() }
    }

    /// Takes the next chunk.
    pub(crate) fn add(&mut self, chunk: &Chunk) {
        let Self { record, reassignments } = self;
        let fields = record.fields;
        if fields.contains(Fields::UTXOS) {
            record.utxos.extend_from_slice(&chunk.slots);
        }
        let Some(notes) = &chunk.notes else { return };
        if fields.contains(Fields::ALERTS) {
            record.alerts.spendable_in.extend(notes.resting.iter().copied());
            record.alerts.windows.extend(notes.windows.iter().copied());
            reassignments.extend_from_slice(&notes.reassignments);
        }
        if fields.contains(Fields::CHILDREN) {
            record.children.deleted.extend(notes.pruned.iter().copied());
        }
    }

    /// Puts what came in pieces in its order.
    pub(crate) fn finish(mut self) {
        self.reassignments.sort_by_key(|(order, _)| *order);
        let reassignments = self.reassignments.into_iter().map(|(_, one)| one).collect();
        self.record.alerts.reassignments = reassignments;
    }
}

/// One slot. Behind the first eight it is in a further chunk.
pub(crate) fn view(state: &State, further: Option<&Chunk>, vout: u32) -> SlotView {
    let head = &state.head;
    let first = Some(&state.first).filter(|_| vout < CHUNK && vout < head.total_utxos);
    let chunk = first.or(further);
    let slot = chunk.and_then(|chunk| chunk.slots.get((vout % CHUNK) as usize));
    SlotView {
        slot: slot.copied().flatten(),
        spendable_in: chunk.and_then(|chunk| chunk.resting(vout)),
        window: chunk.and_then(|chunk| chunk.window(vout)),
        spending_height: head.spending_height,
        lock_time: head.lock_time,
        conflicting: head.conflicting,
        locked: head.locked,
        creating: head.creating,
        blocks: head.blocks.clone(),
    }
}
