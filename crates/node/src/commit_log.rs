//! The commit log: the truth about the confirmed chain.
//!
//! A block is part of the confirmed chain when the frame of its commit is synced. One frame a
//! commit; a commit may take in many blocks, or none when it only remembers bad ones.
//!
//! ```text
//!  0         8        12       16      48     52      56          64      66      68
//!  ┌─────────┬────────┬────────┬───────┬──────┬───────┬───────────┬───────┬───────┬─────────┐
//!  │ commit  │ tip    │ tip    │ tip   │ fork │ blocks│ end of    │ marks │ spans │ marks … │
//!  │ sequence│ height │ number │ hash  │height│ synced│ blocks    │       │       │ spans … │
//!  │ u64     │ u32    │ u32    │ 32 B  │ u32  │ u32   │ u64       │ u16   │ u16   │         │
//!  └─────────┴────────┴────────┴───────┴──────┴───────┴───────────┴───────┴───────┴─────────┘
//!  mark      │ block hash 32 B │ length u16 │ reason, UTF-8, at most 512 B │
//!  unmark    │ block hash 32 B │ 0xFFFF     │
//!  span      │ first height u32 │ last height u32 │ u8: 1 assumed, 2 scripts checked │
//! ```
//!
//! * *Fork*: the highest block that the chain before this commit and the one after it share.
//! * *Blocks synced, end of blocks*: how much of the block store is durable ([`Synced`]). The
//!   block store was synced before the frame was written, so all of it must be there.
//! * *Marks*: blocks that were found invalid since the last commit, and blocks whose mark was taken
//!   back. The last word on a block holds.
//! * *Spans*: heights of the chain after this commit whose scripts were settled since the last one.
//!   What was recorded above the fork before is void.
//!
//! What is behind the last whole frame was never acknowledged, and is cut when the log is opened.
//! Damage is told from such a torn end in three ways:
//!
//! 1. Every checkpoint of the node notes the end of the log in the file `checkpoint`, an envelope:
//!    frames before that position must be whole.
//! 2. Every frame is synced before the next is written. So a frame that does not verify and has
//!    another behind it is damaged.
//! 3. The archive's checkpoint names the commit that it has followed (`recovery`).
//!
//! Only the very last frame, as long as no checkpoint has come after it, is taken for torn when it
//! is damaged. Its blocks are stored; the next sync confirms them again.
//!
//! ```text
//!  0           8          12      16
//!  ┌───────────┬──────────┬───────┬───────────┬────────┐    archived: the archive has all blocks
//!  │ end of log│ archived │ count │ numbers … │ rest … │    with lower numbers but these, whose
//!  │ u64       │ u32      │ u32   │ u32 each  │        │    headers were not known
//!  └───────────┴──────────┴───────┴───────────┴────────┘
//! ```
//!
//! *Rest* (`rest`) is there when the checkpoint is the last thing that a node did, else nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use varve_blocks::{BlockNumber, Synced};
use varve_io::{
    Envelope, FileOffset, FormatError, GlobalOffset, Kind, Segments, SegmentsConfig,
    SegmentsReader, Storage, StoreId, load, replace,
};
use varve_types::{BlockHash, Height, Reader};

use crate::checked::{Checked, CheckedHeights, CheckedSpan};
use crate::rest::Rest;

const KIND: Kind = Kind(*b"COMMITS\0");
const CHECKPOINT_KIND: Kind = Kind(*b"COMMITCP");
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// How the names of the log's files begin.
pub(crate) const PREFIX: &str = "commits";
const CHECKPOINT_VERSION: u32 = 3;
const SEGMENT_SIZE: u64 = 16 << 20;

/// The length of a commit without its marks.
const FIXED_LEN: usize = size_of::<u64>()
    + 2 * size_of::<u32>()
    + size_of::<BlockHash>()
    + 2 * size_of::<u32>()
    + size_of::<u64>()
    + 2 * size_of::<u16>();
const _: () = assert!(FIXED_LEN == 68);
/// The longest reason that is kept; what is longer is cut.
const REASON_MAX: usize = 512;
/// In place of the length of a reason: the mark is taken back.
const UNMARK: u16 = u16::MAX;
/// The most marks, and the most spans, that a commit holds.
pub const LIST_MAX: usize = 1000;

/// The codes of a span.
const ASSUMED: u8 = 1;
const SCRIPTS: u8 = 2;

/// The order of commits, from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitSequence(pub u64);

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its number.
    pub sequence: CommitSequence,
    /// The tip of the confirmed chain.
    pub tip: (Height, BlockHash),
    /// The tip in the block store.
    pub number: BlockNumber,
    /// The highest block that the chain shares with the one of the commit before.
    pub fork: Height,
    /// How much of the block store is durable.
    pub synced: Synced,
    /// Blocks found invalid, and why; `None` where the mark was taken back. At most [`LIST_MAX`].
    pub marks: Vec<(BlockHash, Option<Arc<str>>)>,
    /// Heights whose scripts were settled. At most [`LIST_MAX`].
    pub checked: Vec<CheckedSpan>,
}

impl Commit {
    /// The payload of the frame. Reasons are cut to what a mark holds.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_LEN);
        bytes.extend_from_slice(&self.sequence.0.to_le_bytes());
        bytes.extend_from_slice(&self.tip.0.to_u32().to_le_bytes());
        bytes.extend_from_slice(&self.number.get().to_le_bytes());
        bytes.extend_from_slice(self.tip.1.as_bytes());
        bytes.extend_from_slice(&self.fork.to_u32().to_le_bytes());
        bytes.extend_from_slice(&self.synced.count.to_le_bytes());
        bytes.extend_from_slice(&self.synced.position.get().to_le_bytes());
        bytes.extend_from_slice(&short(self.marks.len()).to_le_bytes());
        bytes.extend_from_slice(&short(self.checked.len()).to_le_bytes());
        for (hash, reason) in &self.marks {
            put_mark(&mut bytes, hash, reason.as_deref());
        }
        self.checked.iter().for_each(|span| put_span(&mut bytes, span));
        bytes
    }

    /// Reads the payload of a frame.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(bytes);
        let commit = Self::read(&mut reader).filter(|_| reader.end().is_ok());
        let (at, what) = (reader.offset(), "this is not a commit");
        commit.ok_or(FormatError::Damaged { at, what })
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let sequence = CommitSequence(reader.u64("a commit sequence").ok()?);
        let height = Height::new(reader.u32("a height").ok()?);
        let number = BlockNumber::new(reader.u32("a block number").ok()?);
        let hash = BlockHash::from_bytes(*reader.array("a block hash").ok()?);
        let fork = Height::new(reader.u32("a fork height").ok()?);
        let count = reader.u32("a count of blocks").ok()?;
        let position = GlobalOffset::new(reader.u64("a log position").ok()?);
        let mark_count = reader.u16("a count of marks").ok()?;
        let span_count = reader.u16("a count of spans").ok()?;
        let marks = (0..mark_count).map(|_| read_mark(reader)).collect::<Option<_>>()?;
        let checked = (0..span_count).map(|_| read_span(reader)).collect::<Option<_>>()?;
        let synced = Synced { count, position };
        Some(Self { sequence, tip: (height, hash), number, fork, synced, marks, checked })
    }
}

pub(crate) fn put_mark(bytes: &mut Vec<u8>, hash: &BlockHash, reason: Option<&str>) {
    bytes.extend_from_slice(hash.as_bytes());
    let Some(reason) = reason else {
        bytes.extend_from_slice(&UNMARK.to_le_bytes());
        return;
    };
    let reason = reason.get(..reason.floor_char_boundary(REASON_MAX)).unwrap_or_default();
    bytes.extend_from_slice(&short(reason.len()).to_le_bytes());
    bytes.extend_from_slice(reason.as_bytes());
}

pub(crate) fn read_mark(reader: &mut Reader<'_>) -> Option<(BlockHash, Option<Arc<str>>)> {
    let hash = BlockHash::from_bytes(*reader.array("a block hash").ok()?);
    let length = reader.u16("the length of a reason").ok()?;
    if length == UNMARK {
        return Some((hash, None));
    }
    let reason = reader.take(length.into(), "a reason").ok()?;
    let reason = std::str::from_utf8(reason).ok().filter(|reason| reason.len() <= REASON_MAX)?;
    Some((hash, Some(Arc::from(reason))))
}

pub(crate) fn put_span(bytes: &mut Vec<u8>, span: &CheckedSpan) {
    bytes.extend_from_slice(&span.first.to_u32().to_le_bytes());
    bytes.extend_from_slice(&span.last.to_u32().to_le_bytes());
    bytes.push(if span.checked == Checked::Scripts { SCRIPTS } else { ASSUMED });
}

pub(crate) fn read_span(reader: &mut Reader<'_>) -> Option<CheckedSpan> {
    let first = Height::new(reader.u32("a height").ok()?);
    let last = Height::new(reader.u32("a height").ok()?);
    let checked = match reader.array::<1>("a kind of check").ok()? {
        [ASSUMED] => Checked::Assumed,
        [SCRIPTS] => Checked::Scripts,
        _ => return None,
    };
    (first <= last).then_some(CheckedSpan { first, last, checked })
}

fn short(length: usize) -> u16 {
    u16::try_from(length).expect("lists and reasons are cut to fit before")
}

/// What the log tells when it is opened.
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

    fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.except.len()).expect("blocks have numbers of 32 bits");
        let mut bytes = [self.below.to_le_bytes(), count.to_le_bytes()].concat();
        self.except.iter().for_each(|number| bytes.extend(number.get().to_le_bytes()));
        bytes
    }

    /// Reads it off the front of `bytes`; gives what is behind it too.
    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader::new(bytes);
        let below = reader.u32("a block number").ok()?;
        let count = reader.u32("a count of blocks").ok()?;
        let number = |_| reader.u32("a block number").ok().map(BlockNumber::new);
        let except = (0..count).map(number).collect::<Option<_>>()?;
        let behind = bytes.get(reader.offset()..)?;
        Some((Self { below, except }, behind))
    }
}

impl History {
    /// What a commit adds to it and takes from it.
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
    /// Opens the log of a directory, or makes one, and reads all of it.
    pub fn open(storage: Arc<dyn Storage>, store: StoreId) -> varve_io::Result<(Self, History)> {
        let Checkpoint { end: durable, archived, .. } = Checkpoint::load(storage.as_ref())?;
        let segments = Segments::open_synced_each(Arc::clone(&storage), config(store), durable)?;
        Self::read(storage, segments, archived)
    }

    /// What the last checkpoint says of a log that nobody writes to; `None` when it was not the
    /// last thing that happened. Changes nothing and reads no commit.
    pub fn at_rest(storage: &dyn Storage, store: StoreId) -> varve_io::Result<Option<Rest>> {
        let Checkpoint { end, rest, .. } = Checkpoint::load(storage)?;
        let segments = SegmentsReader::at_rest(storage, &config(store), end)?;
        Ok(rest.filter(|_| segments.is_some()))
    }

    /// Opens a log that is damaged: all from the first frame on that does not verify is given up.
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
    pub fn rest(&mut self, archived: &Archived, rest: &Rest) -> varve_io::Result<()> {
        self.note(archived, Some(rest))
    }

    fn note(&mut self, archived: &Archived, rest: Option<&Rest>) -> varve_io::Result<()> {
        let end = self.segments.sync()?;
        let mut payload = end.get().to_le_bytes().to_vec();
        payload.extend(archived.encode());
        payload.extend(rest.map(Rest::encode).unwrap_or_default());
        let envelope = Envelope { version: CHECKPOINT_VERSION, payload: payload.as_slice() };
        replace(self.storage.as_ref(), CHECKPOINT, CHECKPOINT_KIND, &envelope)
    }
}

fn config(store: StoreId) -> SegmentsConfig {
    SegmentsConfig { prefix: PREFIX.to_owned(), kind: KIND, store, segment_size: SEGMENT_SIZE }
}

/// What the file `checkpoint` says.
#[derive(Default)]
struct Checkpoint {
    end: GlobalOffset,
    archived: Archived,
    rest: Option<Rest>,
}

impl Checkpoint {
    fn load(storage: &dyn Storage) -> varve_io::Result<Self> {
        let Some(found) = load(storage, CHECKPOINT, CHECKPOINT_KIND)? else {
            return Ok(Self::default());
        };
        let path = storage.path().join(CHECKPOINT);
        if found.version != CHECKPOINT_VERSION {
            let (found, supported) = (found.version, CHECKPOINT_VERSION);
            let error = FormatError::Version { found, supported };
            return Err(error.in_file(&path, FileOffset::ZERO));
        }
        let damaged = FormatError::Damaged { at: 0, what: "a checkpoint of another length" };
        Self::decode(&found.payload).ok_or_else(|| damaged.in_file(&path, FileOffset::ZERO))
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let (end, behind) = payload.split_first_chunk::<8>()?;
        let (archived, rest) = Archived::decode(behind)?;
        let rest = if rest.is_empty() { None } else { Some(Rest::decode(rest)?) };
        Some(Self { end: GlobalOffset::new(u64::from_le_bytes(*end)), archived, rest })
    }
}

#[cfg(test)]
mod tests {
    use varve_io::faulty::{Crash, FaultyStorage};

    use super::*;

    fn commit(sequence: u64) -> Commit {
        let byte = u8::try_from(sequence).unwrap();
        let height = u32::from(byte);
        Commit {
            sequence: CommitSequence(sequence),
            tip: (Height::new(height), BlockHash::from_bytes([byte; 32])),
            number: BlockNumber::new(height + 1),
            fork: Height::new(height.saturating_sub(1)),
            synced: Synced { count: height + 2, position: GlobalOffset::new(sequence * 1000) },
            marks: vec![(mark(sequence), Some(Arc::from("bad-txns-ümlaut")))],
            checked: vec![span(height, height, Checked::Scripts)],
        }
    }

    fn mark(sequence: u64) -> BlockHash {
        BlockHash::from_bytes([u8::try_from(sequence).unwrap() ^ 0xff; 32])
    }

    fn span(first: u32, last: u32, checked: Checked) -> CheckedSpan {
        CheckedSpan { first: Height::new(first), last: Height::new(last), checked }
    }

    /// The last word on a block holds, and what was checked above a fork is void.
    #[test]
    fn marks_are_taken_back_and_spans_go_with_their_branch() {
        let storage = Arc::new(FaultyStorage::new(1));
        let store = StoreId([1; 16]);
        let (mut log, _) = CommitLog::open(storage.clone(), store).unwrap();
        (1..=6).for_each(|sequence| log.append(&commit(sequence)).unwrap());
        let mut back = commit(7);
        back.fork = Height::new(3);
        back.marks = vec![(mark(2), None), (mark(4), None), (mark(4), Some(Arc::from("again")))];
        back.checked = vec![span(5, 6, Checked::Assumed)];
        log.append(&back).unwrap();
        drop(log);
        let (_, history) = CommitLog::open(storage, store).unwrap();
        let marked: Vec<_> = [1, 2, 3, 4, 5, 6].map(|at| history.marks.get(&mark(at))).into();
        assert!(marked[1].is_none() && marked[3].is_some_and(|reason| &**reason == "again"));
        assert_eq!(marked.iter().flatten().count(), 5);
        let found: Vec<_> = (1..=7).map(|height| history.checked.at(Height::new(height))).collect();
        use Checked::{Assumed, Scripts, Spends};
        assert_eq!(found, [Scripts, Scripts, Scripts, Spends, Assumed, Assumed, Spends]);
    }

    #[test]
    fn a_commit_survives_its_bytes_and_every_cut_is_seen() {
        let bytes = commit(7).encode();
        assert_eq!(Commit::decode(&bytes), Ok(commit(7)));
        assert_eq!(bytes.len(), FIXED_LEN + 34 + "bad-txns-ümlaut".len() + 9);
        for end in 0..bytes.len() {
            assert!(Commit::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
        assert!(Commit::decode(&[bytes, vec![0]].concat()).is_err());
    }

    #[test]
    fn what_is_archived_survives_its_bytes_and_every_cut_is_seen() {
        let except = [0, 5, u32::MAX - 1].map(BlockNumber::new).into();
        let archived = Archived { below: 6, except };
        let bytes = archived.encode();
        assert_eq!(Archived::decode(&bytes), Some((archived.clone(), &[][..])));
        for end in 0..bytes.len() {
            assert_eq!(Archived::decode(&bytes[..end]), None, "cut at {end}");
        }
        let longer = [bytes.as_slice(), &[1, 2]].concat();
        assert_eq!(Archived::decode(&longer), Some((archived, &[1, 2][..])));
        assert!(Checkpoint::decode(&[&[0; 8], longer.as_slice()].concat()).is_none());
    }

    #[test]
    fn long_reasons_are_cut_between_letters() {
        let reason: String = "ü".repeat(300);
        let mut long = commit(1);
        long.marks = vec![(BlockHash::ZERO, Some(Arc::from(reason.as_str())))];
        let found = Commit::decode(&long.encode()).unwrap();
        assert_eq!(found.marks[0].1.as_deref(), Some(&reason[..512]));
    }

    /// Every bit of every frame, with and without a checkpoint: all commits are there, or it is an
    /// error that names the file. Only the last one may be lost, and only without a checkpoint.
    /// Salvaging gives the commits before the damage.
    #[test]
    fn a_flipped_bit_loses_no_acknowledged_commit() {
        let store = StoreId([1; 16]);
        for with_checkpoint in [false, true] {
            let storage = Arc::new(FaultyStorage::new(1));
            let (mut log, _) = CommitLog::open(storage.clone(), store).unwrap();
            (1..=4).for_each(|sequence| log.append(&commit(sequence)).unwrap());
            if with_checkpoint {
                log.checkpoint(&Archived { below: 3, except: BTreeSet::new() }).unwrap();
            }
            drop(log);
            let name = "commits-000000000000";
            let file = storage.open(name, varve_io::Access::Read, varve_io::Caching::Buffered);
            let (mut refused, size) = (0, file.unwrap().size().unwrap());
            for at in 0..size {
                let copy = || {
                    let copy = storage.crash(storage.operations(), Crash::KeepAll);
                    assert!(copy.flip_bit(name, FileOffset::new(at), 3));
                    Arc::new(copy)
                };
                match CommitLog::open(copy(), store) {
                    Ok((_, history)) => {
                        let found = history.last.unwrap().sequence.0;
                        assert!(found >= if with_checkpoint { 4 } else { 3 }, "byte {at}");
                    }
                    Err(error) => {
                        assert!(error.to_string().contains(name), "byte {at}: {error}");
                        refused += 1;
                    }
                }
                match CommitLog::salvage(copy(), store) {
                    Ok((_, history)) => {
                        assert!(history.last.is_none_or(|last| last.sequence.0 < 5))
                    }
                    Err(error) => assert!(at < 64, "byte {at}: {error}"),
                }
            }
            assert!(refused * 2 > size, "{refused} of {size}");
        }
    }

    #[test]
    fn every_power_cut_leaves_what_was_acknowledged() {
        let storage = Arc::new(FaultyStorage::new(1));
        let store = StoreId([1; 16]);
        let (mut log, history) = CommitLog::open(storage.clone(), store).unwrap();
        assert_eq!(history.last, None);
        let except = [2, 7].map(BlockNumber::new).into();
        let archived = Archived { below: 9, except };
        assert!(archived.has(BlockNumber::new(8)) && !archived.has(BlockNumber::new(9)));
        assert!(!archived.has(BlockNumber::new(7)));
        let mut acknowledged = vec![(0, 0)];
        for sequence in 1..=5 {
            log.append(&commit(sequence)).unwrap();
            acknowledged.push((storage.operations(), sequence));
            if sequence == 3 {
                log.checkpoint(&archived).unwrap();
            }
        }
        for n in 0..=storage.operations() {
            let least = acknowledged.iter().rev().find(|(at, _)| *at <= n).unwrap().1;
            for crash in Crash::ways(10) {
                let (_, history) =
                    CommitLog::open(Arc::new(storage.crash(n, crash)), store).unwrap();
                let found = history.last.map_or(0, |commit| commit.sequence.0);
                assert!(found >= least, "{found} < {least} after {n}, {crash:?}");
                assert_eq!(history.marks.len() as u64, found);
                assert!([&archived, &Archived::default()].contains(&&history.archived));
                assert!(found < 5 || history.archived == archived);
            }
        }
    }
}
