//! Who spent a coin: a search through undo records, for the message about a block that is refused.
//!
//! A record lists every coin that its block spent, with the transaction that did. Records lead from
//! the tip downwards, so a search goes from the youngest to older ones. A chain keeps gigabytes of
//! them, so the search is bounded:
//!
//! 1. Where the window still knows when the coin died, records above that step are skipped: only
//!    the first bytes of each are read.
//! 2. From there on records are searched, the youngest first, until [`SEARCHED_MAX`] bytes of them
//!    were read. A spender further down is not named.
//!
//! The search borrows nothing from the log, so it needs no lock of the set's.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem;
use varve_io::{FRAME_HEADER_LEN, GlobalOffset, PAGE_LEN, SegmentsReader};
use varve_runs::Sequence;
use varve_types::{Outpoint, Reader, Txid};

use super::log::{PARENT_LEN, damaged, split};
use super::{UndoError, UndoRecord};

/// Bytes of records that one search reads at most: about a hundred full blocks.
const SEARCHED_MAX: u64 = 64 << 20;
/// The bytes of a record that are read to skip it: its parent and its sequence.
const HEAD_LEN: usize = PARENT_LEN + size_of::<u32>();

/// The records of the chain at one moment.
#[derive(Debug)]
pub(crate) struct Spenders {
    pub(super) reader: SegmentsReader,
    pub(super) tip: Option<GlobalOffset>,
    /// Records in memory.
    pub(super) recent: HashMap<GlobalOffset, Arc<Vec<u8>>>,
}

impl Spenders {
    /// The transaction that spent this coin in a block of the chain, no later than step `died`,
    /// when that is known.
    pub(crate) fn find(
        &self,
        outpoint: &Outpoint,
        died: Option<Sequence>,
    ) -> Result<Option<Txid>, UndoError> {
        self.find_within(SEARCHED_MAX, outpoint, died)
    }

    pub(super) fn find_within(
        &self,
        mut left: u64,
        outpoint: &Outpoint,
        died: Option<Sequence>,
    ) -> Result<Option<Txid>, UndoError> {
        let finder = memmem::Finder::new(outpoint.txid.as_bytes());
        let mut next = self.tip;
        while let Some(at) = next.filter(|at| *at >= self.reader.start()) {
            let (parent, sequence) = self.head(at)?;
            next = parent;
            if died.is_some_and(|died| sequence > died) {
                left = left.saturating_sub(PAGE_LEN as u64);
            } else if let Some(spender) = self.spender_in(at, outpoint, &finder, &mut left)? {
                return Ok(Some(spender));
            }
            if left == 0 {
                break;
            }
        }
        Ok(None)
    }

    /// The transaction that spent the coin in the block of this record.
    fn spender_in(
        &self,
        at: GlobalOffset,
        outpoint: &Outpoint,
        finder: &memmem::Finder<'_>,
        left: &mut u64,
    ) -> Result<Option<Txid>, UndoError> {
        let frame;
        let payload: &[u8] = match self.recent.get(&at) {
            Some(payload) => payload,
            None => {
                frame = self.reader.frame(at)?;
                &frame
            }
        };
        *left = left.saturating_sub(payload.len() as u64);
        let (_, bytes) = split(at, payload)?;
        if finder.find(bytes).is_none() {
            return Ok(None);
        }
        let record = UndoRecord::decode(bytes).map_err(|error| damaged(at, error))?;
        Ok(record.spender(outpoint))
    }

    /// The parent and the sequence of a record. Of one on disk only these bytes are read, without
    /// verification: only a verified record decides whether the coin is in it.
    fn head(&self, at: GlobalOffset) -> Result<(Option<GlobalOffset>, Sequence), UndoError> {
        let mapped;
        let bytes = match self.recent.get(&at) {
            Some(payload) => payload.get(..HEAD_LEN).unwrap_or_default(),
            None => {
                mapped = self.reader.bytes(at.plus(FRAME_HEADER_LEN as u64), HEAD_LEN as u64)?;
                &mapped
            }
        };
        let (parent, rest) = split(at, bytes)?;
        let sequence = Reader::new(rest).u32("a sequence");
        Ok((parent, Sequence::new(sequence.map_err(|error| damaged(at, error.into()))?)))
    }
}
