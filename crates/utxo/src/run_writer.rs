//! Writes a run from entries in order: packs their coins and chooses the width of the filter.

use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{Buffers, RunNumber, Sequence, Span, StoreKey, Width};
use varve_types::Amount;

use crate::codec::{CoinCodec, Record, Run};
use crate::entry::Entry;
use crate::packed::{PackedCoin, pack};
use crate::run_error::RunError;

/// Runs with fewer entries than this get fingerprints of two bytes. They are the young ones, of
/// which a lookup probes many; together they are a small part of the set.
const WIDE_BELOW: u64 = 1 << 20;

/// The width of the fingerprints of a run of about `expected` entries.
///
/// The oldest run, which has the first step of all, is by far the largest. A lookup reaches it when
/// no younger run has the coin, so a coin that exists at all is there: a precise filter would save
/// few reads. A key costs at most one page of it, whatever the filter says.
pub(crate) fn width_of(expected: u64, span: Span) -> Width {
    if expected < WIDE_BELOW {
        Width::Two
    } else if span.first <= Sequence::new(1) {
        Width::Half
    } else {
        Width::One
    }
}

/// A run that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The number of the file.
    pub number: RunNumber,
    /// The steps whose changes it holds.
    pub span: Span,
    /// An estimate of the number of entries.
    pub expected: u64,
    /// The sizes of its buffers.
    pub buffers: Buffers,
}

/// A run being written. If it is dropped before it is finished, it removes its file, so that a full
/// disk does not stay full.
#[derive(Debug)]
pub struct RunWriter {
    writer: varve_runs::RunWriter<CoinCodec>,
    /// Memory for a packed coin, kept from one to the next.
    packed: Vec<u8>,
}

impl RunWriter {
    /// Begins a run.
    pub fn create(
        storage: &Arc<dyn Storage>,
        key: StoreKey,
        new: &NewRun,
    ) -> Result<Self, RunError> {
        let NewRun { number, span, expected, buffers } = *new;
        let (filter, chunk_keys) = (Some(width_of(expected, span)), buffers.chunk_keys);
        let new = varve_runs::NewRun { number, span, expected, filter, chunk_keys };
        let writer = varve_runs::RunWriter::create(storage, key, &new)?;
        Ok(Self { writer, packed: Vec::new() })
    }

    /// The number of entries so far.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.writer.rows()
    }

    /// Adds an entry, which must come after all before it.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), RunError> {
        let Entry { outpoint, birth, coin } = *entry;
        let Some(coin) = coin else {
            return self.writer.push(&Record { outpoint, birth, coin: None });
        };
        if coin.value > Amount::MAX_MONEY {
            return Err(RunError::Amount { outpoint });
        }
        self.packed.clear();
        pack(&coin, &mut self.packed);
        let coin = Some(PackedCoin::new(&self.packed));
        self.writer.push(&Record { outpoint, birth, coin })
    }

    /// Writes the rest, syncs the file and its name, and opens it.
    pub fn finish(self) -> Result<Run, RunError> {
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::span;

    #[test]
    fn the_oldest_run_has_the_smallest_filter() {
        let many = WIDE_BELOW;
        assert_eq!(width_of(many, span(1, 900)), Width::Half);
        assert_eq!(width_of(many, span(2, 900)), Width::One);
        assert_eq!(width_of(many - 1, span(1, 900)), Width::Two);
    }
}
