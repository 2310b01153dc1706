//! Replays a block from the undo record that survived a crash.
//!
//! A block that was connected before a crash and after the last checkpoint has an undo record that
//! may have survived. The record holds every coin that the block spent, with its birth: when the
//! owner appends the block again, nothing has to be looked up on disk.
//!
//! **Why it can be trusted.** Every step pushes to the undo log or disconnects the tip, and nothing
//! else does: a refused block has no record. The log returns only its next survivor, discards all
//! of them at the first push that differs, and returns none whose parent is not the current tip. So
//! when a survivor has the sequence of the next step, the steps since the checkpoint have been the
//! same as before the crash: the set is the same, and the record is the one that lookups would
//! produce. It is checked nevertheless that the record names the same block, prevouts and outputs,
//! and that the window does not know any of its coins to be spent.

use varve_consensus::BlockAt;
use varve_runs::Sequence;
use varve_types::Outpoint;

use super::{Database, NextStep};
use crate::changes::Changes;
use crate::entry::Entry;
use crate::error::Error;
use crate::prepare::Repeats;
use crate::undo::UndoRecord;
use crate::window::{Lookup, Spend, Window};

impl Database {
    /// Connects a block on the tip from the record that it left before a crash. `false` when there
    /// is none, and nothing was done.
    pub(super) fn replay(&mut self, block: &BlockAt<'_>) -> Result<bool, Error> {
        let sequence = self.next_sequence()?;
        let Some(record) = self.undo.survivor()? else { return Ok(false) };
        let hasher = self.latest.window().hasher();
        let changes = Changes::of(self.options.network, hasher, block, Repeats::Possible);
        if !is_of(&record, sequence, block, &changes) {
            return Ok(false);
        }
        let Some(spends) = self.spends_of(&record) else { return Ok(false) };
        let entries = changes.spends() + changes.outputs();
        self.maintain(Window::memory_of(entries, changes.script_bytes))?;
        let adds = self.window.lay_out_block(sequence, block, &changes);
        let encode = |payload: &mut Vec<u8>| record.encode(payload);
        let staged = self.undo.stage(&record.head(), record.spent.len(), encode)?;
        let tip = Some((block.height(), block.hash()));
        let next = NextStep { sequence, height: block.height(), adds, spends: &spends, tip };
        self.step(next, self.options.workers)?;
        self.undo.push(staged);
        Ok(true)
    }

    /// The spends of a record, with the locations of those that the window has. `None` when the
    /// window says that one of them is not there.
    fn spends_of(&self, record: &UndoRecord) -> Option<Vec<Spend>> {
        let keys: Vec<Outpoint> = record.spent.iter().map(|entry| entry.outpoint).collect();
        let mut found = Vec::with_capacity(keys.len());
        self.window.version().lookup(&keys, &mut found);
        let spend = |(entry, found): (Entry<'_>, Lookup<'_>)| {
            let (outpoint, birth) = (entry.outpoint, entry.birth);
            let location = match found {
                Lookup::Found(found) if found.birth == birth => Some(found.location),
                Lookup::Found(_) => return None,
                Lookup::Deleted(births) if births.contains(&birth) => return None,
                Lookup::Deleted(_) | Lookup::Unknown => None,
            };
            Some(Spend { outpoint, birth, location })
        };
        record.spent.iter().zip(found).map(spend).collect()
    }
}

/// Whether a record is that of the step `sequence`, which connects this block.
fn is_of(record: &UndoRecord, sequence: Sequence, block: &BlockAt<'_>, changes: &Changes) -> bool {
    let previous = block.block().header().previous();
    let spent = record.spent.iter().map(|entry| entry.outpoint);
    (record.sequence, record.height) == (sequence, block.height())
        && (record.block, record.previous) == (block.hash(), previous)
        && changes.left(block).eq(record.created.iter().copied())
        && spent.take(changes.spends()).eq(changes.prevouts().iter().copied())
}
