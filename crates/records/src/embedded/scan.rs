//! Finding records by their state, from the index alone.
//!
//! A scan goes shard by shard. In a shard it goes through the list of what it looks for (`index`),
//! in the order of height and tag; what lists have is in memory. A scan of everything goes through
//! the table and the runs, in the order of the tags. So a page costs what it returns and a look at
//! each shard on the way. Records with the same height and tag, which are rare, are sorted by txid.
//!
//! ```text
//!  cursor   │ height u32 │ txid 32 │      of the last record of the page before
//! ```
//!
//! Shard and tag are functions of the txid, so a record keeps its place as long as its height
//! stays.

use std::collections::HashSet;

use varve_io::GlobalOffset;
use varve_types::{Height, Txid};

use super::commit::Commit;
use super::index::{List, Listed, Row, Slot};
use super::key::{Key, Place, SHARDS};
use super::overlay::Value;
use super::read::retry;
use crate::engine::{Cursor, EngineError, Scan, ScanPage};
use crate::intent::{Intent, IntentId};

/// Where in a shard a scan is: height, tag, txid.
type Spot = (u32, u32, Txid);

impl Commit {
    /// The next records that match.
    pub(super) fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        let after = after.map(|cursor| cursor.place()).transpose()?;
        let place = |txid| self.base.hasher.hash(&Key::record(txid)).place();
        let after = after.map(|(height, txid)| (height, place(txid), txid));
        let first = after.map_or(0, |(_, place, _)| place.shard());
        let wanted = limit.saturating_add(1);
        let mut found: Vec<(u32, Txid)> = Vec::new();
        for shard in self.shards_with(scan, first)? {
            let behind = after.filter(|_| shard == first);
            let behind = behind.map(|(height, place, txid)| (height, place.tag(), txid));
            let room = wanted.saturating_sub(found.len());
            found.extend(self.scan_shard(scan, shard, behind, room)?);
            if found.len() > limit {
                break;
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next =
            found.last().filter(|_| more).map(|(height, txid)| Cursor::behind(*height, txid));
        Ok(ScanPage { txids: found.into_iter().map(|(_, txid)| txid).collect(), next })
    }

    /// The shards from `first` on that may have matching records.
    fn shards_with(&self, scan: Scan, first: usize) -> Result<Vec<usize>, EngineError> {
        let Some((list, _)) = list(scan) else { return Ok((first..SHARDS).collect()) };
        let index = self.index()?;
        let shards = index.shards().iter().enumerate().skip(first);
        Ok(shards.filter(|(_, shard)| shard.lists(list)).map(|(number, _)| number).collect())
    }

    /// The matching records of a shard behind a place, at most `room` of them.
    fn scan_shard(
        &self,
        scan: Scan,
        number: usize,
        behind: Option<Spot>,
        room: usize,
    ) -> Result<Vec<(u32, Txid)>, EngineError> {
        let from = behind.map_or((0, 0), |(height, tag, _)| (height, tag));
        // What cleaning drops in between is looked up again: the index knows the new places.
        retry(|| {
            let listed = match list(scan) {
                None => self.all_from(Place::new(number, from.1), room)?,
                Some((list, to)) => {
                    let index = self.index()?;
                    let shard = index.shards().get(number);
                    shard.map_or(Vec::new(), |shard| shard.listed(list, from, to, room))
                }
            };
            let positions: Vec<GlobalOffset> = listed.iter().map(|found| found.at).collect();
            self.base.warmer.warm(&self.base.log, &positions);
            let mut places = self.places(&listed)?;
            places.sort_unstable();
            // A version that moves to a run at this moment is in both.
            places.dedup();
            let places = places.into_iter().filter(|place| Some(*place) > behind);
            Ok(places.take(room).map(|(height, _, txid)| (height, txid)).collect())
        })
    }

    /// The records of a shard from a place on: `room` of them behind that place, and some more.
    fn all_from(&self, from: Place, room: usize) -> Result<Vec<Listed>, EngineError> {
        let index = self.index()?;
        let Some(shard) = index.shards().get(from.shard()) else { return Ok(Vec::new()) };
        let mut listed = shard.all_from(from.tag(), room);
        let dead = shard.slots().filter(|slot| slot.is_dead() && slot.tag() >= from.tag());
        let dead: HashSet<GlobalOffset> = dead.map(Slot::at).collect();
        let cold = index.cold().clone();
        drop(index);
        let wanted = |row: &Row| row.is_record() && !dead.contains(&row.at());
        let rows = cold.range(from, room, wanted)?;
        let listed_row = |row: &Row| Listed { height: 0, tag: row.place().tag(), at: row.at() };
        let rows: Vec<Listed> = rows.iter().map(listed_row).collect();
        // Whichever of the two has more than fits is complete up to its last tag only.
        let bound = complete_to(&listed, from, room).min(complete_to(&rows, from, room));
        listed.extend(rows);
        listed.retain(|found| found.tag <= bound);
        Ok(listed)
    }

    fn places(&self, listed: &[Listed]) -> varve_io::Result<Vec<Spot>> {
        let read = |found: &Listed| {
            let entry = self.base.log.entry(found.at)?;
            Ok((found.height, found.tag, entry.head.key.txid))
        };
        listed.iter().map(read).collect()
    }

    /// Intents behind an id, in the order of their ids. Few are ever pending, so all are looked at.
    pub(super) fn intents(
        &self,
        after: Option<IntentId>,
        limit: usize,
    ) -> Result<Vec<Intent>, EngineError> {
        retry(|| {
            let places: Vec<GlobalOffset> = self.index()?.intents().collect();
            let read = |at: &GlobalOffset| {
                let entry = self.base.log.entry(*at)?;
                match self.base.decode(*at, &entry)? {
                    Value::Intent(intent) => Ok(*intent),
                    _ => Err(self.base.missing(*at)),
                }
            };
            let mut intents = places.iter().map(read).collect::<varve_io::Result<Vec<_>>>()?;
            intents.retain(|intent| Some(intent.id()) > after);
            intents.sort_by_key(Intent::id);
            intents.truncate(limit);
            Ok(intents)
        })
    }
}

/// The last tag up to which everything is there.
fn complete_to(listed: &[Listed], from: Place, room: usize) -> u32 {
    let behind = listed.iter().filter(|found| found.tag != from.tag());
    let last = behind.clone().map(|found| found.tag).max();
    last.filter(|_| behind.count() >= room).unwrap_or(u32::MAX)
}

/// The list that a scan goes through, and up to which height; `None` for everything.
const fn list(scan: Scan) -> Option<(List, u32)> {
    const fn to(list: List, height: Height) -> Option<(List, u32)> {
        Some((list, height.to_u32()))
    }
    match scan {
        Scan::All => None,
        Scan::Unmined => Some((List::Unmined, u32::MAX)),
        Scan::UnminedSince(height) => to(List::Unmined, height),
        Scan::DueAt(height) => to(List::Due, height),
        Scan::PreservedUntil(height) => to(List::Preserved, height),
        Scan::Conflicting => Some((List::Conflicting, u32::MAX)),
    }
}
