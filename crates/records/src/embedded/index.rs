//! The index: where in the log the newest version of each key lies.
//!
//! ```text
//!  in memory   256 shards of slots, 24 bytes each    what changed since the last checkpoint, and
//!                                                    what scans look for
//!  on disk     sorted runs of rows, 16 bytes each    everything else
//! ```
//!
//! Keys are not stored here. Slots and rows have 40 bits of the key's hash, its *place*. A
//! lookup returns all versions at the place, nearly always one or none, and reads the entries to
//! see which has the key. So a version is identified by place and position, and an entry of the log
//! names the version it replaces. A row is never changed: a version that a run has *dies* by a row
//! that deletes it, in a younger run, and both vanish when they meet in a merge. Nothing is decided
//! by "the newer row of this place", because a place may have several keys.
//!
//! **A checkpoint** (`keeper`) walks the shards while the store keeps committing:
//!
//! 1. It *takes* what leaves memory from some shards, under the lock for that long: live slots that
//!    no list has, and dead ones. Their rows go to a new run, in order, because shards are ranges
//!    of places. What stays goes to a frame with the position that these shards are of.
//! 2. A taken slot that is replaced meanwhile becomes a dead one *in flight*.
//! 3. When run, frames and manifest are durable, the run is published. Then the taken slots leave
//!    memory, shard by shard, and dead slots in flight become plain dead ones. If something failed,
//!    the taken slots stay and those in flight go.
//!
//! Publishing a run begins a new *epoch*. Rows that were looked up in an epoch are all that runs
//! have at their places until the next one; a merge changes no answer and begins none.
//!
//! | file | is |
//! |---|---|
//! | `slot`, `shard`, `wanted` | the part in memory, and the lists of what scans look for |
//! | `row`, `leaf` | a row, and a page of rows |
//! | `cold` | the runs of one moment |

mod cold;
mod leaf;
mod row;
mod shard;
mod slot;
#[cfg(feature = "test-suite")]
pub mod suite;
mod wanted;

use std::collections::BTreeSet;

use varve_io::GlobalOffset;

use super::entry::{Before, EntryKind, Marks};
use super::key::{KeyHash, Part, Place, SHARDS};
pub(super) use cold::{Cold, Epoch, Found};
pub(super) use row::{Row, RowCodec, RowError};
pub(super) use shard::{Listed, Shard, Totals};
pub(super) use slot::{SLOT_LEN, Slot};
pub(super) use wanted::List;

/// The newest versions of all keys.
#[derive(Debug)]
pub(super) struct Index {
    shards: Vec<Shard>,
    cold: Cold,
    /// Where intents lie.
    intents: BTreeSet<GlobalOffset>,
    moment: Moment,
}

/// What the index includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Moment {
    /// All groups of the log before this.
    pub(super) end: GlobalOffset,
    /// A number that none of them has.
    pub(super) group: u64,
}

/// What the index notes for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) at: GlobalOffset,
    pub(super) marks: Marks,
    /// What is found there; [`EntryKind::Gone`] for nothing.
    pub(super) kind: EntryKind,
    /// Bytes of the log that the key needs: the entry and, if it lies elsewhere, its body.
    pub(super) weight: u32,
}

/// What a checkpoint takes from some shards at once.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) moment: Moment,
    /// The first of the shards.
    pub(super) first: usize,
    /// What stays in memory of each, and its totals.
    pub(super) stays: Vec<(Totals, Vec<Slot>)>,
    /// What leaves memory, in order.
    pub(super) rows: Vec<Row>,
}

impl Index {
    /// An index with nothing in memory.
    pub(super) fn new(cold: Cold) -> Self {
        let shards = vec![Shard::default(); SHARDS];
        Self { shards, cold, intents: BTreeSet::new(), moment: Moment::default() }
    }

    /// What all shards hold, in memory and in runs.
    pub(super) fn totals(&self) -> Totals {
        self.shards.iter().fold(Totals::default(), |sum, shard| Totals {
            keys: sum.keys + shard.totals.keys,
            live: sum.live + shard.totals.live,
        })
    }

    /// Bytes of memory, those of the runs' filters and directories included.
    pub(super) fn memory(&self) -> u64 {
        self.shards.iter().map(Shard::memory).sum::<usize>() as u64 + self.cold.memory()
    }

    /// Bytes of memory that a checkpoint would give back.
    pub(super) fn leaving(&self) -> u64 {
        (self.shards.iter().map(Shard::leaving).sum::<usize>() * SLOT_LEN) as u64
    }

    /// Bytes of slots that every checkpoint copies, because they stay in memory.
    pub(super) fn staying(&self) -> u64 {
        let staying = self.shards.iter().map(|shard| shard.len() - shard.leaving());
        (staying.sum::<usize>() * SLOT_LEN) as u64
    }

    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Puts a shard of a checkpoint in place of an empty one.
    pub(super) fn set_shard(&mut self, number: usize, shard: Shard) {
        if let Some(place) = self.shards.get_mut(number) {
            let intents = shard.slots().filter(|slot| slot.is_intent());
            self.intents.extend(intents.map(Slot::at));
            *place = shard;
        }
    }

    /// The runs.
    pub(super) const fn cold(&self) -> &Cold {
        &self.cold
    }

    /// The slots in memory at a place, live and dead.
    pub(super) fn slots_at(&self, place: Place) -> impl Iterator<Item = Slot> {
        let shard = self.shards.get(place.shard());
        shard.into_iter().flat_map(move |shard| shard.tagged(place.tag())).copied()
    }

    /// The versions in memory that may be of a key with this hash.
    pub(super) fn in_memory(&self, hash: KeyHash) -> impl Iterator<Item = Before> {
        let live = self.slots_at(hash.place()).filter(|slot| !slot.is_dead());
        live.map(|slot| Before { at: slot.at(), weight: slot.weight })
    }

    /// The versions that may be of a key with this hash, when the runs have these rows for it.
    pub(super) fn versions(&self, hash: KeyHash, rows: &[Row]) -> impl Iterator<Item = Before> {
        let rows = rows.iter().filter(|row| !self.is_dead(row));
        let in_runs = rows.map(|row| Before { at: row.at(), weight: row.weight() });
        self.in_memory(hash).chain(in_runs)
    }

    /// Whether a row of the runs counts no more.
    fn is_dead(&self, row: &Row) -> bool {
        let place = row.place();
        self.shards.get(place.shard()).is_some_and(|shard| shard.is_dead(place.tag(), row.at()))
    }

    /// Notes a new version of a key in place of the one before. False when that is nowhere: the
    /// index and the log do not belong together. (When there are runs, they may have it.)
    pub(super) fn put(
        &mut self,
        hash: KeyHash,
        part: Part,
        before: Option<Before>,
        version: &Version,
    ) -> bool {
        let place = hash.place();
        let Some(shard) = self.shards.get_mut(place.shard()) else { return false };
        let gone = version.kind == EntryKind::Gone;
        let slot = Slot::new(place.tag(), part, version);
        let old = match before {
            None if gone => return true,
            None => {
                shard.insert(slot);
                shard.totals.keys += 1;
                None
            }
            Some(Before { at, .. }) if !shard.holds(place.tag(), at) && self.cold.is_empty() => {
                return false;
            }
            Some(before) if gone => {
                shard.totals.keys = shard.totals.keys.saturating_sub(1);
                shard.remove(place.tag(), before.at)
            }
            Some(before) => shard.replace(before.at, slot),
        };
        if version.kind == EntryKind::Intent {
            self.intents.insert(version.at);
        }
        if let Some(old) = old.filter(Slot::is_intent) {
            self.intents.remove(&old.at());
        }
        let (more, less) = (if gone { 0 } else { version.weight }, before.map_or(0, |b| b.weight));
        let live = shard.totals.live + u64::from(more);
        shard.totals.live = live.saturating_sub(u64::from(less));
        true
    }

    /// All groups up to this moment are noted.
    pub(super) const fn set_moment(&mut self, moment: Moment) {
        self.moment = moment;
    }

    /// Takes what leaves memory from shard `first` on, and from further ones as long as that is
    /// fewer than `room` slots.
    pub(super) fn take(&mut self, first: usize, room: usize) -> Taken {
        let mut taken = Taken { moment: self.moment, first, stays: Vec::new(), rows: Vec::new() };
        let mut seen = 0;
        for (number, shard) in self.shards.iter_mut().enumerate().skip(first) {
            if seen > 0 && seen + shard.len() > room {
                break;
            }
            seen += shard.len();
            let mut stays = Vec::new();
            shard.take(|slot| taken.rows.push(slot.row(number)), |slot| stays.push(*slot));
            taken.stays.push((shard.totals, stays));
        }
        taken
    }

    /// The run with what was taken is published, with all other runs.
    pub(super) fn publish(&mut self, cold: Cold) {
        self.cold = cold;
    }

    /// Removes what was taken from a shard, whose run is published.
    pub(super) fn drop_taken(&mut self, number: usize) {
        if let Some(shard) = self.shards.get_mut(number).filter(|shard| shard.leaving() > 0) {
            shard.retain(Slot::after_flush);
        }
    }

    /// Keeps what was taken from a shard, whose run failed.
    pub(super) fn keep_taken(&mut self, number: usize) {
        if let Some(shard) = self.shards.get_mut(number).filter(|shard| shard.leaving() > 0) {
            shard.retain(Slot::without_flush);
        }
    }

    /// Where intents lie.
    pub(super) fn intents(&self) -> impl Iterator<Item = GlobalOffset> {
        self.intents.iter().copied()
    }
}

#[cfg(test)]
mod tests;
