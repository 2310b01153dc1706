//! The unspent set, after Hornet: a young window in memory, immutable sorted runs on disk.
//!
//! `docs/adr/0005-unspent-set.md` tells the whole design on a page.
//!
//! Must not know: the history of blocks, the archive, the records, HTTP or JSON. Layer 2.

#![forbid(unsafe_code)]

mod entry;
mod sequence;

pub use entry::Entry;
pub use sequence::Sequence;
