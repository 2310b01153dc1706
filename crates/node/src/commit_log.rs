//! The commit log: the truth about the confirmed chain.
//!
//! A block is part of the confirmed chain when the frame of its commit is synced. One frame a
//! commit ([`Commit`] draws it); a commit may take in many blocks, or none when it only marks bad
//! ones.
//!
//! Bytes behind the last whole frame were never acknowledged; opening the log cuts them off. Damage
//! is distinguished from such a torn end in three ways:
//!
//! 1. Every checkpoint of the node notes the end of the log in the file `checkpoint`, an envelope:
//!    frames before that position must be whole.
//! 2. Every frame is synced before the next is written. So a frame that does not verify and has
//!    another behind it is damaged.
//! 3. The archive's checkpoint names the commit that it has followed (`recovery`).
//!
//! Only the very last frame, until a checkpoint covers it, is taken for torn when it is damaged.
//! Its blocks are stored; the next sync confirms them again.

mod checkpoint;
mod commit;

use std::collections::BTreeMap;
use std::sync::Arc;

use varve_io::{
    FileOffset, GlobalOffset, Kind, Segments, SegmentsConfig, SegmentsReader, Storage, StoreId,
};
use varve_types::BlockHash;

use crate::checked::CheckedHeights;
use crate::rest::Rest;
use checkpoint::Checkpoint;

pub(crate) use checkpoint::{Archived, FILE as CHECKPOINT};
pub use commit::{Commit, CommitSequence};
pub(crate) use commit::{LIST_MAX, put_mark, put_span, read_mark, read_span};

const KIND: Kind = Kind(*b"COMMITS\0");
/// How the names of the log's files begin.
pub(crate) const PREFIX: &str = "commits";
const SEGMENT_SIZE: u64 = 16 << 20;

/// What all frames of the log amount to.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The last commit; `None` in a new store.
    pub last: Option<Commit>,
    /// All blocks that were found invalid and were not reconsidered.
    pub marks: BTreeMap<BlockHash, Arc<str>>,
    /// How the scripts of the confirmed chain were settled.
    pub checked: CheckedHeights,
    /// What the archive had at the last checkpoint.
    pub archived: Archived,
}

impl History {
    /// Applies the next commit.
    fn take(&mut self, commit: &Commit) {
        for (hash, reason) in &commit.marks {
            match reason {
                Some(reason) => self.marks.insert(*hash, Arc::clone(reason)),
                None => self.marks.remove(hash),
            };
        }
        self.checked.cut_above(commit.fork);
        commit.checked.iter().for_each(|span| self.checked.record(*span));
    }
}

/// The log, open for appending.
#[derive(Debug)]
pub struct CommitLog {
    storage: Arc<dyn Storage>,
    segments: Segments,
}

impl CommitLog {
    /// Opens the log of a directory, or creates one, and reads all of it.
    pub fn open(storage: Arc<dyn Storage>, store: StoreId) -> varve_io::Result<(Self, History)> {
        let Checkpoint { end: durable, archived, .. } = Checkpoint::load(storage.as_ref())?;
        let segments = Segments::open_synced_each(Arc::clone(&storage), config(store), durable)?;
        Self::read(storage, segments, archived)
    }

    /// What the last checkpoint says of a log that nobody writes to; `None` when it was not the
    /// last thing that happened. Changes nothing and reads no commit.
    pub(crate) fn at_rest(storage: &dyn Storage, store: StoreId) -> varve_io::Result<Option<Rest>> {
        let Checkpoint { end, rest, .. } = Checkpoint::load(storage)?;
        let segments = SegmentsReader::at_rest(storage, &config(store), end)?;
        Ok(rest.filter(|_| segments.is_some()))
    }

    /// Opens a damaged log: cuts it before the first frame that does not verify.
    pub fn salvage(storage: Arc<dyn Storage>, store: StoreId) -> varve_io::Result<(Self, History)> {
        if storage.list()?.iter().any(|name| name == CHECKPOINT) {
            storage.remove(CHECKPOINT)?;
            storage.sync_dir()?;
        }
        let segments = Segments::open(Arc::clone(&storage), config(store), GlobalOffset::ZERO)?;
        Self::read(storage, segments, Archived::default())
    }

    fn read(
        storage: Arc<dyn Storage>,
        segments: Segments,
        archived: Archived,
    ) -> varve_io::Result<(Self, History)> {
        let mut history = History { archived, ..History::default() };
        for frame in segments.reader().frames(GlobalOffset::ZERO) {
            let commit = Commit::decode(&frame?).map_err(|error| {
                error.in_file(&storage.path().join("commits"), FileOffset::ZERO)
            })?;
            history.take(&commit);
            history.last = Some(commit);
        }
        Ok((Self { storage, segments }, history))
    }

    /// Appends a commit, durably. The block store must be durable up to what it says.
    pub fn append(&mut self, commit: &Commit) -> varve_io::Result<()> {
        self.segments.append(&[&commit.encode()])?;
        self.segments.sync()?;
        Ok(())
    }

    /// Notes that all frames so far are durable, and what the archive has.
    pub fn checkpoint(&mut self, archived: &Archived) -> varve_io::Result<()> {
        self.note(archived, None)
    }

    /// The same, for the last checkpoint of a writer: with what readers need to know.
    pub(crate) fn rest(&mut self, archived: &Archived, rest: &Rest) -> varve_io::Result<()> {
        self.note(archived, Some(rest))
    }

    fn note(&mut self, archived: &Archived, rest: Option<&Rest>) -> varve_io::Result<()> {
        let end = self.segments.sync()?;
        Checkpoint::store(self.storage.as_ref(), end, archived, rest)
    }
}

fn config(store: StoreId) -> SegmentsConfig {
    SegmentsConfig { prefix: PREFIX.to_owned(), kind: KIND, store, segment_size: SEGMENT_SIZE }
}

#[cfg(test)]
mod tests;
