//! Long payloads, written past the page cache.
//!
//! ```text
//!  blocks of the file   │       │       │       │       │
//!  payload                  ├ a ┼ b ────────────┼ c ┤
//! ```
//!
//! A payload of many blocks is seldom read again soon, and allocating page cache for it can cost
//! more than the write itself. So the blocks that it fills (b) are copied into aligned memory and
//! written past the cache. The ends that share a block with a neighbour (a, c) go through the
//! cache. As long as the log only grows, no block is written both ways, and maps of earlier frames
//! stay valid.
//!
//! This takes a second descriptor. Only the last file has one, so that a log of many files costs
//! one descriptor each.

use std::sync::Arc;

use super::series::Segment;
use crate::buffer::{AlignedBuffer, BLOCK};
use crate::error::Result;
use crate::offset::FileOffset;
use crate::storage::File;

/// Payloads of at least this many bytes are long.
pub(super) const LONG: usize = 1 << 18;
/// Bytes copied and written at a time.
const PIECE: usize = 1 << 20;
const _: () = assert!(PIECE.is_multiple_of(BLOCK) && LONG >= 2 * BLOCK);

/// Writes long payloads.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    /// The log's last file.
    file: Option<Arc<dyn File>>,
    piece: Option<AlignedBuffer>,
}

impl Bulk {
    /// Closes the file: it is no longer the last one, or its name will be reused.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    /// Writes `bytes` at `at` of the last segment. `open` opens its file past the cache, when it is
    /// not open yet.
    pub(super) fn write(
        &mut self,
        open: impl FnOnce() -> Result<Arc<dyn File>>,
        segment: &Segment,
        at: FileOffset,
        bytes: &[u8],
    ) -> Result<()> {
        let first_block = at.get().next_multiple_of(BLOCK as u64) - at.get();
        let before = usize::try_from(first_block).map_or(bytes.len(), |len| len.min(bytes.len()));
        let (before, rest) = bytes.split_at(before);
        let (blocks, behind) = rest.split_at(rest.len() / BLOCK * BLOCK);
        write(segment.file.as_ref(), at, before)?;
        let mut at = at.plus(before.len() as u64);
        let direct = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(open()?)),
        };
        let piece = self.piece.get_or_insert_with(|| AlignedBuffer::zeroed(PIECE));
        for part in blocks.chunks(PIECE) {
            let piece = piece.get_mut(..part.len()).expect("a part is at most a piece");
            piece.copy_from_slice(part);
            direct.write_at(at, piece)?;
            at = at.plus(part.len() as u64);
        }
        write(segment.file.as_ref(), at, behind)
    }
}

fn write(file: &dyn File, at: FileOffset, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() { Ok(()) } else { file.write_at(at, bytes) }
}
