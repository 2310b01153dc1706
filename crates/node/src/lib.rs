//! The node: the one crate that sees every engine and keeps them on one tip.
//!
//! Home of the sources, the header tree, the organizer with its candidate and confirmed chains,
//! the validation pipeline, the mempool, the indexes, commit and recovery.
//!
//! Must not know: JSON shapes, HTTP. Layer 3.
//!
//! An empty room today.

#![forbid(unsafe_code)]
