//! Checkpoints of the index, so that opening reads the end of the log only.
//!
//! ```text
//!  manifest    a small file, replaced whole: which runs and which frames count
//!  ….run       the runs: what has left memory
//!  index-…     the index log: frames of shards, with what stays in memory
//!
//!  frame       0        8         16      20
//!              ┌────────┬─────────┬───────┬────────┬─────────┬─────────┬─ ─
//!              │ round  │ position│ first │ shards │ shard   │ shard   │
//!              │ u64    │ u64     │ shard │ u32    │         │         │
//!              │        │         │ u32   │        │         │         │
//!              └────────┴─────────┴───────┴────────┴─────────┴─────────┴─ ─
//!  shard       │ keys u64 │ live u64 │ count u32 │ slot, 24 │ … as in `index` │
//!
//!  log         ├────────┬────────────┬────────────┬──────────┤
//!                    shards 0–9   shards 10–19 …             end
//!                    were taken here
//! ```
//!
//! A *round* walks the shards one after the other while the store keeps committing (`keeper`). Each
//! frame is of its own moment and says which: its shards, with the runs of the round, include all
//! entries before its `position`. When all is written and synced, the manifest names the round.
//! Recovery loads the frames of the round, then reads the log from the smallest of their positions,
//! and every entry changes its shard only if it lies behind that shard's position. `keys` and
//! `live` count what the whole shard holds, in memory and in runs.
//!
//! The index log is `varve_io::Segments` of kind `RECIDX2`; the manifest is that of `varve_runs`,
//! of kind `RECMAN1`, version 2, and the owner's part of it is
//!
//! ```text
//!  │ round u64 │ first frame u64 │ end of frames u64 │ replay from u64 │ durable u64 │ group u64 │
//! ```
//!
//! `durable` is a position that the log is known to be synced to, `group` a number no group up to
//! there had. Round 0 is that of an empty store and has no frames.

use std::sync::Arc;

use varve_io::{
    FormatError, GlobalOffset, Kind, Result, Segments, SegmentsConfig, Storage, StoreId,
};
use varve_runs::Fields;

use super::index::{Index, SLOT_LEN, Shard, Slot, Taken, Totals};
use super::key::SHARDS;

/// What the manifest of a store is, and its version.
pub(super) const MANIFEST: (Kind, u32) = (Kind(*b"RECMAN1\0"), 2);

const INDEX_KIND: Kind = Kind(*b"RECIDX2\0");
const INDEX_SEGMENT: u64 = 64 << 20;
/// Bytes written between two syncs, so that the last sync is short.
const SYNC_EVERY: usize = 8 << 20;

/// What the manifest says beside the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Checkpoint {
    /// The round that counts.
    pub(super) round: u64,
    /// Its first frame, and the end of its last.
    pub(super) frames: (GlobalOffset, GlobalOffset),
    /// Entries from here on are not in every shard.
    pub(super) replay_from: GlobalOffset,
    /// The log is known to be synced to here.
    pub(super) durable: GlobalOffset,
    /// A number that no group before `durable` had.
    pub(super) group: u64,
}

impl Checkpoint {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { round, frames: (first, end), replay_from, durable, group } = *self;
        let [first, end, from, durable] = [first, end, replay_from, durable].map(GlobalOffset::get);
        let words = [round, first, end, from, durable, group];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new(bytes);
        let mut next = || fields.u64();
        let (round, first, end) = (next()?, next()?, next()?);
        let (replay_from, durable, group) = (next()?, next()?, next()?);
        if !fields.rest().is_empty() {
            let what = "the manifest has more than it should";
            return Err(FormatError::Damaged { at: fields.offset(), what });
        }
        let at = GlobalOffset::new;
        let (replay_from, durable) = (at(replay_from), at(durable));
        Ok(Self { round, frames: (at(first), at(end)), replay_from, durable, group })
    }
}

/// The index log.
#[derive(Debug)]
pub(super) struct IndexLog {
    frames: Segments,
}

/// The frames of a round, as far as they are written.
#[derive(Debug)]
pub(super) struct Round<'a> {
    log: &'a mut IndexLog,
    number: u64,
    first: Option<GlobalOffset>,
    unsynced: usize,
}

impl IndexLog {
    /// Opens the index log and loads the shards of the round that counts into an empty index.
    /// Returns what each shard includes as well.
    pub(super) fn open(
        storage: Arc<dyn Storage>,
        store: StoreId,
        checkpoint: &Checkpoint,
        index: &mut Index,
    ) -> Result<(Self, Vec<GlobalOffset>)> {
        let config = SegmentsConfig {
            prefix: "index".to_owned(),
            kind: INDEX_KIND,
            store,
            segment_size: INDEX_SEGMENT,
        };
        let (first, end) = checkpoint.frames;
        let mut frames = Segments::open(storage, config, end)?;
        let mut positions = vec![checkpoint.replay_from; SHARDS];
        let reader = frames.reader();
        let mut at = first;
        while at < end {
            let frame = reader.frame(at)?;
            load(&frame, checkpoint.round, index, &mut positions).map_err(|error| {
                let (path, offset) = reader.place(at).unwrap_or_default();
                error.in_file(&path, offset)
            })?;
            at = frame.next();
        }
        drop(reader);
        // What a round that was not finished left.
        frames.truncate(end)?;
        Ok((Self { frames }, positions))
    }

    /// Begins a round.
    pub(super) const fn begin(&mut self, number: u64) -> Round<'_> {
        Round { log: self, number, first: None, unsynced: 0 }
    }

    /// Drops the frames before `first`.
    pub(super) fn prune(&mut self, first: GlobalOffset) -> Result<()> {
        self.frames.prune(first).map(drop)
    }
}

impl Round<'_> {
    /// Writes what stays in memory of some shards.
    pub(super) fn push(&mut self, taken: &Taken) -> Result<()> {
        let payload = encode(taken, self.number);
        self.unsynced += payload.len();
        let places = self.log.frames.append(&[&payload])?;
        self.first = self.first.or(places.first().copied());
        if self.unsynced > SYNC_EVERY {
            self.log.frames.sync()?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Makes the frames durable; says where they are.
    pub(super) fn finish(self) -> Result<(GlobalOffset, GlobalOffset)> {
        let end = self.log.frames.sync()?;
        Ok((self.first.unwrap_or(end), end))
    }
}

fn encode(taken: &Taken, round: u64) -> Vec<u8> {
    let fits = |number| u32::try_from(number).expect("shards and their slots are below 2^32");
    let mut out = Vec::new();
    out.extend_from_slice(&round.to_le_bytes());
    out.extend_from_slice(&taken.moment.end.get().to_le_bytes());
    out.extend_from_slice(&fits(taken.first).to_le_bytes());
    out.extend_from_slice(&fits(taken.stays.len()).to_le_bytes());
    for (totals, slots) in &taken.stays {
        out.extend_from_slice(&totals.keys.to_le_bytes());
        out.extend_from_slice(&totals.live.to_le_bytes());
        out.extend_from_slice(&fits(slots.len()).to_le_bytes());
        slots.iter().for_each(|slot| slot.encode(&mut out));
    }
    out
}

/// Takes the shards in a frame.
fn load(
    frame: &[u8],
    round: u64,
    index: &mut Index,
    positions: &mut [GlobalOffset],
) -> Result<(), FormatError> {
    let mut fields = Fields::new(frame);
    let wrong = |at, what| Err(FormatError::Damaged { at, what });
    if fields.u64()? != round {
        return wrong(0, "the frame is of another round");
    }
    let position = GlobalOffset::new(fields.u64()?);
    let (first, count) = (fields.u32()? as usize, fields.u32()? as usize);
    let shards = first..first.saturating_add(count);
    let Some(positions) = positions.get_mut(shards.clone()) else {
        return wrong(16, "there are no such shards");
    };
    positions.fill(position);
    for number in shards {
        let totals = Totals { keys: fields.u64()?, live: fields.u64()? };
        let count = fields.u32()? as usize;
        let slots = fields.bytes(count.saturating_mul(SLOT_LEN))?;
        let mut shard = Shard::with_capacity(count);
        shard.totals = totals;
        for slot in slots.as_chunks().0 {
            let Some(slot) = Slot::decode(slot) else {
                return wrong(fields.offset(), "a slot does not belong in a checkpoint");
            };
            shard.insert(slot);
        }
        index.set_shard(number, shard);
    }
    if fields.rest().is_empty() { Ok(()) } else { wrong(fields.offset(), "the frame is too long") }
}

#[cfg(test)]
mod tests;
