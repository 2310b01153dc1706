//! One checkpoint: which runs a store consists of, and what its owner adds.
//!
//! One small file, `manifest`, replaced atomically (`varve_io::replace`). Only files that the
//! manifest lists belong to the store. What a crash leaves, unfinished runs or inputs of a finished
//! merge, is removed when the store is opened.
//!
//! ```text
//!  store id 16 │ secret 16
//!  next file   │ u64 │
//!  owner       │ length u32 │ bytes that mean something to the owner alone │
//!  runs        │ count u32 │ then for each, youngest first:
//!              │ number u64 │ first step u32 │ last step u32 │ adds u64 │ deletes u64 │
//!              │ pages u64 │ digest u32 │
//! ```
//!
//! This is the payload of an envelope whose kind and version are the owner's.

use varve_io::{
    ENVELOPE_HEADER_LEN, Envelope, FileOffset, FormatError, Kind, Storage, StoreId, is_far, load,
    remove_unnamed, replace,
};

use crate::fields::Fields;
use crate::footer::{RunInfo, RunNumber, Span};
use crate::run_error::RunError;
use crate::secret::Secret;
use crate::sequence::Sequence;
use crate::store_key::StoreKey;

/// The name of the file.
pub const MANIFEST_FILE: &str = "manifest";
const RUN_LEN: usize = 44;
/// The extension of run files.
const RUN: &str = "run";

/// Files that a sweep keeps although the manifest does not list them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Files that a later manifest will list, or that the owner's part of this one does.
    pub numbers: Vec<RunNumber>,
    /// All files from this number on: they were created after the manifest.
    pub from: RunNumber,
}

impl Kept {
    /// Nothing is kept: no writer is at work.
    pub const NOTHING: Self = Self { numbers: Vec::new(), from: RunNumber(u64::MAX) };
}

/// The table of contents of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The store's id and secret.
    pub key: StoreKey,
    /// The number for the next file.
    pub next: RunNumber,
    /// The runs, youngest first.
    pub runs: Vec<RunInfo>,
    /// The owner's bytes.
    pub owner: Vec<u8>,
}

impl Manifest {
    /// Reads the manifest of a directory, which must have this kind and version; `None` when there
    /// is none. `decode` takes the owner's part.
    pub fn load<T>(
        storage: &dyn Storage,
        (kind, supported): (Kind, u32),
        decode: impl FnOnce(Self) -> Result<T, FormatError>,
    ) -> Result<Option<T>, RunError> {
        let Some(Envelope { version, payload }) = load(storage, MANIFEST_FILE, kind)? else {
            return Ok(None);
        };
        let decoded = match version {
            found if found != supported => Err(FormatError::Version { found, supported }),
            _ => Self::decode(&payload).and_then(decode),
        };
        let path = storage.path().join(MANIFEST_FILE);
        let base = FileOffset::new(ENVELOPE_HEADER_LEN as u64);
        Ok(Some(decoded.map_err(|error| error.in_file(&path, base))?))
    }

    /// Replaces the manifest of a directory. When this returns, it is durable.
    pub fn store(
        &self,
        storage: &dyn Storage,
        (kind, version): (Kind, u32),
    ) -> Result<(), RunError> {
        assert!(is_in_order(&self.runs, self.next), "a manifest lists its runs youngest first");
        let payload = self.encode();
        debug_assert_eq!(Self::decode(&payload).as_ref(), Ok(self), "what is written can be read");
        let envelope = Envelope { version, payload: payload.as_slice() };
        Ok(replace(storage, MANIFEST_FILE, kind, &envelope)?)
    }

    /// Removes runs, and files of the owner's `extensions`, that the manifest does not list, except
    /// what is `kept`; returns how many. Called when the store is opened, and after a checkpoint.
    /// Refuses when a foreign file has such a name: the store would overwrite it eventually.
    pub fn sweep(
        &self,
        storage: &dyn Storage,
        kept: &Kept,
        extensions: &[&str],
    ) -> Result<usize, RunError> {
        let is_kept = |number: RunNumber| {
            let is_named = self.runs.iter().any(|run| run.number == number);
            is_named || number >= kept.from || kept.numbers.contains(&number)
        };
        let mut removed = 0;
        for name in storage.list()? {
            let number = Self::number_of(&name, extensions).filter(|number| !is_kept(*number));
            if let Some(number) = number {
                let is_far = is_far(number.0, self.next.0);
                remove_unnamed(storage, &name, (self.key.id, StoreKey::IN_FILE_ID), is_far)?;
                removed += 1;
            }
        }
        if removed > 0 {
            storage.sync_dir()?;
        }
        Ok(removed)
    }

    /// Whether a file of this name is a run, or a numbered file of the owner's `extensions`: it is
    /// removed when no manifest lists it.
    #[must_use]
    pub fn is_swept(name: &str, extensions: &[&str]) -> bool {
        Self::number_of(name, extensions).is_some()
    }

    /// The number of a run, or of another file of the owner.
    fn number_of(name: &str, extensions: &[&str]) -> Option<RunNumber> {
        RunNumber::of_name(name, &[RUN]).or_else(|| RunNumber::of_name(name, extensions))
    }

    /// The payload.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.key.id.0);
        out.extend_from_slice(&self.key.secret.to_bytes());
        out.extend_from_slice(&self.next.0.to_le_bytes());
        let len = u32::try_from(self.owner.len()).expect("an owner keeps little here");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&self.owner);
        let count = u32::try_from(self.runs.len()).expect("runs are few");
        out.extend_from_slice(&count.to_le_bytes());
        for run in &self.runs {
            encode_run(run, &mut out);
        }
        out
    }

    /// Decodes a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new(payload);
        let id = StoreId(fields.take()?);
        let key = StoreKey { id, secret: Secret::new(fields.take()?) };
        let next = RunNumber(fields.u64()?);
        let len = fields.u32()?;
        let owner = fields.bytes(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec();
        let count = fields.u32()?;
        let at = fields.offset();
        let damaged = |what| FormatError::Damaged { at, what };
        let (runs, rest) = fields.rest().as_chunks::<RUN_LEN>();
        if runs.len() as u64 != u64::from(count) || !rest.is_empty() {
            return Err(damaged("the list of runs has another length than it says"));
        }
        let runs: Vec<RunInfo> = runs.iter().map(decode_run).collect::<Result<_, _>>()?;
        if !is_in_order(&runs, next) {
            return Err(damaged("the runs are out of order"));
        }
        Ok(Self { key, next, runs, owner })
    }
}

/// Whether the runs follow one another in time, youngest first, and were numbered below `next`.
fn is_in_order(runs: &[RunInfo], next: RunNumber) -> bool {
    runs.is_sorted_by(|young, old| young.span.first > old.span.last)
        && runs.iter().all(|run| run.number < next)
}

fn encode_run(run: &RunInfo, out: &mut Vec<u8>) {
    out.extend_from_slice(&run.number.0.to_le_bytes());
    out.extend_from_slice(&run.span.first.to_u32().to_le_bytes());
    out.extend_from_slice(&run.span.last.to_u32().to_le_bytes());
    out.extend_from_slice(&run.adds.to_le_bytes());
    out.extend_from_slice(&run.deletes.to_le_bytes());
    out.extend_from_slice(&run.pages.to_le_bytes());
    out.extend_from_slice(&run.digest.to_le_bytes());
}

fn decode_run(bytes: &[u8; RUN_LEN]) -> Result<RunInfo, FormatError> {
    let mut fields = Fields::new(bytes);
    Ok(RunInfo {
        number: RunNumber(fields.u64()?),
        span: Span { first: Sequence::new(fields.u32()?), last: Sequence::new(fields.u32()?) },
        adds: fields.u64()?,
        deletes: fields.u64()?,
        pages: fields.u64()?,
        digest: fields.u32()?,
    })
}

#[cfg(test)]
mod tests;
