//! The history, after libbitcoin: relational tables over append-only bodies and checkpointed heads.
//!
//! [`primitive`] holds what tables are made of: array, blob, record hash map and multimap, slab
//! hash map and slab array, with their checkpoints. The tables and the queries by natural and
//! foreign key come above them, over one narrow back-end interface.
//!
//! Must not know: the unspent set, the records, HTTP or JSON. Layer 2.

#![forbid(unsafe_code)]

pub mod primitive;
