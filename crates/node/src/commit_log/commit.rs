//! One commit, and the bytes of its frame.
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
//! * *Marks*: blocks that were found invalid since the last commit, and blocks whose mark was
//!   removed. The last entry for a block counts.
//! * *Spans*: heights of the chain after this commit whose scripts were settled since the last one.
//!   What was recorded above the fork before is void.

use std::sync::Arc;

use varve_blocks::{BlockNumber, Synced};
use varve_io::{FormatError, GlobalOffset};
use varve_types::{BlockHash, Height, Reader};

use crate::checked::{Checked, CheckedSpan};

/// The length of a commit without its marks.
pub(super) const FIXED_LEN: usize = size_of::<u64>()
    + 2 * size_of::<u32>()
    + size_of::<BlockHash>()
    + 2 * size_of::<u32>()
    + size_of::<u64>()
    + 2 * size_of::<u16>();
const _: () = assert!(FIXED_LEN == 68);
/// The longest reason that is kept; what is longer is cut.
const REASON_MAX: usize = 512;
/// In place of the length of a reason: the mark is removed.
const UNMARK: u16 = u16::MAX;
/// The most marks, and the most spans, that a commit holds.
pub(crate) const LIST_MAX: usize = 1000;

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
    /// Blocks found invalid, and why; `None` where the mark was removed. At most `LIST_MAX`.
    pub marks: Vec<(BlockHash, Option<Arc<str>>)>,
    /// Heights whose scripts were settled. At most `LIST_MAX`.
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
