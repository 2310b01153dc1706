//! How far the history is settled: the blocks that only a very deep reorganisation would move.
//!
//! Blocks are looked at in the order in which they were archived. One is settled when the confirmed
//! chain has at least `window` blocks above its height. It is then either the confirmed block at
//! its height, or *stale*. The first unsettled block ends the walk: later blocks wait, even deep
//! ones.

use std::ops::Range;

use super::blocks::BlocksReader;
use super::row::{self, HEADER};
use crate::backend::Result;
use crate::link::TxLink;
use crate::primitive::{ArrayReader, Link, RecordReader};

/// The tables that decide how deep a block is.
pub(super) struct Depth<'a> {
    pub(super) headers: &'a RecordReader<32, HEADER>,
    pub(super) blocks: &'a BlocksReader,
    pub(super) confirmed: &'a ArrayReader,
    pub(super) window: u32,
}

impl Depth<'_> {
    /// The first transaction row from `from` on, and not above `limit`, whose block is not settled;
    /// and the rows below it that are stale. Both bounds are those of blocks.
    pub(super) fn below(
        &self,
        from: TxLink,
        limit: TxLink,
    ) -> Result<(TxLink, Vec<Range<TxLink>>)> {
        let (mut deep, mut stale) = (from, Vec::new());
        let settled = self.confirmed.len().saturating_sub(self.window.into());
        for block in self.blocks.from(from)? {
            let (header, end) = block?;
            let end = TxLink::new(end);
            let height = row::decode_header(&self.headers.get(Link(header.to_u32()))?).height;
            let height = u64::from(height.to_u32());
            if end > limit || height >= settled {
                break;
            }
            if self.confirmed.get(height)? != u64::from(header.to_u32()) {
                push(&mut stale, deep..end);
            }
            deep = end;
        }
        Ok((deep, stale))
    }
}

/// Adds rows that may follow the last ones.
fn push(ranges: &mut Vec<Range<TxLink>>, next: Range<TxLink>) {
    match ranges.last_mut() {
        Some(last) if last.end == next.start => last.end = next.end,
        _ => ranges.push(next),
    }
}
