//! A shard of a pane: entries that are only ever added, and readers that never wait.
//!
//! ```text
//!               ┌─ batch of step 7 ─┬─ batch of step 8 ─┬─ (step 9 under way) ─┬ … empty
//!  batches      │ heads, scripts    │ heads, scripts    │ not there yet        │
//!               └───────────────────┴───────────────────┴──────────────────────┴
//!                        ▲     ▲              ▲
//!  table     │ · │ slot ─┘ · slot ┘ │ · │ slot ┘ │ · │       found by hash
//! ```
//!
//! One writer puts one batch per step into the next free cell; a cell is filled once. Readers hold
//! a version that names the shard, the table and a sequence. Whatever the writer does meanwhile,
//! they see exactly the state at their sequence:
//!
//! - an entry of a later step has `from` above their sequence, or its batch is not there yet;
//! - an entry that dies later has `until` above their sequence, both before and after it is set;
//! - everything up to their sequence was written before their version was published, so taking the
//!   version makes it visible to them. This is why the atomics themselves can be relaxed.

mod batch;
mod table;
mod writer;

use crate::entry::Entry;
use crate::hasher::OutpointHash;
use crate::sync::OnceLock;
use varve_runs::Sequence;
use varve_types::Outpoint;

pub(crate) use batch::{Batch, BatchBuilder, BatchFull, HEAD_LEN, Head};
pub(crate) use table::{BATCHES_MAX, Place, Probe, Table};
pub(crate) use writer::{Refused, ShardStep, ShardWriter};

/// The cells of one shard of one pane.
pub(crate) struct Shard {
    batches: Box<[OnceLock<Batch>]>,
}

impl Shard {
    /// A shard of `cells` cells, at most [`BATCHES_MAX`].
    pub(crate) fn new(cells: usize) -> Self {
        Self { batches: (0..cells.min(BATCHES_MAX)).map(|_| OnceLock::new()).collect() }
    }

    /// Fills the next cell.
    fn fill(&self, number: u16, batch: Batch) {
        let filled = self.batches.get(usize::from(number)).is_some_and(|c| c.set(batch).is_ok());
        assert!(filled, "the window begins a new pane before the cells are used up");
    }

    /// The entry at a place, if its batch has been filled in.
    #[inline]
    pub(crate) fn head(&self, place: Place) -> Option<(&Batch, &Head)> {
        let batch = self.batches.get(usize::from(place.batch))?.get()?;
        Some((batch, batch.head(place.index)?))
    }

    /// The entries of `outpoint` that a reader at `at` sees, from `probe` on.
    #[inline]
    pub(crate) fn search<'s, 'k>(
        &'s self,
        table: &'s Table,
        hash: OutpointHash,
        mut probe: Probe,
        outpoint: &'k Outpoint,
        at: Sequence,
    ) -> impl Iterator<Item = Seen<'s>> + use<'s, 'k> {
        std::iter::from_fn(move || {
            loop {
                let (slot, behind) = table.next(hash, probe)?;
                probe = behind;
                let place = slot.place();
                let Some((batch, head)) = self.head(place) else { continue };
                if head.outpoint == *outpoint && batch.sees(head, at) {
                    return Some(Seen { place, batch, head });
                }
            }
        })
    }

    /// The last step up to `at` that ended an add of `outpoint` or added a delete of it.
    pub(crate) fn last_death(
        &self,
        table: &Table,
        hash: OutpointHash,
        outpoint: &Outpoint,
        at: Sequence,
    ) -> Option<Sequence> {
        let (mut probe, mut last) = (table.first(hash), None);
        while let Some((slot, behind)) = table.next(hash, probe) {
            probe = behind;
            let Some((batch, head)) = self.head(slot.place()) else { continue };
            if head.outpoint == *outpoint {
                let death = if head.is_add() { head.until() } else { batch.from() };
                last = last.max(Some(death).filter(|death| *death <= at));
            }
        }
        last
    }

    /// All entries that a reader at `at` sees, in the order in which they were added.
    pub(crate) fn living(&self, at: Sequence) -> impl Iterator<Item = Seen<'_>> {
        self.entries(at).filter(move |seen| at < seen.head.until())
    }

    /// All entries that the step `sequence` finds, in the order in which they were added: including
    /// those that die in it, and those of its own batches, as all loaded ones are.
    pub(crate) fn found_by(&self, sequence: Sequence) -> impl Iterator<Item = Seen<'_>> {
        self.entries(sequence).filter(move |seen| sequence <= seen.head.until())
    }

    /// The entries of all batches up to step `at`, dead or alive.
    fn entries(&self, at: Sequence) -> impl Iterator<Item = Seen<'_>> {
        let batches = (0_u16..).zip(&self.batches).map_while(|(n, cell)| Some((n, cell.get()?)));
        let batches = batches.take_while(move |(_, batch)| batch.from() <= at);
        batches.flat_map(move |(n, batch)| {
            let heads = (0_u32..).zip(batch.heads());
            heads.map(move |(index, head)| Seen { place: Place { batch: n, index }, batch, head })
        })
    }
}

/// An entry that a reader sees.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'s> {
    pub(crate) place: Place,
    pub(crate) batch: &'s Batch,
    pub(crate) head: &'s Head,
}

impl<'s> Seen<'s> {
    /// The entry.
    #[inline]
    pub(crate) fn entry(&self) -> Entry<'s> {
        self.batch.entry(self.head)
    }
}
