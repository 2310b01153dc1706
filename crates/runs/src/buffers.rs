//! How much memory the files of a store take while they are written and merged.

use varve_io::PAGE_LEN;

/// How large the buffers of one file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Keys of a chunk of a filter that is being built.
    pub chunk_keys: usize,
    /// Pages read ahead of a run that is being merged.
    pub ahead: u64,
}

impl Buffers {
    /// Quick merges. Larger chunks would save memory (1.17 fingerprints a key here, 1.15 with twice
    /// as many keys), smaller ones are built in a smaller cache.
    pub const LARGE: Self = Self { chunk_keys: 1 << 17, ahead: 128 };
    /// For little memory.
    pub const SMALL: Self = Self { chunk_keys: 1 << 15, ahead: 32 };

    /// Pages that are gathered before they are written, in bytes.
    pub const WRITER_LEN: usize = 1 << 20;
    /// A key in a chunk of a filter that is being built: its hash, and the construction beside it.
    const FILTER_KEY_LEN: usize = 32;

    /// Bytes to write a run of at most so many rows.
    #[must_use]
    pub fn writer(self, rows: usize) -> usize {
        Self::WRITER_LEN + rows.min(self.chunk_keys).saturating_mul(Self::FILTER_KEY_LEN)
    }

    /// Bytes to read a run of so many pages from front to back.
    #[must_use]
    pub fn stream(self, pages: u64) -> usize {
        usize::try_from(pages.min(self.ahead)).unwrap_or(usize::MAX).saturating_mul(PAGE_LEN)
    }
}
