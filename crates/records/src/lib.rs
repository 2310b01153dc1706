//! Live transactions, after Teranode: one record a transaction, from creation to pruning.
//!
//! Home of the record, its life cycle (spend, lock, mine, conflict, freeze, reassign, prune),
//! external blobs, and the engines behind one batch-shaped trait with one contract suite.
//!
//! Must not know: blocks on disk, the unspent set, the archive, HTTP or JSON. Layer 2.
//!
//! An empty room today.

#![forbid(unsafe_code)]
