//! Finding records by their state, from the index alone.
//!
//! The order of a scan is that of the keys' hashes: shard, then tag. Both are functions of the
//! txid, so a txid is all a cursor needs, and a record keeps its place however often it changes.
//! Records with the same tag, which are rare, are sorted by txid.

use varve_io::GlobalOffset;
use varve_types::Txid;

use super::commit::{Commit, storage};
use super::entry::Marks;
use super::index::Slot;
use super::key::Key;
use super::overlay::Value;
use crate::engine::{Cursor, EngineError, Scan, ScanPage};
use crate::intent::Intent;

impl Commit {
    /// The next records that match.
    pub(super) fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        let after = after.map(|Cursor(txid)| Txid::from_bytes(txid));
        let hash = after.map(|txid| self.base.hasher.hash(&Key::record(txid)));
        let shards = self.index()?.shards().len();
        let first = hash.map_or(0, |hash| hash.shard(shards));
        let mut txids = Vec::new();
        for shard in first..shards {
            let from = hash.filter(|_| shard == first).map_or(0, |hash| hash.tag());
            let after = after.filter(|_| shard == first);
            self.scan_shard(scan, (shard, from, after), limit.saturating_add(1), &mut txids)?;
            if txids.len() > limit {
                break;
            }
        }
        let more = txids.len() > limit;
        txids.truncate(limit);
        let next = txids.last().filter(|_| more).map(|txid| Cursor(txid.to_bytes()));
        Ok(ScanPage { txids, next })
    }

    /// Adds the matching records of a shard from a tag on, behind the cursor, up to `limit`.
    fn scan_shard(
        &self,
        scan: Scan,
        (shard, from, after): (usize, u32, Option<Txid>),
        limit: usize,
        txids: &mut Vec<Txid>,
    ) -> Result<(), EngineError> {
        loop {
            let index = self.index()?;
            let slots = index.shards().get(shard).into_iter().flat_map(|shard| shard.slots());
            let wanted = |slot: &&Slot| slot.is_record() && matches(slot.marks(), scan);
            let slots = slots.filter(wanted).filter(|slot| slot.tag() >= from);
            let mut found: Vec<_> = slots.map(|slot| (slot.tag(), slot.at())).collect();
            drop(index);
            found.sort_unstable();
            // As many as are wanted, with all of the last tag. Some of the cursor's own tag lie
            // before it.
            let passed = found.partition_point(|(tag, _)| after.is_some() && *tag == from);
            let wanted = passed + limit.saturating_sub(txids.len());
            if let Some(last) = found.get(wanted).map(|(tag, _)| *tag) {
                found.truncate(found.partition_point(|(tag, _)| *tag <= last));
            }
            let positions: Vec<GlobalOffset> = found.iter().map(|(_, at)| *at).collect();
            self.base.warmer.warm(&self.base.log, &positions);
            match self.txids(&found) {
                Ok(mut read) => {
                    read.sort_unstable();
                    let behind = after.map(|after| (from, after));
                    let read = read.into_iter().filter(|found| Some(*found) > behind);
                    let room = limit.saturating_sub(txids.len());
                    txids.extend(read.map(|(_, txid)| txid).take(room));
                    return Ok(());
                }
                // Dropped by cleaning in between: the index knows the new places.
                Err(varve_io::Error::OutOfRange { .. }) => {}
                Err(error) => return Err(storage(error)),
            }
        }
    }

    fn txids(&self, found: &[(u32, GlobalOffset)]) -> varve_io::Result<Vec<(u32, Txid)>> {
        let read = |(tag, at): &(u32, GlobalOffset)| {
            self.base.log.entry(*at).map(|entry| (*tag, entry.head.key.txid))
        };
        found.iter().map(read).collect()
    }

    /// All intents, in the order of their ids.
    pub(super) fn intents(&self) -> Result<Vec<Intent>, EngineError> {
        loop {
            let slots = self.index()?;
            let places = slots.slots().filter(|slot| slot.is_intent()).map(|slot| slot.at());
            let places: Vec<GlobalOffset> = places.collect();
            drop(slots);
            let read = |at: &GlobalOffset| {
                let entry = self.base.log.entry(*at)?;
                match self.base.decode(*at, &entry)? {
                    Value::Intent(intent) => Ok(*intent),
                    _ => Err(self.base.missing(*at)),
                }
            };
            match places.iter().map(read).collect::<varve_io::Result<Vec<_>>>() {
                Ok(mut intents) => {
                    intents.sort_by_key(Intent::id);
                    return Ok(intents);
                }
                Err(varve_io::Error::OutOfRange { .. }) => {}
                Err(error) => return Err(storage(error)),
            }
        }
    }
}

fn matches(marks: Marks, scan: Scan) -> bool {
    let reached = |field: u32, height: varve_types::Height| (1..=height.to_u32()).contains(&field);
    match scan {
        Scan::All => true,
        Scan::Unmined => marks.unmined > 0,
        Scan::UnminedSince(height) => reached(marks.unmined, height),
        Scan::DueAt(height) => !marks.preserved && reached(marks.expiry, height),
        Scan::PreservedUntil(height) => marks.preserved && reached(marks.expiry, height),
        Scan::Conflicting => marks.conflicting,
    }
}
