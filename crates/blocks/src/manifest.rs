//! The manifest: how far the index goes, and which segments are packed.
//!
//! An envelope of `io` with this payload, replaced whole at every checkpoint and whenever a
//! segment is packed or a packed one pruned:
//!
//! ```text
//!  0              16        24           36           48       52
//!  ┌──────────────┬─────────┬────────────┬────────────┬────────┬─────────────────────────┐
//!  │ store id     │ position│ index      │ offsets    │ packed │ packed × (start u64,    │
//!  │ 16 bytes     │ u64     │ 12 bytes   │ 12 bytes   │ u32    │           end u64)      │
//!  └──────────────┴─────────┴────────────┴────────────┴────────┴─────────────────────────┘
//! ```
//!
//! `position` is the end of the last block in the index, in the log of blocks; the blocks after it
//! are read again when the store is opened. `index` and `offsets` are the checkpoints of those logs
//! (end u64, tail crc u32). The packed segments follow one another without gaps, oldest first, each
//! the range of positions it holds.

use std::ops::Range;

use varve_io::{
    Envelope, FileOffset, FormatError, GlobalOffset, Kind, LogCheckpoint, Storage, StoreId, load,
    replace,
};

use crate::error::Result;

/// The name of the manifest's file.
pub(crate) const MANIFEST_FILE: &str = "manifest";
const KIND: Kind = Kind(*b"BLOCKMAN");
const VERSION: u32 = 1;

const POSITION_AT: usize = size_of::<StoreId>();
const INDEX_AT: usize = POSITION_AT + size_of::<u64>();
const OFFSETS_AT: usize = INDEX_AT + LogCheckpoint::LEN;
const PACKED_AT: usize = OFFSETS_AT + LogCheckpoint::LEN;
const HEAD_LEN: usize = PACKED_AT + size_of::<u32>();
const RANGE_LEN: usize = 2 * size_of::<u64>();
const _: () = assert!(HEAD_LEN == 52 && RANGE_LEN == 16);

/// The content of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The store it belongs to.
    pub store: StoreId,
    /// The end of the last block in the index, in the log of blocks.
    pub position: GlobalOffset,
    /// How far the index goes.
    pub index: LogCheckpoint,
    /// How far the tables of transaction offsets go.
    pub offsets: LogCheckpoint,
    /// The positions that packed segments hold.
    pub packed: Vec<Range<GlobalOffset>>,
}

impl Manifest {
    /// The manifest of an empty store.
    #[must_use]
    pub const fn new(store: StoreId) -> Self {
        let (index, offsets) = (LogCheckpoint::NEW, LogCheckpoint::NEW);
        Self { store, position: GlobalOffset::ZERO, index, offsets, packed: Vec::new() }
    }

    /// The payload.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.store.0.to_vec();
        bytes.extend(self.position.get().to_le_bytes());
        bytes.extend(self.index.encode());
        bytes.extend(self.offsets.encode());
        let packed = u32::try_from(self.packed.len()).expect("every one is a file");
        bytes.extend(packed.to_le_bytes());
        for range in &self.packed {
            bytes.extend(range.start.get().to_le_bytes());
            bytes.extend(range.end.get().to_le_bytes());
        }
        bytes
    }

    /// Reads a payload, whose envelope was verified.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let damaged = |at, what| FormatError::Damaged { at, what };
        let short = || damaged(bytes.len(), "the manifest is cut short");
        let (head, ranges) = bytes.split_first_chunk::<HEAD_LEN>().ok_or_else(short)?;
        let (ranges, rest) = ranges.as_chunks::<RANGE_LEN>();
        let count = u32::from_le_bytes(field(head, PACKED_AT));
        if ranges.len() as u64 != u64::from(count) || !rest.is_empty() {
            return Err(damaged(PACKED_AT, "the manifest has another length than it says"));
        }
        let packed: Vec<_> =
            ranges.iter().map(|range| u64_at(range, 0)..u64_at(range, 8)).collect();
        let ordered = packed.iter().all(|range| range.start < range.end)
            && packed.iter().zip(packed.iter().skip(1)).all(|(one, next)| one.end == next.start);
        if !ordered {
            return Err(damaged(HEAD_LEN, "the packed segments do not follow one another"));
        }
        Ok(Self {
            store: StoreId(field(head, 0)),
            position: u64_at(head, POSITION_AT),
            index: LogCheckpoint::decode(field(head, INDEX_AT)),
            offsets: LogCheckpoint::decode(field(head, OFFSETS_AT)),
            packed,
        })
    }

    /// Reads the manifest of a store; that of an empty one when there is none.
    pub(crate) fn load(storage: &dyn Storage, store: StoreId) -> Result<Self> {
        let path = storage.path().join(MANIFEST_FILE);
        let Some(envelope) = load(storage, MANIFEST_FILE, KIND)? else {
            return Ok(Self::new(store));
        };
        let manifest = if envelope.version == VERSION {
            Self::decode(&envelope.payload)
        } else {
            Err(FormatError::Version { found: envelope.version, supported: VERSION })
        };
        let foreign = FormatError::Damaged { at: 0, what: "the manifest is of another store" };
        let manifest =
            manifest.and_then(|found| if found.store == store { Ok(found) } else { Err(foreign) });
        Ok(manifest.map_err(|error| error.in_file(&path, FileOffset::ZERO))?)
    }

    /// Replaces the stored manifest by this one, durably.
    pub(crate) fn replace(&self, storage: &dyn Storage) -> Result<()> {
        let payload = self.encode();
        let envelope = Envelope { version: VERSION, payload: payload.as_slice() };
        Ok(replace(storage, MANIFEST_FILE, KIND, &envelope)?)
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes.get(at..).and_then(<[u8]>::first_chunk).expect("the fields lie within the head")
}

fn u64_at(bytes: &[u8], at: usize) -> GlobalOffset {
    GlobalOffset::new(u64::from_le_bytes(field(bytes, at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_survives_and_every_cut_is_noticed() {
        let at = GlobalOffset::new;
        let manifest = Manifest {
            store: StoreId([7; 16]),
            position: at(900),
            index: LogCheckpoint { end: at(288), tail_crc: 5 },
            offsets: LogCheckpoint { end: at(10), tail_crc: 6 },
            packed: vec![at(100)..at(200), at(200)..at(500)],
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest.clone()));
        for len in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
        let gap = Manifest { packed: vec![at(100)..at(200), at(201)..at(500)], ..manifest };
        assert!(Manifest::decode(&gap.encode()).is_err());
    }
}
