//! What a reader needs to know of a folder at rest, so that it need not work it out.
//!
//! A node that ends in order writes this behind its last checkpoint (`commit_log`). It holds what
//! otherwise takes all commits (marks, checks), all headers (the tips) or the whole window of the
//! unspent set (the number of coins) to know. Every other checkpoint leaves it out, so it is there
//! only when nothing has happened since.
//!
//! ```text
//!  0         8        12     44       48      56       80      84      88      92
//!  ┌─────────┬────────┬──────┬────────┬───────┬────────┬───────┬───────┬───────┬────────────────┐
//!  │ commit  │ tip    │ tip  │ best   │ coins │ memory │ tips  │ marks │ spans │ tips … marks … │
//!  │ sequence│ height │ hash │ header │       │ 3 times│       │       │       │ spans …, marks │
//!  │ u64     │ u32    │ 32 B │ u32    │ u64   │ u64    │ u32   │ u32   │ u32   │ and spans as in│
//!  │         │        │      │        │       │        │       │       │       │ a commit       │
//!  └─────────┴────────┴──────┴────────┴───────┴────────┴───────┴───────┴───────┴────────────────┘
//!  memory    │ header tree │ arrays and heads of the archive │ index of the unspent set │ bytes
//!  tip       │ height u32 │ hash 32 B │ branch length u32 │
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use varve_types::{BlockHash, Height, Reader};

use crate::checked::CheckedHeights;
use crate::commit_log::{CommitSequence, put_mark, put_span, read_mark, read_span};
use crate::header_tree::ChainTip;

/// The node as its last checkpoint left it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The last commit.
    pub(crate) sequence: CommitSequence,
    /// The tip of the confirmed chain.
    pub(crate) tip: (Height, BlockHash),
    /// The height of the best header.
    pub(crate) headers: Height,
    /// How many coins the unspent set has.
    pub(crate) coins: u64,
    /// Bytes of memory that grow with the chain: the header tree, the arrays and heads of the
    /// archive, and the index of the unspent set.
    pub(crate) memory: [u64; 3],
    /// Every branch that is known, and the confirmed tip.
    pub(crate) tips: Vec<ChainTip>,
    /// All blocks that were found invalid and were not reconsidered.
    pub(crate) marks: BTreeMap<BlockHash, Arc<str>>,
    /// How the scripts of the confirmed chain were settled.
    pub(crate) checked: CheckedHeights,
}

impl Rest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let count = |len: usize| u32::try_from(len).expect("lists are short").to_le_bytes();
        let spans: Vec<_> = self.checked.spans().collect();
        let mut bytes = self.sequence.0.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.tip.0.to_u32().to_le_bytes());
        bytes.extend_from_slice(self.tip.1.as_bytes());
        bytes.extend_from_slice(&self.headers.to_u32().to_le_bytes());
        bytes.extend_from_slice(&self.coins.to_le_bytes());
        self.memory.iter().for_each(|part| bytes.extend_from_slice(&part.to_le_bytes()));
        for len in [self.tips.len(), self.marks.len(), spans.len()] {
            bytes.extend_from_slice(&count(len));
        }
        for tip in &self.tips {
            bytes.extend_from_slice(&tip.height.to_u32().to_le_bytes());
            bytes.extend_from_slice(tip.hash.as_bytes());
            bytes.extend_from_slice(&tip.branch_length.to_le_bytes());
        }
        self.marks.iter().for_each(|(hash, reason)| put_mark(&mut bytes, hash, Some(reason)));
        spans.iter().for_each(|span| put_span(&mut bytes, span));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let rest = Self::read(&mut reader)?;
        reader.end().is_ok().then_some(rest)
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let sequence = CommitSequence(reader.u64("a commit sequence").ok()?);
        let tip = read_block(reader)?;
        let headers = Height::new(reader.u32("a height").ok()?);
        let coins = reader.u64("a count of coins").ok()?;
        let mut part = || reader.u64("bytes of memory").ok();
        let memory = [part()?, part()?, part()?];
        let mut count = || reader.u32("a count").ok();
        let (tip_count, mark_count, span_count) = (count()?, count()?, count()?);
        let tips = (0..tip_count).map(|_| {
            let (height, hash) = read_block(reader)?;
            let branch_length = reader.u32("a branch length").ok()?;
            Some(ChainTip { height, hash, branch_length })
        });
        let tips = tips.collect::<Option<_>>()?;
        let mut marks = BTreeMap::new();
        for _ in 0..mark_count {
            let (hash, reason) = read_mark(reader)?;
            marks.insert(hash, reason?);
        }
        let mut checked = CheckedHeights::default();
        for _ in 0..span_count {
            checked.record(read_span(reader)?);
        }
        Some(Self { sequence, tip, headers, coins, memory, tips, marks, checked })
    }
}

fn read_block(reader: &mut Reader<'_>) -> Option<(Height, BlockHash)> {
    let height = Height::new(reader.u32("a height").ok()?);
    Some((height, BlockHash::from_bytes(*reader.array("a block hash").ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked::{Checked, CheckedSpan};

    #[test]
    fn it_survives_its_bytes_and_every_cut_is_seen() {
        let hash = |byte: u8| BlockHash::from_bytes([byte; 32]);
        let tip = |height: u32, branch_length| ChainTip {
            height: Height::new(height),
            hash: hash(u8::try_from(height).unwrap()),
            branch_length,
        };
        let mut checked = CheckedHeights::default();
        let (first, last) = (Height::new(1), Height::new(5));
        checked.record(CheckedSpan { first, last, checked: Checked::Assumed });
        let (first, last) = (Height::new(7), Height::new(9));
        checked.record(CheckedSpan { first, last, checked: Checked::Scripts });
        let rest = Rest {
            sequence: CommitSequence(77),
            tip: (Height::new(9), hash(9)),
            headers: Height::new(12),
            coins: 1 << 40,
            memory: [1, 2, 1 << 33],
            tips: vec![tip(9, 0), tip(6, 2)],
            marks: [(hash(1), Arc::from("bad-ümlaut")), (hash(2), Arc::from(""))].into(),
            checked,
        };
        let bytes = rest.encode();
        assert_eq!(Rest::decode(&bytes), Some(rest));
        assert_eq!(Rest::decode(&Rest::default().encode()), Some(Rest::default()));
        for end in 0..bytes.len() {
            assert_eq!(Rest::decode(&bytes[..end]), None, "cut at {end}");
        }
        assert_eq!(Rest::decode(&[bytes, vec![0]].concat()), None);
    }
}
