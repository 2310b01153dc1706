//! The history, after libbitcoin: relational tables over append-only bodies and checkpointed heads.
//!
//! Home of the primitives (array, blob, record and slab hash maps, record multimap), the tables,
//! and every query by natural and foreign key, over one narrow back-end interface.
//!
//! Must not know: the unspent set, the records, HTTP or JSON. Layer 2.
//!
//! An empty room today.

#![forbid(unsafe_code)]
