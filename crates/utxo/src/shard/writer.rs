//! The writer of one shard, through all panes of the window.
//!
//! A step has two phases. [`ShardWriter::stage`] does everything that can fail, in a way
//! that no reader of a published version can see:
//!
//! 1. Spends set `until` of the coins they spend. All readers are before the step, and to them an
//!    entry that dies at the step is as alive as one that never dies.
//! 2. When the step replaces the oldest pane by its run: coins of the pane that died after the
//!    run's moment are still in the run, so a delete is made for each. If such a coin has been
//!    added again since (a block that spent it was disconnected), the run and the younger add would
//!    both have it: then the younger one ends here, and the run's coin is the valid one.
//! 3. What the step adds is already laid out as a batch (`window/layout.rs`); deletes are appended
//!    to it. The table gets their slots, which lead to a cell that is still empty.
//!
//! Then [`ShardWriter::commit`] fills the cell, or [`ShardWriter::roll_back`] reverts slots and
//! deaths. The window commits only when every shard has staged.

use std::collections::VecDeque;
use std::ops::Range;

use varve_runs::Sequence;
use varve_types::Outpoint;

use super::Seen;
use super::batch::{BatchBuilder, Head};
use super::table::{Place, Table};
use crate::entry::Entry;
use crate::hasher::{OutpointHash, OutpointHasher};
use crate::pane::{Pane, PaneId};
use crate::sync::Arc;
use crate::window::{LaidOut, Location, Spend, StepError};

/// Entries whose memory is prefetched together, for the reason given in `window/version.rs`.
const GROUP: usize = 32;

/// The part of a step that concerns one shard.
pub(crate) struct ShardStep<'s> {
    pub(crate) sequence: Sequence,
    /// Entries to add, and the rank in the step of the first add of any shard.
    pub(crate) adds: LaidOut,
    pub(crate) first_add: usize,
    /// Coins to spend: rank in the step, spend.
    pub(crate) spends: Vec<(usize, &'s Spend)>,
    /// Whether the oldest pane is replaced by its run.
    pub(crate) replaces_oldest: bool,
}

/// Why a step was refused, and by which of its parts: the first one is reported.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) rank: usize,
    pub(crate) error: StepError,
}

/// One shard of every pane, oldest first.
pub(crate) struct ShardWriter {
    number: usize,
    hasher: OutpointHasher,
    panes: VecDeque<ShardPane>,
    staged: Staged,
}

/// One shard of one pane.
struct ShardPane {
    pane: Arc<Pane>,
    table: Arc<Table>,
    /// Slots taken in the table.
    slots: usize,
    /// Cells filled.
    batches: u16,
    /// Entries that have not died.
    living: usize,
    /// Bytes of the batches.
    bytes: usize,
    /// Whether the pane is being flushed; deaths are then recorded.
    flushing: bool,
    late: Vec<Place>,
}

/// The effects of a step that can still be reverted.
#[derive(Default)]
struct Staged {
    batch: Option<BatchBuilder>,
    /// The hashes of the batch's entries.
    hashes: Vec<OutpointHash>,
    /// The entries whose slots are filled, in the order of filling.
    filled: Vec<Range<u32>>,
    /// Deaths: the position of the pane, and the place.
    killed: Vec<(usize, Place)>,
}

impl ShardWriter {
    pub(crate) fn new(number: usize, hasher: OutpointHasher) -> Self {
        Self { number, hasher, panes: VecDeque::new(), staged: Staged::default() }
    }

    /// Begins a new pane. Its table has the size that the last one needed in the end.
    pub(crate) fn push_pane(&mut self, pane: Arc<Pane>) {
        let expected = self.panes.back().map_or(0, |last| last.slots);
        self.panes.push_back(ShardPane {
            pane,
            table: Arc::new(Table::for_entries(expected)),
            slots: 0,
            batches: 0,
            living: 0,
            bytes: 0,
            flushing: false,
            late: Vec::new(),
        });
    }

    /// The table of the pane at `position`.
    pub(crate) fn table(&self, position: usize) -> Option<&Arc<Table>> {
        self.panes.get(position).map(|pane| &pane.table)
    }

    /// Living entries and bytes of memory of the pane at `position`.
    pub(crate) fn size(&self, position: usize) -> (usize, usize) {
        self.panes
            .get(position)
            .map_or((0, 0), |pane| (pane.living, pane.bytes + pane.table.memory()))
    }

    /// Starts or stops recording deaths in the oldest pane.
    pub(crate) fn set_flushing(&mut self, flushing: bool) {
        if let Some(oldest) = self.panes.front_mut() {
            oldest.flushing = flushing;
            oldest.late.clear();
        }
    }

    /// Does everything of a step that can fail. [`ShardWriter::commit`] or
    /// [`ShardWriter::roll_back`] must follow in any case.
    pub(crate) fn stage(&mut self, step: ShardStep<'_>) -> Result<(), Refused> {
        let mut deletes = Vec::new();
        for group in step.spends.chunks(GROUP) {
            self.touch(group.iter().filter_map(|(_, spend)| spend.location));
            for (rank, spend) in group {
                match spend.location.and_then(|at| Some((self.position(at.pane())?, at.place()))) {
                    None => deletes.push((*rank, Entry::delete(spend.outpoint, spend.birth))),
                    Some((position, place)) => self
                        .spend(position, place, spend, step.sequence)
                        .map_err(|error| Refused { rank: *rank, error })?,
                }
            }
        }
        if step.replaces_oldest {
            deletes.extend(self.late_deletes(step.sequence).map(|entry| (usize::MAX, entry)));
        }
        self.stage_batch(step, deletes)
    }

    /// Makes the staged step visible to readers at its sequence.
    pub(crate) fn commit(&mut self, replaces_oldest: bool) {
        let Staged { batch, killed, .. } = std::mem::take(&mut self.staged);
        for (position, _) in killed {
            if let Some(pane) = self.panes.get_mut(position) {
                pane.living -= 1;
            }
        }
        if let Some((batch, youngest)) = batch.zip(self.panes.back_mut()) {
            let batch = batch.finish();
            youngest.living += batch.heads().len();
            youngest.slots += batch.heads().len();
            youngest.bytes += batch.memory();
            youngest.pane.shard(self.number).fill(youngest.batches, batch);
            youngest.batches += 1;
        }
        if replaces_oldest {
            self.panes.pop_front();
        }
    }

    /// Reverts the staged step completely.
    pub(crate) fn roll_back(&mut self) {
        let Staged { hashes, filled, killed, .. } = std::mem::take(&mut self.staged);
        if let Some(youngest) = self.panes.back() {
            for index in filled.into_iter().rev().flat_map(Iterator::rev) {
                let Some(hash) = hashes.get(index as usize) else { continue };
                youngest.table.take_back(*hash, Place { batch: youngest.batches, index });
            }
        }
        for (position, place) in killed.into_iter().rev() {
            let Some(pane) = self.panes.get_mut(position) else { continue };
            if let Some((_, head)) = pane.pane.shard(self.number).head(place) {
                head.set_until(Sequence::MAX);
            }
            pane.late.pop_if(|late| *late == place);
        }
    }

    fn position(&self, id: PaneId) -> Option<usize> {
        let oldest = self.panes.front()?.pane.id();
        Some(id.since(oldest)?).filter(|position| *position < self.panes.len())
    }

    /// Loads the coins to be spent, all at once instead of one after another.
    fn touch(&self, locations: impl Iterator<Item = Location>) {
        let mut sum = 0;
        for location in locations {
            let pane = self.position(location.pane()).and_then(|at| self.panes.get(at));
            let head = pane.and_then(|pane| pane.pane.shard(self.number).head(location.place()));
            sum ^= head.map_or(0, |(_, head)| head.touch());
        }
        std::hint::black_box(sum);
    }

    /// Ends the coin at a place of the pane at a position, if it is the one to spend and is alive.
    fn spend(
        &mut self,
        position: usize,
        place: Place,
        spend: &Spend,
        sequence: Sequence,
    ) -> Result<(), StepError> {
        let outpoint = spend.outpoint;
        let pane = self.panes.get(position).map(|pane| pane.pane.shard(self.number));
        let head = pane.and_then(|shard| shard.head(place)).map(|(_, head)| head);
        let head = head
            .filter(|head| head.is_add() && head.outpoint == outpoint && head.birth == spend.birth);
        match head.ok_or(StepError::NotThere { outpoint })?.until() {
            Sequence::MAX => self.kill(position, place, sequence),
            until if until == sequence => return Err(StepError::SpentTwice { outpoint }),
            at => return Err(StepError::Spent { outpoint, at }),
        }
        Ok(())
    }

    fn kill(&mut self, position: usize, place: Place, sequence: Sequence) {
        let Some(pane) = self.panes.get_mut(position) else { return };
        if let Some((_, head)) = pane.pane.shard(self.number).head(place) {
            head.set_until(sequence);
        }
        if pane.flushing {
            pane.late.push(place);
        }
        self.staged.killed.push((position, place));
    }

    /// Step 2 of the module's doc.
    fn late_deletes(&mut self, sequence: Sequence) -> impl Iterator<Item = Entry<'static>> {
        let mut deletes = Vec::new();
        let late = self.panes.front().map(|oldest| (Arc::clone(&oldest.pane), oldest.late.clone()));
        for (pane, place) in
            late.iter().flat_map(|(pane, late)| late.iter().map(move |p| (pane, *p)))
        {
            let Some((_, head)) = pane.shard(self.number).head(place) else { continue };
            match self.find_add(&head.outpoint, head.birth, sequence) {
                Some((position, place)) => self.kill(position, place, sequence),
                None => deletes.push(Entry::delete(head.outpoint, head.birth)),
            }
        }
        deletes.into_iter()
    }

    /// The living add of a coin in a younger pane than the oldest.
    fn find_add(
        &self,
        outpoint: &Outpoint,
        birth: Sequence,
        at: Sequence,
    ) -> Option<(usize, Place)> {
        let hash = self.hasher.hash(outpoint);
        self.panes.iter().enumerate().skip(1).find_map(|(position, pane)| {
            let (shard, first) = (pane.pane.shard(self.number), pane.table.first(hash));
            let mut seen = shard.search(&pane.table, hash, first, outpoint, at);
            let add = seen.find(|seen| seen.head.is_add() && seen.head.birth == birth)?;
            Some((position, add.place))
        })
    }

    /// Completes the batch and fills its slots. Those of deletes come first, as spends come before
    /// adds in a step.
    fn stage_batch(
        &mut self,
        step: ShardStep<'_>,
        deletes: Vec<(usize, Entry<'_>)>,
    ) -> Result<(), Refused> {
        let ShardStep { sequence, adds: LaidOut { batch, hashes, numbers }, first_add, .. } = step;
        if hashes.len() + deletes.len() == 0 {
            return Ok(());
        }
        self.make_room(hashes.len() + deletes.len(), sequence);
        let shards = self.panes.back().map_or(0, |youngest| youngest.pane.shards().len());
        let too_large = |rank| Refused { rank, error: StepError::TooLarge { shards } };
        let staged = &mut self.staged;
        let start = number(staged.hashes.len());
        let mut batch = batch.at(sequence);
        batch.reserve(deletes.len());
        let adds = start..start + number(hashes.len());
        if let Some(before) = &mut staged.batch {
            before.absorb(batch).map_err(|_| too_large(first_add))?;
            staged.hashes.extend(hashes);
        } else {
            staged.batch = Some(batch);
            staged.hashes = hashes;
        }
        let Some(batch) = &mut staged.batch else { return Ok(()) };
        for (rank, entry) in &deletes {
            batch.push(entry).map_err(|_| too_large(*rank))?;
            staged.hashes.push(self.hasher.hash(&entry.outpoint));
        }
        let behind = adds.end..number(staged.hashes.len());
        let rank = |index| deletes.get(index).map_or(usize::MAX, |(rank, _)| *rank);
        self.fill_slots(behind, rank)?;
        self.fill_slots(adds, |index| {
            numbers.get(index).map_or(usize::MAX, |number| first_add + *number as usize)
        })
    }

    /// Fills the slots of a range of the batch; `rank` is that of the nth of them.
    fn fill_slots(
        &mut self,
        range: Range<u32>,
        rank: impl Fn(usize) -> usize,
    ) -> Result<(), Refused> {
        let Staged { batch: Some(batch), hashes, filled, .. } = &mut self.staged else {
            return Ok(());
        };
        let Some(youngest) = self.panes.back() else { return Ok(()) };
        let (table, shard) = (&youngest.table, youngest.pane.shard(self.number));
        let mut done = range.start..range.start;
        let entries = hashes.iter().zip(batch.heads()).skip(range.start as usize);
        let mut entries = entries.take(range.len());
        let mut ahead = hashes.get(range.start as usize..range.end as usize).unwrap_or_default();
        let refused = loop {
            if done.len().is_multiple_of(GROUP) {
                let (group, rest) = ahead.split_at(ahead.len().min(GROUP));
                table.touch(group.iter().copied());
                ahead = rest;
            }
            let Some((hash, head)) = entries.next() else { break None };
            let place = Place { batch: youngest.batches, index: done.end };
            let conflict = |found: Place| {
                let other = if found.batch == place.batch {
                    batch.heads().get(found.index as usize)
                } else {
                    shard.head(found).map(|(_, other)| other)
                };
                other.is_some_and(|other| conflicts(other, head))
            };
            if !table.insert_unless(*hash, place, conflict) {
                break Some(head);
            }
            done.end += 1;
        };
        let rank = rank(done.len());
        filled.push(done);
        let Some(head) = refused else { return Ok(()) };
        let outpoint = head.outpoint;
        let error = if head.is_add() {
            StepError::Exists { outpoint }
        } else {
            StepError::SpentTwice { outpoint }
        };
        Err(Refused { rank, error })
    }

    /// Replaces the table of the youngest pane when `count` more slots would crowd it. Only living
    /// entries go into the new one: it is for readers of this step and later.
    fn make_room(&mut self, count: usize, sequence: Sequence) {
        let Some(youngest) = self.panes.back_mut() else { return };
        let staged = &self.staged.hashes;
        if youngest.slots + staged.len() + count <= youngest.table.room() {
            return;
        }
        let shard = youngest.pane.shard(self.number);
        // Entries that die in this very step are kept: it may yet be refused.
        let living = || shard.found_by(sequence);
        let slots = living().count();
        let table = Table::for_entries((slots + staged.len() + count) * 2);
        for Seen { place, head, .. } in living() {
            table.insert_unless(self.hasher.hash(&head.outpoint), place, |_| false);
        }
        for (index, hash) in (0_u32..).zip(staged) {
            table.insert_unless(*hash, Place { batch: youngest.batches, index }, |_| false);
        }
        youngest.table = Arc::new(table);
        youngest.slots = slots;
    }
}

/// Whether `new` cannot be added while `head` is in the set: the coin already exists, or is already
/// deleted.
fn conflicts(head: &Head, new: &Head) -> bool {
    if head.outpoint != new.outpoint || head.until() != Sequence::MAX {
        return false;
    }
    if new.is_add() { head.is_add() } else { !head.is_add() && head.birth == new.birth }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a batch has at most 2^28 entries")
}
