//! How much memory it takes to write and to merge runs.

use varve_io::PAGE_LEN;

use crate::footer::RunInfo;

/// The sizes of the buffers of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Keys in a chunk of a filter that is being built.
    pub chunk_keys: usize,
    /// Pages read ahead in each run that is being merged.
    pub ahead: u64,
}

impl Buffers {
    /// For speed. Chunks twice as large would save little memory (1.15 fingerprints a key instead
    /// of 1.17) and would no longer be built in the CPU's cache.
    pub const LARGE: Self = Self { chunk_keys: 1 << 17, ahead: 128 };
    /// For small budgets.
    pub const SMALL: Self = Self { chunk_keys: 1 << 15, ahead: 32 };

    /// Bytes of pages that are gathered before they are written.
    pub const WRITER_LEN: usize = 1 << 20;
    /// Bytes a key takes in a chunk that is being built: its hash and the construction beside it.
    const FILTER_KEY_LEN: usize = 32;

    /// Bytes to write a run of at most `rows` rows.
    #[must_use]
    pub fn writer(self, rows: usize) -> usize {
        Self::WRITER_LEN + rows.min(self.chunk_keys).saturating_mul(Self::FILTER_KEY_LEN)
    }

    /// Bytes to merge these runs into one.
    #[must_use]
    pub fn merge(self, inputs: &[RunInfo]) -> usize {
        let rows: u64 = inputs.iter().map(|info| info.adds + info.deletes).sum();
        let streams: usize = inputs.iter().map(|info| self.stream(info.pages)).sum();
        self.writer(usize::try_from(rows).unwrap_or(usize::MAX)).saturating_add(streams)
    }

    /// Bytes to read a run of this many pages from front to back.
    #[must_use]
    pub fn stream(self, pages: u64) -> usize {
        usize::try_from(pages.min(self.ahead)).unwrap_or(usize::MAX).saturating_mul(PAGE_LEN)
    }
}
