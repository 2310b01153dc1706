//! The unspent set, after Hornet: a young window in memory, immutable sorted runs on disk.
//!
//! Home of `Database` with `append`, `query`, `fetch`, `rewind`, `flush` and `snapshot`, of the
//! compacter, the undo log, the joiner, set statistics and snapshot files.
//!
//! Must not know: the history of blocks, the archive, the records, HTTP or JSON. Layer 2.
//!
//! An empty room today.

#![forbid(unsafe_code)]
