//! How far the commit log is durable, and which blocks the archive has.
//!
//! ```text
//!  0           8          12      16
//!  ┌───────────┬──────────┬───────┬───────────┬────────┐    archived: the archive has all blocks
//!  │ end of log│ archived │ count │ numbers … │ rest … │    with lower numbers but these, whose
//!  │ u64       │ u32      │ u32   │ u32 each  │        │    headers were not known
//!  └───────────┴──────────┴───────┴───────────┴────────┘
//! ```
//!
//! *Rest* (`rest`) is written only by the checkpoint that ends a writer in order.

use std::collections::BTreeSet;

use varve_blocks::BlockNumber;
use varve_io::{Envelope, FileOffset, FormatError, GlobalOffset, Kind, Storage, load, replace};
use varve_types::Reader;

use crate::rest::Rest;

/// The name of the file.
pub(crate) const FILE: &str = "checkpoint";
const KIND: Kind = Kind(*b"COMMITCP");
const VERSION: u32 = 3;

/// Which blocks the archive has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// All with lower numbers than this,
    pub below: u32,
    /// but for these: nothing is known that their headers link to.
    pub except: BTreeSet<BlockNumber>,
}

impl Archived {
    /// Whether the archive has this block.
    #[must_use]
    pub fn has(&self, number: BlockNumber) -> bool {
        number.get() < self.below && !self.except.contains(&number)
    }

    /// The same when the archive has caught up to `number`, but for these blocks below it.
    #[must_use]
    pub(crate) fn up_to(
        &self,
        number: BlockNumber,
        left_out: impl Iterator<Item = BlockNumber>,
    ) -> Self {
        let above = self.except.iter().copied().filter(|except| *except > number);
        Self { below: self.below.max(number.get() + 1), except: above.chain(left_out).collect() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.except.len()).expect("blocks have numbers of 32 bits");
        let mut bytes = [self.below.to_le_bytes(), count.to_le_bytes()].concat();
        self.except.iter().for_each(|number| bytes.extend(number.get().to_le_bytes()));
        bytes
    }

    /// Decodes the front of `bytes`; returns the rest too.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader::new(bytes);
        let below = reader.u32("a block number").ok()?;
        let count = reader.u32("a count of blocks").ok()?;
        let number = |_| reader.u32("a block number").ok().map(BlockNumber::new);
        let except = (0..count).map(number).collect::<Option<_>>()?;
        let behind = bytes.get(reader.offset()..)?;
        Some((Self { below, except }, behind))
    }
}

/// What the file `checkpoint` says.
#[derive(Default)]
pub(super) struct Checkpoint {
    /// The end of the log: all frames before it are durable.
    pub(super) end: GlobalOffset,
    pub(super) archived: Archived,
    pub(super) rest: Option<Rest>,
}

impl Checkpoint {
    pub(super) fn load(storage: &dyn Storage) -> varve_io::Result<Self> {
        let Some(found) = load(storage, FILE, KIND)? else {
            return Ok(Self::default());
        };
        let path = storage.path().join(FILE);
        if found.version != VERSION {
            let (found, supported) = (found.version, VERSION);
            let error = FormatError::Version { found, supported };
            return Err(error.in_file(&path, FileOffset::ZERO));
        }
        let damaged = FormatError::Damaged { at: 0, what: "a checkpoint of another length" };
        Self::decode(&found.payload).ok_or_else(|| damaged.in_file(&path, FileOffset::ZERO))
    }

    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let (end, behind) = payload.split_first_chunk::<8>()?;
        let (archived, rest) = Archived::decode(behind)?;
        let rest = if rest.is_empty() { None } else { Some(Rest::decode(rest)?) };
        Some(Self { end: GlobalOffset::new(u64::from_le_bytes(*end)), archived, rest })
    }

    /// Replaces the file, durably.
    pub(super) fn store(
        storage: &dyn Storage,
        end: GlobalOffset,
        archived: &Archived,
        rest: Option<&Rest>,
    ) -> varve_io::Result<()> {
        let mut payload = end.get().to_le_bytes().to_vec();
        payload.extend(archived.encode());
        payload.extend(rest.map(Rest::encode).unwrap_or_default());
        let envelope = Envelope { version: VERSION, payload: payload.as_slice() };
        replace(storage, FILE, KIND, &envelope)
    }
}
