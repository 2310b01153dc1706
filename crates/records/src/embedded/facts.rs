//! What the runs of the index have of some keys, as it was looked up before the lock was taken.
//!
//! Facts are of one epoch of the runs. As long as that lasts they are right: a row of the runs dies
//! by a dead slot in memory, and a version that is not in the runs gets there with the next epoch.
//! Stale facts are looked up again (`commit`).

use std::ops::Range;

use hashbrown::HashTable;

use super::index::{Epoch, Found, Row};
use super::key::KeyHash;

/// Rows by the hash of the keys they were looked up for.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// `None` as long as nothing was looked up.
    epoch: Option<Epoch>,
    /// There were no runs, and so no rows at any place.
    nothing: bool,
    table: HashTable<(KeyHash, Range<usize>)>,
    rows: Vec<Row>,
}

impl Facts {
    /// Takes what was found for keys. False, and nothing is taken, when the facts here are of
    /// another epoch.
    pub(super) fn add(&mut self, epoch: Epoch, hashes: &[KeyHash], found: &Found) -> bool {
        if !self.hold_in(epoch) {
            return false;
        }
        self.epoch = Some(epoch);
        self.nothing = found.is_of_no_runs();
        if self.nothing {
            return true;
        }
        self.table.reserve(hashes.len(), |(hash, _)| hash.bits());
        for hash in hashes {
            if self.get(*hash).is_none() {
                let start = self.rows.len();
                self.rows.extend(found.at(hash.place()));
                let fact = (*hash, start..self.rows.len());
                self.table.insert_unique(hash.bits(), fact, |(hash, _)| hash.bits());
            }
        }
        true
    }

    /// The live rows at the place of a key; `None` when that was not looked up.
    pub(super) fn get(&self, hash: KeyHash) -> Option<&[Row]> {
        if self.nothing {
            return Some(&[]);
        }
        let (_, range) = self.table.find(hash.bits(), |(known, _)| *known == hash)?;
        self.rows.get(range.clone())
    }

    /// Whether the facts, if there are any, are of this epoch.
    pub(super) fn hold_in(&self, epoch: Epoch) -> bool {
        self.epoch.is_none_or(|known| known == epoch)
    }
}
