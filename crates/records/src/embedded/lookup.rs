//! Looking keys up in the index: all of one moment, and all at once.
//!
//! 1. Under the lock of the index: the slots in memory at the places of the keys, live and dead,
//!    and the runs of this moment.
//! 2. Without it: the rows that the runs have at these places, in one submission.
//! 3. A row whose version is dead in memory does not count.
//!
//! What is left are the versions that may be of a key, nearly always one or none; the entries of
//! the log decide. Slots and rows never change, so all of them together are one moment of the
//! store, however long the reading takes.

use varve_io::GlobalOffset;

use super::commit::Commit;
use super::entry::Before;
use super::facts::Facts;
use super::index::{Epoch, Found};
use super::key::{Key, KeyHash, Place};
use crate::engine::EngineError;

/// Places looked up in the runs together: bounds the pages in memory at once.
const TOGETHER: usize = 4_096;

/// The versions that may be of some keys.
#[derive(Debug)]
pub(super) struct Lookup {
    hashes: Vec<KeyHash>,
    versions: Vec<Before>,
    /// Where the versions of each key end.
    ends: Vec<usize>,
    epoch: Epoch,
    found: Vec<Found>,
}

impl Commit {
    /// Looks keys up.
    pub(super) fn look_up(&self, keys: &[Key]) -> Result<Lookup, EngineError> {
        let hashes: Vec<KeyHash> = keys.iter().map(|key| self.base.hasher.hash(key)).collect();
        let (mut slots, mut slots_end) = (Vec::new(), Vec::with_capacity(keys.len()));
        let index = self.index()?;
        let cold = index.cold().clone();
        for hash in &hashes {
            slots.extend(index.slots_at(hash.place()));
            slots_end.push(slots.len());
        }
        drop(index);
        let places: Vec<Place> = hashes.iter().map(|hash| hash.place()).collect();
        let find = |some: &[Place]| cold.find(some.to_vec());
        let found = places.chunks(TOGETHER).map(find).collect::<Result<Vec<_>, _>>()?;
        let mut versions = Vec::with_capacity(keys.len());
        let mut ends = Vec::with_capacity(keys.len());
        let mut start = 0;
        for (number, (place, end)) in places.iter().zip(slots_end).enumerate() {
            let slots = slots.get(start..end).unwrap_or_default();
            start = end;
            let live = slots.iter().filter(|slot| !slot.is_dead());
            versions.extend(live.map(|slot| Before { at: slot.at(), weight: slot.weight }));
            let rows = found.get(number / TOGETHER).into_iter().flat_map(|found| found.at(*place));
            // A version that moves to a run at this moment is in both.
            let rows = rows.filter(|row| !slots.iter().any(|slot| slot.at() == row.at()));
            versions.extend(rows.map(|row| Before { at: row.at(), weight: row.weight() }));
            ends.push(versions.len());
        }
        Ok(Lookup { hashes, versions, ends, epoch: cold.epoch(), found })
    }
}

impl Lookup {
    /// The versions that may be of a key, by its place among the keys.
    pub(super) fn of(&self, number: usize) -> &[Before] {
        let end = self.ends.get(number).copied().unwrap_or_default();
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        self.versions.get(start.copied().unwrap_or_default()..end).unwrap_or_default()
    }

    /// Where all of them lie.
    pub(super) fn positions(&self) -> Vec<GlobalOffset> {
        self.versions.iter().map(|version| version.at).collect()
    }

    /// Adds the rows that the runs have. False when `facts` are of another epoch.
    pub(super) fn add_to(&self, facts: &mut Facts) -> bool {
        let mut parts = self.hashes.chunks(TOGETHER).zip(&self.found);
        parts.all(|(hashes, found)| facts.add(self.epoch, hashes, found))
    }
}
