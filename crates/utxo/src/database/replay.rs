//! Resolving a block from what a crash has left of it.
//!
//! A block that was connected before a crash and after the last checkpoint has an undo record that
//! may have survived. The record holds every coin that the block took, with its birth: when the
//! owner appends the block again, nothing has to be looked up on disk.
//!
//! **Why it may be believed.** Every step pushes to the undo log or disconnects the tip. The log
//! gives its next survivor only, cuts all of them off at the first push that differs, and gives
//! none whose parent is not the present tip. So when a survivor has the sequence of the step to
//! come, the steps since the checkpoint have been the same as before the crash: the set is the
//! same, and the record is the one that looking up would lead to. That it names the same block,
//! prevouts and outputs is compared all the same.

use varve_consensus::BlockAt;
use varve_types::Outpoint;

use super::Database;
use crate::changes::Changes;
use crate::error::Error;
use crate::sequence::Sequence;
use crate::undo::UndoRecord;
use crate::window::{Lookup, Spend};

impl Database {
    /// The record of this block, if it is what the step `sequence` left before a crash.
    pub(super) fn survivor(
        &self,
        sequence: Sequence,
        block: &BlockAt<'_>,
        changes: &Changes<'_>,
    ) -> Result<Option<UndoRecord>, Error> {
        let survivor = self.undo.survivor()?;
        let previous = block.block().header().previous();
        let is_same = |record: &UndoRecord| {
            let created = changes.created().map(|(outpoint, _)| outpoint);
            let spent = record.spent.iter().map(|entry| entry.outpoint);
            (record.sequence, record.height) == (sequence, block.height())
                && (record.block, record.previous) == (block.hash(), previous)
                && created.eq(record.created.iter().copied())
                && spent.take(changes.prevouts.len()).eq(changes.prevouts.iter().copied())
        };
        Ok(survivor.filter(is_same))
    }

    /// The spends of a record, with the places of those that the window has.
    pub(super) fn spends_of(&self, record: &UndoRecord) -> Vec<Spend> {
        let keys: Vec<Outpoint> = record.spent.iter().map(|entry| entry.outpoint).collect();
        let mut found = Vec::with_capacity(keys.len());
        self.window.version().lookup(&keys, &mut found);
        let spend = |(entry, found): (crate::entry::Entry<'_>, Lookup<'_>)| {
            let (outpoint, birth) = (entry.outpoint, entry.birth);
            let location = match found {
                Lookup::Found(found) if found.birth == birth => Some(found.location),
                _ => None,
            };
            Spend { outpoint, birth, location }
        };
        record.spent.iter().zip(found).map(spend).collect()
    }
}
