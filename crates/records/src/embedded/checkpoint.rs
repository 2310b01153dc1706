//! Checkpoints of the index, so that opening reads the end of the log only.
//!
//! ```text
//!  manifest    a small file, replaced whole: which frames of the index log count
//!  index-…     the index log: frames of one shard each
//!
//!  frame       0        8        16      20      24
//!              ┌────────┬────────┬───────┬───────┬──────────────┬──────────────┬─ ─
//!              │ round  │ position│ shard │ count │ slot, 24     │ slot, 24     │
//!              │ u64    │ u64    │ u32   │ u32   │ as in `index`│              │
//!              └────────┴────────┴───────┴───────┴──────────────┴──────────────┴─ ─
//!
//!  log         ├────────┬────────┬────────┬──────────────────┤
//!                    shard 0   shard 1   shard 2 …           end
//!                    was copied here
//! ```
//!
//! A *round* copies the shards one after the other, a little after each group, while the store goes
//! on. Each shard is of its own moment and says which: it includes all entries before its
//! `position`. When all are written and synced, the manifest names the round, and what was before
//! it goes. Recovery loads the shards of the round, then reads the log from the smallest of their
//! positions, and every entry changes its shard only if it lies behind that shard's position.
//!
//! The index log is `varve_io::Segments` of kind `RECIDX1`; the manifest is an envelope of kind
//! `RECMAN1`, version 1:
//!
//! ```text
//!  │ store id 16 │ secret 16 │ shards u32 │ round u64 │ first frame u64 │ end of frames u64 │
//!  │ replay from u64 │ durable u64 │ group u64 │
//! ```
//!
//! `durable` is a position that the log is known to be synced to, `group` a number no group up to
//! there had. Round 0 is that of an empty store and has no frames.

use std::sync::Arc;

use varve_io::{
    Envelope, Error, FileOffset, FormatError, GlobalOffset, Kind, Result, Segments, SegmentsConfig,
    Storage, StoreId, load, replace,
};

use super::index::{Index, SLOT_LEN, Shard, Slot};

const MANIFEST: &str = "manifest";
const MANIFEST_KIND: Kind = Kind(*b"RECMAN1\0");
const MANIFEST_LEN: usize = 16 + 16 + 4 + 6 * 8;
const VERSION: u32 = 1;
const INDEX_KIND: Kind = Kind(*b"RECIDX1\0");
const INDEX_SEGMENT: u64 = 64 << 20;
const FRAME_HEAD_LEN: usize = 24;
/// So many bytes are written before they are synced, or the last sync would be a long one.
const SYNC_EVERY: usize = 8 << 20;

/// What the manifest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) store: StoreId,
    pub(super) secret: [u8; 16],
    pub(super) shards: u32,
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

impl Manifest {
    /// That of an empty store.
    pub(super) const fn new(store: StoreId, secret: [u8; 16], shards: u32) -> Self {
        let zero = GlobalOffset::ZERO;
        let frames = (zero, zero);
        Self { store, secret, shards, round: 0, frames, replay_from: zero, durable: zero, group: 0 }
    }

    /// The manifest of a store; `None` when there is none.
    pub(super) fn load(storage: &dyn Storage) -> Result<Option<Self>> {
        let Some(found) = load(storage, MANIFEST, MANIFEST_KIND)? else { return Ok(None) };
        let path = storage.path().join(MANIFEST);
        if found.version != VERSION {
            let (found, supported) = (found.version, VERSION);
            return Err(Error::WrongVersion { path, found, supported });
        }
        let decoded = Self::decode(&found.payload);
        decoded.map(Some).map_err(|error| error.in_file(&path, FileOffset::ZERO))
    }

    pub(super) fn save(&self, storage: &dyn Storage) -> Result<()> {
        let envelope = Envelope { version: VERSION, payload: &self.encode()[..] };
        replace(storage, MANIFEST, MANIFEST_KIND, &envelope)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MANIFEST_LEN);
        out.extend_from_slice(&self.store.0);
        out.extend_from_slice(&self.secret);
        out.extend_from_slice(&self.shards.to_le_bytes());
        let (first, end) = self.frames;
        let positions = [first, end, self.replay_from, self.durable].map(GlobalOffset::get);
        out.extend_from_slice(&self.round.to_le_bytes());
        positions.iter().for_each(|at| out.extend_from_slice(&at.to_le_bytes()));
        out.extend_from_slice(&self.group.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let wrong = |at, what| FormatError::Damaged { at, what };
        let bytes: &[u8; MANIFEST_LEN] =
            bytes.try_into().map_err(|_| wrong(bytes.len(), "the manifest has another length"))?;
        let (store, rest) = bytes.split_first_chunk().expect("the length is checked");
        let (secret, rest) = rest.split_first_chunk().expect("the length is checked");
        let (shards, rest) = rest.split_first_chunk().expect("the length is checked");
        let shards = u32::from_le_bytes(*shards);
        let (words, _) = rest.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        if !shards.is_power_of_two() || shards > 1 << 16 {
            return Err(wrong(32, "the number of shards is wrong"));
        }
        let round = next();
        let mut position = || GlobalOffset::new(next());
        let (store, secret) = (StoreId(*store), *secret);
        let (frames, replay_from, durable) = ((position(), position()), position(), position());
        let group = next();
        Ok(Self { store, secret, shards, round, frames, replay_from, durable, group })
    }
}

/// What a checkpoint gives back.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) index: Index,
    /// What each shard includes.
    pub(super) positions: Vec<GlobalOffset>,
}

/// Writes checkpoints.
#[derive(Debug)]
pub(super) struct Checkpointer {
    storage: Arc<dyn Storage>,
    manifest: Manifest,
    frames: Segments,
    /// The round at hand.
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    next: usize,
    first: Option<GlobalOffset>,
    /// The smallest position of a shard.
    replay_from: GlobalOffset,
    unsynced: usize,
}

impl Checkpointer {
    /// Opens the index log and loads the round that the manifest names.
    pub(super) fn open(storage: Arc<dyn Storage>, manifest: Manifest) -> Result<(Self, Loaded)> {
        let config = SegmentsConfig {
            prefix: "index".to_owned(),
            kind: INDEX_KIND,
            store: manifest.store,
            segment_size: INDEX_SEGMENT,
        };
        let (first, end) = manifest.frames;
        let mut frames = Segments::open(Arc::clone(&storage), config, end)?;
        let mut loaded = Loaded {
            index: Index::new(manifest.shards as usize),
            positions: vec![manifest.replay_from; manifest.shards as usize],
        };
        let reader = frames.reader();
        let mut at = first;
        while at < end {
            let frame = reader.frame(at)?;
            loaded.take(&frame, manifest.round).map_err(|error| {
                let (path, offset) = reader.place(at).unwrap_or_default();
                error.in_file(&path, offset)
            })?;
            at = frame.next();
        }
        drop(reader);
        // What a round that was not finished left.
        frames.truncate(end)?;
        Ok((Self { storage, manifest, frames, round: None }, loaded))
    }

    pub(super) const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether a round is under way.
    pub(super) const fn is_busy(&self) -> bool {
        self.round.is_some()
    }

    /// Copies the next shard, beginning a round if need be. `durable` is the position that the
    /// index is of and that the log is synced to, `group` the number of the next group. True when
    /// the round is finished.
    pub(super) fn step(
        &mut self,
        index: &Index,
        durable: GlobalOffset,
        group: u64,
    ) -> Result<bool> {
        let begun = Round { next: 0, first: None, replay_from: durable, unsynced: 0 };
        // A step that fails ends the round: the next one begins anew.
        let mut round = self.round.take().unwrap_or(begun);
        if let Some(shard) = index.shards().get(round.next) {
            let payload = encode_shard(shard, (self.manifest.round + 1, durable, round.next));
            round.unsynced += payload.len();
            let places = self.frames.append(&[&payload])?;
            round.first = round.first.or(places.first().copied());
            round.next += 1;
        }
        if round.unsynced > SYNC_EVERY {
            self.frames.sync()?;
            round.unsynced = 0;
        }
        if round.next < index.shards().len() {
            self.round = Some(round);
            return Ok(false);
        }
        let first = round.first.unwrap_or_default();
        let end = self.frames.sync()?;
        let manifest = Manifest {
            round: self.manifest.round + 1,
            frames: (first, end),
            replay_from: round.replay_from,
            durable,
            group,
            ..self.manifest
        };
        manifest.save(self.storage.as_ref())?;
        self.manifest = manifest;
        self.frames.prune(first)?;
        Ok(true)
    }
}

fn encode_shard(shard: &Shard, (round, position, number): (u64, GlobalOffset, usize)) -> Vec<u8> {
    let fits = |number| u32::try_from(number).expect("shards and their slots are below 2^32");
    let mut out = Vec::with_capacity(FRAME_HEAD_LEN + SLOT_LEN * shard.len());
    out.extend_from_slice(&round.to_le_bytes());
    out.extend_from_slice(&position.get().to_le_bytes());
    out.extend_from_slice(&fits(number).to_le_bytes());
    out.extend_from_slice(&fits(shard.len()).to_le_bytes());
    shard.slots().for_each(|slot| slot.encode(&mut out));
    out
}

impl Loaded {
    /// Takes the shard in a frame.
    fn take(&mut self, frame: &[u8], round: u64) -> Result<(), FormatError> {
        let wrong = |at, what| FormatError::Damaged { at, what };
        let Some((head, slots)) = frame.split_first_chunk::<FRAME_HEAD_LEN>() else {
            return Err(wrong(frame.len(), "the shard is cut short"));
        };
        let (words, _) = head.as_chunks::<4>();
        let [r0, r1, p0, p1, number, count] = words else {
            return Err(wrong(0, "the shard is cut short"));
        };
        let word = |half: &[u8; 4]| u32::from_le_bytes(*half);
        let long = |low, high| u64::from(word(low)) | u64::from(word(high)) << 32;
        let (slots, rest) = slots.as_chunks::<SLOT_LEN>();
        if long(r0, r1) != round || slots.len() != word(count) as usize || !rest.is_empty() {
            return Err(wrong(0, "the shard is of another round or length"));
        }
        let mut shard = Shard::with_capacity(slots.len());
        for slot in slots {
            let slot = Slot::decode(slot);
            shard.insert(slot.ok_or(wrong(FRAME_HEAD_LEN, "a slot of the shard is empty"))?);
        }
        let number = word(number) as usize;
        let position = self.positions.get_mut(number);
        let position = position.ok_or(wrong(16, "the shard has a number too large"))?;
        *position = GlobalOffset::new(long(p0, p1));
        self.index.set_shard(number, shard);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
